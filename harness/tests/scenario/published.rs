//! The card that the original ran on, against what was published for it.

use prestage_groth16::Policy;
use prestage_harness::scenario::Scenario;
use prestage_harness::timeline::{IdleCause, Piece, Timeline};
use prestage_vram::{Card, Event, Nanos, Track};

use super::{no_host_time, open, porep, prove, scenario, spans, within_budget};

fn published() -> Card {
    Card::preset("rtx-5070-ti-16g").unwrap()
}

/// Staged, its results deferred: 1.59 s per partition, published. The device-level half of the row, with the original's own
/// schedule, is in `vram`.
#[test]
fn p11_a_staged_partition_takes_the_published_time() {
    let (sim, recorder) = open(published(), false);
    let run =
        Scenario { workers: 1, partitions: 4, policy: Policy::Full, host: no_host_time(), opened: None };
    let outcome = prove(&sim, &recorder, &run);
    assert_eq!(outcome.report.unwrap().verified.proofs(), 4);
    for turn in spans(&outcome.timeline, Track::Held) {
        let took = turn.end.since(turn.start);
        assert!(took > Nanos::new(1_431_000_000) && took < Nanos::new(1_749_000_000), "{took}");
    }
}

/// Two workers, whose preparation takes as long as assumed for the shape, and none.
#[test]
fn p12_uploads_are_off_the_critical_path() {
    for host in [porep().host(), no_host_time()] {
        let idle = |ahead| {
            let (sim, recorder) = open(published(), ahead);
            let outcome = prove(&sim, &recorder, &Scenario { host, ..scenario(2, 10, Policy::Auto) });
            assert_eq!(outcome.report.unwrap().verified.proofs(), 10);
            assert!(!outcome.timeline.events().iter().any(|e| matches!(e, Event::Refusal { .. })));
            within_budget(&outcome.timeline);
            let turns = spans(&outcome.timeline, Track::Held);
            let ends = turns.iter().map(|turn| turn.end);
            steady(&outcome.timeline, ends.clone().min().unwrap(), ends.max().unwrap())
        };
        let (transfer, all) = idle(true);
        assert!(transfer < 2.0 && all < 2.0, "{transfer} % by transfer of {all} % idle");
        let (without, _) = idle(false);
        assert!(without > 4.0, "visible without: {without} %");
    }
}

/// Per cent of the wall between two moments that the card was idle by `transfer`, and in all.
#[allow(clippy::cast_precision_loss)]
fn steady(timeline: &Timeline, from: Nanos, to: Nanos) -> (f64, f64) {
    let idle = timeline.idle();
    let pieces = || idle.gaps.iter().flat_map(|gap| &gap.pieces);
    let inside = |piece: &Piece| piece.end.min(to).since(piece.start.max(from)).get() as f64;
    let percent = |ns: f64| 100.0 * ns / to.since(from).get() as f64;
    let transfer = pieces().filter(|piece| piece.cause == IdleCause::Transfer).map(inside).sum();
    (percent(transfer), percent(pieces().map(inside).sum()))
}
