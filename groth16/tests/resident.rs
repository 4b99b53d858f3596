//! Points of the key that stay on the device: the same proofs, uploaded once, counted apart, given up when they must be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{Circuit, blinding, reference, squares};
use prestage_groth16::{
    Assignment, Circom, Error, Libsnark, Options, Policy, Proof, Prover, R1cs, Reduction, Residency, Sum,
    Witness, setup_insecure_from_seed,
};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{
    Bytes, Card, Device, Event, Host, HostConfig, LedgerConfig, Nanos, Op, Sim, SimConfig, Sink, Track,
    Worker,
};

const CIRCUIT: Circuit = Circuit { seed: 5, constraints: 100, public: 3, free: 5, unused: 2 };
/// The domain has 2^7 points, which stand for 2^27.
const SCALE: u64 = 1 << 20;

/// What the upload lane was given.
#[derive(Default)]
struct Uploads(Mutex<Vec<String>>);

impl Sink for Uploads {
    fn emit(&self, event: Event) {
        if let Event::Span(span) = event
            && span.track == Track::Upload
        {
            self.0.lock().unwrap().push(span.name.into_owned());
        }
    }
}

impl Uploads {
    fn of_points(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|name| name.starts_with("upload points of")).count()
    }

    fn streamed(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|name| name.starts_with("stream")).count()
    }
}

fn sim(ledger: LedgerConfig) -> Sim {
    let card = Card::preset("h200-141g").unwrap();
    Sim::open(SimConfig { card, scale: SCALE, ledger }).unwrap()
}

fn host(ledger: LedgerConfig) -> Host {
    Host::open(HostConfig { capacity: Bytes::gib(1), ledger }).unwrap()
}

struct Case<R: Reduction> {
    r1cs: R1cs,
    witness: Witness,
    key: prestage_groth16::ProvingKey<R>,
    expected: Proof,
}

impl<R: Reduction> Case<R> {
    fn new() -> Self {
        Self::of(CIRCUIT.build())
    }

    fn of((r1cs, witness): (R1cs, Witness)) -> Self {
        let key = setup_insecure_from_seed::<R>(&r1cs, [7; 32]).unwrap();
        let expected = reference(&key, &r1cs, &witness, blinding(1));
        Self { r1cs, witness, key, expected }
    }

    fn prover<'d, D: Ntt + Msm>(&self, device: &'d D, residency: Residency) -> Prover<'d, D, R> {
        Prover::new(device, self.key.clone()).unwrap().keeping(residency)
    }

    fn assignment<D: Ntt + Msm>(&self, prover: &Prover<'_, D, R>) -> Assignment {
        Assignment::new(prover, &self.r1cs, &self.witness).unwrap()
    }
}

fn options(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(1))
}

/// Every policy, three times: one upload of each query in all.
fn proves<D: Ntt + Msm, R: Reduction>(open: impl Fn(LedgerConfig) -> D) {
    let case = Case::<R>::new();
    let uploads = Arc::new(Uploads::default());
    let device = open(LedgerConfig { sink: Arc::clone(&uploads) as _, ..LedgerConfig::default() });
    let prover = case.prover(&device, Residency::All);
    let assignment = case.assignment(&prover);
    let mut worker = Worker::new(0);
    for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None].repeat(3) {
        let proved = prover.prove(&mut worker, &assignment, &options(policy)).unwrap();
        assert_eq!(proved.proof, case.expected, "{policy}, {}", device.name());
        let phases: Vec<_> = proved.plan.phases().iter().map(|phase| (phase.name, phase.peak)).collect();
        assert_eq!(proved.peaks, phases, "{policy}, {}: the plan is what was held", device.name());
        let points: Bytes = proved.plan.points().into_iter().sum();
        assert!(points > Bytes::ZERO && Sum::ALL.iter().all(|sum| proved.plan.keeps(*sum)));
        let level = device.ledger().level();
        assert_eq!((level.resident, level.used()), (points, points), "nothing else stays");
        assert!(proved.plan.reason().contains("the points of h, l, a, b1, b2 stay on the device"));
    }
    assert_eq!((uploads.of_points(), uploads.streamed()), (5, 0), "{}", device.name());
    drop((assignment, prover));
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
    assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn l10_points_that_stay_are_uploaded_once() {
    proves::<_, Libsnark>(sim);
    proves::<_, Circom>(sim);
    proves::<_, Libsnark>(host);
    proves::<_, Circom>(host);
}

#[test]
fn the_card_says_what_stays() {
    let case = Case::<Libsnark>::new();
    let kept = |device: &Sim, policy| {
        let prover = case.prover(device, Residency::Auto);
        let assignment = case.assignment(&prover);
        let proved = prover.prove(&mut Worker::new(0), &assignment, &options(policy)).unwrap();
        assert_eq!(proved.proof, case.expected);
        Sum::ALL.map(|sum| proved.plan.keeps(sum))
    };
    for policy in [Policy::Auto, Policy::AThenBc, Policy::Chunked(4), Policy::None] {
        assert_eq!(kept(&sim(LedgerConfig::default()), policy), [true; 5], "{policy}");
    }
    let card = Card::preset("rtx-5070-ti-16g").unwrap();
    let small = Sim::open(SimConfig { card, scale: SCALE, ledger: LedgerConfig::default() }).unwrap();
    assert_eq!(kept(&small, Policy::Auto), [false; 5], "they would cost `Full`");
    // The CPU reads them where they are.
    let cpu = host(LedgerConfig::default());
    let prover = case.prover(&cpu, Residency::Auto);
    let assignment = case.assignment(&prover);
    let proved = prover.prove(&mut Worker::new(0), &assignment, &options(Policy::Auto)).unwrap();
    assert_eq!(proved.plan.points(), [Bytes::ZERO; 5]);
}

