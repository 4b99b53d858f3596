//! Copies that run after the call that enqueued them has returned.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use prestage_transfer::{Error, Lane, Lanes, Part, Pinned, Ring};
use prestage_vram::{Bytes, Device, LedgerConfig, Op, Track, Worker};

use crate::common::{Gate, Recorder, Watched, data, faults, host, is, read, run, soon, sum, sum_unclaimed};

#[test]
fn b072_a_dropped_upload_waits_for_its_copy() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    // Overwrites its elements when it is dropped, as the next user of a pool's slot would.
    let (source, dropped) = Watched::new(data(1000));
    let opened = Gate::on(&lane).open_later();
    let (mut buf, flight) = lane.upload(source, lane.alloc("a", 1000).unwrap()).unwrap();
    assert!(!is(&dropped));
    drop(flight);
    assert!(is(&opened) && is(&dropped));
    assert_eq!(read(&lane, &mut buf), data(1000));
}

#[test]
fn b073_a_slot_is_reused_only_after_its_copy() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let opened = Gate::on(&lane).open_later();
    let mut pieces = Vec::new();
    let mut buf = ring
        .produce(&lane, lane.alloc("a", 300).unwrap(), |range, slot| {
            pieces.push((range.start, is(&opened)));
            slot.copy_from_slice(&data(300)[range]);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(pieces, [(0, false), (100, false), (200, true)]);
    assert_eq!(read(&lane, &mut buf), data(300));
}

#[test]
fn b074_pinned_temporaries_live_until_their_copies_end() {
    let host = host(LedgerConfig::default());
    let account = host.ledger().locked();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let opened = Gate::on(&lanes.upload).open_later();
    let temporary = Pinned::from_slice(&host, &data(1000)).unwrap();
    let (mut buf, up) = lanes.upload.upload(temporary, lanes.upload.alloc("a", 1000).unwrap()).unwrap();
    let temporary = Pinned::filled(&host, 1000, 0u64).unwrap();
    let down = lanes.download.download(&mut buf, 0..1000, temporary).unwrap();
    assert!(!is(&opened));
    assert!(account.bytes() > Bytes::ZERO);
    drop(down);
    assert!(is(&opened), "the target was let go while its copy was held back");
    drop(up);
    assert_eq!(account.bytes(), Bytes::ZERO);
    let checksum: u64 = data(1000).iter().sum();
    assert_eq!(soon(&sum(&lanes.compute, &mut buf)), checksum);
}

#[test]
fn b076_pageable_memory_is_not_taken_to_be_synchronous() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let mut plain = data(1000);
    let opened = Gate::on(&lane).open_later();
    let mut buf = lane.scope(|s| s.upload(&plain, lane.alloc("a", 1000)?)).unwrap();
    assert!(is(&opened));
    plain.fill(0);
    assert_eq!(read(&lane, &mut buf), data(1000));
}

#[test]
fn b077_two_copies_in_a_row_keep_both_sources() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let (first, first_dropped) = Watched::new(vec![1; 1000]);
    let (second, second_dropped) = Watched::new(data(500));
    let mut gate = Gate::on(&lane);
    let (mut buf, first) = lane.upload(first, lane.alloc("a", 1000).unwrap()).unwrap();
    let second = lane.upload_at(second, &mut buf, 500).unwrap();
    assert!(!is(&first_dropped) && !is(&second_dropped));
    gate.open();
    drop((first, second));
    assert!(is(&first_dropped) && is(&second_dropped));
    let all = read(&lane, &mut buf);
    assert_eq!(all[..500], [1; 500]);
    assert_eq!(all[500..], data(500));
}

#[test]
fn b078_a_pinned_copy_overlaps_with_a_kernel() {
    let recorder = Arc::new(Recorder::default());
    let host = host(LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() });
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let source = Pinned::from_slice(&host, &data(1 << 16)).unwrap();
    let (started, running) = channel();
    run(&lanes.compute, move || started.send(()).unwrap());
    let mut kernel = Gate::on(&lanes.compute);
    running.recv().unwrap();
    let (_buf, flight) = lanes.upload.upload(source, lanes.upload.alloc("a", 1 << 16).unwrap()).unwrap();
    flight.wait().unwrap();
    kernel.open();
    lanes.compute.drain().unwrap();
    let upload = &recorder.spans(Track::Upload)[0];
    let kernel = &recorder.spans(Track::Compute)[1];
    assert!(upload.end <= kernel.end && kernel.start <= upload.start, "{upload:?} beside {kernel:?}");
}

#[test]
fn b079_enqueueing_does_not_wait_for_the_copy() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let source = Pinned::filled(&host, 1 << 20, 1u64).unwrap();
    let place = lane.alloc("a", 1 << 20).unwrap();
    // Nothing that waits for the lane would return.
    let mut gate = Gate::on(&lane);
    let (buf, flight) = lane.upload(source, place).unwrap();
    assert!(!flight.passed().unwrap());
    gate.open();
    drop((flight, buf));
}

