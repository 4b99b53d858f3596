//! Rows F1 and F2 over whole proofs: whatever fails, the outcome is a typed error or the right proof, nothing stays on the
//! device or pinned for it, and the next proof is right. Proofs are compared with the reference, so that the prover's own
//! check cannot hide a wrong one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::devices::Subject;
use common::{blinding, host_with, reference, squares};
use prestage_groth16::{
    Assignment, Error, Libsnark, Options, Policy, Proof, Prover, ProvingKey, R1cs, Residency, Sum, Witness,
    setup_insecure_from_seed,
};
use prestage_vram::{Bytes, Change, Device, Event, Host, LedgerConfig, Op, Sim, Sink, Worker};

const POLICIES: [Policy; 4] = [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None];
const OPS: [Op; 6] = [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane];

fn options(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(1)).unverified()
}

struct Case {
    r1cs: R1cs,
    witness: Witness,
    key: ProvingKey<Libsnark>,
    expected: Proof,
}

impl Case {
    fn new(squarings: u32) -> Self {
        let (r1cs, witness) = squares(squarings, 3);
        let key = setup_insecure_from_seed(&r1cs, [7; 32]).unwrap();
        let expected = reference(&key, &r1cs, &witness, blinding(1));
        Self { r1cs, witness, key, expected }
    }

    fn log(&self) -> u32 {
        self.r1cs.domain_size().trailing_zeros()
    }

    /// Proves once with each worker.
    /// Points that stay are the subject of `resident.rs`.
    fn prover<'d, D: Subject>(&self, device: &'d D) -> Result<Prover<'d, D, Libsnark>, Error> {
        Ok(Prover::new(device, self.key.clone())?.keeping(Residency::None))
    }

    fn prove<D: Subject>(
        &self,
        prover: &Prover<'_, D, Libsnark>,
        workers: u32,
        policy: Policy,
    ) -> Vec<Result<Proof, Error>> {
        prover.device().crew(workers, |id| {
            let assignment = Assignment::new_unchecked(prover, &self.r1cs, &self.witness)?;
            Ok(prover.prove(&mut Worker::new(id.0), &assignment, &options(policy))?.proof)
        })
    }

    /// The same with a prover of its own.
    fn prove_afresh<D: Subject>(
        &self,
        device: &D,
        workers: u32,
        policy: Policy,
    ) -> Vec<Result<Proof, Error>> {
        match self.prover(device) {
            Ok(prover) => self.prove(&prover, workers, policy),
            Err(error) => vec![Err(error)],
        }
    }
}

/// Counts the operations of one kind and makes a run of them fail.
struct Faults {
    op: Op,
    seen: AtomicUsize,
    /// The first that fails, and how many.
    fails: Mutex<(usize, usize)>,
}

impl Faults {
    fn of(op: Op) -> Arc<Self> {
        Arc::new(Self { op, seen: AtomicUsize::new(0), fails: Mutex::new((0, 0)) })
    }

    fn config(self: &Arc<Self>, ahead: bool) -> LedgerConfig {
        let faults = Arc::clone(self);
        let fails = move |op| {
            op == faults.op && {
                let n = faults.seen.fetch_add(1, Ordering::SeqCst);
                let (first, number) = *faults.fails.lock().unwrap();
                (first..first.saturating_add(number)).contains(&n)
            }
        };
        LedgerConfig { ahead, faults: Some(Arc::new(fails)), ..LedgerConfig::default() }
    }

    /// From now on the operations are counted from 0, and `number` fail from number `first` on.
    fn set(&self, first: usize, number: usize) {
        *self.fails.lock().unwrap() = (first, number);
        self.seen.store(0, Ordering::SeqCst);
    }
}

/// `kept` is idle in the pool of a prover that stays.
fn assert_nothing_left<D: Device>(device: &D, pinned: Bytes, kept: Bytes, what: &str) {
    let ledger = device.ledger();
    assert_eq!(ledger.held(), [], "{what}");
    assert_eq!((ledger.level().used(), ledger.in_line()), (Bytes::ZERO, 0), "{what}");
    // Places of results that failed work may have used are given back, and pinned anew when they are needed.
    let locked = ledger.locked().bytes().saturating_sub(kept);
    assert!(locked <= pinned, "{what}: {locked} stay pinned");
}

