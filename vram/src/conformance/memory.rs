//! Leases, refusals, classes, margin, readings.

use super::{Subject, USABLE, assert_like_new, plain, recorded, words};
use crate::{Bytes, Class, Device, Error, Event, LedgerConfig, Margin, Reading, Track, Worker};

/// Every allocation is on the account under its class, and off it when dropped; peaks are kept per phase.
pub fn accounts_balance<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let ledger = device.ledger();
    assert_eq!(ledger.level().usable, USABLE, "a fresh device may use what it was opened with");
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();

    turn.phase("first");
    let a = turn.alloc::<u64>("a", words(4), Class::Direct, &queue).unwrap();
    let b = turn.alloc::<u64>("b", words(8), Class::Pooled, &queue).unwrap();
    let empty = turn.alloc::<u64>("empty", 0, Class::Pooled, &queue).unwrap();
    assert!(empty.is_empty());
    assert_eq!((ledger.level().direct, ledger.level().pooled), (Bytes::mib(4), Bytes::mib(8)));
    assert_eq!(
        ledger.held().iter().map(|h| (h.label, h.phase)).collect::<Vec<_>>(),
        [("a", "first"), ("b", "first"), ("empty", "first")]
    );
    assert_eq!(ledger.level().free(), USABLE - Bytes::mib(12));
    drop(b);
    turn.phase("second");
    let c = turn.alloc::<u64>("c", words(2), Class::Direct, &queue).unwrap();
    assert_eq!(turn.peaks(), [("first", Bytes::mib(12)), ("second", Bytes::mib(6))]);
    drop((a, c, empty));
    assert_eq!((ledger.level().direct, ledger.level().pooled), (Bytes::ZERO, Bytes::ZERO));
    turn.release().unwrap();
    assert!(ledger.held().is_empty());
    assert_eq!(ledger.level().used(), Bytes::ZERO);
    assert!(ledger.peak() >= Bytes::mib(12) && ledger.peak() <= USABLE);
    assert_like_new(&device);
}

/// On refusal: synchronise, trim, retry once, then [`Error::Refused`] with every holder; each step an event.
pub fn refusal_takes_its_path<S: Subject>(subject: &S) {
    let (config, recorder) = recorded();
    let device = subject.open(USABLE, config);
    let mut worker = Worker::new(3);
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    turn.phase("stage");
    let a = turn.alloc::<u64>("a", words(40), Class::Direct, &queue).unwrap();
    let b = turn.alloc::<u64>("b", words(20), Class::Pooled, &queue).unwrap();
    let before = device.ledger().level();
    recorder.take();

    let error = turn.alloc::<u64>("c", words(5), Class::Pooled, &queue).unwrap_err();
    let Error::Refused(refused) = error else { panic!("a typed refusal, not {error:?}") };
    assert_eq!((refused.need, refused.free, refused.never), (Bytes::mib(5), Bytes::mib(4), false));
    assert_eq!((refused.label, refused.worker, refused.phase), ("c", turn.worker(), "stage"));
    assert_eq!(
        refused.held.iter().map(|h| (h.label, h.bytes)).collect::<Vec<_>>(),
        [("a", Bytes::mib(40)), ("b", Bytes::mib(20))]
    );
    assert_eq!(device.ledger().level(), before, "a refusal changes nothing");
    let steps: Vec<_> = recorder.take().iter().filter_map(step).collect();
    assert_eq!(steps, ["synchronise", "trim", "refusal"], "each once, in this order");

    // What has been freed in the order of a queue is there after that path.
    drop(b);
    let c = turn.alloc::<u64>("c", words(24), Class::Direct, &queue).expect("the retry finds what was freed");
    let steps: Vec<_> = recorder.take().iter().filter_map(step).collect();
    assert_eq!(steps, ["synchronise", "trim"], "granted after them, no refusal");
    drop((a, c));
    turn.release().unwrap();
    assert_like_new(&device);
}

fn step(event: &Event) -> Option<&'static str> {
    match event {
        Event::Wait { cause: crate::Cause::Alloc, .. } => Some("synchronise"),
        Event::Trim { .. } => Some("trim"),
        Event::Refusal { .. } => Some("refusal"),
        _ => None,
    }
}

/// More than the empty device grants is refused without a synchronisation, a trim or a wait.
pub fn what_never_fits_is_refused_at_once<S: Subject>(subject: &S) {
    let (config, recorder) = recorded();
    let device = subject.open(USABLE, config);
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    recorder.take();
    for waiting in [false, true] {
        let len = words(64) + 1;
        let result = match waiting {
            false => turn.alloc::<u64>("huge", len, Class::Pooled, &queue),
            true => turn.alloc_waiting::<u64>("huge", len, Class::Pooled, &queue),
        };
        assert!(matches!(result, Err(Error::Refused(r)) if r.never && r.empty == USABLE));
        let steps: Vec<_> = recorder.take().iter().filter_map(step).collect();
        assert_eq!(steps.last(), Some(&"refusal"));
        assert!(!steps.contains(&"trim"), "nothing is tried for it");
    }
    assert!(matches!(
        turn.alloc::<u64>("overflow", usize::MAX, Class::Pooled, &queue),
        Err(Error::TooLong { .. })
    ));
    turn.release().unwrap();
    assert_like_new(&device);
}

