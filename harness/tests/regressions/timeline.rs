//! Plots and recorders.

use std::sync::Arc;
use std::time::Instant;

use prestage_harness::timeline::{
    Key, Load, Recorder, Report, Timeline, Verified, csv, page, png, svg, trace,
};
use prestage_vram::{Bytes, Event, Level, Nanos, Sink, Span, Track, WorkerId};

fn report(timeline: &Timeline) -> Report {
    let key = Key {
        scenario: "degenerate".into(),
        device: "host".into(),
        load: Load { circuit: "none".into(), constraints: 0, partitions: 1 },
        commit: "0".into(),
    };
    Report::new(key, Verified::check([()], |()| true).unwrap(), timeline)
}

fn span(track: Track, start: u64, end: u64) -> Event {
    let (start, end) = (Nanos::new(start), Nanos::new(end));
    Event::Span(Span { track, worker: WorkerId(0), name: "x".into(), start, end, bytes: Bytes::ZERO })
}

fn level(at: u64, level: Level) -> Event {
    Event::Level { at: Nanos::new(at), label: "x".into(), level }
}

/// Constant samples once gave plots an empty range: an error in one backend, a panic in the other.
#[test]
fn b233_degenerate_data_is_drawn() {
    let full = Level { usable: Bytes::MAX, budget: Bytes::MAX, resident: Bytes::MAX, ..Level::default() };
    let runs = [
        vec![],
        vec![span(Track::Compute, 5, 5)],
        vec![span(Track::Compute, 5, 6)],
        vec![span(Track::Compute, 5, 5), span(Track::Host, 5, 5), span(Track::Held, 5, 5)],
        vec![level(7, Level::default())],
        vec![level(7, full), level(9, full)],
        vec![span(Track::Upload, 0, 10); 3],
        vec![span(Track::Compute, 10, 3)],
        vec![span(Track::Compute, 0, u64::MAX), level(u64::MAX, full)],
        vec![span(Track::Host, u64::MAX, u64::MAX)],
    ];
    for events in runs {
        let timeline = Timeline::new(events.clone());
        let report = report(&timeline);
        assert_eq!(report.times.busy() + report.times.idle().total(), report.times.wall());
        let picture = svg(&report, &timeline).unwrap();
        roxmltree::Document::parse(&picture).unwrap();
        assert!(!picture.contains("NaN") && !picture.contains("inf\""), "{events:?}");
        assert!(png(&report, &timeline).unwrap().len() > 1000);
        assert!(page("t", &[("t", &report, &timeline)]).unwrap().contains("</html>"));
        assert!(serde_json::from_str::<serde_json::Value>(&trace(&report, &timeline)).is_ok());
        assert!(csv(&timeline).starts_with("kind,"));
        assert_eq!(Report::from_json(&report.to_json().unwrap()).unwrap(), report);
    }
}

/// A minimal Linux has no default font: every text must say how wide it is, and the bitmap must carry glyphs.
#[test]
fn b236_text_needs_no_font_of_the_system() {
    let timeline = Timeline::new(vec![span(Track::Compute, 0, 10)]);
    let report = report(&timeline);
    let picture = svg(&report, &timeline).unwrap();
    let document = roxmltree::Document::parse(&picture).unwrap();
    let texts: Vec<_> = document.descendants().filter(|n| n.tag_name().name() == "text").collect();
    assert!(texts.len() > 10);
    for text in texts {
        let width: f64 = text.attribute("textLength").unwrap().parse().unwrap();
        assert!(width > 0.0, "{:?}", text.text());
    }
    // The largest text, the headline, has left dark pixels on the upper left of the bitmap.
    let bytes = png(&report, &timeline).unwrap();
    let mut reader = png::Decoder::new(&bytes[..]).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let row = info.width as usize * 3;
    let dark =
        (30..76).flat_map(|y| pixels[y * row + 48 * 3..y * row + 300 * 3].chunks(3)).filter(|p| p[0] < 90);
    assert!(dark.count() > 300);
}

/// Recording has a cost: the report states it, and it is small against the shortest device work.
#[test]
fn b241_a_report_states_what_recording_cost() {
    let recorder = Arc::new(Recorder::new());
    let start = Instant::now();
    for at in 0..10_000 {
        recorder.emit(span(Track::Compute, 1000 * at, 1000 * at + 900));
    }
    let measured = Nanos::from(start.elapsed());
    let timeline = recorder.take();
    let report = report(&timeline);
    assert_eq!(report.events, 10_000);
    assert_eq!(report.recording_ns, timeline.overhead().get());
    assert!(report.recording_ns > 0);
    assert!(measured.get() / 10_000 < 20_000, "{measured} for 10000 events");
}
