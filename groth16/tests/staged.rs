//! The staged prover: every policy gives the same proof, takes the memory that its plan says, and fails cleanly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::{Arc, Mutex};

use blstrs::Scalar;
use common::{Circuit, blinding, host, host_with, reference, squares, with_two_threads};
use ff::Field;
use prestage_groth16::{
    Assignment, Blinding, Circom, Error, Libsnark, Options, Phase, Plan, Policy, Proof, Prover, Provided,
    ProvingKey, R1cs, Reduction, Sum, Witness, commit_h, prove_provided, quotient, setup_insecure_from_seed,
    stage, tail, verify,
};
use prestage_vram::{Bytes, Device, Event, Host, HostConfig, LedgerConfig, Level, Sink, Worker};

const POLICIES: [Policy; 6] =
    [Policy::Auto, Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::Chunked(4), Policy::None];

fn key<R: Reduction>(r1cs: &R1cs) -> ProvingKey<R> {
    setup_insecure_from_seed(r1cs, [7; 32]).unwrap()
}

fn options(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(1))
}

fn pairs(plan: &Plan) -> Vec<(&'static str, Bytes)> {
    plan.phases().iter().map(|Phase { name, peak }| (*name, *peak)).collect()
}

/// Keeps every level of the account.
#[derive(Default)]
struct Levels(Mutex<Vec<(String, Level)>>);

impl Sink for Levels {
    fn emit(&self, event: Event) {
        if let Event::Level { label, level, .. } = event {
            self.0.lock().unwrap().push((label.into_owned(), level));
        }
    }
}