/// From the second proof on, points that stay take no time on the link.
#[test]
fn points_that_stay_take_no_time_on_the_link() {
    // All wires are one: the points of L and A take longer on the link than in the sum.
    let case = Case::<Libsnark>::of(squares(100, 1));
    let second = |residency| {
        let device = sim(LedgerConfig::default());
        let prover = case.prover(&device, residency);
        let assignment = case.assignment(&prover);
        let mut worker = Worker::new(0);
        let mut prove = || {
            let start = device.now();
            prover.prove(&mut worker, &assignment, &options(Policy::Full)).unwrap();
            device.now().since(start)
        };
        prove();
        prove()
    };
    let (streamed, kept) = (second(Residency::None), second(Residency::All));
    assert!(kept + Nanos::new(100_000_000) < streamed, "{kept}, {streamed}");
}

/// Another process takes memory that `Full` would need beside the points: they are given up, and come back when it is gone.
#[test]
fn points_are_given_up_before_a_smaller_policy_is_taken() {
    let case = Case::<Libsnark>::new();
    let uploads = Arc::new(Uploads::default());
    let device = sim(LedgerConfig { sink: Arc::clone(&uploads) as _, ..LedgerConfig::default() });
    let prover = case.prover(&device, Residency::Auto);
    let assignment = case.assignment(&prover);
    let mut worker = Worker::new(0);
    for (foreign, kept, sent) in [(0, true, 5), (126, false, 5), (0, true, 10)] {
        device.set_foreign(Bytes::gib(foreign));
        let proved = prover.prove(&mut worker, &assignment, &options(Policy::Auto)).unwrap();
        assert_eq!(proved.proof, case.expected);
        assert_eq!((proved.plan.policy(), proved.plan.keeps(Sum::L)), (Policy::Full, kept));
        assert_eq!(device.ledger().level().resident > Bytes::ZERO, kept);
        assert_eq!(uploads.of_points(), sent);
    }
}

/// The n-th copy, allocation, launch or mark fails: an error or the right proof, and the next proof is right.
fn survive_failures<D: Ntt + Msm>(open: impl Fn(LedgerConfig) -> D) {
    let case = Case::<Libsnark>::new();
    for op in [Op::Copy, Op::Allocate, Op::Launch, Op::Mark] {
        let countdown = Arc::new(AtomicUsize::new(usize::MAX / 2));
        let counter = Arc::clone(&countdown);
        // An allocation that fails is tried once more: then both.
        let last = if op == Op::Allocate { usize::MAX } else { 0 };
        let faults = move |asked| {
            let left = (asked == op).then(|| counter.fetch_sub(1, Ordering::SeqCst));
            left == Some(0) || left == Some(last)
        };
        let ledger = LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
        let device = open(ledger);
        let mut failed = 0;
        for nth in 0.. {
            let prover = case.prover(&device, Residency::All);
            let assignment = case.assignment(&prover);
            countdown.store(nth, Ordering::SeqCst);
            let prove = || prover.prove(&mut Worker::new(0), &assignment, &options(Policy::Full));
            let outcome = prove();
            let reached = countdown.swap(usize::MAX / 2, Ordering::SeqCst) > usize::MAX / 2;
            match outcome {
                Ok(proved) => assert_eq!(proved.proof, case.expected, "{op} {nth}"),
                Err(error) => {
                    failed += 1;
                    assert!(!matches!(error, Error::NotVerified), "{op} {nth}: {error}");
                }
            }
            assert_eq!(prove().unwrap().proof, case.expected, "after {op} {nth}");
            drop((assignment, prover));
            assert_eq!(device.ledger().level().used(), Bytes::ZERO, "{op} {nth}");
            if !reached {
                break;
            }
        }
        assert!(failed > 0, "{op}");
    }
}

#[test]
fn f1_points_that_stay_survive_failures() {
    survive_failures(sim);
}

/// Two workers share what stays.
#[test]
fn workers_share_points_that_stay() {
    let case = Case::<Libsnark>::new();
    let uploads = Arc::new(Uploads::default());
    let ledger = LedgerConfig { ahead: true, sink: Arc::clone(&uploads) as _, ..LedgerConfig::default() };
    let device = sim(ledger);
    let prover = case.prover(&device, Residency::Auto);
    let proofs = device.workers(2, |id| {
        let mut worker = Worker::new(id.0);
        (0..3)
            .map(|_| {
                let assignment = case.assignment(&prover);
                prover.prove(&mut worker, &assignment, &options(Policy::Auto)).unwrap()
            })
            .collect::<Vec<_>>()
    });
    for proved in proofs.into_iter().flat_map(Result::unwrap) {
        assert_eq!(proved.proof, case.expected);
        assert_eq!(proved.plan.policy(), Policy::Full);
    }
    assert_eq!(uploads.of_points(), 5);
    assert!(device.ledger().peak() <= device.ledger().level().budget);
}

#[cfg(feature = "cuda")]
mod nvidia {
    use prestage_vram::conformance::{OnCuda, Subject as _, run};

    use super::*;

    #[test]
    fn f1_l10_points_stay_on_an_nvidia_card() {
        run(&OnCuda, "f1_l10", |on| {
            let open = |ledger| on.open(Bytes::gib(4), ledger);
            proves::<_, Libsnark>(open);
            proves::<_, Circom>(open);
            survive_failures(open);
        });
    }
}
