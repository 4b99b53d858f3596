//! `prestage demo`: what a newcomer sees first.

use std::fs;

use prestage_harness::timeline::Report;

use crate::command::{Work, adds_up, keys, run};

#[test]
fn the_demo_says_what_it_did() {
    let work = Work::new();
    let ran = run!(work, "demo", "--log-size", "6", "--out", "d");
    let text = ran.done();
    for word in [
        "62 constraints",
        "host (taken by auto)",
        "3 staged and 3 unstaged, equal byte for byte",
        "all verified",
        "computing",
        "idle: transfer",
        "wall",
        "device memory, peak",
        "d/index.html",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let page = fs::read_to_string(work.path("d/index.html")).unwrap();
    assert!(page.contains("Comparison") && page.contains("unstaged"));
    for name in ["staged", "unstaged"] {
        for end in ["csv", "html", "json", "png", "svg", "trace.json"] {
            assert!(work.path(&format!("d/{name}.{end}")).exists(), "{name}.{end}");
        }
    }
}

#[test]
fn t2_the_answer_as_json_adds_up() {
    let work = Work::new();
    let ran =
        run!(work, "demo", "--log-size", "6", "--json", "--device", "host@2GiB", "--margin", "50permille");
    assert_eq!(ran.stderr, "");
    let answer = ran.json();
    let expected = [
        "busy_ns",
        "constraints",
        "device",
        "idle_ns",
        "peak_bytes",
        "proofs",
        "report",
        "runs",
        "verified",
        "wall_ns",
    ];
    assert_eq!(keys(&answer), expected);
    assert_eq!((&answer["verified"], &answer["proofs"]), (&true.into(), &6.into()));
    assert_eq!((&answer["device"], &answer["constraints"]), (&"host@2GiB".into(), &62.into()));
    adds_up(&answer);
    let runs = answer["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for (run, (name, policy)) in runs.iter().zip([("staged", "full"), ("unstaged", "none")]) {
        assert_eq!((&run["name"], &run["policy"], &run["proofs"]), (&name.into(), &policy.into(), &3.into()));
        adds_up(run);
        // The report on the disk says the same.
        let text = fs::read_to_string(work.path(&format!("prestage-demo/{name}.json"))).unwrap();
        let report = Report::from_json(&text).unwrap();
        assert_eq!(report.times.busy() + report.times.idle().total(), report.times.wall());
        assert_eq!(run["wall_ns"], report.times.wall().get());
        assert_eq!(run["peak_bytes"], report.peak_bytes);
        assert_eq!(report.key.device, "host@2GiB");
        assert_eq!(report.parameters["margin"], "50 permille");
    }
    assert_eq!(answer["wall_ns"], runs[0]["wall_ns"]);
    let page = answer["report"].as_str().unwrap();
    assert!(page.starts_with('/') && fs::read_to_string(page).unwrap().ends_with("</html>\n"));
}

#[test]
fn memory_that_is_too_small_is_refused_by_numbers() {
    let work = Work::new();
    for (device, margin, says) in [
        ("host@100KiB", "0MiB", "no plan fits"),
        ("host@1MiB", "2MiB", "margin"),
        ("host@0MiB", "0MiB", "no plan fits"),
    ] {
        let ran = run!(work, "demo", "--log-size", "6", "--device", device, "--margin", margin, "--json");
        let line = ran.line_and_status(1);
        assert!(line.contains(says), "{device}: {line}");
    }
    assert!(!work.path("prestage-demo").exists());
}
