//! Faults of others with memory that several proofs or processes share, kept from happening here.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use prestage_groth16::{Assignment, Policy, Prover, Residency, Shape};
use prestage_harness::scenario::{Outcome, Outlook, Wanted, run as prove_all};
use prestage_harness::timeline::Recorder;
use prestage_vram::{Bytes, Event, Host, LedgerConfig, Nanos, Op, Sim, Track};

use crate::command::{Work, fixture, run};
use crate::rig::{Opens, about, card, open, partitions, prove, recorded, scenario, small, spans};

fn refusals(outcome: &Outcome) -> usize {
    outcome.timeline.events().iter().filter(|event| matches!(event, Event::Refusal { .. })).count()
}

/// Uploads once failed because another process held the card; work then went to the CPU for minutes. Here the plan shrinks
/// or refuses before the first kernel, in numbers, and the next proof takes the large plan again.
#[test]
fn b003_another_process_on_the_card() {
    let (circuit, key) = small();
    let (sim, recorder) = open(card(Bytes::mib(14_767)), false);
    let capacity = sim.card().capacity;
    let prover = Prover::new(&sim, key.clone()).unwrap();
    // Thousandths of the card that are taken before each partition: 90 % for the second.
    let taken = [0, 900, 300, 500, 0];
    let assignment = |partition: u32| {
        sim.set_foreign(Bytes::new(capacity.get() / 1000 * taken[partition as usize]));
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
    };
    let wanted = scenario(1, 5, Policy::Auto);
    let outcome =
        prove_all(&prover, &wanted, assignment, &recorder, about("sim"), &AtomicBool::new(false)).unwrap();
    assert_eq!(partitions(&outcome), [1, 3, 4, 5]);
    assert_eq!(refusals(&outcome), 0, "no request is refused: the plan is");
    let free = Bytes::mib(14_767).saturating_sub(Bytes::new(capacity.get() / 1000 * 900));
    let error = &outcome.failed[0].error;
    assert!(error.contains("no plan fits") && error.contains("needs"), "{error}");
    let words = format!("the budget is {} (margin 512.00 MiB kept)", free.saturating_sub(Bytes::mib(512)));
    assert!(error.contains(&words), "{error}");
    let plans: Vec<_> =
        outcome.report.as_ref().unwrap().plans.iter().map(|p| (p.policy.as_str(), p.proofs)).collect();
    assert_eq!(plans, [("full", 2), ("a-then-bc", 1), ("chunked:8", 1)]);
    // Nothing ran in the turn of the refused proof.
    let turns = spans(&outcome.timeline, Track::Held);
    let kernels = spans(&outcome.timeline, Track::Compute);
    let ran = |i: usize| kernels.iter().any(|k| (turns[i].start..turns[i].end).contains(&k.start));
    assert_eq!([0, 1, 2, 3, 4].map(ran), [true, false, true, true, true]);
}

thread_local! {
    /// The partition that the calling thread proves, counted from 1.
    static PARTITION: Cell<u32> = const { Cell::new(0) };
}

/// Proofs once tried the card again and again after it had failed, dozens of times in one proof. Here a proof that fails
/// fails once, in bounded tries, and the ones after it are planned as ever.
fn a_proof_that_fails_fails_once<D: Opens>() {
    let (circuit, key) = small();
    for (op, nth) in [(Op::Launch, 1), (Op::Copy, 1), (Op::Allocate, 0), (Op::Allocate, 4)] {
        // Operations of that kind in partitions 1 and 2.
        let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let (mut ledger, recorder) = recorded(Bytes::mib(512), false);
        let counted = Arc::clone(&counts);
        ledger.faults = Some(Arc::new(move |asked| {
            let (true, partition @ 1..=2) = (asked == op, PARTITION.get()) else { return false };
            // From the nth on all of them fail.
            counted[partition as usize - 1].fetch_add(1, Ordering::SeqCst) >= nth && partition == 2
        }));
        let device = D::opened(ledger);
        let prover = Prover::new(&device, key.clone()).unwrap();
        let assignment = |partition| {
            PARTITION.set(partition + 1);
            Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
        };
        let wanted = scenario(1, 4, Policy::Auto);
        let outcome =
            prove_all(&prover, &wanted, assignment, &recorder, about("device"), &AtomicBool::new(false))
                .unwrap();
        let [usual, failed] = [0, 1].map(|i: usize| counts[i].load(Ordering::SeqCst));
        assert_eq!(partitions(&outcome), [1, 3, 4], "{op}");
        assert_eq!(outcome.failed.len(), 1);
        // An allocation is tried twice, and a sum's scratch again in halves of its batch.
        let tries = if op == Op::Allocate { 2 * (1 + 8) } else { 1 };
        assert!(usual > nth && failed <= nth + tries, "{op}: {failed} tries, {usual} without a fault");
        assert!(refusals(&outcome) <= 1 + 8, "{op}");
        let plans = &outcome.report.unwrap().plans;
        assert_eq!((plans.len(), plans[0].policy.as_str(), plans[0].proofs), (1, "full", 3));
    }
}

#[test]
fn b007_f018_a_proof_that_fails_fails_once() {
    a_proof_that_fails_fails_once::<Host>();
    a_proof_that_fails_fails_once::<Sim>();
}

