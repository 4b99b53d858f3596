//! Where output cannot go, where input cannot come from, and what is in the files of a timeline.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prestage_harness::timeline::Report;

use crate::command::{Ran, Work, fixture, run};

fn prove(work: &Work, more: &[&OsStr]) -> Ran {
    let (zkey, wtns) = (fixture("multiplier/circuit.zkey"), fixture("multiplier/witness.wtns"));
    let mut args: Vec<&OsStr> = vec!["prove".as_ref(), "--key".as_ref(), zkey.as_ref()];
    args.extend(["--witness".as_ref(), wtns.as_os_str()]);
    args.extend(more);
    work.run(&args)
}

macro_rules! prove {
    ($work:expr, $($arg:expr),+ $(,)?) => { prove($work, &[$(AsRef::<OsStr>::as_ref(&$arg)),+]) };
}

/// Nothing but these entries.
#[track_caller]
fn holds(folder: &Path, expected: &[&str]) {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|n| n != "cache");
    names.sort();
    assert_eq!(names, expected);
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let work = Work::new();
    fs::create_dir(work.path("folder")).unwrap();
    fs::write(work.path("file"), "old").unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["--proof", "nowhere/p.json"], "nowhere/p.json"),
        (&["--proof", "folder"], "folder: it is a directory"),
        (&["--proof", "file/p.json"], "file/p.json"),
        (&["--proof", "p.json", "--public", "nowhere/q.json"], "nowhere/q.json"),
        (&["--proof", "p.json", "--public", "./p.json"], "--public and --proof are the same file"),
        (&["--proof", "p.json", "--timeline", "file"], "file: it is not a directory"),
        (&["--proof", "p.json", "--timeline", "/proc/none/t"], "/proc/none/t"),
    ];
    for (args, says) in cases {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let ran = prove(&work, &args);
        let line = ran.refused();
        assert!(line.contains(says) && !line.contains(".tmp"), "{args:?}: {line}");
        holds(&work.path(""), &["file", "folder"]);
    }
    assert_eq!(fs::read_to_string(work.path("file")).unwrap(), "old");
    let r1cs = fixture("multiplier/circuit.r1cs");
    let ran = run!(work, "setup", "--r1cs", r1cs, "--key", "k.params", "--vkey", "folder");
    assert!(ran.refused().contains("folder"));
    let ran = run!(work, "demo", "--log-size", "4", "--out", "file");
    assert!(ran.refused().contains("file: it is not a directory"));
    holds(&work.path(""), &["file", "folder"]);
}

#[test]
fn an_output_never_replaces_an_input_of_the_same_command() {
    let work = Work::new();
    let key = work.path("k.zkey");
    fs::copy(fixture("multiplier/circuit.zkey"), &key).unwrap();
    let wtns = fixture("multiplier/witness.wtns");
    let before = fs::read(&key).unwrap();
    std::os::unix::fs::symlink("k.zkey", work.path("link.json")).unwrap();
    for proof in ["k.zkey", "./k.zkey", "link.json"] {
        let ran = run!(work, "prove", "--key", key, "--witness", wtns, "--proof", proof);
        assert!(ran.refused().contains("--proof and --key are the same file"), "{ran:?}");
    }
    assert_eq!(fs::read(&key).unwrap(), before);
}

#[test]
fn an_older_file_is_replaced_and_stays_when_the_proof_fails() {
    let work = Work::new();
    fs::write(work.path("p.json"), "old").unwrap();
    let ran = run!(
        work,
        "prove",
        "--key",
        fixture("bad/zkey_h_swapped.zkey"),
        "--witness",
        fixture("boundary_full/witness.wtns"),
        "--proof",
        "p.json",
    );
    ran.refused();
    assert_eq!(fs::read_to_string(work.path("p.json")).unwrap(), "old");
    prove!(&work, "--proof", "p.json").done();
    let public = fixture("multiplier/public.json");
    run!(work, "verify", "--vkey", fixture("multiplier/vkey.json"), "--public", public, "--proof", "p.json")
        .done();
    holds(&work.path(""), &["p.json"]);
}

