//! Kernels, marks and spans.

use prestage_vram::conformance::{OnCuda, Subject};
use prestage_vram::cuda::{Cuda, Grid};
use prestage_vram::{Bytes, Class, Device, Error, LedgerConfig, Nanos, Op, Track, Work, Worker};

use super::{add, config, filled, kernel, on_card, read, recorded};

#[test]
fn kernels_get_their_arguments_and_follow_marks() {
    on_card("kernels", || {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let (first, second) = (turn.queue(Track::Compute).unwrap(), turn.queue(Track::Download).unwrap());
        let n = (1 << 20) + 3;
        let mut a = filled(&card, &first, turn.alloc("a", n, Class::Pooled, &first).unwrap(), 1);
        OnCuda.busy(&card, &first, Nanos::new(20_000_000));
        add(&card, &first, &mut a, 5).unwrap();
        // The other queue claims it and so waits for the slow one.
        add(&card, &second, &mut a, 6).unwrap();
        assert_eq!(read(&card, &second, &mut a), vec![0x0101_0101_0101_010c; n]);
        let mut part = filled(&card, &first, turn.alloc("part", 16, Class::Direct, &first).unwrap(), 0);
        a.claim(&first).unwrap();
        let (from, to) = (a.block().as_ptr::<u8>(), part.block().as_ptr::<u8>());
        let work = Work::copy("part", Bytes::new(64));
        // SAFETY: inside both buffers, which are claimed for the queue.
        unsafe { card.enqueue(&first, work, |stream| stream.copy(from, to, 64)) }.unwrap();
        let copied = read(&card, &first, &mut part);
        assert_eq!((copied[7], copied[8]), (0x0101_0101_0101_010c, 0));
        drop((a, part));
        turn.release().unwrap();
    });
}

/// What is wrong with a launch is said at once and spoils nothing.
#[test]
fn a_wrong_launch_is_an_error_of_its_own() {
    on_card("wrong launch", || {
        let card = Cuda::open(config()).unwrap();
        let spin = kernel(&card, "spin");
        assert!(spin.registers() > 0 && spin.threads() >= 512 && spin.local() == Bytes::ZERO);
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        for grid in
            [Grid::line(0, 1), Grid::line(1, 2048), Grid { shared_bytes: 1 << 30, ..Grid::line(1, 1) }]
        {
            let mut ns = 0u64;
            let mut args = [(&raw mut ns).cast()];
            let work = Work::launch("wrong", Bytes::ZERO);
            // SAFETY: the kernel takes one 64-bit number.
            let launched =
                unsafe { card.enqueue(&queue, work, |stream| stream.launch(&spin, grid, &mut args)) };
            assert!(matches!(&launched, Err(Error::Device { op: Op::Launch, .. })), "{launched:?}");
        }
        // SAFETY: not an image at all, which the driver sees by its first bytes.
        let module = unsafe { card.module("noise", || Ok::<_, Error>(b"noise".to_vec())) };
        assert!(matches!(module, Err(Error::Device { op: Op::Launch, .. })));
        // SAFETY: the image is whole PTX.
        let checks =
            unsafe { card.module("checks", || Err::<Vec<u8>, _>(Error::NoDriver { detail: String::new() })) };
        let missing = checks.expect("it is loaded already").kernel("no such kernel").unwrap_err();
        assert!(missing.to_string().contains("no such kernel"), "{missing}");
        card.ledger().healthy().unwrap();
        turn.release().unwrap();
    });
}

/// Code of a toolkit that is newer than the driver.
#[test]
fn b213_code_that_the_driver_does_not_know_is_a_typed_error() {
    on_card("b213", || {
        let card = Cuda::open(config()).unwrap();
        let newer = prestage_vram::conformance::KERNELS.replace(".version 6.4", ".version 99.9");
        assert!(newer.contains("99.9"));
        // SAFETY: the image is whole PTX, of a version that there is not.
        let module = unsafe { card.module("newer", || Ok::<_, Error>(newer.clone().into())) };
        let Err(Error::Device { op: Op::Launch, detail, .. }) = module else { panic!("{module:?}") };
        assert!(detail.contains("PTX") && detail.contains("cuModuleLoadData"), "{detail}");
        card.ledger().healthy().unwrap();
        // What the driver does know is loaded afterwards.
        kernel(&card, "spin");
    });
}

