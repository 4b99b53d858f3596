//! `prestage plan` and `prestage run` from outside.

use std::fs;

use prestage_harness::timeline::Report;

use crate::command::{Ran, Work, adds_up, fixture, keys, run};

const CARD: &str = "sim:rtx-5070-ti-16g";

#[test]
fn a_plan_has_the_ledger_and_the_card() {
    let work = Work::new();
    let ran = run!(work, "plan", "--shape", "porep-32g", "--device", CARD, "--workers", "2");
    let text = ran.done();
    for words in
        ["porep-32g on sim:rtx-5070-ti-16g: full", "= budget 13.92 GiB", "phase", "held", "peak 12.00 GiB"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let answer = run!(work, "plan", "--shape", "porep-32g", "--device", CARD, "--json").json();
    for key in [
        "policy",
        "reason",
        "phases",
        "peak_bytes",
        "capacity_bytes",
        "context_bytes",
        "margin_bytes",
        "budget_bytes",
    ] {
        assert!(keys(&answer).contains(&key), "{key}");
    }
    let of = |name: &str| answer[name].as_u64().unwrap();
    assert_eq!(of("budget_bytes"), of("capacity_bytes") - of("context_bytes") - of("margin_bytes"));
    assert_eq!(answer["policy"], "full");
    let phases = answer["phases"].as_array().unwrap();
    let peaks = phases.iter().map(|p| p["peak_bytes"].as_u64().unwrap());
    assert_eq!(peaks.max(), answer["peak_bytes"].as_u64());
    // Each line of the ledger is the one before, changed.
    let mut held = 0;
    for step in phases.iter().flat_map(|p| p["steps"].as_array().unwrap()) {
        held += step["change_bytes"].as_i64().unwrap();
        assert_eq!(step["held_bytes"].as_i64(), Some(held), "{step}");
    }
    assert_eq!(held, 0);
}

#[test]
fn plans_by_size_by_key_and_on_the_cpu() {
    let work = Work::new();
    let plan = |args: &[&str]| {
        let args: Vec<&std::ffi::OsStr> = ["plan", "--json"].iter().chain(args).map(AsRef::as_ref).collect();
        work.run(&args)
    };
    let small =
        plan(&["--log-domain", "24", "--device", "sim:h200-141g@16GiB", "--margin", "50permille"]).json();
    assert_eq!(small["capacity_bytes"], 16_u64 << 30);
    assert_eq!(small["margin_bytes"], (16_u64 << 30) * 50 / 1000);
    let chunked = plan(&["--shape", "porep-32g", "--policy", "chunked", "--device", CARD]).json();
    assert_eq!(chunked["policy"], "chunked:2");
    let zkey = fixture("sq10/circuit.zkey").into_os_string().into_string().unwrap();
    let key = plan(&["--key", &zkey]).json();
    assert_eq!((&key["device"], &key["domain"]), (&"host".into(), &1024.into()));
    let refused = plan(&["--shape", "porep-32g", "--device", "sim:rtx-5070-ti-16g@2GiB"]);
    assert!(refused.line_and_status(1).contains("no plan fits"), "{refused:?}");
    for (args, says) in [
        (&["--shape", "porep-33g"][..], "no shape `porep-33g`"),
        (&["--shape", "none.toml"], "none.toml"),
        (&["--log-domain", "24", "--device", "sim:gtx-480"], "rtx-5070-ti-16g"),
        (&["--log-domain", "24", "--device", "cuda:0"], "sim:PRESET"),
        (&["--key", "none.zkey"], "none.zkey"),
    ] {
        let ran = plan(args);
        assert!(ran.line_and_status(1).contains(says), "{args:?}: {ran:?}");
    }
}

/// What `plan` says of a small budget holds for `run`: the circuit that stands for the full size can be cut as finely.
#[test]
fn l5_a_run_takes_as_many_pieces_as_its_plan() {
    let budget = ["--shape", "porep-32g", "--device", "sim:rtx-5070-ti-16g", "--margin", "10466MiB"];
    let work = Work::new();
    let answer = |verb: &[&str]| {
        let args: Vec<&std::ffi::OsStr> = verb.iter().chain(&budget).map(AsRef::as_ref).collect();
        work.run(&args).json()
    };
    let (planned, ran) = (answer(&["plan", "--json"]), answer(&["run", "--partitions", "1", "--json"]));
    assert_eq!((&planned["policy"], &ran["policy"]), (&"chunked:64".into(), &"chunked:64".into()));
    assert_eq!(ran["verified"], true);
}

#[test]
fn a_run_answers_with_the_keys_of_a_report() {
    let work = Work::new();
    let answer = run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        CARD,
        "--partitions",
        "3",
        "--workers",
        "2",
        "--log-domain",
        "7",
        "--out",
        "r",
        "--json"
    )
    .json();
    for key in [
        "verified",
        "proofs",
        "policy",
        "reason",
        "refusals",
        "peak_bytes",
        "capacity_bytes",
        "context_bytes",
        "margin_bytes",
        "budget_bytes",
        "wall_ns",
        "busy_ns",
        "held_ns",
        "idle_ns",
    ] {
        assert!(keys(&answer).contains(&key), "{key}");
    }
    adds_up(&answer);
    let of = |name: &str| answer[name].as_u64().unwrap();
    assert_eq!((of("proofs"), of("refusals"), of("stopped")), (3, 0, 0));
    assert_eq!((&answer["verified"], &answer["policy"]), (&true.into(), &"full".into()));
    assert!(of("peak_bytes") <= of("budget_bytes"));
    assert_eq!(of("budget_bytes"), of("capacity_bytes") - of("context_bytes") - of("margin_bytes"));
    // The report on the disk says the same, and so does the page.
    let report = Report::from_json(&fs::read_to_string(work.path("r/run.json")).unwrap()).unwrap();
    assert_eq!(report.times.wall().get(), of("wall_ns"));
    assert_eq!(report.peak_bytes, of("peak_bytes"));
    assert!(fs::read_to_string(work.path("r/run.html")).unwrap().ends_with("</html>\n"));
    assert_eq!(answer["report"], "r/run.html");
    // In virtual time the same command gives the same trace.
    let trace = fs::read(work.path("r/run.csv")).unwrap();
    run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        CARD,
        "--partitions",
        "3",
        "--workers",
        "2",
        "--log-domain",
        "7",
        "--out",
        "r"
    )
    .done();
    assert_eq!(fs::read(work.path("r/run.csv")).unwrap(), trace);
}