#[test]
fn l3_l4_l5_budgets_choose_policies_and_are_kept() {
    with_two_threads(|| {
        let (r1cs, witness) = squares(16_000, 3);
        let key = key::<Libsnark>(&r1cs);
        let expected = reference(&key, &r1cs, &witness, blinding(1));
        let n = Bytes::of::<Scalar>(1 << 14);
        let quotient_of = |policy| {
            let device = host(Bytes::gib(1));
            let prover = Prover::new(&device, key.clone()).unwrap();
            let assignment = Assignment::new_unchecked(&prover, &r1cs, &witness).unwrap();
            let mut worker = Worker::new(0);
            let turn = device.turn(&mut worker).unwrap();
            let plan = prover.plan(&turn, &assignment, policy).unwrap();
            plan.phases().iter().find(|p| p.name == "quotient").unwrap().peak
        };
        let prove = |budget: Bytes| {
            let device = host(budget);
            let prover = Prover::new(&device, key.clone()).unwrap();
            let assignment = Assignment::new_unchecked(&prover, &r1cs, &witness).unwrap();
            let proved = prover.prove(&mut Worker::new(0), &assignment, &options(Policy::Auto))?;
            assert_eq!(proved.proof, expected);
            assert_eq!(proved.peaks, pairs(&proved.plan));
            let most = proved.peaks.iter().map(|(_, peak)| *peak).max();
            assert!(most == Some(proved.plan.peak()) && device.ledger().peak() <= budget);
            Ok::<_, Error>(proved.plan.policy())
        };
        let one = Bytes::new(1);
        let (full, two) = (quotient_of(Policy::Full), quotient_of(Policy::AThenBc));
        assert_eq!(full.saturating_sub(two), n);
        assert_eq!(prove(full).unwrap(), Policy::Full);
        assert_eq!(prove(full.saturating_sub(one)).unwrap(), Policy::AThenBc);
        assert_eq!(prove(two).unwrap(), Policy::AThenBc);
        // n + 2n/2 and its tables are no less than that; n + 2n/4 is.
        assert_eq!(prove(two.saturating_sub(one)).unwrap(), Policy::Chunked(4));
        match prove(n) {
            Err(Error::PlanRefused { need, free, policy: Policy::Chunked(64), .. }) => {
                assert!(need > free && free == n);
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn sums_in_batches_give_the_same_proof() {
    with_two_threads(|| {
        let (r1cs, witness) = squares(4000, 5);
        let key = key::<Circom>(&r1cs);
        let expected = reference(&key, &r1cs, &witness, blinding(1));
        let roomy = host(Bytes::gib(1));
        let cut = |device: &Host| {
            let prover = Prover::new(device, key.clone()).unwrap();
            let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
            let proved =
                prover.prove(&mut Worker::new(0), &assignment, &options(Policy::Chunked(8))).unwrap();
            assert_eq!(proved.proof, expected);
            assert_eq!(proved.peaks, pairs(&proved.plan));
            Sum::ALL.map(|sum| proved.plan.batch(sum))
        };
        let whole = cut(&roomy);
        assert_eq!(whole[0], 4096);
        let plan = |budget| cut(&host(budget));
        // As little as the least batches take: every sum is cut.
        let mut budget = Bytes::mib(4);
        let mut last = whole;
        while budget > Bytes::kib(900) {
            let batches = plan(budget);
            assert!(batches.iter().zip(&last).all(|(now, before)| now <= before));
            (last, budget) = (batches, Bytes::new(budget.get() * 3 / 4));
        }
        assert!(last.iter().zip(&whole).any(|(now, before)| now < before), "{last:?}");
    });
}

#[test]
fn p5_of_the_polynomials_only_a_is_live_when_the_sums_begin() {
    let (r1cs, witness) = squares(500, 3);
    for policy in POLICIES {
        let levels = Arc::new(Levels::default());
        let config = LedgerConfig { sink: Arc::clone(&levels) as _, ..LedgerConfig::default() };
        let device = host_with(Bytes::gib(1), config);
        let prover = Prover::new(&device, key::<Libsnark>(&r1cs)).unwrap();
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        prover.prove(&mut Worker::new(0), &assignment, &options(policy)).unwrap();
        let levels = levels.0.lock().unwrap();
        let first = levels.iter().position(|(label, _)| label.starts_with("msm")).unwrap();
        let before = &levels[first - 1].1;
        assert_eq!(before.pooled + before.direct, Bytes::of::<Scalar>(512), "{policy}");
    }
}

#[test]
fn memory_that_cannot_be_pinned_is_proved_unstaged() {
    let (r1cs, witness) = squares(500, 3);
    // Enough for the places of results, a page each, and not for a polynomial.
    let config = LedgerConfig { pinned: Bytes::kib(32), ..LedgerConfig::default() };
    let device = host_with(Bytes::gib(1), config);
    let key = key::<Libsnark>(&r1cs);
    let expected = reference(&key, &r1cs, &witness, blinding(1));
    let prover = Prover::new(&device, key).unwrap();
    let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
    assert!(!assignment.is_pinned());
    for policy in POLICIES {
        let proved = prover.prove(&mut Worker::new(0), &assignment, &options(policy)).unwrap();
        assert_eq!(proved.proof, expected);
        if policy == Policy::Auto {
            assert_eq!(proved.plan.policy(), Policy::None);
            assert!(proved.plan.reason().contains("pinned"), "{}", proved.plan.reason());
        }
    }
}

#[test]
fn f5_the_first_failing_constraint_is_named_before_any_device_work() {
    let (r1cs, witness) = Circuit { seed: 3, constraints: 60, public: 2, free: 3, unused: 0 }.build();
    let device = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&device, key::<Libsnark>(&r1cs)).unwrap();
    for row in [0, 17, 59] {
        let held = device.ledger().peak();
        let mut values = witness.values().to_vec();
        values[6 + row] += Scalar::ONE;
        let wrong = Witness::new(values).unwrap();
        match Assignment::new(&prover, &r1cs, &wrong) {
            Err(Error::Unsatisfied { constraint, n_constraints: 60 }) => assert_eq!(constraint, row),
            other => panic!("{other:?}"),
        }
        assert_eq!((device.ledger().peak(), device.ledger().held()), (held, vec![]));
        // Without the check the prover's own verification holds the proof back.
        let unchecked = Assignment::new_unchecked(&prover, &r1cs, &wrong).unwrap();
        let error = prover.prove(&mut Worker::new(0), &unchecked, &options(Policy::Auto)).unwrap_err();
        assert!(matches!(error, Error::NotVerified));
        let line = error.to_string();
        assert!(line.contains("--r1cs") && !line.contains('\n'), "{line}");
        let anyway = options(Policy::Auto).unverified();
        let proof = prover.prove(&mut Worker::new(0), &unchecked, &anyway).unwrap().proof;
        assert!(!verify(prover.key().vk(), unchecked.public(), &proof).unwrap());
    }
}

#[test]
fn f5_a_key_with_its_own_matrices_proves_without_the_circuit() {
    let (r1cs, witness) = Circuit { seed: 4, constraints: 60, public: 2, free: 3, unused: 0 }.build();
    let device = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&device, key::<Circom>(&r1cs)).unwrap();
    let from_key = Assignment::from_key(&prover, &witness).unwrap();
    let proved = prover.prove(&mut Worker::new(0), &from_key, &options(Policy::Auto)).unwrap();
    assert_eq!(proved.proof, reference(prover.key(), &r1cs, &witness, blinding(1)));
    let mut values = witness.values().to_vec();
    values[10] += Scalar::ONE;
    let wrong = Assignment::from_key(&prover, &Witness::new(values).unwrap()).unwrap();
    let outcome = prover.prove(&mut Worker::new(0), &wrong, &options(Policy::Auto));
    assert!(matches!(outcome, Err(Error::NotVerified)));
}

#[test]
fn stages_by_hand_and_blinding_that_is_fresh() {
    let (r1cs, witness) = squares(30, 3);
    let device = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&device, key::<Libsnark>(&r1cs)).unwrap();
    let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let plan = prover.plan(&turn, &assignment, Policy::Full).unwrap();
    let staged = stage(&turn, &prover, &assignment, plan).unwrap();
    let h = quotient(staged).unwrap();
    let committed = commit_h(h).unwrap();
    let parts = tail(committed, &assignment).unwrap();
    turn.release().unwrap();
    let proofs: Vec<Proof> = (0..2)
        .map(|_| parts.clone().finish(prover.key(), prover.verifier(), &Blinding::random().unwrap()).unwrap())
        .collect();
    assert_ne!(proofs[0], proofs[1]);
    let seeded = parts.finish_unverified(prover.key(), &blinding(1));
    assert_eq!(seeded, prover.prove(&mut worker, &assignment, &options(Policy::Auto)).unwrap().proof);
    let [a, b] = [(); 2].map(|()| prover.prove(&mut worker, &assignment, &Options::default()).unwrap().proof);
    assert_ne!(a, b);
}

#[test]
fn workers_prove_at_once_with_one_prover() {
    let (r1cs, witness) = squares(200, 3);
    let device = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&device, key::<Circom>(&r1cs)).unwrap();
    let expected = reference(prover.key(), &r1cs, &witness, blinding(1));
    std::thread::scope(|scope| {
        for id in 0..3 {
            let (prover, r1cs, witness, expected) = (&prover, &r1cs, &witness, &expected);
            scope.spawn(move || {
                let assignment = Assignment::new(prover, r1cs, witness).unwrap();
                let mut worker = Worker::new(id);
                for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(2)] {
                    let proof = prover.prove(&mut worker, &assignment, &options(policy)).unwrap().proof;
                    assert_eq!(proof, *expected);
                }
            });
        }
    });
    assert_eq!(device.ledger().held(), []);
}

