//! Failures at every step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Subject, USABLE, assert_like_new, plain, words};
use crate::{Bytes, Class, Device, Error, LedgerConfig, Op, Track, Worker};

/// Every raw operation is made to fail, once and from then on: the error is typed, nothing stays on the account, and
/// the next turn works.
pub fn every_fault_leaves_nothing<S: Subject>(subject: &S) {
    for lasting in [false, true] {
        for step in 0.. {
            // Counts the operations; those at `step` (and after it, when lasting) fail until the count is reset.
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            let faults = move |_: Op| {
                let n = counted.fetch_add(1, Ordering::SeqCst);
                n == step || (lasting && n > step && n < usize::MAX / 2)
            };
            let device = subject.open(USABLE, LedgerConfig { faults: Some(Arc::new(faults)), ..plain() });
            let result = work(&device);
            let reached = count.swap(usize::MAX / 2, Ordering::SeqCst) > step;
            match result {
                Ok(()) if !reached => break,
                // A single refused allocation is asked for once more, so the work may go well all the same.
                Ok(()) => assert!(!lasting, "a lasting fault at step {step} goes unseen"),
                Err(Error::Device { .. }) => assert!(reached),
                Err(Error::Refused(refused)) => {
                    assert!(lasting && refused.driver.is_some(), "the driver's words are kept: {refused}");
                }
                Err(other) => panic!("an injected fault shows as {other:?}"),
            }
            assert_like_new(&device);
            assert!(step < 1000, "the work is short");
        }
    }
}

/// Two queues, three buffers of which one changes queues, a resident one, a trim.
fn work<D: Device>(device: &D) -> Result<(), Error> {
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    let copies = turn.queue(Track::Upload)?;
    let compute = turn.queue(Track::Compute)?;
    let mut a = turn.alloc::<u64>("a", words(8), Class::Pooled, &copies)?;
    let b = turn.alloc_waiting::<u64>("b", words(8), Class::Direct, &compute)?;
    let key = turn.alloc_resident::<u64>(device, "key", words(8), Class::Pooled, &compute)?;
    a.claim(&compute)?;
    let mark = device.record(&compute)?;
    device.wait(&copies, &mark)?;
    a.claim(&copies)?;
    drop((a, b));
    turn.trim()?;
    let c = turn.alloc::<u64>("c", words(56), Class::Direct, &compute)?;
    drop((c, key));
    turn.release()
}

/// After a failure for good everything fails with its reason, at once, and memory can still be given back.
pub fn poison_fails_fast<S: Subject>(subject: &S) {
    fn dead<T>(result: Result<T, Error>) {
        match result {
            Err(Error::Poisoned { detail, .. }) => assert_eq!(detail, "an illegal address"),
            Err(other) => panic!("poisoned, not {other:?}"),
            Ok(_) => panic!("poisoned, not done"),
        }
    }
    let device = subject.open(USABLE, plain());
    let ledger = device.ledger();
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let other = turn.queue(Track::Upload).unwrap();
    let mut a = turn.alloc::<u64>("a", words(8), Class::Pooled, &queue).unwrap();
    let mark = device.record(&queue).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| device.turn(&mut Worker::new(1)).map(drop));
        while ledger.in_line() < 1 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        ledger.poison("an illegal address");
        ledger.poison("a later one");
        dead(waiting.join().expect("whoever waits is woken"));
    });
    assert_eq!(ledger.in_line(), 0);
    dead(ledger.healthy());
    dead(turn.queue(Track::Compute));
    dead(turn.alloc::<u64>("b", 1, Class::Pooled, &queue));
    dead(turn.alloc_waiting::<u64>("b", 1, Class::Pooled, &queue));
    dead(turn.alloc_resident::<u64>(&device, "b", 1, Class::Pooled, &queue));
    dead(turn.compute());
    dead(device.record(&queue));
    dead(device.wait(&other, &mark));
    dead(a.claim(&other));
    for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane] {
        dead(ledger.attempt(op));
    }
    drop(a);
    drop(turn);
    assert_eq!(ledger.level().used(), Bytes::ZERO);
    dead(device.turn(&mut worker));
}
