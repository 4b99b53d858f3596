//! Work that loses the card's context: each in a child process, since it takes all of the process's devices with it, and may
//! take the card from it for ever.

use std::ffi::c_void;

use prestage_vram::conformance::{OnCuda, Subject};
use prestage_vram::cuda::{Cuda, Grid};
use prestage_vram::{Bytes, Class, Device, Error, Nanos, Track, Turn, Work, Worker};

use super::{add, again, config, filled, is_child, kernel, on_card, read};

/// Runs a test as a child, where it does `lose`; the parent checks that it went well.
fn in_child(name: &str, test: impl FnOnce()) {
    if is_child() {
        return test();
    }
    on_card(name, || {
        let out = again(&format!("failures::{name}")).output().unwrap();
        let words =
            format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{words}");
        words.lines().filter(|line| line.contains("lost: ")).for_each(|line| println!("{line}"));
        // Other processes, and what is open in them, are none the worse.
        works(&Cuda::open(config()).unwrap());
    });
}

/// Launches a kernel that loses the context.
fn launch(card: &Cuda, turn: &Turn<'_, Cuda>, name: &'static str, mut args: Vec<u64>) {
    let queue = turn.queue(Track::Compute).unwrap();
    let kernel = kernel(card, name);
    let mut args: Vec<*mut c_void> = args.iter_mut().map(|arg| std::ptr::from_mut(arg).cast()).collect();
    let work = Work::launch(format!("bad {name}"), Bytes::ZERO);
    // SAFETY: broken on purpose: the kernel writes to an address that belongs to nobody, or gives up. The process ends soon.
    unsafe { card.enqueue(&queue, work, |stream| stream.launch(&kernel, Grid::line(1, 1), &mut args)) }
        .unwrap();
}

/// A turn on a fresh device computes.
fn works(card: &Cuda) {
    let mut worker = Worker::new(7);
    let turn = card.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let mut a = filled(card, &queue, turn.alloc("a", 1 << 20, Class::Pooled, &queue).unwrap(), 0);
    add(card, &queue, &mut a, 9).unwrap();
    assert!(read(card, &queue, &mut a).iter().all(|&x| x == 9));
    drop(a);
    turn.release().unwrap();
}

fn poisoned<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Poisoned { detail, .. }) => detail,
        other => panic!("poisoned, not {other:?}"),
    }
}

/// A kernel fails: the turn's end says so with the name of what ran, everything fails from then on and lets go of what it
/// holds, and what opening the card again says is true.
fn lose(name: &'static str, args: Vec<u64>, reason: &str) {
    let card = Cuda::open(config()).unwrap();
    works(&card);
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Upload).unwrap();
    let a = turn.alloc::<u64>("a", 1 << 20, Class::Pooled, &queue).unwrap();
    let b = turn.alloc::<u64>("b", 1 << 20, Class::Direct, &queue).unwrap();
    OnCuda.busy(&card, &queue, Nanos::new(1_000_000));
    launch(&card, &turn, name, args);
    let detail = poisoned(turn.drain());
    println!("\nlost: {detail}");
    assert!(detail.contains(reason), "{detail}");
    poisoned(turn.alloc::<u64>("c", 1, Class::Pooled, &queue));
    poisoned(card.record(&queue));
    drop((a, b));
    assert_eq!(card.ledger().level().used() - card.ledger().level().retained, Bytes::ZERO);
    poisoned(turn.release());
    poisoned(card.turn(&mut worker).map(drop));
    drop(queue);
    again_or_lost(card.reopen());
}

/// A driver makes another context in the same process, or says that it does not.
fn again_or_lost(opened: Result<Cuda, Error>) {
    match opened {
        Ok(card) => works(&card.reopen().unwrap()),
        Err(lost @ Error::Lost { .. }) => println!("lost: {lost}"),
        Err(other) => panic!("{other:?}"),
    }
}

/// An account that was poisoned for another reason than a lost context.
#[test]
fn a_poisoned_device_is_opened_again() {
    on_card("reopening", || {
        let card = Cuda::open(config()).unwrap();
        works(&card);
        card.ledger().poison("for good");
        poisoned(card.turn(&mut Worker::new(0)).map(drop));
        let card = card.reopen().unwrap();
        works(&card);
        works(&card.reopen().unwrap());
    });
}

#[test]
fn b099_nothing_succeeds_after_an_illegal_address() {
    in_child("b099_nothing_succeeds_after_an_illegal_address", || {
        lose("poke", vec![0x10], "illegal memory access");
    });
}

#[test]
fn b099_nothing_succeeds_after_a_trap() {
    in_child("b099_nothing_succeeds_after_a_trap", || {
        lose("give_up", Vec::new(), "launch failure");
    });
}

#[test]
fn b097_a_late_failure_names_its_work() {
    in_child("b097_a_late_failure_names_its_work", || {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        launch(&card, &turn, "poke", vec![0x10]);
        let detail = poisoned(turn.release());
        assert!(detail.contains("bad poke") && detail.contains("compute lane"), "{detail}");
    });
}

/// Page-locked memory outlives a lost context: it can be read until it is dropped, and the card is not reopened before.
#[test]
fn locked_memory_survives_a_lost_context() {
    in_child("locked_memory_survives_a_lost_context", || {
        let card = Cuda::open(config()).unwrap();
        let pages = card.pin(Bytes::mib(1), 4096).unwrap();
        // SAFETY: memory of this size that nobody else has.
        let memory = unsafe { std::slice::from_raw_parts_mut(pages.as_ptr().as_ptr(), pages.len()) };
        memory.fill(3);
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        launch(&card, &turn, "poke", vec![0x10]);
        poisoned(turn.release());
        let refused = card.reopen().unwrap_err();
        assert!(matches!(&refused, Error::Lost { .. }), "{refused:?}");
        assert!(memory.iter().all(|&x| x == 3));
        drop(pages);
        again_or_lost(Cuda::open(config()));
    });
}
