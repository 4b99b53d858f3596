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
        "before, as the original did: bc of 8.00 GiB was refused to worker 1 for proof 1",
        "after, as prestage does: 6 of 6 proofs verified, 0 refusals",
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
    // Before and after come first, on one axis, and only what was proved has figures.
    let first = page.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap().trim();
    let document = roxmltree::Document::parse(first).unwrap();
    let shown: Vec<_> =
        document.descendants().filter(roxmltree::Node::is_text).filter_map(|n| n.text()).collect();
    for words in
        ["Before, as the original did", "After, as prestage does", "stopped here", "a request was refused"]
    {
        assert!(shown.contains(&words), "{words}");
    }
    assert!(shown.iter().any(|t| t.starts_with("refused: 8.00 GiB for bc, 5.95 GiB free")));
    assert_eq!(shown.iter().filter(|t| t.contains("proofs per minute")).count(), 1);
    assert_eq!(page.matches("<dl class=\"tiles\">").count(), 3, "after, staged, unstaged");
    for name in ["before.svg", "before.csv", "before-after.svg"] {
        assert!(work.path(&format!("d/{name}")).exists(), "{name}");
    }
    for name in ["staged", "unstaged", "after"] {
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
        "card",
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
    let card = &answer["card"];
    assert_eq!((&card["device"], &card["before"]["refusals"]), (&"sim:cascade-16g".into(), &2.into()));
    assert!(card["before"]["refused"].as_str().unwrap().starts_with("refused 8.00 GiB for bc (worker 1"));
    assert_eq!(
        keys(&card["before"]),
        ["peak_bytes", "refusals", "refused", "script"],
        "a replay has no times"
    );
    assert_eq!((&card["after"]["proofs"], &card["after"]["refusals"]), (&6.into(), &0.into()));
    adds_up(&card["after"]);
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
