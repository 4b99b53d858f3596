//! Ctrl-C during `prestage run`: the workers end between two stages, what was proved is reported, the status is not 0.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use prestage_harness::timeline::Report;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::command::{Ran, Work, adds_up};

/// Whether the process has asked for SIGINT.
fn handles_interrupts(pid: u32) -> bool {
    let status = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/status"))).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).map(str::trim);
    caught.and_then(|hex| u64::from_str_radix(hex, 16).ok()).is_some_and(|set| set & (1 << 1) != 0)
}

/// Starts a run that takes minutes and interrupts it `after` its workers have begun.
fn interrupted(work: &Work, device: &str, after: Duration) -> Ran {
    let args = [
        "run",
        "--shape",
        "square-2^7",
        "--device",
        device,
        "--partitions",
        "100000",
        "--workers",
        "2",
        "--log-domain",
        "7",
        "--out",
        "r",
        "--json",
    ];
    let args: Vec<&std::ffi::OsStr> = args.iter().map(AsRef::as_ref).collect();
    let child = work.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !handles_interrupts(child.id()) {
        assert!(began.elapsed() < Duration::from_secs(60), "no handler");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(after);
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    Ran::new(format!("run on {device}, interrupted"), child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_run_drains_and_reports_what_was_proved() {
    for device in ["host", "sim:rtx-5070-ti-16g"] {
        let work = Work::new();
        let mut after = Duration::from_millis(500);
        // A machine with much else to do may not have finished a proof by then.
        let (ran, answer) = loop {
            let ran = interrupted(&work, device, after);
            let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
            if answer["proofs"].as_u64().is_some_and(|n| n > 0) || after > Duration::from_secs(60) {
                break (ran, answer);
            }
            assert!(ran.line_and_status(1).contains("stopped before the first proof"), "{ran:?}");
            after *= 2;
        };
        let line = ran.line_and_status(1);
        assert!(line.starts_with("stopped: ") && line.ends_with(" of 100000 partitions proved"), "{line}");
        let (proofs, stopped) = (answer["proofs"].as_u64().unwrap(), answer["stopped"].as_u64().unwrap());
        assert!((1..100_000).contains(&proofs));
        assert_eq!(proofs + stopped, 100_000, "{answer:#}");
        assert_eq!((&answer["verified"], &answer["error"]), (&true.into(), &line.into()));
        assert_eq!(answer["failed"].as_array().unwrap().len(), 0);
        adds_up(&answer);
        let report = Report::from_json(&fs::read_to_string(work.path("r/run.json")).unwrap()).unwrap();
        assert_eq!(report.verified.proofs(), proofs);
        // Nothing was left on the device.
        let last = report.memory.last().unwrap();
        assert_eq!((last.direct, last.pooled), (0, 0));
    }
}
