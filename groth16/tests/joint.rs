//! One proof by several devices: the bytes of one device's, in less time, whatever fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use common::devices::Subject;
use common::{Circuit, blinding, reference, squares};
use prestage_groth16::{
    Assignment, Circom, Error, JointProof, Libsnark, Options, Policy, Proof, Prover, ProvingKey, R1cs,
    Reduction, Residency, Share, Sum, Witness, setup_insecure_from_seed,
};
use prestage_vram::{
    Bytes, Card, Device, Host, HostConfig, Ledger, LedgerConfig, Margin, Nanos, Op, Sim, SimConfig, Worker,
    WorkerId,
};

const CIRCUIT: Circuit = Circuit { seed: 5, constraints: 900, public: 3, free: 5, unused: 2 };
/// Of unequal speed and size.
const CARDS: [&str; 4] = ["h200-141g", "rtx-5070-ti-16g", "rtx-4090-24g", "rtx-5070-ti-16g"];

type Change<'c> = &'c dyn Fn(usize, &mut LedgerConfig);

/// Devices that keep one time.
trait Fleet: Subject {
    /// `count` of them, for domains of 2^`log` points.
    fn fleet(count: usize, log: u32, change: Change<'_>) -> Vec<Self>;
}

impl Fleet for Host {
    fn fleet(count: usize, _: u32, change: Change<'_>) -> Vec<Self> {
        let mut hosts: Vec<Self> = Vec::new();
        for i in 0..count {
            let beside = hosts.first().map(|first| first.ledger().clone());
            let mut ledger = LedgerConfig { beside, ..LedgerConfig::default() };
            change(i, &mut ledger);
            hosts.push(Self::open(HostConfig { ledger, ..HostConfig::default() }).unwrap());
        }
        hosts
    }
}

impl Fleet for Sim {
    fn fleet(count: usize, log: u32, change: Change<'_>) -> Vec<Self> {
        cards(&CARDS[..count].iter().map(|name| Card::preset(name).unwrap()).collect::<Vec<_>>(), log, change)
    }
}

/// Cards on one clock, on which a domain of 2^`log` points stands for 2^27.
fn cards(cards: &[Card], log: u32, change: Change<'_>) -> Vec<Sim> {
    let mut sims: Vec<Sim> = Vec::new();
    for (i, card) in cards.iter().enumerate() {
        let mut ledger = LedgerConfig { margin: Margin::Fixed(Bytes::mib(512)), ..LedgerConfig::default() };
        change(i, &mut ledger);
        let config = SimConfig { card: card.clone(), scale: 1 << (27 - log), ledger };
        sims.push(match sims.first() {
            Some(first) => first.open_beside(config).unwrap(),
            None => Sim::open(config).unwrap(),
        });
    }
    sims
}

struct Case<R: Reduction> {
    r1cs: R1cs,
    witness: Witness,
    key: ProvingKey<R>,
    expected: Proof,
}

impl<R: Reduction> Case<R> {
    fn new((r1cs, witness): (R1cs, Witness)) -> Self {
        let key = setup_insecure_from_seed(&r1cs, [7; 32]).unwrap();
        let expected = reference(&key, &r1cs, &witness, blinding(1));
        Self { r1cs, witness, key, expected }
    }

    fn log(&self) -> u32 {
        self.r1cs.domain_size().trailing_zeros()
    }
}

fn options(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(1)).unverified()
}

fn provers<'d, D: Subject, R: Reduction>(
    devices: &'d [D],
    case: &Case<R>,
    residency: Residency,
) -> Vec<Prover<'d, D, R>> {
    let first = Prover::new(&devices[0], case.key.clone()).unwrap().keeping(residency);
    let mut provers: Vec<_> = devices[1..].iter().map(|device| first.beside(device).unwrap()).collect();
    provers.insert(0, first);
    provers
}

/// What came of a proof, and how each device ended.
type Outcome = (Result<Proof, Error>, Vec<Result<Vec<Share>, Error>>);

