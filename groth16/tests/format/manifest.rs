//! `fixtures/bad/manifest.tsv`, as far as reading decides it. What only proving or verifying can refuse must
//! be read without complaint here.

use prestage_groth16::format::{FormatError, Note, PointChecks, json, params, r1cs, wtns, zkey};

use super::fixture;

/// Reads a file of the manifest by its suffix; says what was noted.
fn read(name: &str, bytes: &[u8]) -> Result<Vec<Note>, FormatError> {
    let none = |_| Vec::new();
    match name.rsplit('.').next().unwrap() {
        "zkey" => zkey::read(bytes, PointChecks::Full).map(|_| Vec::new()),
        "params" => params::read(bytes, PointChecks::Full).map(|read| read.notes),
        "wtns" => wtns::read(bytes).map(|_| Vec::new()),
        "r1cs" => r1cs::read(bytes).map(|_| Vec::new()),
        _ if name.starts_with("public") => json::read_public(bytes).map(|_| Vec::new()),
        _ => json::read_proof(bytes).map(none),
    }
}

/// Files that are well-formed: another key, circuit or statement has to show that they are wrong.
const LATER: [&str; 6] = [
    "zkey_h_swapped.zkey",
    "zkey_h_infinity.zkey",
    "wtns_other_circuit.wtns",
    "proof_a_neg.json",
    "public_short.json",
    "public_wrong.json",
];

#[test]
fn f6_every_line_of_the_manifest() {
    let manifest = String::from_utf8(fixture("bad/manifest.tsv")).unwrap();
    let mut lines = 0;
    for line in manifest.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (name, expected) = (columns[0], columns[3]);
        let result = read(name, &fixture(&format!("bad/{name}")));
        let refuse = expected.starts_with("reject") && !LATER.contains(&name);
        match result {
            Ok(notes) => {
                assert!(!refuse, "{name} was read; {expected}");
                assert_eq!(notes.len(), usize::from(expected.contains("warning")), "{name}: {notes:?}");
            }
            Err(e) => {
                assert!(refuse, "{name}: {e}");
                let said = e.to_string();
                assert!(!said.contains('\n') && said.len() < 250, "{name}: {said}");
            }
        }
        lines += 1;
    }
    assert_eq!(lines, 38);
}

/// The message of each refused file: it names the kind, the section and the numbers.
#[test]
fn f6_messages_say_what_and_where() {
    for (name, message) in [
        ("zkey_version9.zkey", "zkey, file header at byte 4: expected version 1, got 9"),
        ("zkey_truncated_h.zkey", "section 9 (H) at byte 146268: cut short: 24576 bytes needed, 4576 left"),
        ("zkey_empty.zkey", "zkey, file header at byte 0: cut short: 4 bytes needed, 0 left"),
        ("zkey_section_len_huge.zkey", "section 9 (H)"),
        ("zkey_nsections_huge.zkey", "section table at byte 8: cut short"),
        ("zkey_nvars_huge.zkey", "section 5 (A) at byte"),
        ("zkey_nvars_plus1.zkey", "points: expected 257, got 256"),
        ("zkey_wrong_q.zkey", "expected the curve bls12381, got one of the unknown prime"),
        ("zkey_wrong_r.zkey", "expected the curve bls12381, got one of the unknown prime"),
        ("zkey_delta1_identity.zkey", "section 2 (delta in G1) at byte"),
        ("zkey_coef_matrix2.zkey", "section 4 (coefficients)[3] at byte"),
        ("zkey_coef_signal_oob.zkey", "wire 256 is not below 256"),
        ("zkey_coef_count_short.zkey", "coefficients: expected 400, got 507"),
        ("zkey_coef_value_noncanonical.zkey", "scalar is not below the modulus r"),
        ("zkey_b2_wrong_subgroup.zkey", "section 7 (B2)[10] at byte"),
        ("zkey_trailing.zkey", "16 bytes too many after the end"),
        ("wtns_noncanonical.wtns", "section 2 (values)[2] at byte 140: scalar is not below the modulus r"),
        ("wtns_count_short.wtns", "values: expected 255, got 256"),
        ("r1cs_lc_len_huge.r1cs", "section 2 (constraints)[0] at byte"),
        ("r1cs_wire_oob.r1cs", "row 0 names wire 99999 of 256"),
        ("proof_a_off_curve.json", "proof JSON, pi_a: point is not on the curve"),
        ("proof_coord_plus_p.json", "proof JSON, pi_a: coordinate is not below the modulus q"),
        ("bellman_h_infinity.params", "H[0] at byte 1064: point at infinity"),
        ("bellman_h_len_huge.params", "bellman parameters, H at byte"),
        ("bellman_truncated.params", "bellman parameters, B2 at byte"),
    ] {
        let error = read(name, &fixture(&format!("bad/{name}"))).unwrap_err().to_string();
        assert!(error.contains(message), "{name}: {error}");
    }
}

#[test]
fn the_other_curve_is_refused_by_name() {
    for name in ["circuit.zkey", "circuit.r1cs", "witness.wtns", "vkey.json", "proof.json"] {
        let bytes = fixture(&format!("bn128_rangecheck/{name}"));
        let error = match name {
            "vkey.json" => json::read_verifying_key(&bytes).unwrap_err(),
            _ => read(name, &bytes).unwrap_err(),
        };
        assert!(error.to_string().contains("expected the curve bls12381, got bn128"), "{name}: {error}");
    }
}

#[test]
fn a_transcript_is_noted() {
    let bytes = fixture("bad/bellman_trailing.params");
    let read = params::read(&bytes, PointChecks::Full).unwrap();
    assert_eq!(read.notes, [Note::Trailing { offset: bytes.len() as u64 - 52, bytes: 52 }]);
    assert!(read.notes[0].to_string().starts_with("52 bytes after the end"));
}
