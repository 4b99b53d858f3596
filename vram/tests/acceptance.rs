//! Rows of the acceptance table that the ledger, the turn and the host device carry.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use prestage_vram::{
    Bytes, Class, Device, Error, Event, Host, HostConfig, Ledger, LedgerConfig, Margin, Nanos, Op, Reading,
    Sink, Track, Worker, WorkerId, host_work,
};

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

fn host(capacity: Bytes, ledger: LedgerConfig) -> Host {
    Host::open(HostConfig { capacity, ledger }).unwrap()
}

fn with_margin(margin: Margin) -> LedgerConfig {
    LedgerConfig { margin, ..LedgerConfig::default() }
}

/// The card of the table: 16,303 MiB, of which the context takes 1,536.
const CARD: Reading =
    Reading { capacity: Bytes::mib(16_303), context: Bytes::mib(1536), foreign: Bytes::ZERO };

fn card(margin: Margin) -> Result<Ledger, Error> {
    Ledger::open("card", CARD, with_margin(margin), || Nanos::ZERO)
}

#[test]
fn l6_usable_below_the_margin_is_a_budget_of_nothing() {
    let ledger = card(Margin::Fixed(Bytes::mib(512))).unwrap();
    assert_eq!((ledger.level().usable, ledger.level().budget), (Bytes::mib(14_767), Bytes::mib(14_255)));
    for foreign in [Bytes::mib(14_400), Bytes::mib(14_767), Bytes::mib(20_000), Bytes::MAX] {
        ledger.refresh(Reading { foreign, ..CARD });
        assert_eq!((ledger.level().budget, ledger.level().free()), (Bytes::ZERO, Bytes::ZERO));
    }
    // With nothing to give, every request is refused, and none is lost or wraps.
    let host = host(Bytes::mib(512), with_margin(Margin::Fixed(Bytes::mib(512))));
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let refused = turn.alloc::<u8>("a", 1, Class::Pooled, &queue).unwrap_err();
    assert!(
        matches!(refused, Error::Refused(r) if r.never && r.free == Bytes::ZERO && r.budget == Bytes::ZERO)
    );
}

#[test]
fn l7_margins_are_honoured_and_one_above_the_capacity_is_refused() {
    for (margin, kept) in [
        (Margin::Fixed(Bytes::ZERO), Bytes::ZERO),
        (Margin::Fixed(Bytes::mib(512)), Bytes::mib(512)),
        (Margin::Permille(50), Bytes::new(16_303 * 1_048_576 * 50 / 1000)),
    ] {
        let ledger = card(margin).unwrap();
        assert_eq!(ledger.margin(), kept);
        assert_eq!(ledger.level().budget, Bytes::mib(14_767) - kept);
    }
    assert_eq!(Margin::default(), Margin::Fixed(Bytes::mib(512)));
    assert_eq!("512MiB".parse(), Ok(Margin::Fixed(Bytes::mib(512))));
    assert_eq!("50permille".parse(), Ok(Margin::Permille(50)));
    for margin in
        [Margin::Fixed(CARD.capacity + Bytes::new(1)), Margin::Permille(1001), Margin::Permille(u16::MAX)]
    {
        let Err(Error::MarginTooLarge { capacity, margin: bytes }) = card(margin) else {
            panic!("{margin:?} leaves nothing");
        };
        assert!(capacity == CARD.capacity && bytes > capacity);
        let ledger = with_margin(margin);
        assert!(Host::open(HostConfig { capacity: CARD.capacity, ledger }).is_err());
    }
}

#[test]
fn l8_more_than_the_empty_device_is_refused_at_once_and_does_not_wait() {
    let ledger = LedgerConfig { ahead: true, ..with_margin(Margin::Fixed(Bytes::ZERO)) };
    let host = host(Bytes::mib(64), ledger);
    let (mut w1, mut w2) = (Worker::new(1), Worker::new(2));
    let first = host.turn(&mut w1).unwrap();
    let q1 = first.queue(Track::Compute).unwrap();
    let held = first.alloc::<u8>("held", 60 << 20, Class::Direct, &q1).unwrap();
    first.compute().unwrap();
    let second = host.turn(&mut w2).unwrap();
    let q2 = second.queue(Track::Upload).unwrap();
    // `held` is never freed while these are asked for: a request that waited would wait for ever.
    for class in [Class::Direct, Class::Pooled] {
        let never = second.alloc_waiting::<u8>("never", (64 << 20) + 1, class, &q2).unwrap_err();
        assert!(matches!(never, Error::Refused(r) if r.never && r.held.len() == 1));
        assert!(second.alloc::<u8>("never", (64 << 20) + 1, class, &q2).is_err());
    }
    // One that waits for its own memory would wait for ever as well.
    let mine = second.alloc::<u8>("mine", 4 << 20, Class::Direct, &q2).unwrap();
    let never = second.alloc_waiting::<u8>("never", 61 << 20, Class::Direct, &q2).unwrap_err();
    assert!(matches!(never, Error::Refused(r) if !r.never && r.held.len() == 2));
    drop((held, mine));
}