#[test]
fn f6_inputs_that_are_no_files_are_one_line() {
    let work = Work::new();
    fs::write(work.path("empty"), "").unwrap();
    fs::create_dir(work.path("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(work.path("pipe")).status().unwrap().success());
    let file = |f: &str| fixture(&format!("multiplier/{f}"));
    let good = [
        file("circuit.zkey"),
        file("witness.wtns"),
        file("circuit.r1cs"),
        file("vkey.json"),
        file("public.json"),
        file("proof.json"),
    ];
    let [zkey, wtns, r1cs, vkey, public, proof] = good.each_ref().map(|p| p.as_os_str());
    let o = OsStr::new;
    for bad in ["empty", "folder", "pipe", "missing", "/dev/null"] {
        let b = o(bad);
        let lines: [&[&OsStr]; 7] = [
            &[o("prove"), o("--key"), b, o("--witness"), wtns, o("--proof"), o("out")],
            &[o("prove"), o("--key"), zkey, o("--witness"), b, o("--proof"), o("out")],
            &[o("prove"), o("--key"), zkey, o("--witness"), wtns, o("--proof"), o("out"), o("--r1cs"), b],
            &[o("setup"), o("--r1cs"), b, o("--key"), o("out"), o("--vkey"), o("out2")],
            &[o("verify"), o("--vkey"), b, o("--public"), public, o("--proof"), proof],
            &[o("verify"), o("--vkey"), vkey, o("--public"), b, o("--proof"), proof],
            &[o("verify"), o("--vkey"), vkey, o("--public"), public, o("--proof"), b],
        ];
        for args in lines {
            let ran = work.run(args);
            assert!(ran.refused().contains(bad), "{ran:?}");
        }
        // Neither does a circuit where a key is expected, nor the other way round.
        run!(work, "prove", "--key", r1cs, "--witness", wtns, "--proof", "out").refused();
    }
    holds(&work.path(""), &["empty", "folder", "pipe"]);
}

#[test]
fn names_that_are_not_utf_8_are_names() {
    let work = Work::new();
    let name = |end: &str| OsString::from_vec([b"\xff\xfe ", end.as_bytes()].concat());
    let (key, wtns) = (name("k.zkey"), name("w.wtns"));
    fs::copy(fixture("multiplier/circuit.zkey"), Path::new(&work.path("")).join(&key)).unwrap();
    fs::copy(fixture("multiplier/witness.wtns"), Path::new(&work.path("")).join(&wtns)).unwrap();
    let (proof, public, out) = (name("p.json"), name("q.json"), name("t"));
    let ran = run!(
        work,
        "prove",
        "--key",
        key,
        "--witness",
        wtns,
        "--proof",
        proof,
        "--public",
        public,
        "--timeline",
        out,
        "--json",
    );
    assert_eq!(ran.json()["verified"], true);
    run!(work, "verify", "--vkey", key, "--public", public, "--proof", proof).done();
    assert!(
        run!(work, "verify", "--vkey", name("x"), "--public", public, "--proof", proof)
            .refused()
            .contains(" x")
    );
    // Where text is wanted, such bytes are wrong usage.
    run!(work, "doctor", OsStr::new(&name(""))).misused();
    assert_eq!(run!(work, "prove", "--key", "new\nline", "--witness", "w", "--proof", "p").status, Some(1));
}

#[test]
fn t2_a_timeline_is_six_files_whose_report_adds_up() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("sq10/{f}"));
    let ran = run!(
        work,
        "prove",
        "--key",
        file("circuit.zkey"),
        "--witness",
        file("witness.wtns"),
        "--proof",
        "p.json",
        "--timeline",
        "a/b",
    );
    assert!(ran.done().contains("timeline: a/b/prove.html"), "{ran:?}");
    let folder = work.path("a/b");
    let ends = ["csv", "html", "json", "png", "svg", "trace.json"];
    holds(&folder, &ends.map(|e| format!("prove.{e}")).each_ref().map(String::as_str));
    let text = |end: &str| fs::read_to_string(folder.join(format!("prove.{end}"))).unwrap();
    let report = Report::from_json(&text("json")).unwrap();
    let times = &report.times;
    assert_eq!(times.busy() + times.idle().total(), times.wall());
    assert!(times.busy().get() > 0 && times.held() <= times.wall());
    assert_eq!(report.verified.proofs(), 1);
    assert_eq!((report.key.device.as_str(), report.key.load.constraints), ("host", 1022));
    assert!(!report.phases.is_empty());
    for phase in &report.phases {
        assert!(phase.measured_bytes <= phase.predicted_bytes, "{phase:?}");
    }
    roxmltree::Document::parse(&text("svg")).unwrap();
    assert!(text("html").contains("</html>") && text("csv").starts_with("kind,"));
    let trace: serde_json::Value = serde_json::from_str(&text("trace.json")).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 20);
    assert!(fs::read(folder.join("prove.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_full_disk_is() {
    let work = Work::new();
    // `prestage demo | head -1`
    let args = ["demo", "--log-size", "5"].map(OsStr::new);
    let mut child = work.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ran = Ran::new("demo | head".into(), child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(work.path("prestage-demo/index.html").exists());
    // Nobody ever sees this answer, so it does not count as given.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = work.command(&["doctor".as_ref(), "--json".as_ref()]).stdout(full).output().unwrap();
    let ran = Ran::new("doctor > /dev/full".into(), output);
    assert!(ran.refused().starts_with("stdout: "), "{ran:?}");
}

#[test]
fn a_proof_can_go_into_a_pipe() {
    let work = Work::new();
    let pipe = work.path("p.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    prove!(&work, "--proof", "p.json", "--public", "/dev/null").done();
    let proof: serde_json::Value = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    assert_eq!(proof["protocol"], "groth16");
    holds(&work.path(""), &["p.json"]);
    assert!(!fs::metadata(pipe).unwrap().is_file());
}

#[test]
fn nothing_waits_for_input() {
    let start = Instant::now();
    let ran = run!(Work::new(), "verify", "--vkey", "/dev/stdin", "--public", "q", "--proof", "p");
    ran.refused();
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_timeline_overwrites_neither_inputs_nor_other_outputs() {
    let work = Work::new();
    fs::create_dir(work.path("t")).unwrap();
    fs::copy(fixture("multiplier/witness.wtns"), work.path("t/prove.csv")).unwrap();
    let before = fs::read(work.path("t/prove.csv")).unwrap();
    let (zkey, wtns) = (fixture("multiplier/circuit.zkey"), work.path("t/prove.csv"));
    let ran = run!(work, "prove", "--key", zkey, "--witness", wtns, "--proof", "p.json", "--timeline", "t");
    assert!(ran.refused().contains("--timeline and --witness are the same file"));
    for (option, file) in [("--proof", "t/prove.json"), ("--public", "t/prove.svg")] {
        let ran = match option {
            "--proof" => prove!(&work, "--proof", file, "--timeline", "t"),
            _ => prove!(&work, "--proof", "p.json", option, file, "--timeline", "t"),
        };
        assert!(ran.refused().contains("are the same file"), "{option}");
    }
    assert_eq!(fs::read(work.path("t/prove.csv")).unwrap(), before);
    holds(&work.path("t"), &["prove.csv"]);
}

#[test]
fn a_stream_that_leads_to_a_file_is_not_replaced() {
    let work = Work::new();
    fs::write(work.path("log"), "hello\n").unwrap();
    let log = fs::OpenOptions::new().append(true).open(work.path("log")).unwrap();
    let (zkey, wtns) = (fixture("multiplier/circuit.zkey"), fixture("multiplier/witness.wtns"));
    let args = [OsStr::new("prove"), "--key".as_ref(), zkey.as_ref(), "--witness".as_ref(), wtns.as_ref()];
    let args = [&args[..], &["--proof".as_ref(), "/dev/stdout".as_ref()]].concat();
    let status = work.command(&args).stdout(log).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(fs::read_to_string(work.path("log")).unwrap(), "hello\n");
}

#[test]
fn a_report_counts_constraints_and_not_rows_of_the_domain() {
    let work = Work::new();
    for (name, constraints) in [("multiplier", 1), ("linear", 4), ("boundary_over", 252), ("manypublic", 20)]
    {
        let (zkey, wtns) =
            (fixture(&format!("{name}/circuit.zkey")), fixture(&format!("{name}/witness.wtns")));
        let ran =
            run!(work, "prove", "--key", zkey, "--witness", wtns, "--proof", "p.json", "--timeline", name);
        ran.done();
        let report = fs::read_to_string(work.path(&format!("{name}/prove.json"))).unwrap();
        assert_eq!(Report::from_json(&report).unwrap().key.load.constraints, constraints, "{name}");
    }
}

#[test]
fn setup_names_the_wire_that_no_constraint_names() {
    let work = Work::new();
    let r1cs = fixture("linear/circuit.r1cs");
    let ran = run!(work, "setup", "--r1cs", r1cs, "--key", "k.params", "--vkey", "v.json");
    assert!(ran.refused().contains("no constraint names its private wire"), "{}", ran.refused());
    holds(&work.path(""), &[]);
}
