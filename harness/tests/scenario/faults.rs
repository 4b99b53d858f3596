//! A partition that fails, and a run that is stopped.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use prestage_groth16::{Assignment, Policy, Prover, Residency};
use prestage_harness::scenario::{Target, run};
use prestage_vram::sim::OutOfMemory;
use prestage_vram::{Bytes, Card, Device, Host, HostConfig, Op, Sim};

use super::{Opens, SCALE, about, card, open, partitions, recorded, scenario, small};

thread_local! {
    /// The partition that the calling thread proves, counted from 1.
    static PARTITION: Cell<u32> = const { Cell::new(0) };
}

/// Row F3 for a preparation that fails or panics, on both devices.
#[test]
fn f3_a_partition_that_fails_stops_no_other() {
    let (circuit, key) = small();
    for workers in [1, 2] {
        for panics in [false, true] {
            let fails = |partition: u32| {
                let bad = partition == 1;
                assert!(!(bad && panics), "no witness");
                bad
            };
            let wrong = prestage_groth16::Error::InsecureKey { reason: "of this test" };
            let words = wrong.to_string();

            let (sim, recorder) = open(card(Bytes::mib(14_643)), workers > 1);
            let prover = Prover::new(&sim, key.clone()).unwrap();
            let assignment = |partition| match fails(partition) {
                true => Err(prestage_groth16::Error::InsecureKey { reason: "of this test" }),
                false => Assignment::new(&prover, &circuit.r1cs, &circuit.witness),
            };
            let wanted = scenario(workers, 10, Policy::Auto);
            let stop = AtomicBool::new(false);
            let on_sim = run(&prover, &wanted, assignment, &recorder, about("sim"), &stop).unwrap();
            assert_eq!(sim.ledger().level().used(), Bytes::ZERO);

            let (ledger, recorder) = recorded(Bytes::mib(512), workers > 1);
            let host = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
            let prover = Prover::new(&host, key.clone()).unwrap();
            let assignment = |partition| match fails(partition) {
                true => Err(prestage_groth16::Error::InsecureKey { reason: "of this test" }),
                false => Assignment::new(&prover, &circuit.r1cs, &circuit.witness),
            };
            let on_host = run(&prover, &wanted, assignment, &recorder, about("host"), &stop).unwrap();
            assert_eq!(host.ledger().level().used(), Bytes::ZERO);

            for outcome in [on_sim, on_host] {
                assert_eq!(partitions(&outcome), [1, 3, 4, 5, 6, 7, 8, 9, 10]);
                assert_eq!(outcome.report.unwrap().verified.proofs(), 9);
                let [failed] = &outcome.failed[..] else { panic!("{:?}", outcome.failed) };
                assert_eq!(failed.partition, 2);
                assert_eq!(failed.error, if panics { "no witness".to_owned() } else { words.clone() });
            }
        }
    }
}