#[test]
fn the_seam_takes_what_other_provers_have() {
    let (r1cs, witness) = Circuit { seed: 8, constraints: 50, public: 3, free: 4, unused: 1 }.build();
    let device = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&device, key::<Libsnark>(&r1cs)).unwrap();
    let [a, b, c] = common::evaluations(&r1cs, &witness);
    let rows = usize::try_from(r1cs.n_rows()).unwrap();
    let (inputs, aux) = witness.values().split_at(4);
    let part = |d: &prestage_groth16::Density, range: std::ops::Range<usize>| {
        let start = range.start;
        prestage_groth16::Density::from_fn(range.len(), |i| d.get(start + i))
    };
    let (of_a, of_b) = (prover.key().a().density(), prover.key().b_g1().density());
    let n = witness.values().len();
    let (a_aux, b_input, b_aux) = (part(of_a, 4..n), part(of_b, 0..4), part(of_b, 4..n));
    let provided = Provided {
        a: &a[..rows],
        b: &b[..rows],
        c: &c[..rows],
        inputs,
        aux,
        a_aux_density: &a_aux,
        b_input_density: &b_input,
        b_aux_density: &b_aux,
    };
    let Blinding { r, s } = blinding(1);
    let mut worker = Worker::new(0);
    let proof = prove_provided(&prover, &mut worker, &provided, r, s).unwrap();
    assert_eq!(proof, reference(prover.key(), &r1cs, &witness, blinding(1)));

    let full = prestage_groth16::Density::full(aux.len());
    let other = Provided { b_aux_density: &full, ..provided };
    assert!(matches!(
        prove_provided(&prover, &mut worker, &other, r, s),
        Err(Error::OtherCircuit { matrix: prestage_groth16::MatrixName::B, .. })
    ));
    let short = Provided { aux: &aux[1..], ..provided };
    assert!(matches!(prove_provided(&prover, &mut worker, &short, r, s), Err(Error::Shape(_))));
    let uneven = Provided { b: &b[..rows - 1], ..provided };
    assert!(matches!(prove_provided(&prover, &mut worker, &uneven, r, s), Err(Error::Shape(_))));
    let long = vec![Scalar::ZERO; prover.domain().size() + 1];
    let long = Provided { a: &long, b: &long, c: &long, ..provided };
    assert!(matches!(prove_provided(&prover, &mut worker, &long, r, s), Err(Error::Shape(_))));
}

#[test]
fn an_assignment_of_another_key_is_refused() {
    let device = Host::open(HostConfig::default()).unwrap();
    let (small, witness) = squares(5, 3);
    let (large, _) = squares(40, 3);
    let here = Prover::new(&device, key::<Libsnark>(&small)).unwrap();
    let there = Prover::new(&device, key::<Libsnark>(&large)).unwrap();
    let assignment = Assignment::new(&here, &small, &witness).unwrap();
    let outcome = there.prove(&mut Worker::new(0), &assignment, &options(Policy::Auto));
    assert!(matches!(outcome, Err(Error::Shape(_))));
    assert!(matches!(Assignment::new(&there, &small, &witness), Err(Error::Shape(_))));
    assert_eq!(device.ledger().held(), []);
}
