//! Every interleaving of small groups of workers, up to a number of preemptions: turns and leases keep their order,
//! no wake-up is lost (a worker that nobody wakes is a deadlock, which loom reports), and nothing is left over.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p prestage-vram --release --test loom`
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod checked;

use std::sync::Arc;

use checked::Model;
use loom::sync::Mutex;
use loom::thread;
use prestage_vram::{Bytes, Class, Device, Error, Track, Worker};

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Who is in the turn, and in which order they came.
#[derive(Default)]
struct Inside {
    now: usize,
    order: Vec<u32>,
}

fn take_turns(workers: u32, preemptions: usize) {
    check(preemptions, move || {
        let device = Model::open(8, false);
        let inside = Arc::new(Mutex::new(Inside::default()));
        let threads: Vec<_> = (1..workers)
            .map(|id| {
                let (device, inside) = (Arc::clone(&device), Arc::clone(&inside));
                thread::spawn(move || one_turn(&device, id, &inside))
            })
            .collect();
        one_turn(&device, 0, &inside);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(inside.lock().unwrap().order.len(), workers as usize);
        device.assert_empty();
    });
}

fn one_turn(device: &Model, id: u32, inside: &Mutex<Inside>) {
    let mut worker = Worker::new(id);
    let turn = device.turn(&mut worker).unwrap();
    {
        let mut inside = inside.lock().unwrap();
        inside.now += 1;
        assert_eq!(inside.now, 1, "one worker at a time");
        inside.order.push(id);
    }
    let queue = turn.queue(Track::Compute).unwrap();
    let all = turn.alloc::<u8>("all", 8, Class::Direct, &queue).unwrap();
    drop(all);
    inside.lock().unwrap().now -= 1;
    turn.release().unwrap();
}

#[test]
fn two_workers_take_turns() {
    take_turns(2, 4);
}

#[test]
fn three_workers_take_turns() {
    take_turns(3, 2);
}

/// Whoever stands in line first goes first, also past one who comes while the turn changes hands.
#[test]
fn first_come_first_served() {
    check(2, || {
        let device = Model::open(8, false);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut worker = Worker::new(0);
        let held = device.turn(&mut worker).unwrap();
        let next = {
            let (device, order) = (Arc::clone(&device), Arc::clone(&order));
            thread::spawn(move || {
                let mut worker = Worker::new(1);
                let turn = device.turn(&mut worker).unwrap();
                order.lock().unwrap().push(1);
                turn.release().unwrap();
            })
        };
        // In some interleavings worker 1 stands in line here already; in those it goes first.
        let was_waiting = device.ledger().in_line() == 1;
        held.release().unwrap();
        let turn = device.turn(&mut worker).unwrap();
        order.lock().unwrap().push(0);
        turn.release().unwrap();
        next.join().unwrap();
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 2);
        if was_waiting {
            assert_eq!(*order, [1, 0]);
        }
        device.assert_empty();
    });
}

/// A turn that is dropped, as a panic drops it, lets the next worker in with everything given back.
#[test]
fn a_panic_gives_the_turn_back() {
    check(2, || {
        let device = Model::open(8, false);
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || {
                let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    let mut worker = Worker::new(1);
                    let turn = device.turn(&mut worker).unwrap();
                    let queue = turn.queue(Track::Compute).unwrap();
                    let _a = turn.alloc::<u8>("a", 8, Class::Pooled, &queue).unwrap();
                    std::panic::resume_unwind(Box::new(()));
                }));
                assert!(panicked.is_err());
            })
        };
        let mut worker = Worker::new(0);
        let turn = device.turn(&mut worker).unwrap();
        drop(turn.alloc::<u8>("all", 8, Class::Direct, &Track::Compute).unwrap());
        turn.release().unwrap();
        other.join().unwrap();
        device.assert_empty();
    });
}

/// A turn that stages ahead waits for memory of the one that computes, and is woken by its frees.
#[test]
fn a_free_wakes_who_waits_for_memory() {
    for class in [Class::Direct, Class::Pooled] {
        check(2, move || {
            let device = Model::open(8, true);
            let mut worker = Worker::new(0);
            let first = device.turn(&mut worker).unwrap();
            let queue = first.queue(Track::Compute).unwrap();
            let a = first.alloc::<u8>("a", 6, class, &queue).unwrap();
            first.compute().unwrap();
            let second = {
                let device = Arc::clone(&device);
                thread::spawn(move || {
                    let mut worker = Worker::new(1);
                    let turn = device.turn(&mut worker).unwrap();
                    let b = turn.alloc_waiting::<u8>("b", 6, Class::Direct, &Track::Upload).unwrap();
                    drop(b);
                    turn.release().unwrap();
                })
            };
            drop(a);
            first.drain().unwrap();
            first.release().unwrap();
            second.join().unwrap();
            device.assert_empty();
        });
    }
}

/// Two halves: one stages while one computes, and each moves on in order. What the first was promised is there.
#[test]
fn one_stages_while_one_computes() {
    check(2, || {
        let device = Model::open(8, true);
        let computing = Arc::new(Mutex::new(0));
        let work = |device: &Model, id: u32, computing: &Mutex<usize>| {
            let mut worker = Worker::new(id);
            let turn = device.turn(&mut worker).unwrap();
            let queue = turn.queue(Track::Compute).unwrap();
            turn.promise(Bytes::new(6));
            let a = turn.alloc_waiting::<u8>("a", 2, Class::Pooled, &queue).unwrap();
            turn.compute().unwrap();
            {
                let mut computing = computing.lock().unwrap();
                *computing += 1;
                assert_eq!(*computing, 1, "one worker computes at a time");
            }
            let b = turn.alloc::<u8>("b", 4, Class::Direct, &queue);
            let b = b.expect("within the promise of the turn that computes");
            drop((a, b));
            *computing.lock().unwrap() -= 1;
            turn.release().unwrap();
        };
        let other = {
            let (device, computing) = (Arc::clone(&device), Arc::clone(&computing));
            thread::spawn(move || work(&device, 1, &computing))
        };
        work(&device, 0, &computing);
        other.join().unwrap();
        device.assert_empty();
    });
}

/// Whoever waits for the turn of a device that fails for good is woken, to fail.
#[test]
fn poison_wakes_who_waits() {
    check(2, || {
        let device = Model::open(8, false);
        let mut worker = Worker::new(0);
        let held = device.turn(&mut worker).unwrap();
        let other = {
            let device = Arc::clone(&device);
            thread::spawn(move || device.turn(&mut Worker::new(1)).map(drop))
        };
        device.ledger().poison("gone");
        assert!(matches!(other.join().unwrap(), Err(Error::Poisoned { .. })));
        drop(held);
        device.assert_empty();
    });
}
