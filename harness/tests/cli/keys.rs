//! Keys of all kinds: made here, by bellperson, by arkworks, and in a ceremony.

use std::fs;
use std::path::Path;

use crate::command::{Work, fixture, keys, run};

const R1CS: &str = "bellman_sq10/sq10.r1cs";
const WTNS: &str = "bellman_sq10/sq10.wtns";

/// Proves sq10 under a key with its circuit, and verifies it under `vkey`.
fn proves(work: &Work, key: &Path, vkey: &Path) {
    let (r1cs, wtns) = (fixture(R1CS), fixture(WTNS));
    run!(work, "prove", "--key", key, "--r1cs", r1cs, "--witness", wtns, "--proof", "p.bin").done();
    run!(work, "verify", "--vkey", vkey, "--public", wtns, "--proof", "p.bin").done();
}

/// Without its circuit such a key proves nothing, and the line says what to add.
fn needs_the_circuit(work: &Work, key: &Path) {
    let ran = run!(work, "prove", "--key", key, "--witness", fixture(WTNS), "--proof", "none.json");
    assert!(ran.refused().contains("--r1cs"), "{ran:?}");
    assert!(!work.path("none.json").exists());
}

#[test]
fn a_key_from_setup_proves_and_both_its_files_verify() {
    let work = Work::new();
    let ran = run!(work, "setup", "--r1cs", fixture(R1CS), "--key", "k.params", "--vkey", "v.json");
    assert!(ran.done().contains("1022 constraints, 1 public inputs, domain 1024"), "{ran:?}");
    assert!(ran.stderr.contains("trapdoor") && !ran.stderr.contains("seed"), "{ran:?}");
    let (key, vkey) = (work.path("k.params"), work.path("v.json"));
    proves(&work, &key, &vkey);
    proves(&work, &key, &key);
    needs_the_circuit(&work, &key);
    // Another setup has another trapdoor.
    run!(work, "setup", "--r1cs", fixture(R1CS), "--key", "k2.params", "--vkey", "v2.json").done();
    assert_ne!(fs::read(vkey).unwrap(), fs::read(work.path("v2.json")).unwrap());
    let ran =
        run!(work, "verify", "--vkey", "v2.json", "--public", fixture(WTNS), "--proof", "p.bin", "--json");
    let line = ran.line_and_status(1).to_owned();
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer, serde_json::json!({ "valid": false, "error": line }));
}

#[test]
fn a_seeded_setup_is_repeatable_and_says_that_it_is_unsafe() {
    let work = Work::new();
    let setup = |key: &str, seed: &str| {
        let r1cs = fixture("multiplier/circuit.r1cs");
        let ran = run!(
            work,
            "setup",
            "--r1cs",
            r1cs,
            "--key",
            key,
            "--vkey",
            "v.json",
            "--insecure-seed",
            seed,
            "--json"
        );
        let answer = ran.json();
        assert_eq!(keys(&answer), ["constraints", "domain", "insecure", "key", "public_inputs", "vkey"]);
        assert_eq!(answer["insecure"], true);
        assert!(ran.stderr.contains("knows the seed") && ran.stderr.lines().count() == 1, "{ran:?}");
        fs::read(work.path(key)).unwrap()
    };
    let first = setup("a.params", "abc");
    assert_eq!(first, setup("b.params", "0x0ABC"));
    assert_ne!(first, setup("c.params", "abd"));
}

#[test]
fn bellman_parameters_need_the_circuit_and_prove_with_it() {
    let work = Work::new();
    let key = fixture("bellman_sq10/sq10.params");
    proves(&work, &key, &key);
    needs_the_circuit(&work, &key);
    let theirs = fixture("bellman_sq10/proof192.bin");
    run!(work, "verify", "--vkey", key, "--public", fixture(WTNS), "--proof", theirs).done();
    let other = fixture("boundary_full/circuit.r1cs");
    let ran = run!(
        work,
        "prove",
        "--key",
        key,
        "--r1cs",
        other,
        "--witness",
        fixture(WTNS),
        "--proof",
        "none.json"
    );
    assert!(ran.refused().contains("sq10.params"), "{ran:?}");
}

#[test]
fn arkworks_keys_are_known_by_suffix_or_by_content() {
    let work = Work::new();
    let (pk, vk) = (fixture("ark_sq10/pk_uncompressed.bin"), fixture("ark_sq10/vk_compressed.bin"));
    proves(&work, &pk, &vk);
    let (named, named_vk) = (work.path("k.ark"), work.path("v.ark"));
    fs::copy(&pk, &named).unwrap();
    fs::copy(&vk, &named_vk).unwrap();
    proves(&work, &named, &named_vk);
    needs_the_circuit(&work, &named);
    let theirs = fixture("ark_sq10/proof_compressed.bin");
    run!(work, "verify", "--vkey", named_vk, "--public", fixture(WTNS), "--proof", theirs).done();
}

#[test]
fn the_sapling_output_statement_is_proved_under_its_ceremony_key() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("sapling/{f}"));
    let (key, wtns) = (file("sapling-output.params"), file("output.wtns"));
    run!(work, "verify", "--vkey", key, "--public", wtns, "--proof", file("output_proof192.bin")).done();
    let ran = run!(
        work,
        "prove",
        "--key",
        key,
        "--r1cs",
        file("output.r1cs"),
        "--witness",
        wtns,
        "--proof",
        "p.bin",
        "--json",
    );
    assert_eq!(ran.json()["domain"], 8192);
    run!(work, "verify", "--vkey", key, "--public", wtns, "--proof", "p.bin").done();
}

#[test]
fn f7_the_check_of_points_can_be_left_out_but_not_the_check_of_the_proof() {
    let work = Work::new();
    let good = |f: &str| fixture(&format!("boundary_full/{f}"));
    let prove = |key: &Path| {
        let wtns = good("witness.wtns");
        run!(work, "prove", "--key", key, "--witness", wtns, "--proof", "p.json", "--no-key-check")
    };
    prove(&good("circuit.zkey")).done();
    fs::remove_file(work.path("p.json")).unwrap();
    prove(&fixture("bad/zkey_b2_wrong_subgroup.zkey")).refused();
    assert!(!work.path("p.json").exists());
    assert!(!work.path("cache").exists(), "what was not checked is not remembered");
}

#[test]
fn f7_the_check_of_a_key_is_remembered_by_content() {
    let work = Work::new();
    let prove = |key: &Path| {
        run!(
            work,
            "prove",
            "--key",
            key,
            "--witness",
            fixture("boundary_full/witness.wtns"),
            "--proof",
            "p.json"
        )
    };
    let entries = || fs::read_dir(work.path("cache/checked")).map_or(0, Iterator::count);
    prove(&fixture("bad/zkey_b2_wrong_subgroup.zkey")).refused();
    assert_eq!(entries(), 0);
    let key = fixture("boundary_full/circuit.zkey");
    prove(&key).done();
    assert_eq!(entries(), 1);
    prove(&key).done();
    assert_eq!(entries(), 1);
    // Remembered is the content, not the name.
    fs::copy(fixture("bad/zkey_b2_wrong_subgroup.zkey"), work.path("circuit.zkey")).unwrap();
    prove(&work.path("circuit.zkey")).refused();
}
