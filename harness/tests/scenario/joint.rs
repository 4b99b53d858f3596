//! Each proof by all devices: unequal cards, one that fails, one that is too small.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use prestage_groth16::{Assignment, Libsnark, Policy, Prover};
use prestage_harness::scenario::{HostTime, On, Outcomes, Scenario, run_joint, run_on};
use prestage_harness::timeline::{Recorder, Report, Timeline, trace_of};
use prestage_vram::{Bytes, Device, Ledger, LedgerConfig, Nanos, Op, Sim};

use super::devices::{FLEETS, open, presets, provers};
use super::{about, scenario, small, within_budget};

type Cards = [(Sim, Arc<Recorder>)];

fn wanted(partitions: u32) -> Scenario<'static> {
    let host = HostTime { prepare: Nanos::new(300_000_000), finish: Nanos::new(100_000_000) };
    Scenario { host, ..scenario(1, partitions, Policy::Auto) }
}

fn assignment(prover: &Prover<'_, Sim, Libsnark>, _: u32) -> Result<Assignment, prestage_groth16::Error> {
    let (circuit, _) = small();
    Assignment::new(prover, &circuit.r1cs, &circuit.witness)
}

fn prove(sims: &Cards, wanted: &Scenario<'_>, stop: bool, together: bool) -> Outcomes {
    let provers = provers(sims);
    let on: Vec<_> =
        provers.iter().zip(sims).map(|(prover, (_, recorder))| On { prover, recorder }).collect();
    let abouts = sims.iter().map(|(sim, _)| about(sim.name())).collect();
    let stop = AtomicBool::new(stop);
    match together {
        true => run_joint(&on, wanted, assignment, abouts, &stop).unwrap(),
        false => run_on(&on, wanted, assignment, abouts, &stop).unwrap(),
    }
}

fn assert_free(sims: &Cards) {
    for (sim, _) in sims {
        assert_eq!((sim.ledger().level().used(), sim.ledger().in_line()), (Bytes::ZERO, 0), "{}", sim.name());
    }
}

#[test]
fn t2_every_device_of_a_joint_proof_is_accounted_for() {
    for names in FLEETS {
        let sims = open(&presets(names), |_, _| {});
        let outcomes = prove(&sims, &wanted(3), false, true);
        assert_eq!((outcomes.proofs(), outcomes.failed.len(), outcomes.stopped), (3, 0, 0), "{names:?}");
        assert_eq!(outcomes.devices[0].proofs.len(), 3, "the first computes the quotients");
        for (done, name) in outcomes.devices.iter().zip(names) {
            let (report, idle) = (done.report.as_ref().unwrap(), done.timeline.idle());
            assert_eq!(report.verified.proofs(), 3, "{name} had a part in each");
            assert_eq!(report.times.wall(), report.times.busy() + report.times.idle().total(), "{name}");
            assert_eq!(report.complaint(), None, "{name}: {:?}", idle.by_cause);
            assert!(
                report.phases.iter().all(|phase| phase.measured_bytes <= phase.predicted_bytes),
                "{name}"
            );
            within_budget(&done.timeline);
        }
        drop(outcomes);
        sims.iter().for_each(|(sim, _)| assert_eq!(sim.ledger().in_line(), 0));
    }
}

#[test]
fn a_proof_by_two_equal_cards_takes_little_more_than_half_the_time() {
    let no_host = Scenario { host: HostTime::default(), ..wanted(1) };
    let wall = |count, together| {
        let sims = open(&presets(&["rtx-5070-ti-16g", "rtx-5070-ti-16g"][..count]), |_, _| {});
        prove(&sims, &no_host, false, together).wall()
    };
    let (one, two) = (wall(1, false), wall(2, true));
    assert!(two.get() * 100 < one.get() * 70, "{two} on two cards, {one} on one");
}