/// Makes one proof with all provers; the one numbered `leader` leads.
fn joint<D: Subject, R: Reduction>(
    provers: &[Prover<'_, D, R>],
    case: &Case<R>,
    policy: Policy,
    (leader, least): (usize, usize),
    stop: &(dyn Fn() -> bool + Sync),
) -> Outcome {
    let assignment = Assignment::new_unchecked(&provers[0], &case.r1cs, &case.witness).unwrap();
    let joint = JointProof::new(&provers[0], &assignment, &options(policy), provers.len()).unwrap();
    let joint = joint.in_pieces_of(least);
    let n = u32::try_from(provers.len()).unwrap();
    let shares = provers[0].device().crew(n, |WorkerId(i)| {
        joint.work(&provers[i as usize], &mut Worker::new(0), i as usize == leader, stop)
    });
    (joint.finish(&provers[0]), shares)
}

fn going() -> bool {
    false
}

fn assert_nothing_left<D: Device>(devices: &[D], what: &str) {
    for device in devices {
        let ledger = device.ledger();
        assert_eq!(ledger.held(), [], "{what}, {}", device.name());
        assert_eq!((ledger.level().used(), ledger.in_line()), (Bytes::ZERO, 0), "{what}, {}", device.name());
    }
}

/// Every term is summed once, and the quotient is computed once.
fn assert_shared<R: Reduction>(shares: &[&Share], case: &Case<R>, what: &str) {
    let key = &case.key;
    let all = [
        key.h().len(),
        key.l().points().len(),
        key.a().points().len(),
        key.b_g1().points().len(),
        key.b_g2().points().len(),
    ];
    for (sum, all) in Sum::ALL.into_iter().zip(all) {
        let terms: usize = shares.iter().map(|share| share.terms[sum as usize]).sum();
        assert_eq!(terms, all, "{what}, {}", sum.name());
    }
    assert_eq!(shares.iter().filter(|share| share.policy.is_some()).count(), 1, "{what}");
}

fn equal_proofs<D: Fleet, R: Reduction>(
    case: &Case<R>,
    count: usize,
    policies: &[Policy],
    residencies: &[Residency],
) {
    for &residency in residencies {
        let devices = D::fleet(count, case.log(), &|_, _| {});
        let provers = provers(&devices, case, residency);
        for policy in policies {
            for (leader, least) in [(0, 1), (count - 1, 70), (count, 1 << 18)] {
                let what =
                    format!("{policy}, {count} devices, {leader} leads, {least}, {residency}, {}", R::NAME);
                let (proof, shares) = joint(&provers, case, *policy, (leader, least), &going);
                assert_eq!(proof.unwrap(), case.expected, "{what}");
                let shares: Vec<_> = shares.into_iter().map(Result::unwrap).collect();
                let shares: Vec<_> = shares.iter().flatten().collect();
                assert_shared(&shares, case, &what);
                for share in shares {
                    let planned: BTreeMap<_, _> = share.phases.iter().map(|p| (p.name, p.peak)).collect();
                    for (phase, peak) in &share.peaks {
                        assert!(peak <= &planned[phase], "{what}: {phase} held {peak}");
                    }
                    assert_eq!(
                        share.peaks.iter().any(|(phase, _)| *phase == "quotient"),
                        share.policy.is_some()
                    );
                }
            }
        }
        drop(provers);
        assert_nothing_left(&devices, "after all proofs");
    }
}

const POLICIES: [Policy; 4] = [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None];
const STREAMED_OR_ALL: [Residency; 2] = [Residency::None, Residency::All];
/// On cards of 16 GiB not all points fit.
const STREAMED_OR_SOME: [Residency; 2] = [Residency::None, Residency::Auto];

#[test]
fn p4_several_cpu_devices_give_the_proof_of_one() {
    let (small, large) = (Case::<Libsnark>::new(squares(20, 3)), Case::<Libsnark>::new(CIRCUIT.build()));
    for count in 1..=4 {
        equal_proofs::<Host, _>(&small, count, &POLICIES, &STREAMED_OR_ALL);
        equal_proofs::<Host, _>(&large, count, &[Policy::Auto], &[Residency::All]);
    }
    equal_proofs::<Host, _>(&Case::<Circom>::new(CIRCUIT.build()), 2, &[Policy::Auto], &[Residency::None]);
}

#[test]
fn p4_several_unequal_cards_give_the_proof_of_one() {
    let case = Case::<Libsnark>::new(CIRCUIT.build());
    for count in 1..=4 {
        equal_proofs::<Sim, _>(&case, count, &[Policy::Auto], &STREAMED_OR_SOME);
    }
    let case = Case::<Circom>::new(CIRCUIT.build());
    equal_proofs::<Sim, _>(&case, 3, &[Policy::Chunked(4), Policy::None], &[Residency::None]);
}

/// Fewer terms than devices, and none at all.
#[test]
fn b111_proofs_of_fewer_terms_than_devices() {
    for case in [squares(1, 3), squares(2, 3), Circuit { seed: 1, constraints: 0, ..CIRCUIT }.build()] {
        let case = Case::<Libsnark>::new(case);
        let devices = Host::fleet(4, case.log(), &|_, _| {});
        let provers = provers(&devices, &case, Residency::None);
        let (proof, shares) = joint(&provers, &case, Policy::Auto, (0, 1), &going);
        assert_eq!(proof.unwrap(), case.expected);
        assert!(shares.iter().all(Result::is_ok));
    }
}

fn equal_cards(name: &str, count: usize) -> Vec<Card> {
    vec![Card::preset(name).unwrap(); count]
}

/// Row L10 for shares: a device that has its pieces of a sum holds what was planned for it.
#[test]
fn l10_shares_hold_what_was_planned() {
    let case = Case::<Libsnark>::new(squares(1000, 3));
    for (name, count) in [("h200-141g", 2), ("rtx-5070-ti-16g", 2), ("rtx-5070-ti-16g", 3)] {
        let devices = cards(&equal_cards(name, count), case.log(), &|_, _| {});
        let provers = provers(&devices, &case, Residency::None);
        let (proof, shares) = joint(&provers, &case, Policy::Auto, (0, 1), &going);
        assert_eq!(proof.unwrap(), case.expected);
        let shares: Vec<_> = shares.into_iter().map(Result::unwrap).collect();
        let mut most: BTreeMap<&str, Bytes> = BTreeMap::new();
        for (phase, peak) in shares.iter().flatten().flat_map(|share| &share.peaks) {
            let peak = (*peak).max(most.get(phase).copied().unwrap_or_default());
            most.insert(phase, peak);
        }
        // The cards are equal, and so are their plans.
        let planned: BTreeMap<_, _> = shares
            .iter()
            .flatten()
            .flat_map(|share| &share.phases)
            .map(|phase| (phase.name, phase.peak))
            .collect();
        assert_eq!(most, planned, "{count} of {name}");
        for sim in &devices {
            assert!(sim.ledger().peak() <= sim.ledger().level().budget);
        }
    }
}

/// How long a proof takes in virtual time, from the first turn to the last.
fn latency(of: &[Card], case: &Case<Libsnark>, leader: usize) -> Nanos {
    let devices = cards(of, case.log(), &|_, _| {});
    let provers = provers(&devices, case, Residency::None);
    let assignment = Assignment::new(&provers[0], &case.r1cs, &case.witness).unwrap();
    let joint = JointProof::new(&provers[0], &assignment, &options(Policy::Auto), provers.len()).unwrap();
    let before = devices[0].now();
    let n = u32::try_from(of.len()).unwrap();
    for share in devices[0].workers(n, |WorkerId(i)| {
        joint.work(&provers[i as usize], &mut Worker::new(0), i as usize == leader, &going)
    }) {
        share.unwrap().unwrap();
    }
    let time = devices[0].now().since(before);
    assert_eq!(joint.finish(&provers[0]).unwrap(), case.expected);
    time
}

/// The same on one card, without sharing.
fn alone(card: &str, case: &Case<Libsnark>) -> Nanos {
    let devices = cards(&equal_cards(card, 1), case.log(), &|_, _| {});
    let provers = provers(&devices, case, Residency::None);
    let assignment = Assignment::new(&provers[0], &case.r1cs, &case.witness).unwrap();
    let before = devices[0].now();
    let proved = provers[0].prove(&mut Worker::new(0), &assignment, &options(Policy::Auto)).unwrap();
    assert_eq!(proved.proof, case.expected);
    devices[0].now().since(before)
}

#[test]
fn more_cards_make_one_proof_sooner() {
    let case = Case::<Libsnark>::new(CIRCUIT.build());
    // The quotient, which one card computes, is a fifth of the H200's time and a tenth of the other's.
    for (card, thousandths) in [("h200-141g", [620, 450, 370]), ("rtx-5070-ti-16g", [530, 370, 280])] {
        let one = alone(card, &case);
        for (count, thousandths) in (2..).zip(thousandths) {
            let time = latency(&equal_cards(card, count), &case, 0);
            assert!(time.get() * 1000 < one.get() * thousandths, "{card}: {time} on {count}, {one} on one");
        }
        // Pieces cost it a little.
        let time = latency(&equal_cards(card, 1), &case, 0);
        assert!(time.get() * 100 < one.get() * 110, "{card}: {time} in pieces, {one} without");
    }
    let cards = ["h200-141g", "rtx-5070-ti-16g"];
    let faster = cards.map(|card| alone(card, &case)).into_iter().min().unwrap();
    for leader in [0, 1] {
        let time = latency(&cards.map(|card| Card::preset(card).unwrap()), &case, leader);
        assert!(time < faster, "{time} when {} leads, {faster} on the faster alone", cards[leader]);
    }
}

/// Device `which` fails for good at its launch number `nth`, counted from 0.
fn poisoned<D: Fleet>(case: &Case<Libsnark>, which: usize, nth: usize) -> (Vec<D>, Arc<AtomicUsize>) {
    let own: Arc<OnceLock<Ledger>> = Arc::default();
    let launches = Arc::new(AtomicUsize::new(0));
    let (there, seen) = (Arc::clone(&own), Arc::clone(&launches));
    let faults: Arc<dyn Fn(Op) -> bool + Send + Sync> = Arc::new(move |op| {
        let fails = op == Op::Launch && seen.fetch_add(1, Ordering::SeqCst) == nth;
        if fails && let Some(ledger) = there.get() {
            ledger.poison("it fell off the bus");
        }
        fails
    });
    let devices = D::fleet(3, case.log(), &|i, ledger| {
        ledger.faults = (i == which).then(|| Arc::clone(&faults));
    });
    own.set(devices[which].ledger().clone()).unwrap();
    (devices, launches)
}

fn one_fails<D: Fleet>(case: &Case<Libsnark>, leader: usize) {
    for which in 0..3 {
        let mut failures = 0;
        for nth in 0.. {
            let what = format!("{which} at launch {nth}, {leader} leads");
            let (devices, launches) = poisoned::<D>(case, which, nth);
            let provers = provers(&devices, case, Residency::None);
            launches.store(0, Ordering::SeqCst);
            let (proof, shares) = joint(&provers, case, Policy::Auto, (leader, 30), &going);
            assert_eq!(proof.unwrap(), case.expected, "{what}");
            let healthy = (0..3).filter(|i| *i != which);
            assert!(healthy.into_iter().all(|i| shares[i].is_ok()), "{what}: {shares:?}");
            drop(provers);
            assert_nothing_left(&devices, &what);
            if launches.load(Ordering::SeqCst) <= nth {
                break;
            }
            let error = shares[which].as_ref().unwrap_err();
            assert!(
                error.to_string().contains("fell off") || error.to_string().contains("injected"),
                "{error}"
            );
            failures += 1;
        }
        // In virtual time every device has its part.
        assert!(failures > 0 || which != leader, "{which} was never at work");
    }
}

#[test]
fn f3_a_device_that_fails_for_good_leaves_its_part_to_the_others() {
    let case = Case::<Libsnark>::new(squares(120, 3));
    one_fails::<Sim>(&case, 0);
    one_fails::<Sim>(&case, 1);
    one_fails::<Host>(&case, 0);
}

#[test]
fn f3_with_the_last_device_the_proof_fails() {
    let case = Case::<Libsnark>::new(squares(120, 3));
    for nth in [0, 3, 9] {
        let ledgers: Arc<OnceLock<Vec<Ledger>>> = Arc::default();
        let (there, seen) = (Arc::clone(&ledgers), AtomicUsize::new(0));
        let faults: Arc<dyn Fn(Op) -> bool + Send + Sync> = Arc::new(move |op| {
            let fails = op == Op::Launch && seen.fetch_add(1, Ordering::SeqCst) == nth;
            if fails && let Some(ledgers) = there.get() {
                ledgers.iter().for_each(|ledger| ledger.poison("no power"));
            }
            fails
        });
        let devices = Sim::fleet(2, case.log(), &|_, ledger| ledger.faults = Some(Arc::clone(&faults)));
        let provers = provers(&devices, &case, Residency::None);
        ledgers.set(devices.iter().map(|device| device.ledger().clone()).collect()).unwrap();
        let (proof, shares) = joint(&provers, &case, Policy::Auto, (0, 30), &going);
        assert!(matches!(proof, Err(Error::Unfinished)), "{nth}: {proof:?}");
        assert!(shares.iter().all(Result::is_err), "{nth}");
        drop(provers);
        assert_nothing_left(&devices, "after the power cut");
    }
}

/// The n-th operation of each kind fails on the second of two devices, for every n: the proof is right, and nothing is left.
#[test]
fn f1_any_operation_of_one_device_may_fail() {
    let case = Case::<Libsnark>::new(squares(60, 3));
    for leader in [0, 1] {
        for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Mark, Op::Lane] {
            let armed = Arc::new(AtomicUsize::new(usize::MAX));
            let countdown = Arc::clone(&armed);
            let faults: Arc<dyn Fn(Op) -> bool + Send + Sync> = Arc::new(move |now| {
                now == op
                    && countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        == Err(0)
            });
            let devices = Sim::fleet(2, case.log(), &|i, ledger| {
                ledger.faults = (i == 1).then(|| Arc::clone(&faults));
            });
            let provers = provers(&devices, &case, Residency::None);
            let mut failures = 0;
            for nth in 0.. {
                let what = format!("{op} {nth}, {leader} leads");
                // From the n-th on all of that kind fail, until the proof has ended.
                armed.store(nth, Ordering::SeqCst);
                let (proof, shares) = joint(&provers, &case, Policy::Auto, (leader, 20), &going);
                let reached = armed.swap(usize::MAX, Ordering::SeqCst) == 0;
                assert_eq!(proof.unwrap(), case.expected, "{what}");
                assert!(shares[0].is_ok(), "{what}: {shares:?}");
                failures += usize::from(shares[1].is_err());
                assert_nothing_left(&devices, &what);
                if !reached {
                    break;
                }
            }
            assert!(failures > 0, "{op} never failed");
            let (proof, shares) = joint(&provers, &case, Policy::Auto, (leader, 20), &going);
            assert!(proof.unwrap() == case.expected && shares.iter().all(Result::is_ok), "after {op}");
        }
    }
}

