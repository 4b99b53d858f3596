//! When work starts and ends.

use prestage_vram::{
    Bytes, Cause, Class, Cost, Cpu, Device, Error, Event, Nanos, Op, Track, Units, Work, Worker, host_work,
};

use super::{enqueue, ms, open, plain_card, spans};

fn upload(bytes: u64, pinned: bool) -> Cost {
    Cost::Upload { bytes: Bytes::new(bytes), pinned }
}

fn at(span: &prestage_vram::Span) -> (u64, u64) {
    (span.start.get(), span.end.get())
}

#[test]
fn queues_run_in_order_and_engines_side_by_side() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let (up, compute, down) = (
        turn.queue(Track::Upload).unwrap(),
        turn.queue(Track::Compute).unwrap(),
        turn.queue(Track::Download).unwrap(),
    );
    enqueue(&sim, &up, "a", upload(100, true));
    let a = sim.record(&up).unwrap();
    enqueue(&sim, &up, "b", upload(100, true));
    sim.wait(&compute, &a).unwrap();
    enqueue(&sim, &compute, "ntt a", Cost::kernel("unit", 30));
    let done = sim.record(&compute).unwrap();
    sim.wait(&down, &done).unwrap();
    enqueue(&sim, &down, "result", Cost::Download { bytes: Bytes::new(10), pinned: true });
    assert_eq!(sim.now(), Nanos::ZERO, "the host has waited for nothing");
    assert!(!sim.passed(&a).unwrap());
    sim.synchronise(&a).unwrap();
    assert_eq!((sim.now().get(), sim.passed(&a).unwrap(), sim.passed(&done).unwrap()), (100, true, false));
    turn.release().unwrap();
    let events = recorder.take();
    assert_eq!(spans(&events, Track::Upload).iter().map(at).collect::<Vec<_>>(), [(0, 100), (100, 200)]);
    assert_eq!(spans(&events, Track::Compute).iter().map(at).collect::<Vec<_>>(), [(100, 130)]);
    assert_eq!(spans(&events, Track::Download).iter().map(at).collect::<Vec<_>>(), [(130, 140)]);
    assert_eq!(sim.now().get(), 200, "the end of the turn waits for its queues");
}

#[test]
fn one_copy_engine_serves_both_directions() {
    for engines in [1, 2] {
        let mut card = plain_card();
        card.link.copy_engines = engines;
        let (sim, recorder) = open(card, 1, |_| ());
        let mut worker = Worker::new(0);
        let turn = sim.turn(&mut worker).unwrap();
        let (up, down) = (turn.queue(Track::Upload).unwrap(), turn.queue(Track::Download).unwrap());
        enqueue(&sim, &up, "up", upload(50, true));
        enqueue(&sim, &down, "down", Cost::Download { bytes: Bytes::new(50), pinned: true });
        turn.release().unwrap();
        let down = spans(&recorder.take(), Track::Download);
        assert_eq!(at(&down[0]), if engines == 1 { (50, 100) } else { (0, 50) });
    }
}

#[test]
fn pageable_copies_are_slow_and_keep_the_host() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let mut worker = Worker::new(3);
    let turn = sim.turn(&mut worker).unwrap();
    // On the compute lane: a copy all the same, and drawn as one.
    let queue = turn.queue(Track::Compute).unwrap();
    enqueue(&sim, &queue, "a", upload(100, false));
    assert_eq!(sim.now().get(), 200);
    turn.release().unwrap();
    let events = recorder.take();
    assert_eq!(at(&spans(&events, Track::Upload)[0]), (0, 200));
    assert!(spans(&events, Track::Compute).is_empty());
    assert!(events.iter().any(|e| matches!(e, Event::Wait { worker, cause: Cause::Transfer, start, end }
        if worker.0 == 3 && (start.get(), end.get()) == (0, 200))));
}

#[test]
fn kernels_end_with_the_data_that_streams_beside_them() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let units = [Units { kind: "unit", count: 40 }, Units { kind: "unit", count: 10 }];
    enqueue(&sim, &queue, "bound by work", Cost::kernels(units, Bytes::new(20)));
    enqueue(&sim, &queue, "bound by the link", Cost::kernels(units, Bytes::new(80)));
    turn.release().unwrap();
    let events = recorder.take();
    assert_eq!(spans(&events, Track::Compute).iter().map(at).collect::<Vec<_>>(), [(0, 50), (50, 130)]);
    assert_eq!(spans(&events, Track::Upload).iter().map(at).collect::<Vec<_>>(), [(0, 20), (50, 130)]);
}