#[test]
fn l8_one_that_fits_later_waits_in_order() {
    let ledger = LedgerConfig { ahead: true, ..with_margin(Margin::Fixed(Bytes::ZERO)) };
    let host = Arc::new(host(Bytes::mib(64), ledger));
    let mut w1 = Worker::new(1);
    let first = host.turn(&mut w1).unwrap();
    let q1 = first.queue(Track::Compute).unwrap();
    let held = first.alloc::<u8>("held", 60 << 20, Class::Pooled, &q1).unwrap();
    first.compute().unwrap();
    let granted = Arc::new(AtomicBool::new(false));
    let second = {
        let (host, granted) = (Arc::clone(&host), Arc::clone(&granted));
        std::thread::spawn(move || {
            let mut w2 = Worker::new(2);
            let turn = host.turn(&mut w2).unwrap();
            let queue = turn.queue(Track::Upload).unwrap();
            let a = turn.alloc_waiting::<u8>("a", 32 << 20, Class::Direct, &queue).unwrap();
            granted.store(true, Ordering::SeqCst);
            drop(a);
            turn.release().unwrap();
        })
    };
    std::thread::sleep(Duration::from_millis(30));
    assert!(!granted.load(Ordering::SeqCst), "the memory is held");
    drop(held);
    first.drain().unwrap();
    second.join().unwrap();
    first.release().unwrap();
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
}

/// A lease cannot be given back twice or for more than it is: it has no public constructor, no `Clone`, and only its
/// drop gives it back. What is left to show is that the account follows.
#[test]
fn l9_the_ledger_never_underflows() {
    let host = host(Bytes::mib(64), with_margin(Margin::Fixed(Bytes::ZERO)));
    let ledger = host.ledger();
    let mut worker = Worker::new(0);
    for round in 1..=3 {
        let turn = host.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let buffers: Vec<_> =
            (1..=8).map(|n| turn.alloc::<u8>("b", n << 20, Class::Pooled, &queue).unwrap()).collect();
        let mut left = Bytes::mib(36);
        for buffer in buffers {
            left = left - buffer.bytes();
            drop(buffer);
            assert_eq!(ledger.level().pooled, left, "round {round}");
            assert_eq!(
                ledger.level().used(),
                Bytes::mib(36),
                "what was freed is retained until the synchronisation"
            );
        }
        // Converted buffers are the same memory, not a second lease.
        let a = turn.alloc::<u64>("a", 1024, Class::Direct, &queue).unwrap();
        // SAFETY: nobody reads the contents.
        let a = unsafe { a.assume_init() }.into_uninit();
        assert_eq!((ledger.level().direct, ledger.held().len()), (Bytes::kib(8), 1));
        drop(a);
        turn.release().unwrap();
        assert_eq!(ledger.level().used(), Bytes::ZERO);
    }
    // Forgetting is safe: the memory is leaked, and the account says so for as long as it is.
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    std::mem::forget(turn.alloc::<u8>("forgotten", 1 << 20, Class::Direct, &queue).unwrap());
    turn.release().unwrap();
    assert_eq!(ledger.held().iter().map(|h| h.label).collect::<Vec<_>>(), ["forgotten"]);
    assert_eq!(ledger.level().used(), Bytes::mib(1));
}