#[test]
fn a_card_that_is_too_small_leaves_the_proof_to_the_others() {
    let case = Case::<Libsnark>::new(CIRCUIT.build());
    let mut small = Card::preset("rtx-5070-ti-16g").unwrap();
    small.capacity = small.context + Bytes::gib(4);
    let large = Card::preset("rtx-5070-ti-16g").unwrap();
    for leader in [0, 1] {
        let devices = cards(&[small.clone(), large.clone()], case.log(), &|_, _| {});
        let provers = provers(&devices, &case, Residency::None);
        let (proof, shares) = joint(&provers, &case, Policy::Auto, (leader, 1), &going);
        assert_eq!(proof.unwrap(), case.expected);
        assert!(matches!(shares[0], Err(Error::PlanRefused { .. })), "{shares:?}");
        assert!(shares[1].is_ok());
    }
    // None is large enough.
    let devices = cards(&[small.clone(), small], case.log(), &|_, _| {});
    let provers = provers(&devices, &case, Residency::None);
    let (proof, shares) = joint(&provers, &case, Policy::Auto, (0, 1), &going);
    assert!(matches!(proof, Err(Error::Unfinished)));
    assert!(shares.iter().all(|share| share.as_ref().unwrap_err().is_out_of_memory()));
}

#[test]
fn stopped_at_any_point_it_leaves_nothing() {
    let case = Case::<Libsnark>::new(squares(120, 3));
    let devices = Sim::fleet(3, case.log(), &|_, _| {});
    let provers = provers(&devices, &case, Residency::None);
    for questions in 0.. {
        let asked = AtomicUsize::new(0);
        let stop = || asked.fetch_add(1, Ordering::SeqCst) >= questions;
        let (proof, shares) = joint(&provers, &case, Policy::Auto, (0, 30), &stop);
        assert_nothing_left(&devices, "after a stop");
        match proof {
            Ok(proof) => {
                assert_eq!(proof, case.expected);
                break;
            }
            Err(error) => {
                assert!(matches!(error, Error::Unfinished), "{error}");
                assert!(shares.iter().any(|share| matches!(share, Err(Error::Stopped { .. }))));
            }
        }
    }
}

