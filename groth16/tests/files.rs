//! Real keys and witnesses, made by circom and snarkjs, bellperson, arkworks and Zcash's ceremony, proved and verified.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use blstrs::{G1Projective, Scalar};
use common::{blinding, reference};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use prestage_groth16::format::{PointChecks, ark, json, params, proof, r1cs, wtns, zkey};
use prestage_groth16::{
    Assignment, Error, Libsnark, Options, Policy, PreparedKey, Proof, Prover, ProvingKey, R1cs, Reduction,
    Witness,
};
use prestage_vram::{Host, HostConfig, Worker};

const SNARKJS: [&str; 9] = [
    "allpublic",
    "boundary_full",
    "boundary_over",
    "linear",
    "manypublic",
    "multiplier",
    "nopublic",
    "rangecheck",
    "sq10",
];

fn fixture(name: &str) -> Vec<u8> {
    let path: std::path::PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect();
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn host() -> Host {
    Host::open(HostConfig::default()).unwrap()
}

fn options(policy: Policy) -> Options {
    Options::default().policy(policy)
}

#[test]
fn f021_every_snarkjs_fixture_proves_under_every_policy() {
    let device = host();
    for name in SNARKJS {
        let key = zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Full).unwrap();
        let circuit = r1cs::read(&fixture(&format!("{name}/circuit.r1cs"))).unwrap();
        let vk = json::read_verifying_key(&fixture(&format!("{name}/vkey.json"))).unwrap();
        let vk = PreparedKey::new(&vk).unwrap();
        let public = json::read_public(&fixture(&format!("{name}/public.json"))).unwrap();
        let theirs = json::read_proof(&fixture(&format!("{name}/proof.json"))).unwrap();
        assert!(vk.verify(&public, &theirs).unwrap(), "{name}: the proof of snarkjs");

        let prover = Prover::new(&device, key).unwrap();
        let witness = wtns::read(&fixture(&format!("{name}/witness.wtns"))).unwrap();
        let checked = Assignment::new(&prover, &circuit, &witness).unwrap();
        let unchecked = Assignment::from_key(&prover, &witness).unwrap();
        assert_eq!(checked.public(), public);
        for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::None] {
            for assignment in [&checked, &unchecked] {
                let proved = prover.prove(&mut Worker::new(0), assignment, &options(policy)).unwrap();
                assert!(vk.verify(&public, &proved.proof).unwrap(), "{name}, {policy}");
            }
        }
        let batch: Vec<_> = (0..3)
            .map(|_| prover.prove(&mut Worker::new(0), &checked, &Options::default()).unwrap().proof)
            .chain([theirs])
            .collect();
        let batch: Vec<_> = batch.iter().map(|p| (&public[..], p)).collect();
        assert!(vk.verify_batch(&batch).unwrap());
    }
}

/// Proves under a key with coefficients, and holds our proof and the other prover's against `vk`.
fn coefficients(
    key: ProvingKey<Libsnark>,
    circuit: &R1cs,
    witness: &Witness,
    vk: &PreparedKey,
    theirs: &[u8],
) {
    let public = witness.public(circuit.n_public()).unwrap();
    assert!(vk.verify(public, &proof::read(theirs).unwrap()).unwrap());
    let device = host();
    let prover = Prover::new(&device, key).unwrap();
    let assignment = Assignment::new(&prover, circuit, witness).unwrap();
    for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None] {
        let options = options(policy).insecure_blinding(blinding(2));
        let ours = prover.prove(&mut Worker::new(0), &assignment, &options).unwrap().proof;
        assert!(vk.verify(public, &ours).unwrap());
        assert_eq!(ours, reference(prover.key(), circuit, witness, blinding(2)));
    }
}

#[test]
fn bellperson_parameters_prove() {
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let witness = wtns::read(&fixture("bellman_sq10/sq10.wtns")).unwrap();
    let key = params::read(&fixture("bellman_sq10/sq10.params"), PointChecks::Full).unwrap();
    let key = key.value.with_r1cs(&circuit).unwrap();
    let vk = PreparedKey::new(key.vk()).unwrap();
    coefficients(key, &circuit, &witness, &vk, &fixture("bellman_sq10/proof192.bin"));
}

#[test]
fn arkworks_keys_prove() {
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let witness = wtns::read(&fixture("bellman_sq10/sq10.wtns")).unwrap();
    let key = ark::read(&fixture("ark_sq10/pk_uncompressed.bin"), PointChecks::Full).unwrap();
    let vk = ark::read_verifying_key(&fixture("ark_sq10/vk_compressed.bin")).unwrap();
    let vk = PreparedKey::new(&vk).unwrap();
    coefficients(key, &circuit, &witness, &vk, &fixture("ark_sq10/proof_compressed.bin"));
}

#[test]
fn f009_the_sapling_output_statement_proves_under_its_ceremony_key() {
    let circuit = r1cs::read(&fixture("sapling/output.r1cs")).unwrap();
    let witness = wtns::read(&fixture("sapling/output.wtns")).unwrap();
    let key = params::read(&fixture("sapling/sapling-output.params"), PointChecks::Unchecked).unwrap();
    let key = key.value.with_r1cs(&circuit).unwrap();
    let vk = PreparedKey::new(key.vk()).unwrap();
    coefficients(key, &circuit, &witness, &vk, &fixture("sapling/output_proof192.bin"));
}

