//! Locking host memory: what drivers and platforms refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prestage_transfer::{Error, Lane, Pinned, Ring, Transfer, page_size, registered};
use prestage_vram::{Bytes, Device, LedgerConfig, Op, Track, Worker};

use crate::common::probe::{Call, Probe};
use crate::common::{data, faults, host, host_with_pinned, read, run};

fn pages(n: usize) -> Bytes {
    Bytes::of::<u8>(n * page_size())
}

/// A vector, and the part of it that covers whole pages: as many as asked for.
fn whole_pages(n: usize) -> (Vec<u64>, std::ops::Range<usize>) {
    let per_page = page_size() / 8;
    let memory = data((n + 1) * per_page);
    let skip = memory.as_ptr().align_offset(page_size());
    (memory, skip..skip + n * per_page)
}

#[test]
fn b049_a_refused_chunk_unlocks_the_ones_before_in_reverse() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let config = faults(move |op| op == Op::Register && count.fetch_add(1, Ordering::SeqCst) == 2);
    let probe = Probe::new(host(config));
    let (mut memory, range) = whole_pages(5);
    let seen = registered(&probe, &mut memory[range.clone()], pages(1), |memory| {
        (memory.refusal().is_some_and(Error::is_unpinnable), memory.locked(), memory.to_vec())
    })
    .unwrap();
    assert_eq!(seen, (true, Bytes::ZERO, data(6 * page_size() / 8)[range.clone()].to_vec()));
    let start = memory[range].as_ptr().addr();
    let chunk = |i: usize| start + i * page_size()..start + (i + 1) * page_size();
    assert_eq!(
        probe.calls(),
        [
            Call::Register(chunk(0)),
            Call::Register(chunk(1)),
            Call::Unregister(chunk(1)),
            Call::Unregister(chunk(0))
        ]
    );
    assert_eq!(probe.ledger().locked().bytes(), Bytes::ZERO);
    // No error was left behind.
    assert!(registered(&probe, &mut memory, pages(1), |m| m.refusal().is_none()).unwrap());
}

#[test]
fn b050_copies_across_chunk_borders_are_cut() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let (mut memory, range) = whole_pages(5);
    let per_page = page_size() / 8;
    registered(&probe, &mut memory[range], pages(1), |memory| {
        let mut worker = Worker::new(0);
        let turn = probe.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        for (from, to) in [
            (0, per_page),
            (1, per_page - 1),
            (1, per_page + 1),
            (per_page - 1, per_page),
            (per_page - 1, 4 * per_page + 1),
            (0, 5 * per_page),
        ] {
            let source = &memory[from..to];
            let mut buf = lane.scope(|s| s.upload(source, lane.alloc("a", source.len())?)).unwrap();
            assert_eq!(read(&lane, &mut buf), *source, "{from}..{to}");
        }
    })
    .unwrap();
}

#[test]
fn b051_copies_of_partly_locked_memory_are_cut() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let memory = data(3000);
    // The middle third, by address: a borrow of it would not let the whole be copied.
    let (first, len) = (memory[1000..].as_ptr(), 1000 * 8);
    let start = first.addr();
    let whole = (start - start % page_size()..start + len).len();
    let mut locked = probe.ledger().locked().reserve(Bytes::of::<u8>(whole).round_up(pages(1))).unwrap();
    locked.place(start - start % page_size(), start..start + len).unwrap();
    // SAFETY: the vector outlives the registration.
    let registration =
        unsafe { probe.register(std::ptr::NonNull::new(first.cast_mut()).unwrap().cast(), len) };
    {
        let mut worker = Worker::new(0);
        let turn = probe.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut buf = lane.scope(|s| s.upload(&memory, lane.alloc("a", 3000)?)).unwrap();
        assert_eq!(read(&lane, &mut buf), memory);
    }
    let copies: Vec<_> = probe
        .calls()
        .into_iter()
        .filter_map(|c| if let Call::Copy { locked, .. } = c { Some(locked) } else { None })
        .collect();
    assert_eq!(copies, [false, true, false, true], "the upload in three pieces, then the pinned download");
    registration.unwrap().end().unwrap();
}

