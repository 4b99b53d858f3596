//! What is written is read again, and what others wrote is written the same.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use prestage_groth16::format::{PointChecks, json, params, proof, r1cs, wtns};
use prestage_groth16::{Proof, R1cs, Witness};
use proptest::prelude::*;

use super::{SNARKJS, fixture};

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

fn without_space(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn json_is_written_as_snarkjs_writes_it() {
    for name in SNARKJS {
        let file = |f: &str| fixture(&format!("{name}/{f}"));
        let vk = json::read_verifying_key(&file("vkey.json")).unwrap();
        let again = written(|w| json::write_verifying_key(w, &vk));
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&file("vkey.json")), "{name}");
        let proof = json::read_proof(&file("proof.json")).unwrap();
        let again = written(|w| json::write_proof(w, &proof));
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&file("proof.json")), "{name}");
        let public = json::read_public(&file("public.json")).unwrap();
        let again = written(|w| json::write_public(w, &public));
        assert_eq!(without_space(&again), without_space(&file("public.json")), "{name}");
        assert_eq!(proof::to_bytes(&proof)[..], file("proof192.bin"), "{name}");
    }
}

#[test]
fn parameters_are_written_byte_for_byte() {
    for (file, circuit) in [
        ("bellman_sq10/sq10.params", "bellman_sq10/sq10.r1cs"),
        ("sapling/sapling-output.params", "sapling/output.r1cs"),
    ] {
        let bytes = fixture(file);
        let circuit = r1cs::read(&fixture(circuit)).unwrap();
        let key = params::read(&bytes, PointChecks::Unchecked).unwrap().value.with_r1cs(&circuit).unwrap();
        let again = written(|w| params::write(w, &key).unwrap());
        // A ceremony's transcript after the key is not kept.
        assert!(again == bytes[..again.len()], "{file}");
        assert_eq!(bytes.len() - again.len(), if file.starts_with("sapling") { 52_836 } else { 0 });
    }
}

#[test]
fn circuits_and_witnesses_are_written_as_they_were() {
    for name in ["bellman_sq10/sq10", "sapling/output", "rangecheck/circuit", "linear/circuit"] {
        let circuit = r1cs::read(&fixture(&format!("{name}.r1cs"))).unwrap();
        assert_eq!(r1cs::read(&written(|w| r1cs::write(w, &circuit))).unwrap(), circuit);
    }
    let bytes = fixture("bellman_sq10/sq10.wtns");
    let witness = wtns::read(&bytes).unwrap();
    assert!(written(|w| wtns::write(w, &witness)) == bytes);
}

#[test]
fn infinity_round_trips_in_both_groups_and_encodings() {
    let o = Proof { a: G1Affine::identity(), b: G2Affine::identity(), c: G1Affine::identity() };
    let bytes = proof::to_bytes(&o);
    for at in [0, 48, 144] {
        assert_eq!(bytes[at], 0xc0);
    }
    assert_eq!(bytes.iter().filter(|&&b| b != 0).count(), 3);
    assert_eq!(proof::read(&bytes).unwrap(), o);
    let text = written(|w| json::write_proof(w, &o));
    assert!(without_space(&text).contains(r#""pi_a":["0","1","0"],"pi_b":[["0","0"],["1","0"],["0","0"]]"#));
    assert_eq!(json::read_proof(&text).unwrap(), o);
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::ZERO),
        Just(Scalar::ONE),
        Just(-Scalar::ONE),
        any::<[u64; 4]>().prop_map(|l| {
            l.iter().fold(Scalar::ZERO, |x, &limb| x * Scalar::from(u64::MAX) + Scalar::from(limb))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_circuit_is_read_as_written(
        n_wires in 1u32..40,
        public in 0u32..40,
        rows in prop::collection::vec(
            prop::array::uniform3(prop::collection::vec((any::<prop::sample::Index>(), scalar()), 0..5)), 0..20),
    ) {
        let public = public % n_wires;
        let mut b = R1cs::builder(n_wires, public).unwrap();
        b.outputs(public / 2).unwrap();
        for row in &rows {
            let [x, y, z] = row.each_ref().map(|terms| {
                terms.iter().map(|(i, c)| (i.index(n_wires as usize) as u32, *c)).collect::<Vec<_>>()
            });
            b.constraint(&x, &y, &z).unwrap();
        }
        let circuit = b.finish();
        prop_assert_eq!(r1cs::read(&written(|w| r1cs::write(w, &circuit))).unwrap(), circuit);
    }

    #[test]
    fn any_values_are_read_as_written(mut values in prop::collection::vec(scalar(), 0..50)) {
        prop_assert_eq!(json::read_public(&written(|w| json::write_public(w, &values))).unwrap(), values.clone());
        values.insert(0, Scalar::ONE);
        let witness = Witness::new(values).unwrap();
        prop_assert_eq!(wtns::read(&written(|w| wtns::write(w, &witness))).unwrap(), witness);
    }

    #[test]
    fn any_proof_is_read_as_written(a in scalar(), b in scalar(), c in scalar()) {
        let proof = Proof {
            a: (G1Affine::generator() * a).into(),
            b: (G2Affine::generator() * b).into(),
            c: (G1Affine::generator() * c).into(),
        };
        prop_assert_eq!(proof::read(&proof::to_bytes(&proof)).unwrap(), proof);
        prop_assert_eq!(json::read_proof(&written(|w| json::write_proof(w, &proof))).unwrap(), proof);
    }
}
