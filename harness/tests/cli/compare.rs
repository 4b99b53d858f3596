//! `prestage compare`: two reports on one axis, or a line that says why not.

use std::fs;

use serde_json::Value;

use crate::command::{Work, adds_up, keys, run};

const CARD: &str = "sim:rtx-5070-ti-16g";

/// Proves `partitions` of the PoRep shape on the simulated card; the report is in `name/run.json`.
fn porep(work: &Work, name: &str, partitions: &str, ahead: &str) {
    run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        CARD,
        "--partitions",
        partitions,
        "--ahead",
        ahead,
        "--log-domain",
        "7",
        "--out",
        name
    )
    .done();
}

#[test]
fn two_runs_are_drawn_on_one_axis_and_their_differences_add_up() {
    let work = Work::new();
    porep(&work, "on", "4", "on");
    porep(&work, "off", "4", "off");
    let ran = run!(work, "compare", "on/run.json", "off/run.json", "--out", "c");
    let text = ran.done();
    for words in
        ["They differ in staging ahead: on and off.", "B − A", "idle: transfer", "held", "peak memory"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = fs::read_to_string(work.path("c/compare.html")).unwrap();
    assert!(page.contains("<h2>Comparison</h2>") && page.contains("<th>difference</th>"));
    let picture = fs::read_to_string(work.path("c/compare.svg")).unwrap();
    roxmltree::Document::parse(&picture).unwrap();
    assert!(picture.contains(">Compared<") && picture.contains("staging ahead: on and off"));
    assert!(fs::read(work.path("c/compare.png")).unwrap().starts_with(b"\x89PNG"));

    let answer = run!(work, "compare", "on/run.json", "off/run.json", "--json").json();
    assert_eq!(keys(&answer), ["difference", "first", "load", "second"]);
    let (first, second, difference) = (&answer["first"], &answer["second"], &answer["difference"]);
    let expected = [
        "busy_ns",
        "commit",
        "device",
        "held_ns",
        "idle_ns",
        "peak_bytes",
        "proofs",
        "proofs_per_minute",
        "refusals",
        "report",
        "scenario",
        "verified",
        "wall_ns",
    ];
    assert_eq!(keys(first), expected);
    adds_up(first);
    adds_up(second);
    assert_eq!((&first["proofs"], &first["verified"]), (&4.into(), &true.into()));
    let of = |value: &Value, name: &str| value[name].as_i64().unwrap();
    for name in ["wall_ns", "busy_ns", "held_ns", "peak_bytes"] {
        assert_eq!(of(difference, name), of(second, name) - of(first, name), "{name}");
    }
    let causes: i64 = difference["idle_ns"].as_object().unwrap().values().map(|v| v.as_i64().unwrap()).sum();
    assert_eq!(of(difference, "busy_ns") + causes, of(difference, "wall_ns"));
    // A run compared with itself is equal to itself.
    let same = run!(work, "compare", "on/run.json", "on/run.json", "--json").json();
    assert_eq!(same["difference"]["wall_ns"], 0);
}

#[test]
fn reports_of_prove_and_of_the_demo_are_compared_too() {
    let work = Work::new();
    run!(work, "demo", "--log-size", "6", "--out", "d").done();
    let text = run!(work, "compare", "d/staged.json", "d/unstaged.json").done().to_owned();
    assert!(text.contains("policy: full and none"), "{text}");
    let file = |f: &str| crate::command::fixture(&format!("sq10/{f}"));
    for policy in ["full", "chunked:2"] {
        let (key, wtns) = (file("circuit.zkey"), file("witness.wtns"));
        run!(
            work,
            "prove",
            "--key",
            key,
            "--witness",
            wtns,
            "--proof",
            "p.json",
            "--policy",
            policy,
            "--timeline",
            policy
        )
        .done();
    }
    let text = run!(work, "compare", "full/prove.json", "chunked:2/prove.json").done().to_owned();
    assert!(text.contains("They differ in policy: full and chunked:2."), "{text}");
}

#[test]
fn t4_unequal_loads_and_unverified_proofs_are_refused() {
    let work = Work::new();
    porep(&work, "two", "2", "on");
    porep(&work, "three", "3", "on");
    let refused = |a: &str, b: &str, says: &str| {
        let ran = run!(work, "compare", a, b, "--out", "c");
        assert!(ran.refused().contains(says), "{ran:?}");
        assert!(!work.path("c").exists());
    };
    refused("two/run.json", "three/run.json", "number of partitions is 2 in one and 3 in the other");
    // The same shape charged at another scale is another load.
    run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        CARD,
        "--partitions",
        "2",
        "--log-domain",
        "7",
        "--scale",
        "2",
        "--out",
        "small"
    )
    .done();
    refused(
        "two/run.json",
        "small/run.json",
        "the circuit is porep-32g in one and porep-32g at 2^7, 2 times",
    );

    let text = fs::read_to_string(work.path("two/run.json")).unwrap();
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut json: Value = serde_json::from_str(&text).unwrap();
        change(&mut json);
        fs::write(work.path(name), json.to_string()).unwrap();
    };
    changed("unverified.json", &|json| json["verified"] = false.into());
    refused("two/run.json", "unverified.json", "unverified.json: not a report: its proofs were not verified");
    changed("faster.json", &|json| json["proofs_per_minute"] = 1e6.into());
    refused("faster.json", "two/run.json", "faster.json: the report contradicts itself");
    fs::write(work.path("cut.json"), &text[..text.len() / 2]).unwrap();
    refused("two/run.json", "cut.json", "cut.json: not a report: ");
    for (name, bytes) in [("empty.json", &b""[..]), ("list.json", b"[]"), ("bytes.json", b"\xff\xfe\x00")] {
        fs::write(work.path(name), bytes).unwrap();
        refused("two/run.json", name, name);
    }
    refused("two/run.json", "two/run.trace.json", "run.trace.json: not a report");
    refused("two/run.csv", "two/run.json", "run.csv: not a report");
    refused("missing.json", "two/run.json", "missing.json: ");
    refused("two", "two/run.json", "two: it is not a file");
    refused("/dev/zero", "two/run.json", "/dev/zero: it is not a file");
    let ran = run!(work, "compare", "two/run.json", "three/run.json", "--json");
    let line = ran.line_and_status(1);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["error"], line);
}

#[test]
fn a_comparison_overwrites_neither_report() {
    let work = Work::new();
    porep(&work, "c", "1", "on");
    fs::rename(work.path("c/run.json"), work.path("c/compare.html")).unwrap();
    let before = fs::read(work.path("c/compare.html")).unwrap();
    let ran = run!(work, "compare", "c/compare.html", "c/compare.html", "--out", "c");
    assert!(ran.refused().contains("are the same file"), "{ran:?}");
    assert_eq!(fs::read(work.path("c/compare.html")).unwrap(), before);
    run!(work, "compare", "one.json").misused();
    run!(work, "compare", "a", "b", "c").misused();
}
