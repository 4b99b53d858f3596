//! Loads with a known trapdoor: every proof must be the one that it gives, not merely one that verifies.

use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Libsnark, Policy, Prover, Trapdoor};
use prestage_harness::Error;
use prestage_harness::scenario::{Outcome, Scenario, run};
use prestage_msm::Threads;
use prestage_vram::{Bytes, Host, Nanos};

use super::rig::LOG;
use super::{Opens, about, porep, recorded, scenario, within_budget};

#[test]
fn proofs_other_than_the_trapdoors_are_not_timed() {
    let made = porep().make(LOG, &Threads).unwrap();
    let (ledger, recorder) = recorded(Bytes::mib(512), true);
    let host = Host::opened(ledger);
    let prover = Prover::new(&host, made.key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &made.circuit.r1cs, &made.circuit.witness);
    let (wanted, stop) = (scenario(2, 4, Policy::Auto), AtomicBool::new(false));
    let with = |opened| {
        let wanted = Scenario { opened, ..wanted };
        run(&prover, &wanted, assignment, &recorder, about("host"), &stop)
    };
    let outcome = with(Some(&made.opened)).unwrap();
    assert_eq!((outcome.proofs.len(), outcome.report.unwrap().verified.proofs()), (4, 4));
    within_budget(&outcome.timeline);
    let proofs: Vec<_> = outcome.proofs.iter().map(|(_, proof)| *proof).collect();
    assert!((1..4).all(|i| proofs[i] != proofs[0]), "each partition has blinding scalars of its own");

    // Another trapdoor's proofs: these verify under the key all the same.
    let other = Trapdoor::<Libsnark>::insecure_from_seed(&made.circuit.r1cs, [9; 32]).unwrap();
    let other = other.open(&made.circuit.r1cs, &made.circuit.witness).unwrap();
    assert!(matches!(with(Some(&other)), Err(Error::Unverified { index: 1, proofs: 4 })));
    let Outcome { report, .. } = with(None).unwrap();
    assert_eq!(report.unwrap().verified.proofs(), 4);
}

/// A window of a timeline has its share of the times, to the nanosecond.
#[test]
fn t2_the_parts_of_a_timeline_add_up() {
    let (sim, recorder) = super::open(super::card(Bytes::gib(14)), true);
    let outcome = super::prove(&sim, &recorder, &scenario(2, 5, Policy::Auto));
    let timeline = outcome.timeline;
    let (first, last) = timeline.extent();
    let idle = timeline.idle();
    let middle = Nanos::new(first.get().midpoint(last.get()));
    let parts = [timeline.between(first, middle), timeline.between(middle, last)];
    let busy: Nanos = parts.iter().map(|part| part.idle().busy).sum();
    assert_eq!(busy, idle.busy);
    for (cause, time) in idle.by_cause.iter() {
        let sum: Nanos = parts.iter().map(|part| part.idle().by_cause.get(cause)).sum();
        assert_eq!(sum, time, "{cause:?}");
    }
    assert_eq!(timeline.between(first, last).idle(), idle);
    assert!(timeline.between(last, last).events().is_empty());
    assert_eq!(parts[1].memory().first().map(|(at, _)| *at), Some(middle), "what was held then is known");
}