/// A busy machine may leave some of a short run on the CPU unexplained. More than 2 % of the wall is a failure that is said,
/// and nothing else may be wrong.
#[track_caller]
fn explained_or_failed(ran: &Ran) -> serde_json::Value {
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    adds_up(&answer);
    let unexplained = answer["idle_ns"]["unattributed"].as_u64().unwrap();
    if 50 * unexplained > answer["wall_ns"].as_u64().unwrap() {
        let line = ran.line_and_status(1);
        assert!(line.starts_with("no recorded event explains"), "{line}");
        assert_eq!(answer["error"], line);
    } else {
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        assert!(answer["error"].is_null());
    }
    answer
}

#[test]
fn t2_a_run_is_explained_or_it_fails() {
    let work = Work::new();
    for _ in 0..4 {
        let ran = run!(
            work,
            "run",
            "--shape",
            "square-2^4",
            "--device",
            "host",
            "--partitions",
            "1",
            "--workers",
            "1",
            "--json"
        );
        explained_or_failed(&ran);
    }
}

#[test]
fn a_run_of_files_on_the_cpu() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("boundary_full/{f}"));
    let (zkey, wtns, r1cs) = (file("circuit.zkey"), file("witness.wtns"), file("circuit.r1cs"));
    let ran = run!(
        work,
        "run",
        "--key",
        zkey,
        "--witness",
        wtns,
        "--device",
        "host@1GiB",
        "--partitions",
        "3",
        "--workers",
        "2",
        "--margin",
        "64MiB",
        "--policy",
        "a-then-bc",
        "--out",
        "r",
        "--json"
    );
    let answer = explained_or_failed(&ran);
    assert_eq!((&answer["proofs"], &answer["policy"]), (&3.into(), &"a-then-bc".into()));
    assert_eq!((&answer["capacity_bytes"], &answer["margin_bytes"]), (&(1 << 30).into(), &(64 << 20).into()));
    let report = Report::from_json(&fs::read_to_string(work.path("r/run.json")).unwrap()).unwrap();
    assert_eq!(report.key.load.constraints, 251);

    // A key without its circuit needs it beside it.
    run!(work, "setup", "--r1cs", r1cs, "--key", "k.params", "--vkey", "v.json").done();
    let ran = run!(work, "run", "--key", "k.params", "--witness", wtns, "--partitions", "1");
    assert!(ran.refused().contains("--r1cs"), "{ran:?}");
    let ran = run!(
        work,
        "run",
        "--key",
        "k.params",
        "--r1cs",
        r1cs,
        "--witness",
        wtns,
        "--partitions",
        "1",
        "--json"
    );
    let answer = explained_or_failed(&ran);
    assert_eq!((&answer["verified"], &answer["device"]), (&true.into(), &"host".into()));
    // A witness of something else fails every partition, and there is nothing to report.
    let other = fixture("sq10/witness.wtns");
    let ran = run!(work, "run", "--key", "k.params", "--r1cs", r1cs, "--witness", other, "--partitions", "2");
    assert!(ran.refused().contains("no partition was proved"), "{ran:?}");
}