#[test]
fn f3_a_device_that_fails_leaves_its_part_and_the_rest_to_the_others() {
    for which in 0..3 {
        let own: Arc<OnceLock<Ledger>> = Arc::default();
        let (there, launches) = (Arc::clone(&own), AtomicUsize::new(0));
        let faults: Arc<dyn Fn(Op) -> bool + Send + Sync> = Arc::new(move |op| {
            let fails = op == Op::Launch && launches.fetch_add(1, Ordering::SeqCst) == 12;
            if fails && let Some(ledger) = there.get() {
                ledger.poison("it fell off the bus");
            }
            fails
        });
        let sims = open(&presets(FLEETS[1]), |i, ledger: &mut LedgerConfig| {
            ledger.faults = (i == which).then(|| Arc::clone(&faults));
        });
        own.set(sims[which].0.ledger().clone()).unwrap();
        let outcomes = prove(&sims, &wanted(4), false, true);
        assert!(outcomes.failed.is_empty() && outcomes.stopped == 0, "{:?}", outcomes.failed);
        let mut all: Vec<_> =
            outcomes.devices.iter().flat_map(|done| &done.proofs).map(|(n, _)| *n).collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4], "every partition is proved once");
        for (i, done) in outcomes.devices.iter().enumerate() {
            match i == which {
                true => assert!(done.lost.as_ref().unwrap().contains("fell off the bus"), "{:?}", done.lost),
                false => assert_eq!(done.report.as_ref().unwrap().verified.proofs(), 4),
            }
        }
    }
}

#[test]
fn f3_with_the_last_device_joint_proofs_fail() {
    let sims = open(&presets(FLEETS[0]), |_, _| {});
    let provers = provers(&sims);
    let on: Vec<_> =
        provers.iter().zip(&sims).map(|(prover, (_, recorder))| On { prover, recorder }).collect();
    let abouts = sims.iter().map(|(sim, _)| about(sim.name())).collect();
    let cut = |prover: &Prover<'_, Sim, Libsnark>, partition| {
        let assignment = assignment(prover, partition);
        sims.iter().for_each(|(sim, _)| sim.ledger().poison("no power"));
        assignment
    };
    let outcomes = run_joint(&on, &wanted(3), cut, abouts, &AtomicBool::new(false)).unwrap();
    assert_eq!((outcomes.proofs(), outcomes.failed.len(), outcomes.stopped), (0, 3, 0));
    assert!(outcomes.failed.iter().all(|failed| failed.error.contains("no power")), "{:?}", outcomes.failed);
}

#[test]
fn a_card_that_is_too_small_takes_no_part() {
    let mut cards = presets(FLEETS[1]);
    cards[0].capacity = cards[0].context + Bytes::gib(4);
    let sims = open(&cards, |_, _| {});
    let outcomes = prove(&sims, &wanted(2), false, true);
    assert_eq!((outcomes.proofs(), outcomes.failed.len()), (2, 0));
    assert!(
        outcomes.devices[0].lost.as_ref().unwrap().contains("no plan fits"),
        "{:?}",
        outcomes.devices[0].lost
    );
    assert!(outcomes.devices[0].report.is_none());
    assert!(outcomes.devices[1..].iter().all(|done| done.lost.is_none()));
}

#[test]
fn stopped_before_it_begins_it_makes_nothing() {
    let sims = open(&presets(FLEETS[0]), |_, _| {});
    let outcomes = prove(&sims, &wanted(5), true, true);
    assert_eq!((outcomes.proofs(), outcomes.failed.len(), outcomes.stopped), (0, 0, 5));
    assert_free(&sims);
}

#[test]
fn t3_two_joint_runs_give_the_same_trace() {
    let traced = || {
        let sims = open(&presets(FLEETS[1]), |_, _| {});
        let outcomes = prove(&sims, &wanted(2), false, true);
        let runs: Vec<(&Report, &Timeline)> =
            outcomes.devices.iter().map(|done| (done.report.as_ref().unwrap(), &done.timeline)).collect();
        trace_of(&runs)
    };
    assert_eq!(traced(), traced());
}