#[test]
fn launches_cost_and_show_where_the_queue_was_idle() {
    let mut card = plain_card();
    card.launch_ns = 5;
    let (sim, recorder) = open(card, 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    enqueue(&sim, &queue, "first", Cost::kernel("unit", 100));
    enqueue(&sim, &queue, "second", Cost::kernel("unit", 100));
    turn.release().unwrap();
    let events = recorder.take();
    assert_eq!(spans(&events, Track::Launch).iter().map(at).collect::<Vec<_>>(), [(0, 5)]);
    assert_eq!(spans(&events, Track::Compute).iter().map(at).collect::<Vec<_>>(), [(5, 105), (105, 205)]);
}

#[test]
fn memory_calls_take_their_time_and_are_seen() {
    let mut card = plain_card();
    card.memory.allocate_direct.fixed_ns = 10;
    card.memory.free_direct.per_gib_ns = 20;
    card.memory.allocate_pooled.per_gib_ns = 100;
    card.memory.trim.per_gib_ns = 50;
    let (sim, recorder) = open(card, 1 << 20, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    // 2 KiB here are 2 GiB there.
    let a = turn.alloc::<u8>("a", 2048, Class::Direct, &queue).unwrap();
    let b = turn.alloc::<u8>("b", 2048, Class::Pooled, &queue).unwrap();
    assert_eq!(sim.now().get(), 10 + 200);
    drop(b);
    let b = turn.alloc::<u8>("b", 2048, Class::Pooled, &queue).unwrap();
    assert_eq!(sim.now().get(), 210, "the pool had it still");
    enqueue(&sim, &queue, "work", Cost::kernel("unit", 1000));
    drop(a);
    assert_eq!(sim.now().get(), 1210 + 40, "a direct free waits for its queue");
    drop(b);
    turn.drain().unwrap();
    assert_eq!(sim.now().get(), 1250 + 100, "the pool gives back what is above its threshold");
    turn.release().unwrap();
    let seen: Vec<_> = spans(&recorder.take(), Track::Memory)
        .iter()
        .map(|span| (span.name.to_string(), span.end.since(span.start).get(), span.bytes))
        .collect();
    let gib = Bytes::gib(2);
    assert_eq!(
        seen,
        [
            ("allocate a".into(), 10, gib),
            ("allocate b".into(), 200, gib),
            ("free a".into(), 1040, gib),
            ("release from the pool".into(), 100, gib)
        ]
    );
}

#[test]
fn host_work_takes_what_it_says() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let worker = Worker::new(2);
    assert_eq!(host_work(&sim, worker.id(), "prepare", || (sim.elapse(ms(3)), 7).1), 7);
    assert_eq!(at(&spans(&recorder.take(), Track::Host)[0]), (0, 3_000_000));
}

#[test]
fn failed_work_fails_its_queue_and_costs_nothing_more() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u8>("a", 64, Class::Pooled, &queue).unwrap();
    // Not `panic!`: nothing is wrong, so nothing is printed.
    let bad = || std::panic::resume_unwind(Box::new("an illegal address"));
    // SAFETY: the job touches no memory.
    unsafe { sim.perform(&queue, Work::launch("bad", Bytes::ZERO), bad) }.unwrap();
    enqueue(&sim, &queue, "after it", Cost::kernel("unit", 5));
    assert!(matches!(sim.record(&queue), Err(Error::Lane { lane: "compute", .. })));
    drop(a);
    let Err(Error::Lane { detail, .. }) = turn.release() else { panic!("a late error is not lost") };
    assert_eq!(detail, "an illegal address");
    assert!(spans(&recorder.take(), Track::Compute).is_empty());
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
    sim.turn(&mut worker).unwrap().release().unwrap();
}

#[test]
fn a_kind_that_the_card_does_not_know_is_an_error() {
    let (sim, _) = open(plain_card(), 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let job = || Cost::kernel("fft", 1);
    // SAFETY: the job touches no memory.
    let outcome = unsafe { sim.perform(&queue, Work::launch("fft", Bytes::ZERO), job) };
    let Err(Error::Device { op: Op::Launch, device, detail }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(device, "sim:plain");
    assert_eq!(detail, "the card has no cost for kernels of kind `fft`");
}
