//! Who may go next.

use std::sync::Mutex;
use std::time::Duration;

use super::{A_WHILE, Subject, USABLE, assert_like_new, plain, recorded, words};
use crate::{Bytes, Cause, Class, Device, Error, Event, LedgerConfig, Track, Worker};

/// Turns are granted in the order in which they were asked for; each wait is an event.
pub fn first_come_first_served<S: Subject>(subject: &S) {
    let (config, recorder) = recorded();
    let device = subject.open(USABLE, config);
    let order = Mutex::new(Vec::new());
    let mut worker = Worker::new(0);
    let held = device.turn(&mut worker).unwrap();
    let queue = held.queue(Track::Compute).unwrap();
    subject.busy(&device, &queue, A_WHILE);
    std::thread::scope(|scope| {
        for id in 1..=4 {
            let (device, order) = (&device, &order);
            scope.spawn(move || {
                let mut worker = Worker::new(id);
                let turn = device.turn(&mut worker).unwrap();
                order.lock().unwrap().push(id);
                turn.release().unwrap();
            });
            while device.ledger().in_line() < id as usize {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        assert!(order.lock().unwrap().is_empty(), "nobody passes the holder");
        held.release().unwrap();
    });
    assert_eq!(*order.lock().unwrap(), [1, 2, 3, 4]);
    let events = recorder.take();
    for id in 1..=4 {
        let waited =
            |e: &Event| matches!(e, Event::Wait { worker, cause: Cause::Turn, .. } if worker.0 == id);
        assert!(events.iter().any(waited), "worker {id} waited for the work of the first");
    }
    let held = |e: &&Event| matches!(e, Event::Span(span) if span.track == Track::Held);
    assert_eq!(events.iter().filter(held).count(), 5, "one span for each turn");
    assert_like_new(&device);
}

/// A worker that panics inside its turn gives back the turn and all its memory.
pub fn a_panic_gives_the_turn_back<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let outcome = std::thread::scope(|scope| {
        let device = &device;
        scope
            .spawn(move || {
                let mut worker = Worker::new(0);
                let turn = device.turn(&mut worker).unwrap();
                let queue = turn.queue(Track::Compute).unwrap();
                let _a = turn.alloc::<u64>("a", words(8), Class::Direct, &queue).unwrap();
                let _b = turn.alloc::<u64>("b", words(8), Class::Pooled, &queue).unwrap();
                // Not `panic!`: nothing is wrong, so nothing is printed.
                std::panic::resume_unwind(Box::new("out of the middle of a proof"));
            })
            .join()
    });
    assert!(outcome.is_err());
    assert_like_new(&device);
}

/// A turn that stages beside another gets what the other's plan leaves, and no more.
pub fn staging_ahead_leaves_what_is_owed<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, LedgerConfig { ahead: true, ..plain() });
    let (mut w1, mut w2) = (Worker::new(1), Worker::new(2));
    let first = device.turn(&mut w1).unwrap();
    first.promise(Bytes::mib(40));
    let q1 = first.queue(Track::Compute).unwrap();
    let a = first.alloc::<u64>("a", words(8), Class::Pooled, &q1).unwrap();
    first.compute().unwrap();

    let second = device.turn(&mut w2).unwrap();
    second.promise(Bytes::mib(60));
    let q2 = second.queue(Track::Upload).unwrap();
    // 64 − 40 are left beside the promise.
    assert!(matches!(second.alloc::<u64>("a", words(25), Class::Pooled, &q2), Err(Error::Refused(r))
        if r.free == Bytes::mib(24) && !r.never));
    let ahead = second.alloc::<u64>("a", words(24), Class::Pooled, &q2).unwrap();
    let bc = first.alloc::<u64>("bc", words(32), Class::Direct, &q1);
    let bc = bc.expect("within the promise nothing is refused, whatever the second has and was promised");

    // What the second gives back is there for the first at once.
    drop(ahead);
    let more = first.alloc::<u64>("more", words(24), Class::Direct, &q1).unwrap();
    drop((a, bc, more));
    first.promise(Bytes::ZERO);
    let all = second.alloc_waiting::<u64>("all", words(40), Class::Pooled, &q2);
    first.release().unwrap();
    second.compute().unwrap();
    drop(all.expect("the first has no more to take"));
    second.release().unwrap();
    assert_like_new(&device);
}
