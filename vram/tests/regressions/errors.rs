//! Errors that stay where they were made, and errors that must not be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prestage_vram::{Bytes, Class, Device, Error, LedgerConfig, Op, Track, Worker};

use crate::{failing, host};

/// An allocation failure is an error of the call: the process lives, the turn ends, the next one works.
#[test]
fn b005_a_refused_allocation_is_an_error_and_the_turn_is_given_back() {
    let (config, _) = failing(|n| n < 2);
    let host = host(64, config);
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    assert!(matches!(turn.alloc::<u8>("a", 1, Class::Pooled, &queue), Err(Error::Refused(_))));
    drop(turn);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("a", 1, Class::Pooled, &queue).unwrap());
    turn.release().unwrap();
}

/// A refusal leaves no error behind, and does not hide one that is real.
#[test]
fn b093_a_caught_refusal_does_not_break_what_follows() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    assert!(turn.alloc::<u8>("too big", 65 << 20, Class::Pooled, &queue).is_err());
    host.ledger().healthy().unwrap();
    // SAFETY: the job touches no memory.
    unsafe { host.submit(&queue, Op::Launch, "fine", Bytes::ZERO, || ()) }.unwrap();
    turn.drain().unwrap();

    let job = || std::panic::resume_unwind(Box::new("an asynchronous fault"));
    // SAFETY: as above.
    unsafe { host.submit(&queue, Op::Launch, "bad", Bytes::ZERO, job) }.unwrap();
    assert!(turn.alloc::<u8>("too big", 65 << 20, Class::Pooled, &queue).is_err());
    let late = turn.release().unwrap_err();
    assert!(
        matches!(&late, Error::Lane { lane: "compute", detail } if detail == "an asynchronous fault"),
        "{late}"
    );
    host.turn(&mut worker).unwrap().release().unwrap();
}

#[test]
fn b094_a_retry_that_succeeds_leaves_no_error() {
    let (config, _) = failing(|n| n == 0);
    let host = host(64, config);
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("a", 1, Class::Pooled, &queue).expect("the second time it is given"));
    host.ledger().healthy().unwrap();
    turn.drain().unwrap();
    turn.release().unwrap();
}

#[test]
fn b095_a_smaller_plan_works_after_one_that_was_too_big() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    for _ in 0..3 {
        let turn = host.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let a = turn.alloc::<u8>("a", 40 << 20, Class::Pooled, &queue).unwrap();
        assert!(turn.alloc::<u8>("bc", 40 << 20, Class::Pooled, &queue).is_err());
        let bc = turn.alloc::<u8>("bc", 20 << 20, Class::Pooled, &queue).unwrap();
        drop((a, bc));
        turn.release().unwrap();
    }
}

/// Work behind failed work does not run, on its queue or on one that waits for it: it would read what was never written.
/// What was enqueued before the failure is good, frees still happen, and the next turn starts clean.
#[test]
fn failed_work_is_followed_by_no_other() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let (copies, compute) = (turn.queue(Track::Upload).unwrap(), turn.queue(Track::Compute).unwrap());
    let mut a = turn.alloc::<u8>("a", 1 << 20, Class::Pooled, &copies).unwrap();
    let before = host.record(&copies).unwrap();
    // SAFETY: these jobs touch no memory.
    unsafe {
        let fault = || {
            std::thread::sleep(std::time::Duration::from_millis(10));
            std::panic::resume_unwind(Box::new("a bad copy"));
        };
        host.submit(&copies, Op::Copy, "upload a", Bytes::ZERO, fault).unwrap();
    }
    a.claim(&compute).unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    for queue in [&copies, &compute] {
        let ran = Arc::clone(&ran);
        // SAFETY: as above.
        unsafe {
            host.submit(queue, Op::Launch, "after it", Bytes::ZERO, move || ran.store(true, Ordering::SeqCst))
        }
        .unwrap();
    }
    host.synchronise(&before).unwrap();
    assert!(matches!(turn.drain(), Err(Error::Lane { lane: "upload", .. })));
    assert!(!ran.load(Ordering::SeqCst));
    assert!(host.passed(&before).unwrap(), "what came before is good");
    assert!(
        matches!(a.claim(&copies), Err(Error::Lane { lane: "compute", .. })),
        "its contents cannot be relied on"
    );
    drop(a);
    assert!(turn.release().is_err());
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Upload).unwrap();
    host.record(&queue).expect("a queue that failed is not given out again");
    turn.release().unwrap();
}