/// The peaks that a turn reports are those that its leases add up to, phase by phase (L10's measured side).
#[test]
fn l10_peaks_are_kept_per_phase() {
    let host = host(Bytes::gib(16), LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let alloc = |label, mib: usize| turn.alloc::<u8>(label, mib << 20, Class::Pooled, &queue).unwrap();
    turn.phase("stage");
    let a = alloc("a", 4);
    let bc = alloc("bc", 8);
    turn.phase("quotient");
    drop(bc);
    turn.phase("h");
    drop(alloc("buckets", 1));
    let scratch = alloc("scratch", 5);
    drop((a, scratch));
    turn.phase("tail");
    let mib = |n| Bytes::mib(n);
    assert_eq!(turn.peaks(), [("stage", mib(12)), ("quotient", mib(12)), ("h", mib(9)), ("tail", mib(0))]);
    turn.release().unwrap();
}

#[test]
fn p9_the_turn_is_released_on_panic() {
    let host =
        host(Bytes::mib(64), LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() });
    let finished = Arc::new(AtomicBool::new(false));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut worker = Worker::new(0);
        let turn = host.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let _all = turn.alloc::<u8>("all", 64 << 20, Class::Pooled, &queue).unwrap();
        let finished = Arc::clone(&finished);
        let job = move || {
            std::thread::sleep(Duration::from_millis(20));
            finished.store(true, Ordering::SeqCst);
        };
        // SAFETY: the job touches no device memory.
        unsafe { host.submit(&queue, Op::Launch, "work", Bytes::ZERO, job) }.unwrap();
        std::panic::resume_unwind(Box::new("in the middle"));
    }));
    assert!(outcome.is_err());
    assert!(finished.load(Ordering::SeqCst), "the turn's work has ended before the next one begins");
    let mut worker = Worker::new(1);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("all", 64 << 20, Class::Direct, &queue).unwrap());
    turn.release().unwrap();
}

/// Host work needs no turn: it goes on while another worker holds it. Allocation and trim are inside by type: only a
/// turn has them.
#[test]
fn p9_host_work_is_outside_the_turn_and_memory_calls_inside() {
    let recorder = Arc::new(Recorder::default());
    let sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    let host = host(Bytes::mib(64), LedgerConfig { sink, ..with_margin(Margin::Fixed(Bytes::ZERO)) });
    let mut first = Worker::new(1);
    let turn = host.turn(&mut first).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    std::thread::scope(|scope| {
        let prepared = scope.spawn(|| {
            host_work(&host, WorkerId(2), "prepare", || std::thread::sleep(Duration::from_millis(5)));
        });
        prepared.join().unwrap();
    });
    drop(turn.alloc::<u8>("a", 32 << 20, Class::Pooled, &queue).unwrap());
    turn.trim().unwrap();
    turn.release().unwrap();

    let events = recorder.0.lock().unwrap();
    let span = |track, name: &str| {
        let found = events.iter().find_map(|e| match e {
            Event::Span(s) if s.track == track && s.name == name => Some(s.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no span {name}"))
    };
    let held = span(Track::Held, "turn");
    let prepared = span(Track::Host, "prepare");
    assert_eq!((held.worker, prepared.worker), (WorkerId(1), WorkerId(2)));
    assert!(
        held.start <= prepared.start && prepared.end <= held.end,
        "worker 2 prepared while worker 1 held the turn"
    );
    let allocated = span(Track::Memory, "allocate a");
    assert!(held.start <= allocated.start && allocated.end <= held.end);
    let trims: Vec<_> = events
        .iter()
        .filter_map(|e| if let Event::Trim { at, freed, .. } = e { Some((*at, *freed)) } else { None })
        .collect();
    assert!(matches!(trims[..], [(at, freed)] if at <= held.end && freed == Bytes::mib(32)));
}

/// Many workers on real threads, staging ahead: nobody waits for ever, and the budget holds.
#[test]
fn p3_turns_change_hands_without_a_lost_wake_up() {
    let host = host(Bytes::mib(64), LedgerConfig { ahead: true, ..with_margin(Margin::Fixed(Bytes::ZERO)) });
    let began = Instant::now();
    std::thread::scope(|scope| {
        for id in 0..4 {
            let host = &host;
            scope.spawn(move || {
                let mut worker = Worker::new(id);
                for _ in 0..200 {
                    let turn = host.turn(&mut worker).unwrap();
                    turn.promise(Bytes::mib(40));
                    let queue = turn.queue(Track::Upload).unwrap();
                    let a = turn.alloc_waiting::<u8>("a", 30 << 20, Class::Pooled, &queue).unwrap();
                    turn.compute().unwrap();
                    let b = turn.alloc::<u8>("b", 10 << 20, Class::Direct, &queue);
                    drop((a, b.expect("within the promise")));
                    turn.release().unwrap();
                }
            });
        }
    });
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
    assert!(host.ledger().peak() <= Bytes::mib(64));
}
