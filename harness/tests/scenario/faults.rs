//! A partition that fails, and a run that is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use prestage_groth16::{Assignment, Policy, Prover};
use prestage_harness::scenario::{Outcome, Target, run};
use prestage_vram::{Bytes, Device, Host, HostConfig, Op};

use super::{about, card, open, recorded, scenario, small};

fn partitions(outcome: &Outcome) -> Vec<u32> {
    outcome.proofs.iter().map(|(partition, _)| *partition).collect()
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
        let sim = Target::open_sim(card(Bytes::mib(14_643)), super::SCALE, ledger).unwrap();
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
    let sim = Target::open_sim(card(Bytes::mib(14_643)), super::SCALE, ledger).unwrap();
    let prover = Prover::new(&sim, key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    let wanted = scenario(1, 5, Policy::Full);
    let outcome =
        run(&prover, &wanted, assignment, &recorder, about("sim"), &AtomicBool::new(false)).unwrap();
    assert_eq!(partitions(&outcome), [1, 3, 4, 5]);
    assert!(outcome.failed[0].error.contains("refused"), "{:?}", outcome.failed);
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
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
