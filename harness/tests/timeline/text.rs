//! Chrome trace, CSV and files.

use std::collections::{BTreeMap, BTreeSet};

use prestage_harness::timeline::{csv, save, trace, write_atomic};
use prestage_vram::{Level, Track};
use serde_json::Value;

use crate::synthetic::{level, porep_report, refusal, report, span};

fn events(text: &str) -> Vec<Value> {
    let json: Value = serde_json::from_str(text).unwrap();
    json["traceEvents"].as_array().unwrap().clone()
}

#[test]
fn the_trace_keeps_to_the_format() {
    let (report, timeline) = porep_report(true);
    let events = events(&trace(&report, &timeline));
    let mut named = BTreeSet::new();
    let mut lanes: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for event in &events {
        let (pid, tid) = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let ts = event["ts"].as_f64().unwrap();
        assert!(ts >= 0.0 && event["name"].is_string());
        match event["ph"].as_str().unwrap() {
            "M" => {
                if event["name"] == "thread_name" {
                    assert!(event["args"]["name"].is_string());
                    named.insert((pid, tid));
                }
            }
            "X" => lanes.entry((pid, tid)).or_default().push((ts, event["dur"].as_f64().unwrap())),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_u64)),
            "i" => assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap())),
            other => panic!("{other}"),
        }
    }
    // Every thread with events has a name, and its events do not overlap.
    for (lane, mut intervals) in lanes {
        assert!(named.contains(&lane), "{lane:?}");
        intervals.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in intervals.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0 + 1e-3, "{lane:?}: {pair:?}");
        }
    }
    let count = |ph: &str, name: &str| events.iter().filter(|e| e["ph"] == ph && e["name"] == name).count();
    assert_eq!(count("i", "refusal"), 1);
    assert_eq!(count("C", "memory"), report.memory.len());
    assert_eq!(count("X", "msm h"), 40);
}

#[test]
fn overlapping_kernels_get_threads_of_their_own() {
    let (report, timeline) = report(vec![
        span(Track::Compute, 0, "first", 0, 1500),
        span(Track::Compute, 1, "second", 1000, 2500),
    ]);
    let events = events(&trace(&report, &timeline));
    let of = |name: &str| events.iter().find(|e| e["ph"] == "X" && e["name"] == name).unwrap();
    assert_ne!(of("first")["tid"], of("second")["tid"]);
    assert_eq!(of("second")["ts"].as_f64(), Some(1.0));
    assert_eq!(of("second")["dur"].as_f64(), Some(1.5));
}

#[test]
fn csv_has_every_event_and_as_many_cells_in_each_line() {
    let quoted = "a \"quoted\", name";
    let (_, timeline) = report(vec![
        span(Track::Compute, 0, quoted, 0, 10),
        level(5, Level::default()),
        refusal(7),
        span(Track::Host, 1, "h", 20, 30),
    ]);
    let text = csv(&timeline);
    let lines: Vec<&str> = text.trim_end().split("\r\n").collect();
    // Header, four events, two idle pieces.
    assert_eq!(lines.len(), 1 + 4 + 2);
    for line in &lines {
        let mut quotes = false;
        let commas = line.chars().filter(|c| {
            quotes ^= *c == '"';
            *c == ',' && !quotes
        });
        assert_eq!(commas.count(), 13, "{line}");
    }
    assert!(text.contains("span,compute,0,\"a \"\"quoted\"\", name\",0,10,0,"));
    assert!(text.contains("idle,unattributed,,,10,20,"));
    assert!(text.contains("idle,host,,,20,30,"));
}

#[test]
fn f8_a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    write_atomic(&path, b"old").unwrap();
    write_atomic(&path, b"new").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    // A write that fails says where and leaves nothing behind.
    std::fs::create_dir(folder.path().join("taken")).unwrap();
    let failed = write_atomic(&folder.path().join("taken"), b"x").unwrap_err().to_string();
    assert!(failed.contains("taken"), "{failed}");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2);
    assert!(write_atomic(&folder.path().join("missing/report.json"), b"x").is_err());
}

#[test]
fn all_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (report, timeline) = porep_report(true);
    let saved = save(&folder.path().join("deep/er"), "porep", &report, &timeline).unwrap();
    for path in [&saved.page, &saved.report, &saved.trace, &saved.csv, &saved.svg, &saved.png] {
        assert!(std::fs::metadata(path).unwrap().len() > 1000, "{path:?}");
    }
    assert!(std::fs::read(&saved.png).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
}

#[test]
fn the_table_for_a_terminal() {
    let (report, _) =
        report(vec![span(Track::Compute, 0, "k", 0, 750_000), span(Track::Host, 0, "h", 0, 1_000_000)]);
    let lines = [
        "busy            750 µs    75.0 %   a kernel ran",
        "host            250 µs    25.0 %   the host computed and nothing was queued for the device",
        "wall           1.00 ms   100.0 %",
        "held              0 ns       0 %   someone had the turn",
    ];
    assert_eq!(report.table().to_string(), lines.join("\n"));
}
