//! The idle analysis against one that looks at every nanosecond.

use prestage_harness::timeline::{ByCause, IdleCause, Timeline};
use prestage_vram::{Cause, Event, Nanos, Track};
use proptest::prelude::*;

use crate::synthetic::{level, porep, span, wait};

/// The definition, naively: which events cover the nanosecond that begins at `t`?
fn covers(event: &Event, t: u64) -> bool {
    match event {
        Event::Span(s) => s.start.get() <= t && t < s.end.get(),
        Event::Wait { start, end, .. } => start.get() <= t && t < end.get(),
        _ => false,
    }
}

fn cause_at(events: &[Event], t: u64) -> IdleCause {
    let any = |of: &dyn Fn(&Event) -> bool| events.iter().any(|e| covers(e, t) && of(e));
    let span = |track: Track| any(&|e| matches!(e, Event::Span(s) if s.track == track));
    let waits = |cause: Cause| any(&|e| matches!(e, Event::Wait { cause: c, .. } if *c == cause));
    let launch = any(
        &|e| matches!(e, Event::Span(s) if s.track == Track::Launch && s.end.get() - s.start.get() < 20_000),
    );
    if span(Track::Memory) || waits(Cause::Alloc) {
        IdleCause::Alloc
    } else if span(Track::Upload) || span(Track::Download) || waits(Cause::Transfer) {
        IdleCause::Transfer
    } else if waits(Cause::Sync) {
        IdleCause::Sync
    } else if span(Track::Host) {
        IdleCause::Host
    } else if waits(Cause::Turn) {
        IdleCause::Turn
    } else if launch {
        IdleCause::Launch
    } else {
        IdleCause::Unattributed
    }
}

fn busy_at(events: &[Event], t: u64) -> bool {
    events.iter().any(|e| covers(e, t) && matches!(e, Event::Span(s) if s.track == Track::Compute))
}

fn an_event() -> impl Strategy<Value = Event> {
    let tracks = prop::sample::select(vec![
        Track::Compute,
        Track::Compute,
        Track::Upload,
        Track::Download,
        Track::Host,
        Track::Memory,
        Track::Launch,
        Track::Held,
    ]);
    let causes = prop::sample::select(vec![Cause::Alloc, Cause::Transfer, Cause::Sync, Cause::Turn]);
    let interval = (0u64..400, 0u64..60);
    prop_oneof![
        3 => (tracks, 0u32..3, interval.clone()).prop_map(|(t, w, (at, len))| span(t, w, "x", at, at + len)),
        1 => (causes, 0u32..3, interval).prop_map(|(c, w, (at, len))| wait(w, c, at, at + len)),
        1 => (0u64..600).prop_map(|at| level(at, prestage_vram::Level::default())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn t2_busy_and_causes_are_the_wall_by_every_nanosecond(events in prop::collection::vec(an_event(), 0..24)) {
        let idle = Timeline::new(events.clone()).idle();
        let (mut busy, mut held, mut by) = (0, 0, vec![0u64; IdleCause::ALL.len()]);
        for t in idle.first.get()..idle.last.get() {
            held += u64::from(events.iter().any(|e| {
                covers(e, t) && matches!(e, Event::Span(s) if s.track == Track::Held)
            }));
            if busy_at(&events, t) {
                busy += 1;
            } else {
                let cause = cause_at(&events, t);
                by[IdleCause::ALL.iter().position(|c| *c == cause).unwrap()] += 1;
            }
        }
        prop_assert_eq!(idle.busy.get() + idle.by_cause.total().get(), idle.wall().get());
        prop_assert_eq!(idle.busy.get(), busy);
        prop_assert_eq!(idle.held.get(), held);
        let found: Vec<u64> = idle.by_cause.iter().map(|(_, t)| t.get()).collect();
        prop_assert_eq!(found, by);
        // The gaps say the same, piece by piece, and are maximal.
        let mut sum = ByCause::default();
        for gap in &idle.gaps {
            prop_assert!(!gap.is_empty());
            prop_assert!(gap.start() == idle.first || busy_at(&events, gap.start().get() - 1));
            prop_assert!(gap.end() == idle.last || busy_at(&events, gap.end().get()));
            for pair in gap.pieces.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].start);
                prop_assert_ne!(pair[0].cause, pair[1].cause);
            }
            for piece in &gap.pieces {
                prop_assert!(piece.start < piece.end);
                for t in piece.start.get()..piece.end.get() {
                    prop_assert!(!busy_at(&events, t));
                    prop_assert_eq!(cause_at(&events, t), piece.cause);
                }
            }
            let by = gap.by_cause();
            sum.alloc += by.alloc;
            sum.transfer += by.transfer;
            sum.sync += by.sync;
            sum.host += by.host;
            sum.turn += by.turn;
            sum.launch += by.launch;
            sum.unattributed += by.unattributed;
        }
        prop_assert_eq!(sum, idle.by_cause);
    }
}