/// The n-th operation of each kind fails, for every n (or in strides) of a proof by each of `workers` workers.
fn any_operation_may_fail<D: Subject>(workers: u32, stride: usize) {
    let case = Case::new(12);
    for policy in POLICIES {
        for op in OPS {
            let faults = Faults::of(op);
            let device = D::open_for(case.log(), faults.config(workers > 1));
            // Making a key ready pins places for results and does nothing else that can fail.
            let kept = (op != Op::Register).then(|| case.prover(&device).unwrap());
            let pinned = device.ledger().locked().bytes();
            let prove = |workers| match &kept {
                Some(prover) => case.prove(prover, workers, policy),
                None => case.prove_afresh(&device, workers, policy),
            };
            let idle = || kept.as_ref().map_or(Bytes::ZERO, |prover| prover.memory().idle());
            let right = |workers, what: &str| {
                faults.set(0, 0);
                for proof in prove(workers) {
                    assert_eq!(proof.unwrap(), case.expected, "{what}");
                }
                assert_nothing_left(&device, pinned, idle(), what);
                faults.seen.load(Ordering::SeqCst)
            };
            let count = right(workers, "before any fault");
            assert!(count > 0, "{op} never happens");
            let mut failed = 0;
            // An allocation that fails is tried once more: then both.
            for number in if op == Op::Allocate { 1..=2 } else { 1..=1 } {
                for n in (0..count).step_by(stride) {
                    let what = format!("{policy}, {workers} workers: {op} {n} of {count}, {number} times");
                    faults.set(n, number);
                    for outcome in prove(workers) {
                        match outcome {
                            Ok(proof) => assert_eq!(proof, case.expected, "{what}"),
                            Err(Error::Device(_) | Error::Transfer(_) | Error::Ntt(_) | Error::Msm(_)) => {
                                failed += 1;
                            }
                            Err(other) => panic!("{what}: {other:?}"),
                        }
                    }
                    assert_nothing_left(&device, pinned, idle(), &what);
                    right(1, &what);
                }
            }
            assert!(failed > 0, "{policy}: no {op} matters");
            drop(kept);
            assert_nothing_left(&device, Bytes::ZERO, Bytes::ZERO, "in the end");
        }
    }
}

#[test]
fn f1_any_operation_of_a_proof_may_fail_on_the_cpu() {
    any_operation_may_fail::<Host>(1, 1);
}

#[test]
fn f1_any_operation_of_a_proof_may_fail_on_a_card() {
    any_operation_may_fail::<Sim>(1, 1);
}

#[test]
fn f1_f3_any_operation_of_two_workers_may_fail_on_the_cpu() {
    // Whose operation the n-th is, is chance here; on the card it is not, and there each n is tried.
    any_operation_may_fail::<Host>(2, 3);
}

#[test]
fn f1_f3_any_operation_of_two_workers_may_fail_on_a_card() {
    any_operation_may_fail::<Sim>(2, 1);
}