/// Faults are injected for launches as for everything else.
#[test]
fn f1_a_launch_fails_when_it_is_told_to() {
    on_card("f1", || {
        let faults = Some(std::sync::Arc::new(|op| op == Op::Launch) as _);
        let ledger = LedgerConfig { faults, ..config().ledger };
        let card = Cuda::open(prestage_vram::cuda::CudaConfig { ledger, ..config() }).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        // SAFETY: nothing is enqueued.
        let work = unsafe { card.enqueue(&queue, Work::launch("a", Bytes::ZERO), |_| Ok::<_, Error>(())) };
        assert!(matches!(work, Err(Error::Device { op: Op::Launch, .. })));
        turn.release().unwrap();
    });
}

/// A span lasts as long as its work, on the device's clock, and lies between handing it over and seeing it end.
#[test]
fn t1_spans_last_as_long_as_their_work() {
    on_card("t1", || {
        let (config, recorder) = recorded();
        let card = Cuda::open(config).unwrap();
        kernel(&card, "spin");
        let mut worker = Worker::new(3);
        let turn = card.turn(&mut worker).unwrap();
        let queues = [turn.queue(Track::Compute).unwrap(), turn.queue(Track::Upload).unwrap()];
        let lengths = [20_000_000, 1_000_000, 50_000, 5_000_000];
        let start = card.now();
        for ns in lengths {
            for queue in &queues {
                OnCuda.busy(&card, queue, Nanos::new(ns));
            }
        }
        turn.release().unwrap();
        let end = card.now();
        for track in [Track::Compute, Track::Upload] {
            let spans = recorder.spans(track);
            assert_eq!(spans.len(), lengths.len());
            let mut before = start;
            for (span, ns) in spans.iter().zip(lengths) {
                assert_eq!((&*span.name, span.worker), ("busy", worker.id()));
                assert!(before <= span.start && span.start < span.end && span.end <= end, "{span:?}");
                let took = span.end.since(span.start).get();
                assert!(took >= ns - 2_000 && took <= ns + 200_000, "{ns} ns were told as {took}");
                before = span.end;
            }
        }
        let (compute, upload) = (recorder.spans(Track::Compute), recorder.spans(Track::Upload));
        assert!(upload[0].start < compute[0].end, "two queues run at once");
        let launch = recorder.spans(Track::Launch);
        assert!(!launch.is_empty() && launch.iter().all(|s| s.end.since(s.start) < Nanos::new(10_000_000)));
        println!(
            "launch to start: {:?} ns",
            launch.iter().map(|s| s.end.since(s.start).get()).collect::<Vec<_>>()
        );
    });
}

/// Epochs are renewed; spans before and after stay in order, and none is lost where there are many.
#[test]
fn t2_spans_stay_in_order_over_many_and_over_time() {
    on_card("t2", || {
        let (config, recorder) = recorded();
        let card = Cuda::open(config).unwrap();
        kernel(&card, "spin");
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        for i in 0..3000 {
            OnCuda.busy(&card, &queue, Nanos::new(1000));
            if i == 1500 {
                std::thread::sleep(std::time::Duration::from_millis(8500));
            }
        }
        turn.release().unwrap();
        let spans = recorder.spans(Track::Compute);
        assert_eq!(spans.len(), 3000);
        for pair in spans.windows(2) {
            assert!(pair[0].end <= pair[1].start);
        }
        let gap = spans[1501].start.since(spans[1500].end);
        assert!(gap >= Nanos::new(8_400_000_000) && gap < Nanos::new(8_700_000_000), "{gap}");

        // Few enough that none waits for the device to catch up.
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let begun = std::time::Instant::now();
        for _ in 0..400 {
            OnCuda.busy(&card, &queue, Nanos::ZERO);
        }
        let handed = begun.elapsed();
        turn.release().unwrap();
        println!("handing over a launch with its span costs the host {:.1?}", handed / 400);
    });
}
