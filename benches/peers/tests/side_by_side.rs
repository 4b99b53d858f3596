//! The command, at its smallest.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::process::{Command, Output};

use prestage_peers::Kind;
use serde_json::Value;

fn side_by_side(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_side_by_side")).args(args).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn every_prover_proves_in_turn_and_alone_under_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("peers.json");
    let args = ["--log-sizes", "6", "--rounds", "2", "--threads", "1", "--json", json.to_str().unwrap()];
    let output = side_by_side(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(report["threads"], 1);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(
        runs.iter().map(|run| run["circuit"].as_str().unwrap()).collect::<Vec<_>>(),
        ["squares", "bits"]
    );
    for run in runs {
        assert_eq!(run["verified"], true);
        let provers = run["provers"].as_array().unwrap();
        let names: Vec<&str> = provers.iter().map(|row| row["prover"].as_str().unwrap()).collect();
        assert_eq!(names, Kind::ALL.map(Kind::name));
        for row in provers {
            let alone =
                |field: &str| row["alone"][field].as_u64().unwrap_or_else(|| panic!("{field}: {row}"));
            assert!(alone("ready_kib") > 0 && alone("peak_kib") >= alone("ready_kib"), "{row}");
            // Only one prover keeps its key in the file.
            assert_eq!(alone("key_kib") > 0, row["prover"] == Kind::BellpersonMapped.name(), "{row}");
            assert!(row["memory_ratio"].as_f64().unwrap() >= 1.0, "{row}");
            assert_eq!(row["samples"].as_array().unwrap().len(), 2);
            assert!(row["alone"]["proof"]["cpu_s"].as_f64().unwrap() > 0.0, "{row}");
        }
        let leanest = provers.iter().filter(|row| row["memory_ratio"] == 1.0).count();
        assert!(leanest >= 2, "one under each key: {run}");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("× leanest").count(), 2, "{text}");
}

#[test]
fn more_threads_than_processors_and_unknown_provers_are_refused() {
    for (args, said) in [(["--threads", "1000000"], "may use"), (["--provers", "nobody"], "it is one of")] {
        let output = side_by_side(&args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(said), "{error}");
    }
}
