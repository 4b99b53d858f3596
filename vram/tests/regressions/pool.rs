//! Memory that was freed and is not there, and memory that is there and was not freed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use prestage_vram::{Bytes, Class, Device, Event, LedgerConfig, Op, Reading, Sink, Track, Worker};

use crate::{busy, failing, host};

#[derive(Default)]
struct Trims(Mutex<Vec<Bytes>>);

impl Sink for Trims {
    fn emit(&self, event: Event) {
        if let Event::Trim { freed, .. } = event {
            self.0.lock().unwrap().push(freed);
        }
    }
}

/// The second phase needs what the first has used, and the pool has kept all of it: the trim on refusal gives it back.
#[test]
fn b017_a_second_phase_gets_what_the_first_freed() {
    let trims = Arc::new(Trims::default());
    let sink = Arc::clone(&trims) as Arc<dyn Sink>;
    let host = host(100, LedgerConfig { threshold: Bytes::MAX, sink, ..LedgerConfig::default() });
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("first", 60 << 20, Class::Pooled, &queue).unwrap());
    turn.release().unwrap();
    assert_eq!(host.ledger().level().free(), Bytes::mib(40), "the pool keeps what the first phase used");

    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("second", 60 << 20, Class::Direct, &queue).unwrap());
    turn.release().unwrap();
    assert_eq!(*trims.0.lock().unwrap(), [Bytes::mib(60)], "by one trim, and on record");
}

/// Every drop frees on the queue that last used the buffer; memory does not climb.
#[test]
fn b022_frees_follow_the_recorded_queue() {
    let host = host(64, LedgerConfig { threshold: Bytes::MAX, ..LedgerConfig::default() });
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Upload).unwrap();
    for _ in 0..100 {
        drop(turn.alloc::<u8>("block", 8 << 20, Class::Pooled, &queue).unwrap());
        assert_eq!(host.ledger().level().used(), Bytes::mib(8), "one block is reserved, and reused");
    }
    turn.release().unwrap();
    assert_eq!(host.ledger().peak(), Bytes::mib(8));
}

/// Whatever was freed before, a request up to 70 % of the budget beside what is live is granted.
#[test]
fn b023_churn_does_not_use_the_device_up() {
    let host = host(64, LedgerConfig { threshold: Bytes::MAX, ..LedgerConfig::default() });
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let mut kept = Vec::new();
    let (mut live, mut moved, mut seed) = (0usize, 0usize, 7usize);
    while moved < 4 * 64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (mib, pooled) = ((seed >> 33) % 20 + 1, seed >> 63 == 0);
        while live + mib > 44 {
            let (buffer, mib): (_, usize) = kept.remove((seed >> 40) % kept.len());
            drop(buffer);
            live -= mib;
        }
        let class = if pooled { Class::Pooled } else { Class::Direct };
        kept.push((turn.alloc::<u8>("block", mib << 20, class, &queue).unwrap(), mib));
        live += mib;
        moved += mib;
    }
}

/// One trim and one retry before memory is said to be out, and no more than one.
#[test]
fn b025_trims_and_retries_once() {
    let trims = Arc::new(Trims::default());
    let (config, count) = failing(|n| n == 1);
    let sink = Arc::clone(&trims) as Arc<dyn Sink>;
    let recovering = host(64, LedgerConfig { threshold: Bytes::MAX, sink, ..config });
    let mut worker = Worker::new(0);
    let turn = recovering.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("cached", 16 << 20, Class::Pooled, &queue).unwrap());
    turn.drain().unwrap();
    drop(turn.alloc::<u8>("a", 32 << 20, Class::Direct, &queue).expect("the device gives after a trim"));
    assert_eq!(*trims.0.lock().unwrap(), [Bytes::mib(16)]);
    assert_eq!(count.load(Ordering::SeqCst), 3);
    drop(turn);

    let trims = Arc::new(Trims::default());
    let (config, count) = failing(|_| true);
    let sink = Arc::clone(&trims) as Arc<dyn Sink>;
    let out = host(64, LedgerConfig { sink, ..config });
    let turn = out.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    assert!(turn.alloc::<u8>("a", 1, Class::Direct, &queue).is_err());
    assert_eq!((trims.0.lock().unwrap().len(), count.load(Ordering::SeqCst)), (1, 2));
}

