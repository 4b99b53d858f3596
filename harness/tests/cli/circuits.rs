//! Every fixture circuit: our proof under its key, and snarkjs' proof, verified.

use std::fs;

use serde_json::Value;

use crate::command::{Work, adds_up, fixture, keys, run};

/// Folder and the middle of the file names: `witness{_x0}.wtns`.
fn circuits() -> Vec<(String, &'static str)> {
    let names = fs::read_dir(fixture("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut all: Vec<_> = names
        .filter(|n| n != "bn128_rangecheck" && fixture(&format!("{n}/circuit.zkey")).exists())
        .map(|n| (n, ""))
        .collect();
    assert!(all.len() >= 8, "{all:?}");
    all.extend([("sq10".to_owned(), "_x0"), ("sq10".to_owned(), "_x1")]);
    all
}

fn read(path: impl AsRef<std::path::Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_circuit_is_proved_from_its_zkey_and_verified_both_ways() {
    let work = Work::new();
    for (name, end) in circuits() {
        let file = |f: &str| fixture(&format!("{name}/{f}"));
        let (zkey, vkey) = (file("circuit.zkey"), file("vkey.json"));
        let (wtns, public) = (file(&format!("witness{end}.wtns")), file(&format!("public{end}.json")));
        let verify = |public: &std::path::Path, proof: &std::path::Path| {
            let ran = run!(work, "verify", "--vkey", vkey, "--public", public, "--proof", proof);
            assert_eq!(ran.done(), "valid\n");
        };
        // Ours.
        let proof = work.path(&format!("{name}{end}.json"));
        let inputs = work.path(&format!("{name}{end}.public.json"));
        let ran = run!(
            work,
            "prove",
            "--key",
            zkey,
            "--witness",
            wtns,
            "--proof",
            proof,
            "--public",
            inputs,
            "--device",
            "host",
        );
        assert!(ran.done().starts_with("proved and verified on host in "), "{ran:?}");
        assert_eq!(read(&inputs), read(&public), "{name}");
        let json = read(&proof);
        assert_eq!((&json["protocol"], &json["curve"]), (&"groth16".into(), &"bls12381".into()));
        verify(&inputs, &proof);
        // The public part of the witness serves as well.
        verify(&wtns, &proof);
        // Theirs.
        verify(&public, &file(&format!("proof{end}.json")));
        let bytes = file(&format!("proof{end}192.bin"));
        if end.is_empty() {
            verify(&public, &bytes);
        }
    }
}

#[test]
fn proofs_go_out_as_192_bytes_too_and_differ_each_time() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("multiplier/{f}"));
    let prove = |name: &str| {
        let out = work.path(name);
        run!(work, "prove", "--key", file("circuit.zkey"), "--witness", file("witness.wtns"), "--proof", out)
            .done();
        run!(work, "verify", "--vkey", file("circuit.zkey"), "--public", file("public.json"), "--proof", out)
            .done();
        fs::read(out).unwrap()
    };
    let (one, other) = (prove("1.bin"), prove("2.bin"));
    assert_eq!((one.len(), other.len()), (192, 192));
    assert_ne!(one, other, "r and s are fresh");
}

#[test]
fn the_json_answers_have_their_keys() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("boundary_full/{f}"));
    let (zkey, wtns) = (file("circuit.zkey"), file("witness.wtns"));
    let answer = run!(
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
    )
    .json();
    let expected = [
        "busy_ns",
        "device",
        "domain",
        "idle_ns",
        "peak_bytes",
        "policy",
        "proof",
        "public",
        "public_inputs",
        "reason",
        "timeline",
        "verified",
        "wall_ns",
    ];
    assert_eq!(keys(&answer), expected);
    adds_up(&answer);
    assert_eq!(answer["verified"], true);
    assert_eq!((&answer["domain"], &answer["public_inputs"]), (&256.into(), &4.into()));
    assert_eq!((&answer["device"], &answer["proof"]), (&"host".into(), &"p.json".into()));
    assert!(answer["peak_bytes"].as_u64().unwrap() >= 3 * 256 * 32, "a, b and c were there at once");

    let answer = run!(
        work,
        "verify",
        "--vkey",
        file("vkey.json"),
        "--public",
        "q.json",
        "--proof",
        "p.json",
        "--json"
    );
    assert_eq!(answer.json(), serde_json::json!({ "valid": true, "public_inputs": 4 }));
}

#[test]
fn p4_every_policy_proves() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("boundary_over/{f}"));
    let mut peaks = Vec::new();
    for (policy, taken) in [
        ("auto", "full"),
        ("full", "full"),
        ("a-then-bc", "a-then-bc"),
        ("chunked:4", "chunked:4"),
        ("none", "none"),
    ] {
        let answer = run!(
            work,
            "prove",
            "--key",
            file("circuit.zkey"),
            "--witness",
            file("witness.wtns"),
            "--proof",
            "p.json",
            "--policy",
            policy,
            "--json",
        )
        .json();
        assert_eq!(answer["policy"], taken, "{answer:#}");
        assert!(answer["reason"].as_str().unwrap().contains(taken));
        adds_up(&answer);
        peaks.push(answer["peak_bytes"].as_u64().unwrap());
        run!(
            work,
            "verify",
            "--vkey",
            file("vkey.json"),
            "--public",
            file("public.json"),
            "--proof",
            "p.json"
        )
        .done();
    }
    assert_eq!(peaks[0], peaks[1]);
    // The out-of-core transform needs 16 rows for four pieces; the smallest circuit has four.
    let small = |f: &str| fixture(&format!("multiplier/{f}"));
    let ran = run!(
        work,
        "prove",
        "--key",
        small("circuit.zkey"),
        "--witness",
        small("witness.wtns"),
        "--proof",
        "s.json",
        "--policy",
        "chunked:4",
    );
    ran.refused();
    assert!(!work.path("s.json").exists());
}
