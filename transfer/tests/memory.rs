//! Pinned and registered memory, the account of both, and rings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

mod common;

use common::probe::{Call, Probe};
use common::{Gate, data, host, host_with_pinned, is, read};
use prestage_transfer::{Error, Lane, Lanes, Pinned, Ring, page_size, registered};
use prestage_vram::{Bytes, Device, LedgerConfig, Track, Worker};
use proptest::prelude::*;

fn pages(n: usize) -> Bytes {
    Bytes::of::<u8>(n * page_size())
}

#[test]
fn pinned_memory_is_initialised_by_construction() {
    let host = host(LedgerConfig::default());
    assert_eq!(Pinned::filled(&host, 3, 7u8).unwrap()[..], [7, 7, 7]);
    assert_eq!(Pinned::from_fn(&host, 3, |i| i).unwrap()[..], [0, 1, 2]);
    assert_eq!(Pinned::from_slice(&host, &[1.5f64, 2.5]).unwrap()[..], [1.5, 2.5]);
    // Enough for several threads, and for a last chunk that is smaller.
    let many = data((5 << 17) + 3);
    assert_eq!(Pinned::from_slice(&host, &many).unwrap()[..], many);
    assert_eq!(Pinned::par_from_fn(&host, many.len(), |i| many[i]).unwrap()[..], many);
    assert_eq!(Pinned::from_iter(&host, [4u16, 5].into_iter().rev()).unwrap()[..], [5, 4]);
    let mut vector = Pinned::from_vec(&host, vec![1u32, 2, 3], pages(1)).unwrap();
    vector[0] = 9;
    assert_eq!(vector[..], [9, 2, 3]);
    assert!(Pinned::filled(&host, 0, 0u64).unwrap().is_empty());
    assert!(Pinned::from_vec(&host, Vec::<u64>::new(), pages(1)).unwrap().is_empty());
    assert!(matches!(Pinned::filled(&host, usize::MAX, 0u64), Err(Error::Device(_))));
}

#[test]
fn an_iterator_that_lies_is_refused() {
    struct Liar;
    impl Iterator for Liar {
        type Item = u64;
        fn next(&mut self) -> Option<u64> {
            None
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (2, Some(2))
        }
    }
    impl ExactSizeIterator for Liar {}
    let host = host(LedgerConfig::default());
    assert!(matches!(Pinned::from_iter(&host, Liar), Err(Error::Length { from: 0, to: 2 })));
    assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn locked_bytes_are_counted_and_given_back() {
    let host = host(LedgerConfig::default());
    let account = host.ledger().locked();
    let one = Pinned::filled(&host, 1, 0u8).unwrap();
    let two = Pinned::filled(&host, page_size() + 1, 0u8).unwrap();
    assert_eq!((one.locked(), two.locked(), account.bytes()), (pages(1), pages(2), pages(3)));
    drop(one);
    let vector = Pinned::from_vec(&host, vec![0u8; 10 * page_size()], pages(3)).unwrap();
    assert_eq!(account.bytes(), pages(2) + vector.locked());
    drop((two, vector));
    assert_eq!(account.bytes(), Bytes::ZERO);
}

#[test]
fn a_vector_that_cannot_be_locked_comes_back() {
    let host = host_with_pinned(pages(4));
    let vector = data(10 * page_size() / 8);
    let at = vector.as_ptr();
    let (error, vector) = Pinned::from_vec(&host, vector, pages(1)).unwrap_err();
    assert!(error.is_unpinnable());
    assert_eq!((vector.as_ptr(), vector), (at, data(10 * page_size() / 8)));
    assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn registered_memory_is_unlocked_by_a_panic() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let mut memory = data(5 * page_size() / 8);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        registered(&probe, &mut memory, pages(2), |_| std::panic::resume_unwind(Box::new("on purpose")))
    }));
    assert!(outcome.is_err());
    assert!(probe.state.lock().unwrap().registered.is_empty());
    assert_eq!(probe.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
#[allow(clippy::forget_non_drop)] // That there is nothing to forget is the point.
fn forgetting_a_registration_does_not_keep_it() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let mut memory = data(5 * page_size() / 8);
    registered(&probe, &mut memory, pages(2), |memory| std::mem::forget(memory)).unwrap();
    assert!(probe.state.lock().unwrap().registered.is_empty());
    assert_eq!(probe.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn memory_that_cannot_be_unlocked_is_reported_and_stays_counted() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let mut memory = data(5 * page_size() / 8);
    let start = memory.as_ptr().addr();
    probe.state.lock().unwrap().stuck.push(start);
    let outcome = registered(&probe, &mut memory, pages(1), |r| r.locked());
    assert!(matches!(outcome, Err(Error::Device(_))));
    assert_eq!(probe.ledger().locked().bytes(), pages(1));
    // Registering it again is refused, and degrades.
    let refused = registered(&probe, &mut memory, pages(1), |r| r.refusal().cloned()).unwrap().unwrap();
    assert!(matches!(refused, Error::Device(prestage_vram::Error::AlreadyLocked { .. })), "{refused}");
}

#[test]
fn copies_overlap_with_the_closure_that_registers() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let mut memory = data(3000);
    let read_back = registered(&probe, &mut memory, pages(1), |memory| {
        let mut worker = Worker::new(0);
        let turn = probe.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut buf = lane.scope(|s| s.upload(&memory, lane.alloc("a", memory.len())?)).unwrap();
        read(&lane, &mut buf)
    });
    assert_eq!(read_back.unwrap(), data(3000));
    let calls = probe.calls();
    assert!(calls.iter().any(|c| matches!(c, Call::Copy { locked: true, .. })));
}

