//! Queues, marks, and frees in their order.

use super::{A_WHILE, Subject, USABLE, assert_like_new, plain, words};
use crate::{Bytes, Class, Device, Track, Worker};

/// A queue waits for a mark of another; the host does not.
pub fn marks_and_waits<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let copies = turn.queue(Track::Upload).unwrap();
    let compute = turn.queue(Track::Compute).unwrap();
    assert!(copies != compute && copies == copies.clone());

    let before = device.record(&copies).unwrap();
    assert!(device.passed(&before).unwrap(), "nothing is before it");
    subject.busy(&device, &copies, A_WHILE);
    let uploaded = device.record(&copies).unwrap();
    let beside = device.record(&compute).unwrap();
    device.wait(&compute, &uploaded).unwrap();
    let computed = device.record(&compute).unwrap();
    assert!(device.passed(&beside).unwrap(), "the other queue does not wait before it is told to");
    assert!(!device.passed(&uploaded).unwrap() && !device.passed(&computed).unwrap());
    device.synchronise(&computed).unwrap();
    assert!(device.passed(&uploaded).unwrap() && device.passed(&computed).unwrap());
    device.synchronise(&uploaded).unwrap();
    turn.release().unwrap();
    assert_like_new(&device);
}

/// A free happens after all work before it on the home queue: later for `Pooled`, waited for when `Direct`.
pub fn frees_follow_their_queue<S: Subject>(subject: &S) {
    let device = subject.open(USABLE, plain());
    let ledger = device.ledger();
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let born = turn.queue(Track::Upload).unwrap();
    let last = turn.queue(Track::Compute).unwrap();

    let mut pooled = turn.alloc::<u64>("pooled", words(8), Class::Pooled, &born).unwrap();
    subject.busy(&device, &last, A_WHILE);
    pooled.claim(&last).unwrap();
    drop(pooled);
    let freed = device.record(&last).unwrap();
    assert!(!device.passed(&freed).unwrap(), "a stream-ordered free does not block the host");
    assert_eq!((ledger.level().pooled, ledger.level().retained), (Bytes::ZERO, Bytes::mib(8)));
    device.trim().unwrap();
    assert_eq!(ledger.level().retained, Bytes::mib(8), "a trim before the free has executed returns nothing");
    assert_eq!(turn.trim().unwrap(), Bytes::mib(8), "synchronise, then trim");
    assert!(device.passed(&freed).unwrap());

    let mut direct = turn.alloc::<u64>("direct", words(8), Class::Direct, &born).unwrap();
    subject.busy(&device, &last, A_WHILE);
    direct.claim(&last).unwrap();
    let used = device.record(&last).unwrap();
    drop(direct);
    assert!(device.passed(&used).unwrap(), "a synchronous free waits for the last use");
    assert_eq!(ledger.level().used(), Bytes::ZERO);

    // The turn's end waits for what is still on its queues.
    subject.busy(&device, &last, A_WHILE);
    let end = device.record(&last).unwrap();
    turn.release().unwrap();
    assert!(device.passed(&end).unwrap());
    assert_like_new(&device);
}