#[test]
fn t2_first_match_in_order() {
    // One compute span at each end; between them all causes at once, ending one after the other.
    let events = vec![
        span(Track::Compute, 0, "k", 0, 10),
        span(Track::Memory, 0, "allocate", 10, 20),
        span(Track::Upload, 0, "u", 10, 30),
        wait(0, Cause::Sync, 10, 40),
        span(Track::Host, 0, "h", 10, 50),
        wait(1, Cause::Turn, 10, 60),
        span(Track::Launch, 0, "k", 10, 70),
        span(Track::Compute, 0, "k", 80, 90),
    ];
    let idle = Timeline::new(events).idle();
    assert_eq!(idle.gaps.len(), 1);
    let causes: Vec<IdleCause> = idle.gaps[0].pieces.iter().map(|p| p.cause).collect();
    assert_eq!(causes, IdleCause::ALL);
    assert!(idle.gaps[0].pieces.iter().all(|p| p.end.since(p.start) == Nanos::new(10)));
}

#[test]
fn t2_a_slow_launch_explains_nothing() {
    let run = |launch: u64| {
        let events =
            vec![span(Track::Launch, 0, "k", 0, launch), span(Track::Compute, 0, "k", launch, launch + 5)];
        Timeline::new(events).idle().by_cause
    };
    assert_eq!((run(19_999).launch, run(19_999).unattributed), (19_999, 0));
    assert_eq!((run(20_000).launch, run(20_000).unattributed), (0, 20_000));
}

#[test]
fn t2_the_run_is_from_the_first_to_the_last_interval_host_work_included() {
    let events = vec![
        level(0, prestage_vram::Level::default()),
        span(Track::Host, 0, "prepare", 100, 200),
        span(Track::Compute, 0, "k", 150, 180),
        span(Track::Host, 0, "assemble", 200, 260),
        level(999, prestage_vram::Level::default()),
    ];
    let idle = Timeline::new(events).idle();
    assert_eq!((idle.first, idle.last), (Nanos::new(100), Nanos::new(260)));
    assert_eq!((idle.busy.get(), idle.by_cause.host), (30, 130));
}

#[test]
fn t2_largest_times_do_not_wrap() {
    let events = vec![span(Track::Compute, 0, "k", 0, 1), span(Track::Host, 0, "h", u64::MAX - 1, u64::MAX)];
    let idle = Timeline::new(events).idle();
    assert_eq!(idle.wall().get(), u64::MAX);
    assert_eq!((idle.by_cause.host, idle.by_cause.unattributed), (1, u64::MAX - 2));
}

#[test]
fn t2_a_run_of_ten_partitions_is_explained() {
    for staged in [true, false] {
        let idle = Timeline::new(porep(staged)).idle();
        assert_eq!(idle.busy + idle.by_cause.total(), idle.wall());
        assert_eq!(idle.by_cause.unattributed, 0);
        assert!(idle.held > idle.busy);
    }
    let transfer = |staged| Timeline::new(porep(staged)).idle().by_cause.transfer;
    assert!(transfer(true) < transfer(false));
}