/// Row F3 for memory that the driver refuses in the middle of partition 2, twice for each request.
#[test]
fn f3_memory_that_is_denied_fails_one_partition() {
    let (circuit, key) = small();
    let allocations = Arc::new(AtomicU32::new(0));
    // Allocations in one proof, then the first of the second fails, and so does its retry.
    let per_proof = {
        let (mut ledger, recorder) = recorded(Bytes::mib(512), false);
        let counter = Arc::clone(&allocations);
        ledger.faults = Some(Arc::new(move |op| {
            if op == Op::Allocate {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            false
        }));
        let sim = Target::open_sim(card(Bytes::mib(14_643)), SCALE, ledger).unwrap();
        super::prove(&sim, &recorder, &scenario(1, 1, Policy::Full));
        allocations.swap(0, Ordering::SeqCst)
    };
    assert!(per_proof > 10);
    let (mut ledger, recorder) = recorded(Bytes::mib(512), false);
    let counter = Arc::clone(&allocations);
    ledger.faults = Some(Arc::new(move |op| {
        let n = if op == Op::Allocate { counter.fetch_add(1, Ordering::SeqCst) } else { 0 };
        op == Op::Allocate && (per_proof..per_proof + 2).contains(&n)
    }));
    let sim = Target::open_sim(card(Bytes::mib(14_643)), SCALE, ledger).unwrap();
    let prover = Prover::new(&sim, key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    let wanted = scenario(1, 5, Policy::Full);
    let outcome =
        run(&prover, &wanted, assignment, &recorder, about("sim"), &AtomicBool::new(false)).unwrap();
    assert_eq!(partitions(&outcome), [1, 3, 4, 5]);
    assert!(outcome.failed[0].error.contains("refused"), "{:?}", outcome.failed);
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
}

/// In partition 2 every operation of one kind fails, or panics inside the turn.
fn partition_2_fails<D: Opens>(workers: u32, op: Op, panics: bool) {
    let (circuit, key) = small();
    let (mut ledger, recorder) = recorded(Bytes::mib(512), workers > 1);
    ledger.faults = Some(Arc::new(move |asked| {
        // What the first partition has pinned, the others use.
        let bad = asked == op && PARTITION.get() == if op == Op::Register { 1 } else { 2 };
        assert!(!(bad && panics), "the driver is gone");
        bad
    }));
    let device = D::opened(ledger);
    let prover = Prover::new(&device, key.clone()).unwrap().keeping(Residency::None);
    let pinned = device.ledger().locked().bytes();
    let assignment = |partition| {
        PARTITION.set(partition + 1);
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
    };
    let wanted = scenario(workers, 10, Policy::Auto);
    let outcome =
        run(&prover, &wanted, assignment, &recorder, about("device"), &AtomicBool::new(false)).unwrap();
    let what = format!("{}, {workers} workers, {op}: {:?}", device.name(), outcome.failed);
    let report = outcome.report.as_ref().unwrap();
    if op == Op::Register {
        assert_eq!((partitions(&outcome).len(), report.verified.proofs()), (10, 10), "{what}");
        let plans: Vec<_> = report.plans.iter().map(|plan| (plan.policy.as_str(), plan.proofs)).collect();
        assert_eq!(plans, [("none", 1), ("full", 9)], "what cannot be pinned is proved unstaged");
    } else {
        assert_eq!(partitions(&outcome), [1, 3, 4, 5, 6, 7, 8, 9, 10], "{what}");
        assert_eq!(report.verified.proofs(), 9, "{what}");
        let [failed] = &outcome.failed[..] else { panic!("{what}") };
        let words = match (op, panics) {
            (_, true) => "the driver is gone".to_owned(),
            (Op::Allocate, false) => "refused".to_owned(),
            (op, false) => format!("{op} failed on {}: injected fault", device.name()),
        };
        assert!(failed.partition == 2 && failed.error.contains(&words), "{what}");
    }
    let ledger = device.ledger();
    assert_eq!((ledger.level().used(), ledger.in_line()), (Bytes::ZERO, 0), "{what}");
    assert_eq!(ledger.locked().bytes(), pinned + prover.memory().idle(), "{what}");
}

#[test]
fn f3_whatever_fails_in_partition_2_the_others_verify() {
    for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane] {
        for workers in [1, 2] {
            partition_2_fails::<Host>(workers, op, false);
            partition_2_fails::<Sim>(workers, op, false);
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn f3_p9_whatever_fails_in_partition_2_on_an_nvidia_card() {
    use prestage_vram::cuda::Cuda;
    prestage_vram::conformance::run(&prestage_vram::conformance::OnCuda, "f3_p9", |_| {
        for workers in [1, 2] {
            for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane] {
                partition_2_fails::<Cuda>(workers, op, false);
            }
            for op in [Op::Allocate, Op::Launch] {
                partition_2_fails::<Cuda>(workers, op, true);
            }
        }
    });
}

#[test]
fn p9_a_panic_inside_the_turn_gives_it_back() {
    for op in [Op::Allocate, Op::Launch] {
        for workers in [1, 2] {
            partition_2_fails::<Host>(workers, op, true);
            partition_2_fails::<Sim>(workers, op, true);
        }
    }
}

/// Row C6: while partition 2 allocates, another process takes the memory that the account has just granted. The driver
/// refuses for good, and everything later fails. Opened again, the card proves the rest.
#[test]
fn c6_the_typed_pipeline_opens_a_sticky_card_again_and_proves_the_rest() {
    let (circuit, key) = small();
    for workers in [1, 2] {
        let mut sticky = Card::preset("cascade-16g").unwrap();
        sticky.out_of_memory = OutOfMemory::Sticky;
        // As the typed pipeline opens its pool: nothing stays for partition 2 to begin with.
        sticky.pool_threshold = Bytes::ZERO;
        let (mut ledger, recorder) = recorded(Bytes::ZERO, false);
        let there = Arc::new(OnceLock::<Weak<Sim>>::new());
        let taken = AtomicBool::new(false);
        let sim = Arc::clone(&there);
        ledger.faults = Some(Arc::new(move |op| {
            if op == Op::Allocate && PARTITION.get() == 2 && !taken.swap(true, Ordering::SeqCst) {
                sim.get().and_then(Weak::upgrade).unwrap().set_foreign(Bytes::mib(14_000));
            }
            false
        }));
        let sim = Arc::new(Target::open_sim(sticky, SCALE, ledger).unwrap());
        there.set(Arc::downgrade(&sim)).unwrap();

        let wanted = |partitions| scenario(workers, partitions, Policy::Auto);
        let stop = AtomicBool::new(false);
        let prover = Prover::new(&*sim, key.clone()).unwrap();
        let assignment = |partition| {
            PARTITION.set(partition + 1);
            Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
        };
        let outcome = run(&prover, &wanted(10), assignment, &recorder, about("sim"), &stop).unwrap();
        assert!(sim.ledger().healthy().is_err());
        assert_eq!((partitions(&outcome), outcome.failed.len()), (vec![1], 9), "{workers} workers");
        for failed in &outcome.failed {
            let words = "failed earlier and must be opened again: out of memory: 4.00 GiB asked for";
            assert!(failed.error.contains(words), "{failed:?}");
        }
        assert_eq!((sim.ledger().level().used(), sim.ledger().in_line()), (Bytes::ZERO, 0));

        // The other process ends.
        sim.set_foreign(Bytes::ZERO);
        let again = sim.reopen().unwrap();
        let rest = u32::try_from(outcome.failed.len()).unwrap();
        let prover = Prover::new(&again, key.clone()).unwrap();
        let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
        let outcome = run(&prover, &wanted(rest), assignment, &recorder, about("sim"), &stop).unwrap();
        let report = outcome.report.unwrap();
        assert_eq!((report.verified.proofs(), outcome.failed.len()), (u64::from(rest), 0));
        assert!(report.plans.iter().all(|plan| plan.policy == "full"));
        assert_eq!((again.ledger().level().used(), again.usage().pooled), (Bytes::ZERO, Bytes::ZERO));
        assert!(again.ledger().healthy().is_ok());
    }
}

#[test]
fn a_stop_ends_between_stages_and_reports_what_was_proved() {
    let (circuit, key) = small();
    for workers in [1, 2] {
        let (sim, recorder) = open(card(Bytes::mib(14_643)), workers > 1);
        let prover = Prover::new(&sim, key.clone()).unwrap();
        let stop = AtomicBool::new(false);
        let assignment = |partition| {
            if partition == 4 {
                stop.store(true, Ordering::SeqCst);
            }
            Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
        };
        let wanted = scenario(workers, 10, Policy::Auto);
        let outcome = run(&prover, &wanted, assignment, &recorder, about("sim"), &stop).unwrap();
        let proofs = outcome.report.unwrap().verified.proofs();
        assert!(proofs >= 3 && outcome.failed.is_empty());
        assert_eq!(proofs + u64::from(outcome.stopped), 10);
        assert_eq!((sim.ledger().level().used(), sim.ledger().in_line()), (Bytes::ZERO, 0));
    }
}