/// Frees that are queued behind long work are waited for before memory is said to be out.
#[test]
fn b026_queued_frees_are_waited_for() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u8>("a", 60 << 20, Class::Pooled, &queue).unwrap();
    busy(&host, &queue);
    drop(a);
    let freed = host.record(&queue).unwrap();
    assert!(!host.passed(&freed).unwrap());
    drop(turn.alloc::<u8>("b", 60 << 20, Class::Direct, &queue).unwrap());
    assert!(host.passed(&freed).unwrap());
}

/// Nothing stays parked, whichever way the owner goes.
#[test]
fn b027_every_way_out_returns_to_the_baseline() {
    let host = host(64, LedgerConfig::default());
    for way in ["drop", "release", "error", "panic"] {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut worker = Worker::new(0);
            let turn = host.turn(&mut worker).unwrap();
            let queue = turn.queue(Track::Compute).unwrap();
            let a = turn.alloc::<u8>("a", 16 << 20, Class::Pooled, &queue).unwrap();
            match way {
                "drop" => drop(a),
                "release" => {
                    drop(a);
                    turn.release().unwrap();
                }
                "error" => assert!(turn.alloc::<u8>("b", 1 << 40, Class::Pooled, &queue).is_err()),
                _ => std::panic::resume_unwind(Box::new(way)),
            }
        }));
        assert_eq!(outcome.is_err(), way == "panic");
        assert_eq!(host.ledger().level().used(), Bytes::ZERO, "after {way}");
    }
}

/// A trim before the frees have executed returns nothing; after a synchronisation it returns them. Two turns, so that
/// one can trim without waiting for the other's queue.
#[test]
fn b028_synchronise_then_trim() {
    let config = LedgerConfig { ahead: true, threshold: Bytes::MAX, ..LedgerConfig::default() };
    let host = host(64, config);
    let (mut w1, mut w2) = (Worker::new(1), Worker::new(2));
    let first = host.turn(&mut w1).unwrap();
    let queue = first.queue(Track::Compute).unwrap();
    let a = first.alloc::<u8>("a", 32 << 20, Class::Pooled, &queue).unwrap();
    first.compute().unwrap();
    let second = host.turn(&mut w2).unwrap();
    busy(&host, &queue);
    drop(a);
    assert_eq!(second.trim().unwrap(), Bytes::ZERO, "the free has not executed");
    assert_eq!(host.ledger().level().retained, Bytes::mib(32));
    // Nor is it there for another turn, which is not ordered after it.
    let q2 = second.queue(Track::Upload).unwrap();
    assert!(second.alloc::<u8>("b", 40 << 20, Class::Pooled, &q2).is_err());
    first.drain().unwrap();
    drop(second.alloc::<u8>("b", 40 << 20, Class::Pooled, &q2).unwrap());
    assert_eq!(first.trim().unwrap(), Bytes::mib(40));
}

#[test]
fn b029_a_direct_request_trims_an_idle_pool_first() {
    let host = host(64, LedgerConfig { threshold: Bytes::MAX, ..LedgerConfig::default() });
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("idle", 61 << 20, Class::Pooled, &queue).unwrap());
    turn.release().unwrap();
    assert_eq!(host.ledger().level().retained, Bytes::mib(61));
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    drop(turn.alloc::<u8>("plain", 6 << 20, Class::Direct, &queue).unwrap());
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
}

/// The account is kept from leases, so a driver whose free figure is late cannot move it; foreign memory above the
/// whole device does not wrap it either.
#[test]
fn b035_contradictory_figures_do_not_move_the_account() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u8>("a", 48 << 20, Class::Pooled, &queue).unwrap();
    let honest = host.ledger().reading();
    for foreign in [Bytes::mib(16), Bytes::mib(48), Bytes::gib(9), Bytes::MAX] {
        host.ledger().refresh(Reading { foreign, ..honest });
        let level = host.ledger().level();
        assert_eq!((level.pooled, level.used()), (Bytes::mib(48), Bytes::mib(48)));
        assert!(level.free() <= Bytes::mib(16));
    }
    drop(a);
    // The refused request reads the device again, and so finds what was freed.
    drop(turn.alloc::<u8>("b", 64 << 20, Class::Direct, &queue).unwrap());
}