/// Two proofs at once on the same cards, led by different ones: neither waits for ever.
#[test]
fn p1_joint_proofs_and_whole_ones_share_the_cards() {
    let case = Case::<Libsnark>::new(CIRCUIT.build());
    for ahead in [false, true] {
        let devices = Sim::fleet(2, case.log(), &|_, ledger| ledger.ahead = ahead);
        let provers = provers(&devices, &case, Residency::None);
        let assignment = Assignment::new(&provers[0], &case.r1cs, &case.witness).unwrap();
        let new =
            || JointProof::new(&provers[0], &assignment, &options(Policy::Auto), 2).unwrap().in_pieces_of(1);
        let joints = [new(), new()];
        let ends = devices[0].workers(6, |WorkerId(i)| {
            let (on, what) = (i as usize % 2, i as usize / 2);
            let mut worker = Worker::new(i / 2);
            match joints.get(what) {
                Some(joint) => joint.work(&provers[on], &mut worker, on == what, &going).map(|_| None),
                None => {
                    let proved = provers[on].prove(&mut worker, &assignment, &options(Policy::Auto));
                    proved.map(|proved| Some(proved.proof))
                }
            }
        });
        for whole in ends.into_iter().filter_map(|end| end.unwrap().unwrap()) {
            assert_eq!(whole, case.expected);
        }
        for joint in joints {
            assert_eq!(joint.finish(&provers[0]).unwrap(), case.expected);
        }
        assert_nothing_left(&devices, "after all");
    }
}