/// How much a proof needs once stood nowhere. The command says it before anything is opened, per stage, for keys and for
/// shapes of any size; and what it says is what is held.
#[test]
fn b016_f016_peak_bytes_per_stage_are_told_before() {
    let work = Work::new();
    let device = "sim:rtx-5070-ti-16g";
    let mut answers = Vec::new();
    for key in ["sq10/circuit.zkey", "manypublic/circuit.zkey"] {
        answers.push(run!(work, "plan", "--key", fixture(key), "--device", device, "--json").json());
    }
    answers.push(run!(work, "plan", "--log-domain", "14", "--device", device, "--json").json());
    for cap in ["", "@8GiB", "@10GiB"] {
        let device = format!("{device}{cap}");
        answers.push(run!(work, "plan", "--shape", "porep-32g", "--device", device, "--json").json());
    }
    for answer in &answers {
        let phases = answer["phases"].as_array().unwrap();
        let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["stage", "quotient", "h", "l", "a", "b1", "b2"]);
        let peaks = phases.iter().map(|phase| phase["peak_bytes"].as_u64().unwrap());
        assert_eq!(peaks.max(), answer["peak_bytes"].as_u64());
        assert!(answer["peak_bytes"].as_u64() <= answer["budget_bytes"].as_u64(), "{answer:#}");
    }
    let policies: Vec<_> = answers.iter().map(|answer| answer["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["full", "full", "full", "full", "chunked:8", "chunked:4"]);
    let refused = run!(work, "plan", "--shape", "porep-32g", "--device", "sim:rtx-5070-ti-16g@6GiB");
    let line = refused.refused().to_owned();
    assert!(line.contains("no plan fits") && line.contains("but the budget is 4.00 GiB"), "{line}");

    // The same plan, made without a device, and what a run on the card holds.
    for usable in [14_767, 9_000, 7_000] {
        let (sim, recorder) = open(card(Bytes::mib(usable)), false);
        let prover = Prover::new(&sim, small().1.clone()).unwrap();
        let (shape, wanted): (&Shape, _) = (prover.shape(), Wanted::Policy(Policy::Auto));
        let told =
            Outlook::new(("small", shape), prover.domain(), ("sim", &sim), (wanted, Residency::Auto), 1)
                .unwrap();
        let report = prove(&sim, &recorder, &scenario(1, 2, Policy::Auto)).report.unwrap();
        assert_eq!(told.policy, report.plans[0].policy, "{usable}");
        assert_eq!(told.phases.len(), report.phases.len());
        for (told, held) in told.phases.iter().zip(&report.phases) {
            assert_eq!((told.name, told.peak_bytes), (held.name.as_str(), held.measured_bytes), "{usable}");
        }
    }
}

fn run_on<D: Opens>(ledger: LedgerConfig, recorder: &Recorder, workers: u32) -> (D, Outcome) {
    let (circuit, key) = small();
    let device = D::opened(ledger);
    let outcome = {
        let prover = Prover::new(&device, key.clone()).unwrap();
        let assignment = |_| {
            let assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
            // Long enough that all workers hold one at the same time.
            device.elapse(Nanos::new(1_000_000_000));
            assignment
        };
        let wanted = scenario(workers, 8, Policy::Auto);
        prove_all(&prover, &wanted, assignment, recorder, about("device"), &AtomicBool::new(false)).unwrap()
    };
    (device, outcome)
}

/// What the host pins for one proof, and what stays pinned between proofs.
fn one_job<D: Opens>() -> (Bytes, Bytes) {
    let (circuit, key) = small();
    let device = D::opened(LedgerConfig::default());
    let prover = Prover::new(&device, key.clone()).unwrap();
    let slots = device.ledger().locked().bytes();
    let _assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap();
    (device.ledger().locked().bytes().saturating_sub(slots), slots)
}

/// A host was once run out of memory by what was to be pinned. Here there is a limit, nothing is pinned past it, and what
/// does not fit is proved from ordinary memory.
fn pinned_memory_has_a_limit<D: Opens>() {
    let (job, slots) = one_job::<D>();
    for (limit, plans) in [(slots, vec![("none", 8)]), (slots + job, vec![("full", 8)])] {
        let (ledger, recorder) = recorded(Bytes::mib(512), false);
        let (device, outcome) = run_on::<D>(LedgerConfig { pinned: limit, ..ledger }, &recorder, 1);
        let report = outcome.report.unwrap();
        assert_eq!((report.verified.proofs(), outcome.failed.len()), (8, 0));
        assert_eq!(report.plans.iter().map(|p| (p.policy.as_str(), p.proofs)).collect::<Vec<_>>(), plans);
        assert!(device.ledger().locked().peak() <= limit);
    }
}

#[test]
fn b020_pinned_memory_has_a_limit() {
    pinned_memory_has_a_limit::<Host>();
    pinned_memory_has_a_limit::<Sim>();
}

/// All partitions were once prepared at once while the card proved one. Here no worker prepares a second one before it has
/// proved the first: N workers hold N at most.
fn no_more_is_prepared_than_there_are_workers<D: Opens>() {
    let (job, slots) = one_job::<D>();
    for workers in 1..=3 {
        let (ledger, recorder) = recorded(Bytes::mib(512), workers > 1);
        let (device, outcome) = run_on::<D>(ledger, &recorder, workers);
        assert_eq!((outcome.proofs.len(), outcome.failed.len()), (8, 0));
        let peak = device.ledger().locked().peak();
        assert!(peak <= slots + job * u64::from(workers), "{workers} workers: {peak}, one job is {job}");
        assert!(peak >= slots + job);
    }
}

#[test]
fn b021_no_more_is_prepared_than_there_are_workers() {
    no_more_is_prepared_than_there_are_workers::<Host>();
    no_more_is_prepared_than_there_are_workers::<Sim>();
}