/// A buffer freed while work uses it lives until that work has ended.
#[test]
fn b036_a_free_does_not_overtake_the_work_that_uses_it() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let wrong = Arc::new(AtomicUsize::new(0));
    for class in [Class::Pooled, Class::Direct] {
        let mut a = turn.alloc::<u64>("a", 1 << 16, class, &queue).unwrap();
        a.claim(&queue).unwrap();
        let at = a.block().as_ptr::<u64>();
        let wrong = Arc::clone(&wrong);
        let job = move || {
            // SAFETY: the buffer is claimed for this queue, and the job writes before it reads.
            let words = unsafe {
                at.get().write_bytes(0x5a, 1 << 16);
                at.slice_mut(1 << 16)
            };
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                wrong.fetch_add(
                    words.iter().filter(|w| **w != 0x5a5a_5a5a_5a5a_5a5a).count(),
                    Ordering::SeqCst,
                );
            }
        };
        // SAFETY: as above; the block is freed in the order of the queue.
        unsafe { host.submit(&queue, Op::Launch, "use", a.bytes(), job) }.unwrap();
        drop(a);
    }
    // Memory that was freed too early would be given out here and overwritten.
    for _ in 0..8 {
        drop(turn.alloc::<u64>("b", 1 << 16, Class::Pooled, &queue).unwrap());
    }
    turn.release().unwrap();
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
}

/// Born on one queue, last used on another behind long work, dropped: freed after that work, and what it read is right.
#[test]
fn b042_a_drop_waits_for_the_queue_of_the_last_use() {
    let host = host(64, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let (born, last) = (turn.queue(Track::Upload).unwrap(), turn.queue(Track::Compute).unwrap());
    let right = Arc::new(AtomicUsize::new(0));
    let slow = Arc::new(AtomicBool::new(true));
    for round in 0..200u64 {
        let mut a = turn.alloc::<u64>("a", 512, Class::Pooled, &born).unwrap();
        a.claim(&born).unwrap();
        let at = a.block().as_ptr::<u64>();
        let fill = move || {
            for i in 0..512 {
                // SAFETY: inside the block, which is claimed for this queue.
                unsafe { at.get().add(i).write(round) };
            }
        };
        // SAFETY: as above.
        unsafe { host.submit(&born, Op::Copy, "fill", a.bytes(), fill) }.unwrap();
        a.claim(&last).unwrap();
        let at = a.block().as_ptr::<u64>();
        let (right, slow) = (Arc::clone(&right), Arc::clone(&slow));
        let read = move || {
            if slow.swap(false, Ordering::SeqCst) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            // SAFETY: `fill` wrote every element, and this queue waits for it.
            let words = unsafe { at.slice(512) };
            right.fetch_add(usize::from(words.iter().all(|w| *w == round)), Ordering::SeqCst);
        };
        // SAFETY: as above.
        unsafe { host.submit(&last, Op::Launch, "read", a.bytes(), read) }.unwrap();
        drop(a);
        // Work of the birth queue goes on and reuses what it may.
        drop(turn.alloc::<u64>("other", 512, Class::Pooled, &born).unwrap());
    }
    turn.release().unwrap();
    assert_eq!(right.load(Ordering::SeqCst), 200);
}

/// A resident buffer of a device that lives for ever can be dropped by a job, on the very queue that frees it.
#[test]
fn memory_dropped_inside_a_job_does_not_wait_for_itself() {
    let host: &'static prestage_vram::Host = Box::leak(Box::new(host(64, LedgerConfig::default())));
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    for class in [Class::Direct, Class::Pooled] {
        let table = turn.alloc_resident::<u8>(host, "table", 1 << 20, class, &queue).unwrap();
        // SAFETY: the job touches no device memory; it only lets go of it.
        unsafe { host.submit(&queue, Op::Launch, "let go", Bytes::ZERO, move || drop(table)) }.unwrap();
    }
    turn.drain().unwrap();
    turn.trim().unwrap();
    turn.release().unwrap();
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
}