/// The H sum of a witness.
fn h_sum<R: Reduction>(key: &ProvingKey<R>, circuit: &R1cs, witness: &Witness) -> G1Projective {
    let h = common::h_scalars::<R>(common::evaluations(circuit, witness));
    prestage_msm::host::msm(key.h(), &h).unwrap()
}

/// A constant polynomial times a polynomial minus the same has no quotient: H is infinity, and the proof is one.
#[test]
fn f4_h_is_infinity_for_constant_witnesses_of_sq10() {
    let device = host();
    let key = zkey::read(&fixture("sq10/circuit.zkey"), PointChecks::Unchecked).unwrap();
    let circuit = r1cs::read(&fixture("sq10/circuit.r1cs")).unwrap();
    let prover = Prover::new(&device, key).unwrap();
    let vk = PreparedKey::new(prover.key().vk()).unwrap();
    for x in ["x0", "x1"] {
        let witness = wtns::read(&fixture(&format!("sq10/witness_{x}.wtns"))).unwrap();
        let public = json::read_public(&fixture(&format!("sq10/public_{x}.json"))).unwrap();
        let h = h_sum(prover.key(), &circuit, &witness);
        let assignment = Assignment::new(&prover, &circuit, &witness).unwrap();
        let proof = prover.prove(&mut Worker::new(0), &assignment, &Options::default()).unwrap().proof;
        assert!(vk.verify(&public, &proof).unwrap());
        let theirs = json::read_proof(&fixture(&format!("sq10/proof_{x}.json"))).unwrap();
        assert!(vk.verify(&public, &theirs).unwrap());
        // circom writes -x·x = -y, so with x = 1 the rows of A are -1 but for the public wires' rows, which are 1.
        assert_eq!(bool::from(h.is_identity()), x == "x0");
        let without = Proof { c: (proof.c.to_curve() - h).to_affine(), ..proof };
        assert_eq!(vk.verify(&public, &without).unwrap(), x == "x0");
    }

    // Without the signs both are constant.
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let key = params::read(&fixture("bellman_sq10/sq10.params"), PointChecks::Unchecked).unwrap();
    let key = key.value.with_r1cs(&circuit).unwrap();
    let mut values = vec![Scalar::ONE; circuit.n_wires() as usize];
    let ones = Witness::new(values.clone()).unwrap();
    values[1..].fill(Scalar::ZERO);
    let zeros = Witness::new(values).unwrap();
    for witness in [ones, zeros] {
        assert_eq!(circuit.first_unsatisfied(&witness), Ok(None));
        assert!(bool::from(h_sum(&key, &circuit, &witness).is_identity()));
    }
}

/// Rows of every real circuit: a changed byte, input or C is never a proof.
#[test]
fn f4_changed_proofs_of_real_circuits_are_rejected() {
    for name in SNARKJS {
        let key = zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Unchecked).unwrap();
        let circuit = r1cs::read(&fixture(&format!("{name}/circuit.r1cs"))).unwrap();
        let witness = wtns::read(&fixture(&format!("{name}/witness.wtns"))).unwrap();
        let vk = PreparedKey::new(key.vk()).unwrap();
        let public = json::read_public(&fixture(&format!("{name}/public.json"))).unwrap();
        let good = json::read_proof(&fixture(&format!("{name}/proof.json"))).unwrap();
        let h = h_sum(&key, &circuit, &witness);
        assert!(!bool::from(h.is_identity()), "{name}");
        let without = Proof { c: (good.c.to_curve() - h).to_affine(), ..good };
        assert!(!vk.verify(&public, &without).unwrap(), "{name}");

        let bytes = proof::to_bytes(&good);
        for at in (0..bytes.len()).step_by(7) {
            let mut bytes = bytes;
            bytes[at] ^= 1 << (at % 8);
            if let Ok(changed) = proof::read(&bytes) {
                assert!(!vk.verify(&public, &changed).unwrap(), "{name}, byte {at}");
            }
        }
        for i in 0..public.len().min(3) {
            let mut public = public.clone();
            public[i] += Scalar::ONE;
            assert!(!vk.verify(&public, &good).unwrap(), "{name}, input {i}");
        }
        let more = [&public[..], &[Scalar::ZERO]].concat();
        assert!(vk.verify(&more, &good).is_err(), "{name}: one input too many");
        if let [fewer @ .., _] = &public[..] {
            assert!(vk.verify(fewer, &good).is_err(), "{name}: one input missing");
        }
    }
}

#[test]
fn damaged_keys_that_can_be_read_make_no_proof() {
    let device = host();
    for name in ["bad/zkey_h_swapped.zkey", "bad/zkey_h_infinity.zkey"] {
        let key = zkey::read(&fixture(name), PointChecks::Full).unwrap();
        let prover = Prover::new(&device, key).unwrap();
        let witness = wtns::read(&fixture("boundary_full/witness.wtns")).unwrap();
        let assignment = Assignment::from_key(&prover, &witness).unwrap();
        let outcome = prover.prove(&mut Worker::new(0), &assignment, &Options::default());
        assert!(matches!(outcome, Err(Error::NotVerified)), "{name}");
    }
}