#[test]
fn a_ring_needs_two_slots() {
    let host = host(LedgerConfig::default());
    for (slots, slot) in [(0, 10), (1, 10), (2, 0)] {
        assert!(matches!(Ring::open(&host, slots, slot, 0u64), Err(Error::Ring { .. })));
    }
}

#[test]
fn a_ring_fits_what_is_left_of_the_budget() {
    let host = host_with_pinned(pages(7));
    let ring = Ring::open_within(&host, 4, 1 << 20, 0u64).unwrap();
    assert_eq!((ring.piece(), ring.locked()), (page_size() / 8, pages(4)));
    let fewer = Ring::open_within(&host, 4, 1 << 20, 0u64).unwrap();
    assert_eq!(fewer.locked(), pages(3));
    assert!(Ring::open_within(&host, 4, 1 << 20, 0u64).unwrap_err().is_unpinnable());
    drop((ring, fewer));
    assert_eq!(Ring::open_within(&host, 2, 8, 0u64).unwrap().piece(), 8);
}

#[test]
fn a_ring_outlives_turns() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    for id in 0..3 {
        let mut worker = Worker::new(id);
        let turn = host.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut buf = ring.upload(&lane, &data(250), lane.alloc("a", 250).unwrap()).unwrap();
        assert_eq!(read(&lane, &mut buf), data(250));
        drop(buf);
        turn.release().unwrap();
    }
    assert!(host.ledger().held().is_empty());
}

#[test]
fn a_ring_fills_one_slot_while_the_other_is_copied() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let opened = Gate::on(&lane).open_later();
    let mut early = 0;
    let mut buf = ring
        .produce(&lane, lane.alloc("a", 500).unwrap(), |range, slot| {
            early += usize::from(!is(&opened));
            slot.copy_from_slice(&data(500)[range]);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(early, 2, "two slots can be filled while the lane is held back");
    assert_eq!(read(&lane, &mut buf), data(500));
}

#[test]
fn a_dropped_ring_waits_for_its_slots() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let opened = Gate::on(&lane).open_later();
    let mut buf = ring.upload(&lane, &data(200), lane.alloc("a", 200).unwrap()).unwrap();
    assert!(!is(&opened));
    drop(ring);
    assert!(is(&opened), "the slots were freed while their copies were held back");
    assert_eq!(read(&lane, &mut buf), data(200));
}

#[test]
fn a_forgotten_ring_leaks_its_slots() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let bytes = ring.locked();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let mut gate = Gate::on(&lane);
    let mut buf = ring.upload(&lane, &data(200), lane.alloc("a", 200).unwrap()).unwrap();
    std::mem::forget(ring);
    gate.open();
    assert_eq!(read(&lane, &mut buf), data(200));
    assert_eq!(host.ledger().locked().bytes(), bytes);
}

#[test]
fn a_failing_producer_ends_the_stream() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 10, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let outcome = ring.produce(&lane, lane.alloc("a", 100).unwrap(), |range, _| {
        if range.start == 30 { Err(Error::Length { from: 30, to: 0 }) } else { Ok(()) }
    });
    assert!(matches!(outcome, Err(Error::Length { from: 30, .. })));
    let mut buf = ring.upload(&lane, &data(100), lane.alloc("a", 100).unwrap()).unwrap();
    assert_eq!(read(&lane, &mut buf), data(100));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    /// A ring moves every element, whatever its slots and the range.
    #[test]
    fn a_ring_moves_everything(
        slots in 2usize..5, slot in 1usize..70, len in 0usize..400, at in 0usize..50, rest in 0usize..50,
    ) {
        let host = host(LedgerConfig::default());
        let mut ring = Ring::open(&host, slots, slot, 0u64).unwrap();
        let mut worker = Worker::new(0);
        let turn = host.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let whole = at + len + rest;
        let mut buf = ring.upload(&lanes.upload, &vec![1; whole], lanes.upload.alloc("a", whole).unwrap()).unwrap();
        ring.upload_at(&lanes.upload, &data(len), &mut buf, at).unwrap();
        let mut expected = vec![1; whole];
        expected[at..at + len].copy_from_slice(&data(len));
        let mut back = vec![0; whole];
        ring.download(&lanes.download, &mut buf, 0..whole, &mut back).unwrap();
        prop_assert_eq!(&back, &expected);
        let mut seen = at;
        ring.consume(&lanes.download, &mut buf, at..at + len, |range, piece| {
            assert_eq!((range.start, piece), (seen, &expected[range.clone()]));
            seen = range.end;
            Ok::<_, Error>(())
        }).unwrap();
        prop_assert_eq!(seen, at + len);
    }

    /// No copy spans two chunks or locked and pageable memory, wherever it begins and ends.
    #[test]
    fn copies_are_cut_as_a_driver_wants_it(
        skip in 0usize..600, len in 1usize..3000, chunk in 1usize..4, from in 0usize..3000, to in 0usize..3000,
    ) {
        let probe = Probe::new(host(LedgerConfig::default()));
        let mut memory = data(3600);
        let copied = from.min(to).min(len)..from.max(to).min(len);
        let expected = data(3600)[skip..][copied.clone()].to_vec();
        let back = registered(&probe, &mut memory[skip..skip + len], pages(chunk), |memory| {
            let mut worker = Worker::new(0);
            let turn = probe.turn(&mut worker).unwrap();
            let lane = Lane::open(&turn, Track::Upload).unwrap();
            let source = &memory[copied];
            let mut buf = lane.scope(|s| s.upload(source, lane.alloc("a", source.len())?)).unwrap();
            read(&lane, &mut buf)
        }).unwrap();
        prop_assert_eq!(back, expected);
    }
}