/// All NVIDIA cards of the machine, where there are several: the bytes of the CPU, with points that are streamed and points that
/// stay.
#[cfg(feature = "cuda")]
#[test]
fn b111_p4_several_nvidia_cards_give_the_proof_of_one() {
    use prestage_vram::cuda::{Cuda, CudaConfig, Which, probe};
    common::devices::on_a_card("b111_p4", || {
        let found = probe().unwrap().devices;
        if found.len() < 2 {
            println!("b111_p4: skipped, one card is not several");
            return;
        }
        let mut cards: Vec<Cuda> = Vec::new();
        for card in found {
            let beside = cards.first().map(|first| first.ledger().clone());
            let ledger = LedgerConfig { beside, ..LedgerConfig::default() };
            let config = CudaConfig { which: Which::Uuid(card.uuid), ledger, ..CudaConfig::default() };
            cards.push(Cuda::open(config).unwrap());
        }
        for constraints in [0, 60, 5000] {
            let case = Case::<Libsnark>::new(Circuit { constraints, ..CIRCUIT }.build());
            for residency in STREAMED_OR_ALL {
                let provers = provers(&cards, &case, residency);
                for leader in 0..cards.len() {
                    let (proof, shares) = joint(&provers, &case, Policy::Auto, (leader, 100), &going);
                    assert_eq!(proof.unwrap(), case.expected, "{constraints} constraints, {leader} leads");
                    for share in shares.into_iter().flat_map(Result::unwrap) {
                        let planned: BTreeMap<_, _> = share.phases.iter().map(|p| (p.name, p.peak)).collect();
                        assert!(share.peaks.iter().all(|(phase, peak)| peak <= &planned[phase]));
                    }
                }
                drop(provers);
                assert_nothing_left(&cards, "after all proofs");
            }
        }
    });
}
