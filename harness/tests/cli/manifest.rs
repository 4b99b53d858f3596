//! `fixtures/bad/manifest.tsv`, line by line: each file does what the last column says.

use std::fs;

use crate::command::{Ran, Work, fixture, run};

/// The verb that reads such a file, with good files for the rest. The proof goes to `out.json`.
fn use_file(work: &Work, name: &str, made_from: &str) -> Vec<Ran> {
    let bad = fixture(&format!("bad/{name}"));
    let good = |f: &str| fixture(&format!("boundary_full/{f}"));
    let prove = |key: &std::path::Path, witness: &std::path::Path| {
        run!(work, "prove", "--key", key, "--witness", witness, "--proof", "out.json")
    };
    match name.split(['_', '.']).next().unwrap() {
        "zkey" => vec![prove(&bad, &good("witness.wtns"))],
        "wtns" => vec![prove(&good("circuit.zkey"), &bad)],
        "r1cs" => vec![
            run!(
                work,
                "prove",
                "--key",
                good("circuit.zkey"),
                "--r1cs",
                bad,
                "--witness",
                good("witness.wtns"),
                "--proof",
                "out.json",
            ),
            run!(work, "setup", "--r1cs", bad, "--key", "out.params", "--vkey", "out.json"),
        ],
        "proof" => {
            vec![run!(
                work,
                "verify",
                "--vkey",
                good("vkey.json"),
                "--public",
                good("public.json"),
                "--proof",
                bad
            )]
        }
        "public" => {
            vec![run!(
                work,
                "verify",
                "--vkey",
                good("vkey.json"),
                "--public",
                bad,
                "--proof",
                good("proof.json")
            )]
        }
        "bellman" => {
            let file = |f: &str| fixture(&format!("{made_from}/{f}"));
            vec![run!(
                work,
                "prove",
                "--key",
                bad,
                "--r1cs",
                file("sq10.r1cs"),
                "--witness",
                file("sq10.wtns"),
                "--proof",
                "out.json",
            )]
        }
        other => panic!("no verb for {other}"),
    }
}

#[test]
fn f6_f7_every_line_of_the_manifest() {
    let manifest = fs::read_to_string(fixture("bad/manifest.tsv")).unwrap();
    let work = Work::new();
    let mut lines = 0;
    for line in manifest.lines().skip(1).filter(|l| !l.is_empty()) {
        let [name, made_from, _, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        for ran in use_file(&work, name, made_from) {
            if expected.starts_with("ACCEPT") {
                ran.done();
                let noted = ran.stderr.contains("prestage: note: ");
                assert_eq!(noted, expected.contains("warning"), "{line}\n{ran:?}");
            } else {
                assert!(expected.starts_with("reject") || expected == "proof must not verify", "{line}");
                let said = ran.refused();
                let names_a_file =
                    said.contains(name) || said.contains("proof.json") || said.contains(".wtns");
                assert!(names_a_file, "{line}\n{said}");
                assert!(!work.path("out.json").exists() && !work.path("out.params").exists(), "{line}");
            }
            let _ = fs::remove_file(work.path("out.json"));
        }
        lines += 1;
    }
    assert!(lines >= 38, "{lines}");
}

#[test]
fn f6_the_wrong_curve_is_named() {
    let work = Work::new();
    let file = |f: &str| fixture(&format!("bn128_rangecheck/{f}"));
    let (zkey, wtns) = (file("circuit.zkey"), file("witness.wtns"));
    let good = |f: &str| fixture(&format!("rangecheck/{f}"));
    let prove = |key: &std::path::Path, witness: &std::path::Path| {
        run!(work, "prove", "--key", key, "--witness", witness, "--proof", "out.json").refused().to_owned()
    };
    let lines = [
        prove(&zkey, &wtns),
        prove(&zkey, &good("witness.wtns")),
        prove(&good("circuit.zkey"), &wtns),
        run!(work, "setup", "--r1cs", file("circuit.r1cs"), "--key", "out.params", "--vkey", "v.json")
            .refused()
            .into(),
        run!(
            work,
            "verify",
            "--vkey",
            file("vkey.json"),
            "--public",
            file("public.json"),
            "--proof",
            file("proof.json"),
        )
        .refused()
        .into(),
    ];
    for line in lines {
        assert!(line.contains("bls12381") && line.contains("bn128"), "{line}");
    }
    for name in ["out.json", "out.params", "v.json"] {
        assert!(!work.path(name).exists());
    }
}