#[test]
fn b082_a_small_copy_is_ordered_before_other_lanes() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let (mut buf, first) = lanes.upload.upload(vec![1u64], lanes.upload.alloc("a", 1).unwrap()).unwrap();
    first.wait().unwrap();
    let mut gate = Gate::on(&lanes.upload);
    let _second = lanes.upload.upload_at(vec![2u64], &mut buf, 0).unwrap();
    // SAFETY: the gate keeps the copy from running at the same time.
    let unordered = unsafe { sum_unclaimed(&lanes.compute, &buf) };
    assert_eq!(soon(&unordered), 1);
    let ordered = sum(&lanes.compute, &mut buf);
    assert!(ordered.recv_timeout(Duration::from_millis(20)).is_err());
    gate.open();
    assert_eq!(soon(&ordered), 2);
}

#[test]
fn b083_many_small_copies_cost_little_each() {
    const COPIES: usize = 10_000;
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let source = Arc::new(Pinned::from_slice(&host, &data(512)).unwrap());
    let mut buf = lane.alloc::<u64>("a", 512).unwrap();
    let mut gate = Gate::on(&lane);
    let mut flights = Vec::with_capacity(COPIES);
    let start = Instant::now();
    for _ in 0..COPIES {
        flights.push(lane.upload_at::<u64, _, _>(Arc::clone(&source), &mut buf, 0).unwrap());
    }
    let each = start.elapsed() / 10_000;
    gate.open();
    // Walking a list of what is in flight at every call would be 10,000 times as much.
    assert!(each < Duration::from_micros(50), "{each:?} to enqueue one copy");
    drop(flights);
}

#[test]
fn b085_inputs_dropped_after_the_launch_live_until_it_ends() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let mut gate = Gate::on(&lanes.compute);
    let (mut buf, flight) = lanes.upload.upload(data(1000), lanes.upload.alloc("a", 1000).unwrap()).unwrap();
    flight.wait().unwrap();
    let result = sum(&lanes.compute, &mut buf);
    drop(buf);
    // The next buffer would take the memory if it were free already.
    let (_next, _flight) =
        lanes.upload.upload(vec![0u64; 1000], lanes.upload.alloc("b", 1000).unwrap()).unwrap();
    gate.open();
    assert_eq!(soon(&result), data(1000).iter().sum::<u64>());
}

#[test]
fn b086_pinned_memory_and_device_drop_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let host = host(LedgerConfig::default());
        let account = host.ledger().locked().clone();
        let pinned = Pinned::from_slice(&host, &data(1000)).unwrap();
        let adopted = Pinned::from_vec(&host, data(1000), Bytes::kib(4)).unwrap();
        let mut parts: [Option<Box<dyn std::any::Any>>; 3] =
            [Some(Box::new(host)), Some(Box::new(pinned)), Some(Box::new(adopted))];
        for i in order {
            parts[i] = None;
        }
        assert_eq!(account.bytes(), Bytes::ZERO);
    }
}

#[test]
fn b087_dropping_leaves_no_error_behind() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let failing = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&failing);
    let host = host(faults(move |op| op == Op::Mark && switch.load(Ordering::SeqCst)));
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let (source, dropped) = Watched::new(data(100));
    let place = lane.alloc("a", 100).unwrap();
    failing.store(true, Ordering::SeqCst);
    // The copy is enqueued, its mark fails: everything is dropped here.
    assert!(lane.upload(source, place).is_err());
    assert!(is(&dropped));
    failing.store(false, Ordering::SeqCst);
    let (mut buf, flight) = lane.upload(data(100), lane.alloc("b", 100).unwrap()).unwrap();
    assert_eq!(read(&lane, &mut buf), data(100));
    drop((flight, buf));
    turn.release().unwrap();
}

#[test]
fn b087_a_failed_mark_waits_for_the_copy_before_the_source_goes() {
    let host = host(faults({
        let marks = std::sync::atomic::AtomicUsize::new(0);
        move |op| op == Op::Mark && marks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0
    }));
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let (source, dropped) = Watched::new(data(100));
    let mut buf = lane.alloc("a", 100).unwrap();
    let opened = Gate::on(&lane).open_later();
    assert!(lane.upload_at(source, &mut buf, 0).is_err());
    assert!(is(&opened) && is(&dropped));
}

#[test]
fn b077_parts_of_one_source_are_counted_apart() {
    let host = host(LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let source = Arc::new(data(1000));
    let mut buf = lane.alloc::<u64>("a", 1000).unwrap();
    let mut gate = Gate::on(&lane);
    let flights: Vec<_> = (0..10)
        .map(|i| {
            let part = Part::new::<u64>(Arc::clone(&source), i * 100..(i + 1) * 100).unwrap();
            lane.upload_at(part, &mut buf, i * 100).unwrap()
        })
        .collect();
    assert_eq!(Arc::strong_count(&source), 11);
    gate.open();
    drop(flights);
    assert_eq!(Arc::strong_count(&source), 1);
}
