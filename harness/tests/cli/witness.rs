//! Witnesses that do not satisfy the circuit.

use std::path::PathBuf;

use blstrs::Scalar;
use ff::Field;
use prestage_groth16::Witness;
use prestage_groth16::format::{load_r1cs, load_witness, save_witness};

use crate::command::{Work, fixture, run};

/// A witness of boundary_full with one wire changed, and the first constraint that it breaks.
fn broken(work: &Work, wire: usize) -> (PathBuf, usize) {
    let good = load_witness(&fixture("boundary_full/witness.wtns")).unwrap();
    let r1cs = load_r1cs(&fixture("boundary_full/circuit.r1cs")).unwrap();
    let mut values = good.values().to_vec();
    values[wire] += Scalar::ONE;
    let witness = Witness::new(values).unwrap();
    let row = r1cs.first_unsatisfied(&witness).unwrap().unwrap();
    let path = work.path(&format!("broken{wire}.wtns"));
    save_witness(&path, &witness).unwrap();
    (path, row)
}

#[test]
fn f5_with_the_circuit_the_first_failing_constraint_is_named() {
    let work = Work::new();
    let (zkey, r1cs) = (fixture("boundary_full/circuit.zkey"), fixture("boundary_full/circuit.r1cs"));
    let mut rows = Vec::new();
    for wire in [20, 120, 250] {
        let (wtns, row) = broken(&work, wire);
        let ran = run!(
            work,
            "prove",
            "--key",
            zkey,
            "--r1cs",
            r1cs,
            "--witness",
            wtns,
            "--proof",
            "p.json",
            "--public",
            "q.json",
            "--timeline",
            "t",
        );
        assert!(ran.refused().contains(&format!("does not satisfy constraint {row} of 251")), "{ran:?}");
        rows.push(row);
    }
    rows.dedup();
    assert!(rows.len() > 1, "the number is not always the same: {rows:?}");
    for name in ["p.json", "q.json", "t"] {
        assert!(!work.path(name).exists(), "{name}");
    }
}

#[test]
fn f5_without_the_circuit_the_proof_is_refused_with_advice() {
    let work = Work::new();
    let zkey = fixture("boundary_full/circuit.zkey");
    let (wtns, _) = broken(&work, 100);
    let ran = run!(
        work,
        "prove",
        "--key",
        zkey,
        "--witness",
        wtns,
        "--proof",
        "p.json",
        "--public",
        "q.json",
        "--timeline",
        "t",
        "--json",
    );
    let line = ran.line_and_status(1);
    assert!(
        line.contains("does not verify") && line.contains("--r1cs") && line.contains("broken100.wtns"),
        "{line}"
    );
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer, serde_json::json!({ "verified": false, "error": line }));
    for name in ["p.json", "q.json", "t"] {
        assert!(!work.path(name).exists(), "{name}");
    }
}

#[test]
fn f5_unchecked_the_proof_is_refused_all_the_same() {
    let work = Work::new();
    let (zkey, r1cs) = (fixture("boundary_full/circuit.zkey"), fixture("boundary_full/circuit.r1cs"));
    let (wtns, _) = broken(&work, 100);
    let ran = run!(
        work,
        "prove",
        "--key",
        zkey,
        "--r1cs",
        r1cs,
        "--no-check",
        "--witness",
        wtns,
        "--proof",
        "p.json"
    );
    assert!(ran.refused().contains("does not verify"), "{ran:?}");
    assert!(!work.path("p.json").exists());
}

#[test]
fn f5_a_damaged_key_is_not_blamed_on_the_witness() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("boundary_full/{f}"));
    let ran = run!(
        work,
        "prove",
        "--key",
        fixture("bad/zkey_h_swapped.zkey"),
        "--r1cs",
        file("circuit.r1cs"),
        "--witness",
        file("witness.wtns"),
        "--proof",
        "p.json",
    );
    let line = ran.refused();
    assert!(
        line.contains("zkey_h_swapped.zkey") && line.contains("although the witness satisfies"),
        "{line}"
    );
}
