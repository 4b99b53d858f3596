//! Host memory that cannot be page-locked: row L13.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{blinding, reference, squares};
use prestage_groth16::{
    Assignment, Libsnark, Options, Policy, Proofs, Prover, Residency, setup_insecure_from_seed,
};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{
    Bytes, Card, Event, Host, HostConfig, LedgerConfig, Op, Sim, SimConfig, Sink, Track, Worker,
};

/// Names of host work: filling and emptying a ring's slots among them.
#[derive(Default)]
struct HostWork(Mutex<Vec<String>>);

impl Sink for HostWork {
    fn emit(&self, event: Event) {
        if let Event::Span(span) = event
            && span.track == Track::Host
        {
            self.0.lock().unwrap().push(span.name.into_owned());
        }
    }
}

impl HostWork {
    /// What went through rings since the last call, each name once.
    fn through_rings(&self) -> Vec<String> {
        let mut names = std::mem::take(&mut *self.0.lock().unwrap());
        names.retain(|name| name.starts_with("fill ") || name.starts_with("empty "));
        names.sort();
        names.dedup();
        names
    }
}

fn host(ledger: LedgerConfig) -> Host {
    Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap()
}

fn sim(ledger: LedgerConfig) -> Sim {
    let card = Card::preset("rtx-5070-ti-16g").unwrap();
    Sim::open(SimConfig { card, scale: 1 << 18, ledger }).unwrap()
}

/// Proves with registration number `refused` after the prover's own refused, or with no more pinned memory than the prover
/// itself takes. Returns the policy under `Auto`, and for each policy what went through rings.
fn proved<D: Ntt + Msm>(
    open: impl Fn(LedgerConfig) -> D,
    refused: Option<usize>,
) -> (Policy, Vec<(Policy, Vec<String>)>) {
    let (r1cs, witness) = squares(400, 3);
    let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [7; 32]).unwrap();
    let expected = reference(&key, &r1cs, &witness, blinding(1));
    let pinned = match refused {
        Some(_) => Bytes::MAX,
        None => {
            let device = open(LedgerConfig::default());
            let _prover = Prover::new(&device, key.clone()).unwrap();
            device.ledger().locked().bytes()
        }
    };
    let (work, countdown) = (Arc::new(HostWork::default()), Arc::new(AtomicUsize::new(usize::MAX)));
    let counter = Arc::clone(&countdown);
    let faults = move |op| op == Op::Register && counter.fetch_sub(1, Ordering::SeqCst) == 0;
    let ledger = LedgerConfig {
        pinned,
        sink: Arc::clone(&work) as _,
        faults: Some(Arc::new(faults)),
        ..LedgerConfig::default()
    };
    let device = open(ledger);
    let prover = Prover::new(&device, key).unwrap();
    countdown.store(refused.unwrap_or(usize::MAX), Ordering::SeqCst);
    let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
    assert_eq!(assignment.is_pinned(), refused.is_some());
    let mut auto = Policy::Auto;
    let policies = [Policy::Auto, Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None];
    let rings = policies.map(|policy| {
        work.through_rings();
        let options = Options::default().policy(policy).insecure_blinding(blinding(1));
        let proved = prover.prove(&mut Worker::new(0), &assignment, &options).unwrap();
        assert_eq!(proved.proof, expected, "{policy}");
        if policy == Policy::Auto {
            auto = proved.plan.policy();
        }
        (policy, work.through_rings())
    });
    drop((assignment, prover));
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
    assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
    (auto, rings.to_vec())
}

fn c_alone_goes_through_the_ring<D: Ntt + Msm>(open: impl Fn(LedgerConfig) -> D) {
    let (auto, rings) = proved(open, Some(2));
    assert_eq!(auto, Policy::Full);
    for (policy, names) in rings {
        let expected: &[&str] = match policy {
            // c takes b's slot.
            Policy::AThenBc | Policy::None => &["fill bc"],
            // Its copy, which the transform out of core uses up, can be page-locked.
            Policy::Chunked(_) => &[],
            _ => &["fill c"],
        };
        assert_eq!(names, expected, "{policy}");
    }
}

fn all_goes_through_the_ring<D: Ntt + Msm>(open: impl Fn(LedgerConfig) -> D) {
    let (auto, rings) = proved(open, None);
    assert_eq!(auto, Policy::None, "no memory can be pinned");
    for (policy, names) in rings {
        let expected: &[&str] = match policy {
            Policy::Full => &["fill a", "fill b", "fill c"],
            Policy::Chunked(_) => &["empty slot 0", "empty slot 1", "fill a", "fill slot 0", "fill slot 1"],
            _ => &["fill a", "fill bc"],
        };
        assert_eq!(names, expected, "{policy}");
    }
}

#[test]
fn l13_registration_refused_for_c_alone() {
    c_alone_goes_through_the_ring(host);
    c_alone_goes_through_the_ring(sim);
}

#[test]
fn l13_no_memory_left_to_pin() {
    all_goes_through_the_ring(host);
    all_goes_through_the_ring(sim);
}

/// What is page-locked of the key, whether points go through rings, and what a prover for one proof keeps on the device.
fn for_one<D: Ntt + Msm>(open: impl Fn(LedgerConfig) -> D, threads: usize) -> (Bytes, Vec<String>) {
    let (r1cs, witness) = squares(400, 3);
    let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [7; 32]).unwrap();
    let expected = reference(&key, &r1cs, &witness, blinding(1));
    let work = Arc::new(HostWork::default());
    let device = open(LedgerConfig { sink: Arc::clone(&work) as _, ..LedgerConfig::default() });
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let many = Prover::new(&device, key.clone()).unwrap();
        let locked = device.ledger().locked().bytes();
        assert_eq!((many.proofs(), many.residency()), (Proofs::Many, Residency::Auto));
        drop(many);
        let prover = Prover::for_proofs(&device, key, Proofs::One).unwrap();
        assert_eq!((prover.proofs(), prover.residency()), (Proofs::One, Residency::None));
        let less = locked.saturating_sub(device.ledger().locked().bytes());
        // Points may stay all the same where that is asked for: then they show how they come.
        let prover = prover.keeping(Residency::All);
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        let options = Options::default().insecure_blinding(blinding(1));
        let proved = prover.prove(&mut Worker::new(0), &assignment, &options).unwrap();
        assert_eq!(proved.proof, expected);
        (less, work.through_rings())
    })
}

#[test]
fn for_one_proof_points_go_through_a_ring_where_threads_fill_it() {
    let large = |ledger| {
        let card = Card::preset("h200-141g").unwrap();
        Sim::open(SimConfig { card, scale: 1 << 18, ledger }).unwrap()
    };
    let (less, names) = for_one(large, 4);
    assert!(less > Bytes::ZERO, "less is page-locked");
    assert_eq!(names, ["a", "b1", "b2", "h", "l"].map(|sum| format!("fill points of {sum}")));
    assert_eq!(for_one(large, 3), (Bytes::ZERO, Vec::new()), "too few threads");
}