/// Memory freed to the pool is there for `Pooled` requests at once, for `Direct` ones only after a trim.
pub fn classes_differ<S: Subject>(subject: &S) {
    let (config, recorder) = recorded();
    let device = subject.open(USABLE, LedgerConfig { threshold: Bytes::MAX, ..config });
    let ledger = device.ledger();
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u64>("scratch", words(48), Class::Pooled, &queue).unwrap());
    turn.drain().unwrap();
    assert_eq!(ledger.level().retained, Bytes::mib(48), "the threshold lets the pool keep it");

    recorder.take();
    let reused = turn.alloc::<u64>("pooled", words(60), Class::Pooled, &queue).unwrap();
    assert_eq!((ledger.level().retained, ledger.level().used()), (Bytes::ZERO, Bytes::mib(60)));
    assert!(!recorder.take().iter().any(|e| matches!(e, Event::Trim { .. })), "reuse needs no trim");
    drop(reused);
    turn.drain().unwrap();

    recorder.take();
    let direct = turn.alloc::<u64>("direct", words(5), Class::Direct, &queue).unwrap();
    let freed: Vec<_> = recorder
        .take()
        .iter()
        .filter_map(|e| if let Event::Trim { freed, .. } = e { Some(*freed) } else { None })
        .collect();
    assert_eq!(freed, [Bytes::mib(60)], "a direct request has to trim");
    assert_eq!(ledger.level().used(), Bytes::mib(5));
    drop(direct);
    turn.release().unwrap();
    assert_like_new(&device);
}

/// The margin stays free, whatever its form.
pub fn margin_is_kept<S: Subject>(subject: &S) {
    for margin in [Margin::Fixed(Bytes::mib(16)), Margin::Permille(125)] {
        let device = subject.open(USABLE, LedgerConfig { margin, ..plain() });
        let kept = device.ledger().margin();
        let level = device.ledger().level();
        assert_eq!(level.budget, level.usable - kept);
        let mut worker = Worker::new(0);
        let turn = device.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let fits = usize::try_from(level.budget.get()).unwrap();
        assert!(turn.alloc::<u8>("one more", fits + 1, Class::Direct, &queue).is_err());
        drop(turn.alloc::<u8>("all", fits, Class::Direct, &queue).expect("all but the margin is granted"));
        turn.release().unwrap();
    }
}

/// The device is read again at every turn and after every trim; what others hold is never granted.
pub fn reading_is_renewed<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let ledger = device.ledger();
    let honest = device.reading().unwrap();
    let crowded = Reading { foreign: honest.foreign + Bytes::mib(48), ..honest };
    let mut worker = Worker::new(0);
    ledger.refresh(crowded);
    assert_eq!(ledger.level().budget, Bytes::mib(16));

    let turn = device.turn(&mut worker).unwrap();
    assert_eq!(ledger.reading().foreign, honest.foreign, "read at the turn");
    ledger.refresh(crowded);
    let queue = turn.queue(Track::Compute).unwrap();
    let all = turn.alloc::<u64>("all", words(64), Class::Direct, &queue);
    let all = all.expect("the retry follows a new reading");
    // Others take memory while this is held: nothing underflows, and no more is granted.
    ledger.refresh(crowded);
    assert_eq!(ledger.level().free(), Bytes::ZERO);
    drop(all);
    ledger.refresh(Reading { foreign: Bytes::MAX, ..honest });
    assert_eq!(ledger.level().budget, Bytes::ZERO);
    turn.release().unwrap();
    assert_like_new(&device);
}

/// Resident memory is counted apart, outlives the turn and the worker's borrow, and gives its bytes back when dropped.
pub fn resident_outlives_the_turn<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let ledger = device.ledger();
    let mut worker = Worker::new(0);
    let mut resident = Vec::new();
    for _ in 0..2 {
        let turn = device.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let key = turn.alloc_resident::<u64>(&device, "key", words(8), Class::Pooled, &queue).unwrap();
        resident.push(key);
        assert_eq!(turn.peaks(), [], "resident memory is not the turn's");
        turn.release().unwrap();
    }
    assert_eq!((ledger.level().resident, ledger.level().used()), (Bytes::mib(16), Bytes::mib(16)));
    assert!(ledger.held().iter().all(|h| h.worker.is_none()));
    let other = subject.open(USABLE, plain());
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let wrong = turn.alloc_resident::<u64>(&other, "key", 1, Class::Pooled, &queue);
    assert!(matches!(wrong, Err(Error::OtherDevice { .. })));
    turn.release().unwrap();
    resident.clear();
    assert_eq!(ledger.level().resident, Bytes::ZERO);
    let turn = device.turn(&mut worker).unwrap();
    turn.trim().unwrap();
    turn.release().unwrap();
    assert_like_new(&device);
}
