//! What CUPTI records beside what pairs of events say.

use std::collections::BTreeMap;

use prestage_vram::conformance::{OnCuda, Subject};
use prestage_vram::cuda::{Cuda, CudaConfig, cupti};
use prestage_vram::{Class, Device, Error, Nanos, Recorded, Track, Worker};

use super::{add, filled, kernel, on_card, read, recorded};

/// Runs a test where there is a card and a CUPTI.
fn with_cupti(name: &str, test: impl FnOnce()) {
    on_card(name, || match cupti() {
        Ok(found) => {
            println!("{name}: {found}");
            test();
        }
        Err(why) => println!("{name} skipped: {why}"),
    });
}

/// Busy by records and by events, in nanoseconds, and how many spans.
fn totals(records: &[Recorded]) -> BTreeMap<(Track, String), (u64, u64, u64)> {
    let mut totals = BTreeMap::new();
    for r in records {
        let (busy, events, spans) = totals.entry((r.span.track, r.span.name.to_string())).or_default();
        *busy += r.end.since(r.start).get();
        *events += r.span.end.since(r.span.start).get();
        *spans += 1;
    }
    totals
}

#[test]
fn t1_records_and_event_pairs_agree() {
    with_cupti("t1_cupti", || {
        let (config, recorder) = recorded();
        let card = Cuda::open(CudaConfig { records: true, ..config }).unwrap();
        kernel(&card, "spin");
        let mut worker = Worker::new(3);
        let turn = card.turn(&mut worker).unwrap();
        let queues = [turn.queue(Track::Compute).unwrap(), turn.queue(Track::Upload).unwrap()];
        for ns in [20_000_000, 1_000_000, 50_000, 5_000_000] {
            for queue in &queues {
                OnCuda.busy(&card, queue, Nanos::new(ns));
            }
        }
        let n = 1 << 27;
        let mut a = filled(&card, &queues[0], turn.alloc("a", n, Class::Pooled, &queues[0]).unwrap(), 1);
        for _ in 0..4 {
            add(&card, &queues[0], &mut a, 5).unwrap();
        }
        assert_eq!(read(&card, &queues[1], &mut a)[n - 1], 0x0101_0101_0101_0101 + 20);
        drop(a);
        turn.release().unwrap();
        let records = card.records().unwrap();
        let spans = recorder.spans(Track::Compute).len() + recorder.spans(Track::Upload).len();
        assert_eq!((records.len(), spans), (14, 14), "each piece of work has records");
        let end = card.now();
        for r in &records {
            assert_eq!(r.records, 1, "{r:?}");
            // Lengths are the card's; moments are told on the host's clock.
            let length = r.end.since(r.start).get();
            assert!(r.start < r.end && r.end <= end, "{r:?}");
            assert!(r.busy.get().abs_diff(length) <= 10 + length / 1000, "{r:?}");
            // The two clocks meet within what an event costs; the driver copies ordinary memory in pieces, and its last
            // steps are its own.
            let apart = |a: Nanos, b: Nanos| a.get().abs_diff(b.get());
            let most = 100_000 + r.busy.get() / 100;
            assert!(apart(r.start, r.span.start) < 100_000 && apart(r.end, r.span.end) < most, "{r:?}");
        }
        for ((track, name), (busy, events, spans)) in totals(&records) {
            println!("{} {name}: {busy} ns by records, {events} by events, {spans} spans", track.name());
            assert!(busy.abs_diff(events) <= busy / 50 + 5_000 * spans, "{name}: {busy} and {events}");
        }
        // Taken once.
        assert_eq!(card.records().unwrap(), []);
    });
}

#[test]
fn without_records_there_are_none() {
    on_card("no records", || {
        let (config, _) = recorded();
        let card = Cuda::open(config).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        OnCuda.busy(&card, &turn.queue(Track::Compute).unwrap(), Nanos::new(1000));
        turn.release().unwrap();
        assert_eq!(card.records().unwrap(), []);
    });
}

#[test]
fn a_card_with_records_needs_cupti_or_says_so() {
    on_card("needs cupti", || {
        let opened = Cuda::open(CudaConfig { records: true, ..super::config() });
        match (cupti(), opened) {
            (Ok(_), opened) => drop(opened.unwrap()),
            (Err(_), Err(Error::NoCupti { .. })) => {}
            (Err(why), other) => panic!("{why}: {other:?}"),
        }
    });
}
