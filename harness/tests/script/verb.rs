//! `prestage replay` from outside.

use std::process::{Command, Output};

use serde_json::Value;

fn prestage(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prestage")).args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let out = prestage(&[&["replay", "--json"], args].concat());
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn c4_as_json_by_name_and_by_path() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/c4-the-pool-keeps.toml");
    for script in ["c4", "c4-the-pool-keeps", path] {
        let answer = json(&[script, "--device", "sim:cascade-16g"]);
        let refused = &answer["refused"];
        assert_eq!(refused["worker"], 0);
        assert_eq!(refused["proof"], 1);
        assert_eq!(refused["label"], "bc");
        assert_eq!(refused["need_bytes"], 8_u64 << 30);
        assert_eq!(refused["free_bytes"], (14_848_u64 - 4096 - 4659) << 20);
        assert_eq!(answer["peak_bytes"], 12_u64 << 30);
        let outcomes: Vec<_> = answer["proofs"].as_array().unwrap().iter().map(|p| &p["outcome"]).collect();
        assert_eq!(outcomes, ["passed", "refused", "not reached"]);
        let little = json(&[script, "--set", "msm_scratch=0.36GiB"]);
        assert!(little["refused"].is_null(), "{little}");
    }
}

#[test]
fn people_are_told_and_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let result = prestage(&["replay", "c6", "--set", "workers=2", "--out", out.to_str().unwrap()]);
    assert_eq!(result.status.code(), Some(0));
    let text = String::from_utf8(result.stdout).unwrap();
    assert!(
        text.starts_with(
            "c6-sticky on sim:cascade-16g: bc of 8.00 GiB was refused to worker 1 for proof 1: 5.95 GiB were free, \
             the pool kept 4.55 GiB; 1 of 3 proofs passed; the card is poisoned, 57 later steps failed\n"
        ),
        "{text}"
    );
    assert!(text.contains("proof 0: passed\n"), "{text}");
    let picture = std::fs::read_to_string(out.join("c6-sticky.svg")).unwrap();
    let doc = roxmltree::Document::parse(&picture).unwrap();
    let shown: Vec<_> = doc.descendants().filter_map(|n| n.text()).collect();
    for words in ["no proofs were made", "a request was refused", "in the pool: freed", "peak 12.00 GiB"] {
        assert!(shown.iter().any(|t| t.contains(words)), "{words}");
    }
    assert!(!picture.contains("proofs per minute"));
    let events = std::fs::read_to_string(out.join("c6-sticky.csv")).unwrap();
    assert!(events.lines().any(|l| l.starts_with("refusal,")), "{events}");
    // What was replayed can be replayed.
    let again = json(&[out.join("c6-sticky.toml").to_str().unwrap()]);
    assert_eq!((&again["refused"]["worker"], &again["poisoned"]), (&1.into(), &true.into()));
}

#[test]
fn a_card_from_a_file_and_a_cap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let (_, preset) = prestage_vram::sim::PRESETS.iter().find(|(name, _)| *name == "cascade-16g").unwrap();
    std::fs::write(&path, preset.replace("16384MiB", "24GiB")).unwrap();
    let device = format!("sim:{}", path.display());
    assert!(json(&["c4", "--device", &device])["refused"].is_null());
    let capped = json(&["c4", "--device", &format!("{device}@16GiB")]);
    assert_eq!(capped["refused"]["label"], "bc");
}

#[test]
fn what_cannot_be_replayed_is_one_line() {
    for (args, status, words) in [
        (&["c9"][..], 1, "no script is called `c9`"),
        (&["missing.toml"], 1, "missing.toml: "),
        (&["c4", "--device", "host"], 1, "simulated card"),
        (&["c4", "--device", "sim:gtx-480"], 1, "rtx-5070-ti-16g"),
        (&["c4", "--device", "sim:none.toml"], 1, "none.toml: "),
        (&["c4", "--set", "scratch=1"], 1, "msm_scratch"),
        (&["c4", "--set", "msm_scratch=lots"], 1, "`lots` is no amount"),
        (&["c4", "--set", "msm_scratch"], 2, "name=value"),
        (&[], 2, "SCRIPT"),
    ] {
        let out = prestage(&[&["replay"], args].concat());
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{args:?}: {text}");
        assert!(text.starts_with("prestage: ") && text.contains(words), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_schedule_that_cannot_go_on_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stuck.toml");
    let worker = |own: &str, other: &str| {
        format!("[[worker]]\nsteps = [{{ do = \"host\", ns = 1, id = \"{own}\", after = \"{other}\" }}]\n")
    };
    std::fs::write(&path, format!("name = \"stuck\"\n{}{}", worker("a", "1.b"), worker("b", "0.a"))).unwrap();
    let result = prestage(&["replay", path.to_str().unwrap()]);
    let text = String::from_utf8(result.stderr).unwrap();
    assert_eq!(result.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot go on") && text.contains("step 0 of worker 0"), "{text}");
}

#[test]
fn a_replay_keeps_the_script_that_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c4-the-pool-keeps.toml");
    let text = include_str!("../../scripts/c4-the-pool-keeps.toml");
    std::fs::write(&path, text).unwrap();
    let result = prestage(&["replay", path.to_str().unwrap(), "--out", folder.path().to_str().unwrap()]);
    assert_eq!(result.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&result.stderr).contains("the same file"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}