/// A full size that the host's memory does not hold is refused in one line before anything of it is made.
#[test]
fn a_full_size_that_does_not_fit_says_what_it_needs() {
    let work = Work::new();
    for (more, says) in [(&[][..], "on 2^32 rows needs"), (&["--log-domain", "30"], "on 2^30 rows needs")] {
        let shape = ["run", "--shape", "square-2^32", "--device", "host", "--partitions", "3"];
        let args: Vec<&std::ffi::OsStr> = shape.iter().chain(more).map(AsRef::as_ref).collect();
        let ran = work.run(&args);
        let line = ran.line_and_status(1);
        for part in
            [says, "key", "circuit", "witness", "2 times", "available", "--log-domain", "fewer workers"]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

/// A load says how long it took to make, where time is real.
#[test]
fn a_run_on_a_real_device_says_what_the_load_took() {
    let work = Work::new();
    let on = |device: &str| {
        let args = [
            "run",
            "--shape",
            "porep-32g",
            "--device",
            device,
            "--partitions",
            "2",
            "--log-domain",
            // Long enough that the odd moment in which no worker gets a processor is no share of it.
            "10",
            "--json",
        ];
        let args: Vec<&std::ffi::OsStr> = args.iter().map(AsRef::as_ref).collect();
        work.run(&args).json()
    };
    let load = &on("host")["load"];
    for key in ["circuit_ns", "key_ns", "opened_ns", "ready_ns"] {
        assert!(load[key].as_u64().is_some_and(|ns| ns > 0), "{key}: {load}");
    }
    assert!(on(CARD)["load"].is_null());
}

#[test]
fn what_cannot_be_run_is_said_before_the_work() {
    let work = Work::new();
    fs::write(work.path("file"), "old").unwrap();
    let shape = ["run", "--shape", "square-2^6", "--partitions", "1"];
    let with = |more: &[&str]| {
        let args: Vec<&std::ffi::OsStr> = shape.iter().chain(more).map(AsRef::as_ref).collect();
        work.run(&args)
    };
    for (args, says) in [
        (&["--out", "file"][..], "file: it is not a directory"),
        (&["--script", "nowhere/s.toml"], "nowhere/s.toml"),
        (&["--script", "."], "it is a directory"),
        (&["--device", "host", "--scale", "2"], "--scale"),
        (&["--device", "cuda:99"], "cuda:99"),
        (&["--device", "sim:none.toml"], "none.toml"),
        (&["--device", "host@1KiB", "--margin", "0"], "no plan fits"),
    ] {
        let ran = with(args);
        assert!(ran.refused().contains(says), "{args:?}: {ran:?}");
    }
    for (args, says) in [
        (&["--workers", "0"][..], "--workers"),
        (&["--partitions", "0"], "--partitions"),
        (&["--policy", "whole"], "no policy `whole`"),
        (&["--ahead", "maybe"], "--ahead"),
        (&["--device", "gpu"], "sim:PATH.toml"),
        (&["--margin", "lots"], "50permille"),
        (&["--margin", "2000permille"], "more than the whole device"),
        (&["--key", "k", "--witness", "w"], "--key"),
    ] {
        let ran = with(args);
        assert!(ran.misused().contains(says), "{args:?}: {ran:?}");
    }
    run!(work, "run").misused();
    run!(work, "run", "--key", "k").misused();
    run!(work, "plan").misused();
    run!(work, "plan", "--shape", "a", "--log-domain", "4").misused();
    assert_eq!(fs::read_to_string(work.path("file")).unwrap(), "old");
}

#[test]
fn the_script_of_a_run_replays_to_the_same_peak() {
    let work = Work::new();
    let replayed = |script: &str, device: &str| {
        let answer = run!(work, "replay", script, "--device", device, "--json").json();
        assert!(
            answer["refused"].is_null() && answer["failures"].as_array().unwrap().is_empty(),
            "{answer:#}"
        );
        (answer["peak_bytes"].as_u64().unwrap(), answer["left_bytes"].as_u64().unwrap())
    };
    for (ahead, policy) in [("on", "auto"), ("off", "auto"), ("on", "a-then-bc"), ("on", "none")] {
        let answer = run!(
            work,
            "run",
            "--shape",
            "porep-32g",
            "--device",
            CARD,
            "--partitions",
            "4",
            "--workers",
            "2",
            "--log-domain",
            "7",
            "--ahead",
            ahead,
            "--policy",
            policy,
            "--script",
            "s.toml",
            "--json"
        )
        .json();
        let (peak, _) = replayed("s.toml", CARD);
        assert_eq!(Some(peak), answer["peak_bytes"].as_u64(), "ahead {ahead}, {policy}");
    }
    // On the CPU, and of one proof.
    let file = |f: &str| fixture(&format!("sq10/{f}"));
    let answer = run!(
        work,
        "prove",
        "--key",
        file("circuit.zkey"),
        "--witness",
        file("witness.wtns"),
        "--proof",
        "p.json",
        "--script",
        "p.toml",
        "--json"
    )
    .json();
    assert_eq!(Some(replayed("p.toml", CARD).0), answer["peak_bytes"].as_u64());
    let answer = run!(work, "demo", "--log-size", "5", "--script", "d.toml", "--json").json();
    let peak = answer["card"]["after"]["peak_bytes"].as_u64();
    assert_eq!(Some(replayed("d.toml", "sim:cascade-16g").0), peak);
}