/// What cannot be pinned is staged from ordinary memory.
#[test]
fn f1_registration_may_fail_at_any_time() {
    let Case { r1cs, witness, key, expected } = Case::new(20);
    let (mut refused, mut plain) = (0, 0);
    for at in 0..16 {
        let seen = Arc::new(AtomicUsize::new(0));
        let faults = move |op: Op| op == Op::Register && seen.fetch_add(1, Ordering::SeqCst) == at;
        let config = LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
        let device = host_with(Bytes::gib(1), config);
        match Prover::new(&device, key.clone()) {
            Ok(prover) => {
                let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
                // One of three is in ordinary memory at most: all are staged.
                assert!(assignment.is_pinned());
                for policy in [Policy::Auto, Policy::AThenBc, Policy::Chunked(2)] {
                    let proved = prover.prove(&mut Worker::new(0), &assignment, &options(policy)).unwrap();
                    assert_eq!(proved.proof, expected);
                    assert!(policy != Policy::Auto || proved.plan.policy() == Policy::Full);
                }
                plain += 1;
            }
            Err(Error::Msm(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
    }
    assert!(refused > 0 && plain > 3, "{refused}, {plain}");
}

/// Knows what memory was asked for last, and how often scratch was granted.
#[derive(Default)]
struct Labels {
    last: Mutex<&'static str>,
    scratch: AtomicUsize,
}

impl Sink for Labels {
    fn emit(&self, event: Event) {
        if let Event::Change { change: Change::Take { label, .. }, .. } = event {
            *self.last.lock().unwrap() = label;
            self.scratch.fetch_add(usize::from(label == "msm scratch"), Ordering::SeqCst);
        }
    }
}

/// The scratch of each of the five sums is denied: twice, which refuses one allocation and makes for smaller batches, or
/// for good, which is an error that names the sum.
fn denied_scratch<D: Subject>() {
    let case = Case::new(3000);
    for (number, sum) in Sum::ALL.into_iter().enumerate() {
        let (labels, denials) = (Arc::new(Labels::default()), Arc::new(AtomicUsize::new(0)));
        let faults = {
            let (labels, denials) = (Arc::clone(&labels), Arc::clone(&denials));
            // A lease is granted, and shown, before the device is asked for the memory.
            move |op: Op| {
                op == Op::Allocate
                    && *labels.last.lock().unwrap() == "msm scratch"
                    && labels.scratch.load(Ordering::SeqCst) > number
                    && denials.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
            }
        };
        let sink = Arc::clone(&labels) as Arc<dyn Sink>;
        let ledger = LedgerConfig { sink, faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
        let device = D::open_for(case.log(), ledger);
        let prove = |denied: usize| {
            labels.scratch.store(0, Ordering::SeqCst);
            denials.store(denied, Ordering::SeqCst);
            let outcome = case.prove_afresh(&device, 1, Policy::Full).remove(0);
            assert_nothing_left(&device, Bytes::ZERO, Bytes::ZERO, sum.name());
            outcome
        };
        assert_eq!(prove(0).unwrap(), case.expected);
        assert_eq!(labels.scratch.load(Ordering::SeqCst), 5, "H, L, A and both B take scratch");
        assert_eq!(prove(2).unwrap(), case.expected, "{}", sum.name());
        assert_eq!(denials.load(Ordering::SeqCst), 0);
        assert!(labels.scratch.load(Ordering::SeqCst) > 5, "{} is cut in two", sum.name());
        let error = prove(usize::MAX).unwrap_err();
        let refused = error.refused().unwrap();
        assert_eq!((refused.label, refused.phase), ("msm scratch", sum.name()), "{error}");
        assert_eq!(prove(0).unwrap(), case.expected);
    }
}

#[test]
fn f2_denied_scratch_makes_for_smaller_batches_or_an_error_on_the_cpu() {
    denied_scratch::<Host>();
}

#[test]
fn f2_denied_scratch_makes_for_smaller_batches_or_an_error_on_a_card() {
    denied_scratch::<Sim>();
}

/// The same on an NVIDIA card. Each n in strides: a proof there takes milliseconds, and each fault is followed by another.
#[cfg(feature = "cuda")]
mod nvidia {
    use super::{any_operation_may_fail, denied_scratch};
    use crate::common::devices::on_a_card;
    use prestage_vram::cuda::Cuda;

    #[test]
    fn f1_any_operation_of_a_proof_may_fail() {
        on_a_card("f1", || any_operation_may_fail::<Cuda>(1, 7));
    }

    #[test]
    fn f1_f3_any_operation_of_two_workers_may_fail() {
        on_a_card("f1_f3", || any_operation_may_fail::<Cuda>(2, 23));
    }

    #[test]
    fn f2_denied_scratch_makes_for_smaller_batches_or_an_error() {
        on_a_card("f2", denied_scratch::<Cuda>);
    }
}