#[test]
fn b054_every_overlap_is_found() {
    let host = host(LedgerConfig::default());
    let account = host.ledger().locked();
    let lock = |start: usize, len: usize| {
        let mut range = account.reserve(Bytes::of::<u8>(len))?;
        range.place(start, start..start + len)?;
        Ok::<_, prestage_vram::Error>(range)
    };
    let p = 1 << 20;
    let held = lock(p + 4096, 4096).unwrap();
    // One that swallows it, the same, a prefix, a suffix, one over each end.
    for (start, len) in
        [(p, 8192), (p, 12288), (p + 4096, 4096), (p + 4096, 1), (p + 8191, 1), (p + 8000, 4096)]
    {
        let refused = lock(start, len);
        assert!(matches!(refused, Err(prestage_vram::Error::AlreadyLocked { .. })), "{start:#x} {len}");
    }
    assert_eq!(account.bytes(), Bytes::new(4096));
    assert!(lock(p, 4096).is_ok() && lock(p + 8192, 4096).is_ok());
    drop(held);
    assert!(lock(p, 8192).is_ok());
}

#[test]
fn b054_neighbours_on_one_page_are_found() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let (mut memory, range) = whole_pages(2);
    let (left, right) = memory[range].split_at_mut(page_size() / 8 + 1);
    let refusal = registered(&probe, left, pages(8), |_| {
        registered(&probe, right, pages(8), |right| right.refusal().cloned()).unwrap()
    });
    let Some(Error::Device(prestage_vram::Error::AlreadyLocked { .. })) = refusal.unwrap() else {
        panic!("a page was locked twice");
    };
}

#[test]
fn b056_memory_that_may_not_be_written_goes_through_a_ring() {
    static MAPPED: [u64; 1000] = [7; 1000];
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let mut buf = ring.upload(&lane, &MAPPED, lane.alloc("a", 1000).unwrap()).unwrap();
    assert_eq!(read(&lane, &mut buf), MAPPED);
}

#[test]
fn b058_a_refused_registration_degrades() {
    let probe = Probe::new(host(faults(|op| op == Op::Register)));
    let mut memory = data(5000);
    let mut worker = Worker::new(0);
    registered(&probe, &mut memory, pages(1), |memory| {
        assert!(memory.refusal().unwrap().to_string().starts_with("registration failed on host"));
        let turn = probe.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut buf = lane.scope(|s| s.upload(&memory, lane.alloc("a", 5000)?)).unwrap();
        let mut back = vec![0; 5000];
        lane.scope(|s| s.download(&mut buf, 0..5000, &mut back)).unwrap();
        assert_eq!(back, data(5000));
    })
    .unwrap();
}

#[test]
fn b059_a_small_budget_of_pinned_memory_is_enough() {
    let host = host_with_pinned(pages(16));
    let n = 20 * page_size();
    let refused = Pinned::from_slice(&host, &data(n)).unwrap_err();
    assert!(refused.is_unpinnable());
    assert!(
        matches!(refused, Error::Device(prestage_vram::Error::PinnedBudget { free, .. }) if free == pages(16))
    );
    let mut ring = Ring::open_within(&host, 4, 1 << 20, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let mut buf = ring.upload(&lane, &data(n), lane.alloc("a", n).unwrap()).unwrap();
    let mut back = vec![0; n];
    ring.download(&lane, &mut buf, 0..n, &mut back).unwrap();
    assert_eq!(back, data(n));
    assert_eq!(host.ledger().locked().peak(), pages(16));
}

#[test]
fn b066_locked_bytes_are_counted_not_requested_ones() {
    let host = host(LedgerConfig::default());
    for (asked, locked) in [(1, 1), (page_size(), 1), (page_size() + 1, 2), (117 * page_size() - 1, 117)] {
        let pinned = Pinned::filled(&host, asked, 0u8).unwrap();
        assert_eq!((pinned.locked(), host.ledger().locked().bytes()), (pages(locked), pages(locked)));
    }
    let (mut memory, range) = whole_pages(3);
    let middle = range.start + 1..range.end - 1;
    let locked = registered(&host, &mut memory[middle], pages(1), |m| m.locked()).unwrap();
    assert_eq!(locked, pages(3), "two bytes less than three pages still lock three");
}

#[test]
fn b068_a_failed_pin_leaves_the_next_launch_alone() {
    let host = host_with_pinned(pages(1));
    assert!(Pinned::filled(&host, page_size() + 1, 0u8).is_err());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Compute).unwrap();
    run(&lane, || {});
    lane.drain().unwrap();
    turn.release().unwrap();
}

#[test]
fn b069_a_refusal_is_not_retried_smaller_and_smaller() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let host = host(faults(move |op| {
        count.fetch_add(usize::from(op == Op::Register), Ordering::SeqCst);
        op == Op::Register
    }));
    assert!(Ring::open_within(&host, 4, 1 << 20, 0u64).unwrap_err().is_unpinnable());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
