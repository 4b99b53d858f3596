//! Faults of other provers' command lines, kept from happening here. Each test carries the id of its row.

use std::fs;

use crate::command::{Ran, Work, fixture, run};

/// A machine without a card once gave a wrong proof instead of an error.
#[test]
fn b176_a_card_that_is_not_there_is_an_error_and_no_proof() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("multiplier/{f}"));
    let (zkey, wtns) = (file("circuit.zkey"), file("witness.wtns"));
    for device in ["cuda:0", "cuda:4294967295", "cuda:0@16GiB", "sim:cascade-16g"] {
        let args =
            ["prove".as_ref(), "--key".as_ref(), zkey.as_os_str(), "--witness".as_ref(), wtns.as_os_str()];
        let more = ["--proof", "p.json", "--device", device].map(std::ffi::OsStr::new);
        let args = [&args[..], &more].concat();
        // Hidden, should there be one.
        let output = work.command(&args).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
        let ran = Ran::new(device.into(), output);
        let line = ran.refused();
        assert!(line.contains(device) && line.contains("host") || line.contains("no such card"), "{line}");
        assert!(!work.path("p.json").exists());
        let ran = run!(work, "demo", "--device", device, "--log-size", "4");
        ran.refused();
        assert!(!work.path("prestage-demo").exists());
    }
}

/// A variable that was set to 0 once counted as set. There is one variable, and it names a folder or counts for nothing.
#[test]
fn f026_switches_in_the_environment() {
    let work = Work::new();
    let home = work.path("home");
    let file = |f: &str| fixture(&format!("multiplier/{f}"));
    let args =
        ["prove", "--key", "k.zkey", "--witness", "w.wtns", "--proof", "p.json"].map(std::ffi::OsStr::new);
    fs::copy(file("circuit.zkey"), work.path("k.zkey")).unwrap();
    fs::copy(file("witness.wtns"), work.path("w.wtns")).unwrap();
    for value in ["0", "1", "", "false", "junk", "./here", "/dev/null/junk"] {
        let mut command = work.command(&args);
        command.env("PRESTAGE_CACHE_DIR", value).env("HOME", &home).env_remove("XDG_CACHE_HOME");
        // Other provers' switches are not ours.
        command.env("BELLMAN_NO_GPU", value).env("PRESTAGE_NO_GPU", value).env("RUST_LOG", value);
        let ran = Ran::new(value.into(), command.output().unwrap());
        assert!(ran.done().starts_with("proved and verified on host"), "{ran:?}");
        let relative = !value.starts_with('/');
        assert_eq!(home.join(".cache/prestage/checked").exists(), relative, "{value}");
        // A folder that cannot be made is worth a remark and no more.
        assert_eq!(ran.stderr.contains("cannot remember in /dev/null/junk"), !relative, "{ran:?}");
        let _ = fs::remove_dir_all(&home);
    }
    for name in ["0", "1", "false", "junk", "here", "checked"] {
        assert!(!work.path(name).exists(), "{name}");
    }
}

/// Each kernel once probed for a card, failed and said so, on machines that had none and had said not to look.
#[test]
fn f027_without_a_driver_there_is_nothing_to_say() {
    let work = Work::new();
    let text = run!(work, "demo", "--log-size", "6");
    assert_eq!(text.stderr, "");
    let lines = run!(work, "doctor").done().lines().filter(|l| l.contains("driver")).count();
    assert!(lines <= 2, "a finding and how to get it");
}

/// A fault in the first step of a chain once showed as an error of the last, with a status of success between.
#[test]
fn f014_the_first_step_fails_and_says_so() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("bn128_rangecheck/{f}"));
    let ran = run!(
        work,
        "prove",
        "--key",
        file("circuit.zkey"),
        "--witness",
        file("witness.wtns"),
        "--proof",
        "p.json"
    );
    assert!(ran.refused().contains("bls12381"));
    let empty = fixture("bad/zkey_empty.zkey");
    let ran =
        run!(work, "prove", "--key", empty, "--witness", fixture("sq10/witness.wtns"), "--proof", "p.json");
    assert!(ran.refused().contains("zkey_empty.zkey"));
    let ran = run!(
        work,
        "verify",
        "--vkey",
        fixture("sq10/vkey.json"),
        "--public",
        fixture("sq10/public.json"),
        "--proof",
        "p.json"
    );
    assert!(ran.refused().contains("p.json"), "the missing proof is named");
}
