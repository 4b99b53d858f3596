//! `prestage kernels`: the cache of compiled kernels, with or without NVRTC on the machine.
#![cfg(feature = "cuda")]

use std::fs;

use crate::command::{Ran, Work, keys, run};

/// The cache's folder, made, with a file in it that is none of ours.
fn folder(work: &Work) -> std::path::PathBuf {
    let folder = work.path("cache").join("kernels");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    folder
}

/// A file that has an entry's name and not its content.
const BROKEN: &str = "ntt-sm_90-000000000000000000000000-cuda13.0.bin";

#[test]
fn an_empty_cache_is_listed_and_its_folder_is_not_made() {
    let work = Work::new();
    let text = run!(work, "kernels", "list").done().to_owned();
    assert!(text.starts_with("0 modules in ") && text.contains("cache/kernels"), "{text}");
    let answer = run!(work, "kernels", "list", "--json").json();
    assert_eq!(keys(&answer), ["folder", "modules"]);
    assert_eq!(answer["modules"].as_array().unwrap().len(), 0);
    assert_eq!(run!(work, "kernels", "clear", "--json").json()["removed"], 0);
    assert!(!work.path("cache").join("kernels").exists());
}

#[test]
fn f8_what_is_not_ours_is_neither_listed_nor_removed() {
    let work = Work::new();
    let folder = folder(&work);
    fs::write(folder.join(BROKEN), "not a module").unwrap();
    let answer = run!(work, "kernels", "list", "--json").json();
    let [entry] = answer["modules"].as_array().unwrap().as_slice() else { panic!("{answer:#}") };
    assert_eq!(keys(entry), ["bytes", "compiler", "family", "path", "state", "target"]);
    for (key, value) in [("family", "ntt"), ("target", "sm_90"), ("compiler", "13.0"), ("state", "corrupt")] {
        assert_eq!(entry[key], value, "{entry:#}");
    }
    assert_eq!(entry["bytes"], 12);
    let text = run!(work, "kernels", "list").done().to_owned();
    assert!(text.contains("corrupt") && text.contains("0 of them current"), "{text}");

    let removed = |ran: Ran| ran.json()["removed"].as_u64().unwrap();
    assert_eq!(removed(run!(work, "kernels", "clear", "--arch", "sm_80,sm_75", "--json")), 0);
    assert_eq!(removed(run!(work, "kernels", "clear", "--arch", "sm_80,9.0", "--json")), 1);
    assert!(!folder.join(BROKEN).exists());
    fs::write(folder.join(BROKEN), "").unwrap();
    assert!(run!(work, "kernels", "clear").done().starts_with("1 files removed from "));
    assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
}

#[test]
fn an_unknown_architecture_is_wrong_usage() {
    let work = Work::new();
    for verb in ["build", "clear"] {
        for bad in ["sm_42", "", "sm_90,", "sm_90,all", "hopper"] {
            let ran = run!(work, "kernels", verb, "--arch", bad);
            let line = ran.misused();
            assert!(line.contains("--arch") && line.contains("sm_75"), "{bad}: {line}");
        }
    }
    assert!(run!(work, "kernels", "burn").misused().contains("burn"));
}

#[test]
fn kernels_are_compiled_or_one_line_says_how_to_get_the_compiler() {
    let work = Work::new();
    let ran = run!(work, "kernels", "build", "--arch", "sm_90", "--json");
    if ran.status == Some(0) {
        let answer = ran.json();
        assert_eq!(keys(&answer), ["compiled", "folder", "modules"]);
        let count = answer["modules"].as_array().unwrap().len();
        assert!(count > 0 && answer["compiled"] == count, "{answer:#}");
        let listed = run!(work, "kernels", "list", "--json").json();
        let states = listed["modules"].as_array().unwrap().iter().map(|m| m["state"].clone());
        assert!(states.clone().all(|state| state == "current") && states.count() == count, "{listed:#}");
        let again = run!(work, "kernels", "build", "--arch", "sm_90", "--json").json();
        assert_eq!(again["compiled"], 0, "what is there is not compiled again");
        let doctor = run!(work, "doctor").done().to_owned();
        assert!(doctor.contains(&format!("{count} (of {count} for sm_90)")), "{doctor}");
    } else {
        let line = ran.line_and_status(1);
        assert!(line.contains("no NVRTC") && line.contains("pip install"), "{line}");
        assert!(run!(work, "kernels", "build").refused().contains("pip install"));
        assert!(!work.path("cache").join("kernels").exists());
    }
}
