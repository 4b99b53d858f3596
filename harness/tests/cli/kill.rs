//! Killed or interrupted at any moment: every file is the old one or the new one.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use prestage_groth16::format::{
    LoadOptions, load_proof, load_proving_key, load_public, load_r1cs, load_verifying_key,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::{Work, fixture, run};

/// Starts the command again and again and stops it a little later each time, until it has been stopped and has ended
/// by itself. After each, `whole` looks at the files.
fn stop_at_every_moment(work: &Work, args: &[&str], signal: Signal, whole: impl Fn(&Path)) {
    let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    let start = || work.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    assert!(start().wait().unwrap().success());
    let length = began.elapsed();
    whole(&work.path(""));
    let (mut stopped, mut ended) = (0, 0);
    let mut attempt = |after| {
        let mut child = start();
        std::thread::sleep(after);
        let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        let _ = kill_process(pid, signal);
        let count = if child.wait().unwrap().success() { &mut ended } else { &mut stopped };
        *count += 1;
        whole(&work.path(""));
        stopped > 0 && ended > 0
    };
    // Writing comes last: most of the moments are there.
    let mut both = (8..32).map(|i| attempt(length * i / 24)).last();
    // The first run may have been slower or faster than the rest.
    for (short, long) in (0..20).map(|i| (Duration::from_millis(1), length * (2 + i))) {
        if both != Some(true) {
            attempt(short);
            both = Some(attempt(long));
        }
    }
    assert_eq!(both, Some(true), "stopped {stopped} times, ended {ended} times");
    // What is left of an interrupted write is hidden beside the file, and in nobody's way.
    for entry in fs::read_dir(work.path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let known = ["cache", "k.params", "v.json", "p.json", "q.json"].contains(&name.as_str());
        assert!(known || (name.starts_with('.') && name.ends_with(".tmp")), "{name}");
    }
}

#[test]
fn f8_a_killed_prove_leaves_whole_files() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("allpublic/{f}")).into_os_string().into_string().unwrap();
    let (zkey, wtns) = (file("circuit.zkey"), file("witness.wtns"));
    let args = ["prove", "--key", &zkey, "--witness", &wtns, "--proof", "p.json", "--public", "q.json"];
    stop_at_every_moment(&work, &args, Signal::KILL, |folder| {
        load_proof(&folder.join("p.json")).unwrap();
        load_public(&folder.join("q.json"), 3).unwrap();
    });
    run!(work, "verify", "--vkey", file("vkey.json"), "--public", "q.json", "--proof", "p.json").done();
}

#[test]
fn f8_an_interrupted_setup_leaves_whole_files() {
    let work = Work::new();
    let circuit = fixture("boundary_full/circuit.r1cs");
    let r1cs = load_r1cs(&circuit).unwrap();
    let circuit = circuit.into_os_string().into_string().unwrap();
    let args = ["setup", "--r1cs", &circuit, "--key", "k.params", "--vkey", "v.json", "--insecure-seed", "1"];
    // Not INT: whoever runs the tests in the background may have told every child to ignore it.
    stop_at_every_moment(&work, &args, Signal::TERM, |folder| {
        // Points come from this program; whether the file is whole is the question.
        let options = LoadOptions { checks: prestage_groth16::format::PointChecks::Unchecked, cache: None };
        load_proving_key(&folder.join("k.params"), Some(&r1cs), &options).unwrap();
        load_verifying_key(&folder.join("v.json")).unwrap();
    });
}
