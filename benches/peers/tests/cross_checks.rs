//! Three implementations, one set of bytes: what one writes the others read, what one proves the others verify.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use ark_bls12_381::Bls12_381;
use ark_groth16::Groth16;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use bellperson::groth16 as bell;
use blstrs::{Bls12, Scalar};
use ff::Field;
use prestage_groth16::format::{PointChecks, ark, params, proof, r1cs, wtns};
use prestage_groth16::{
    Assignment, Blinding, Libsnark, Options, Proof, Prover, ProvingKey, R1cs, Witness, setup, verify,
};
use prestage_harness::circuits::{Circuit, bits, squares};
use prestage_peers::{Keys, Kind, R1csCircuit, Statement, convert};
use prestage_vram::{Host, HostConfig, Worker};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../groth16/tests/fixtures/");
    std::fs::read(format!("{folder}{name}")).unwrap()
}

fn statements() -> Vec<Statement> {
    vec![squares(5, rng(1)).unwrap().into(), bits(6, rng(2)).unwrap().into()]
}

fn public(statement: &Statement) -> &[Scalar] {
    statement.witness().public(statement.r1cs().n_public()).unwrap()
}

/// Our proof as its 192 bytes, with blinding of its own.
fn prove(key: ProvingKey<Libsnark>, r1cs: &R1cs, witness: &Witness) -> [u8; 192] {
    let host = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&host, key).unwrap();
    let assignment = Assignment::new(&prover, r1cs, witness).unwrap();
    let proved = prover.prove(&mut Worker::new(0), &assignment, &Options::default()).unwrap();
    proof::to_bytes(&proved.proof)
}

fn bellperson_accepts(vk: &bell::VerifyingKey<Bls12>, public: &[Scalar], bytes: &[u8]) -> bool {
    let proof = bell::Proof::<Bls12>::read(bytes).unwrap();
    bell::verify_proof(&bell::prepare_verifying_key(vk), &proof, public).unwrap()
}

fn arkworks_accepts(vk: &ark_groth16::VerifyingKey<Bls12_381>, public: &[Scalar], bytes: &[u8]) -> bool {
    let proof = ark_groth16::Proof::deserialize_compressed(bytes).unwrap();
    let vk = ark_groth16::prepare_verifying_key(vk);
    Groth16::<Bls12_381>::verify_proof(&vk, &proof, &convert::scalars(public)).unwrap()
}

fn others(public: &[Scalar]) -> Vec<Scalar> {
    let mut public = public.to_vec();
    public[0] += Scalar::ONE;
    public
}

#[test]
fn bellperson_verifies_our_proof_under_the_parameter_file_that_we_wrote() {
    for statement in statements() {
        let key = setup::<Libsnark>(statement.r1cs()).unwrap();
        let mut file = Vec::new();
        params::write(&mut file, &key).unwrap().unwrap();
        // With every point tested by bellperson.
        let theirs = bell::Parameters::<Bls12>::read(&file[..], true).unwrap();
        let bytes = prove(key, statement.r1cs(), statement.witness());
        assert!(bellperson_accepts(&theirs.vk, public(&statement), &bytes));
        assert!(!bellperson_accepts(&theirs.vk, &others(public(&statement)), &bytes));

        // What it writes from what it read is our file again.
        let mut again = Vec::new();
        theirs.write(&mut again).unwrap();
        assert_eq!(again, file);
    }
}

#[test]
fn we_prove_under_a_parameter_file_that_bellperson_wrote() {
    for statement in statements() {
        let circuit = R1csCircuit::blank(&statement);
        let theirs = bell::generate_random_parameters::<Bls12, _, _>(circuit, &mut rng(3)).unwrap();
        let mut file = Vec::new();
        theirs.write(&mut file).unwrap();
        let read = params::read(&file, PointChecks::Full).unwrap();
        assert!(read.notes.is_empty());
        let key = read.value.with_r1cs(statement.r1cs()).unwrap();
        let vk = key.vk().clone();
        let bytes = prove(key, statement.r1cs(), statement.witness());
        assert!(bellperson_accepts(&theirs.vk, public(&statement), &bytes));
        assert!(!bellperson_accepts(&theirs.vk, &others(public(&statement)), &bytes));

        // And its own proof is one for us.
        let circuit = R1csCircuit::assigned(&statement);
        let proof = bell::create_random_proof::<Bls12, _, _, _>(circuit, &theirs, &mut rng(4)).unwrap();
        let mut bytes = Vec::new();
        proof.write(&mut bytes).unwrap();
        assert!(verify(&vk, public(&statement), &proof::read(&bytes).unwrap()).unwrap());
    }
}

/// Circuits of one to eight constraints, on the path that large ones take.
#[test]
fn b175_f021_bellperson_verifies_proofs_of_tiny_circuits() {
    for constraints in 1..=8 {
        let mut builder = R1cs::builder(constraints + 2, 1).unwrap();
        let mut values = vec![Scalar::ONE, Scalar::ZERO, Scalar::from(3)];
        for i in 0..constraints {
            let out = if i + 1 == constraints { 1 } else { i + 3 };
            builder
                .constraint(&[(i + 2, Scalar::ONE)], &[(i + 2, Scalar::ONE)], &[(out, Scalar::ONE)])
                .unwrap();
            let square = values[i as usize + 2].square();
            if out == 1 { values[1] = square } else { values.push(square) }
        }
        let circuit = Circuit { r1cs: builder.finish(), witness: Witness::new(values).unwrap() };
        let statement = Statement::from(circuit);
        let key = setup::<Libsnark>(statement.r1cs()).unwrap();
        let mut file = Vec::new();
        params::write(&mut file, &key).unwrap().unwrap();
        let vk = bell::VerifyingKey::<Bls12>::read(&file[..]).unwrap();
        let bytes = prove(key, statement.r1cs(), statement.witness());
        assert!(bellperson_accepts(&vk, public(&statement), &bytes), "{constraints}");
    }
}

/// The statement of a Sapling output under the key of the Zcash ceremony, whose file ends with a transcript.
#[test]
fn f009_bellperson_verifies_the_sapling_output_proof() {
    let circuit = r1cs::read(&fixture("sapling/output.r1cs")).unwrap();
    let witness = wtns::read(&fixture("sapling/output.wtns")).unwrap();
    let file = fixture("sapling/sapling-output.params");
    let read = params::read(&file, PointChecks::Unchecked).unwrap();
    let bytes = prove(read.value.with_r1cs(&circuit).unwrap(), &circuit, &witness);
    let vk = bell::VerifyingKey::<Bls12>::read(&file[..]).unwrap();
    let public = witness.public(circuit.n_public()).unwrap();
    assert!(bellperson_accepts(&vk, public, &bytes));
    assert!(!bellperson_accepts(&vk, &others(public), &bytes));
    assert!(bellperson_accepts(&vk, public, &fixture("sapling/output_proof192.bin")));
}

#[test]
fn arkworks_verifies_our_proof_under_its_key_and_we_verify_its() {
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let witness = wtns::read(&fixture("bellman_sq10/sq10.wtns")).unwrap();
    let public = witness.public(circuit.n_public()).unwrap();
    let key = ark::read(&fixture("ark_sq10/pk_uncompressed.bin"), PointChecks::Full).unwrap();
    let bytes = prove(key, &circuit, &witness);
    let file = fixture("ark_sq10/vk_compressed.bin");
    let vk = ark_groth16::VerifyingKey::deserialize_compressed(&file[..]).unwrap();
    assert!(arkworks_accepts(&vk, public, &bytes));
    assert!(!arkworks_accepts(&vk, &others(public), &bytes));

    let theirs = proof::read(&fixture("ark_sq10/proof_compressed.bin")).unwrap();
    assert!(verify(&ark::read_verifying_key(&file).unwrap(), public, &theirs).unwrap());
}

#[test]
fn we_read_the_keys_that_arkworks_writes() {
    let keys = Keys::new(&statements()[1]);
    let theirs = convert::proving_key(keys.libsnark().unwrap());
    for compressed in [false, true] {
        let mut file = Vec::new();
        let written = if compressed {
            theirs.serialize_compressed(&mut file)
        } else {
            theirs.serialize_uncompressed(&mut file)
        };
        written.unwrap();
        let key = ark::read(&file, PointChecks::Full).unwrap();
        assert_eq!(convert::proving_key(&key), theirs);
        let ours = keys.libsnark().unwrap();
        assert_eq!((key.a(), key.b_g2(), key.l(), key.h()), (ours.a(), ours.b_g2(), ours.l(), ours.h()));
    }
}

/// One key, one pair of blinding scalars: one proof, whoever makes it. The encodings agree as well.
#[test]
fn all_provers_give_the_same_proof() {
    let host = Host::open(HostConfig::default()).unwrap();
    for statement in statements() {
        let keys = Keys::new(&statement);
        let blinding = Blinding::insecure_from_seed([9; 32]).unwrap();
        let mut of_reduction: [Option<Proof>; 2] = [None, None];
        for kind in Kind::ALL {
            let proof = kind.ready(&host, &keys).unwrap().prove(&blinding).unwrap();
            let first = *of_reduction[usize::from(kind.is_circom())].get_or_insert(proof);
            assert_eq!(proof, first, "{kind}");
        }
        let [Some(libsnark), Some(circom)] = of_reduction else { panic!("a reduction without a prover") };
        assert!(verify(keys.libsnark().unwrap().vk(), public(&statement), &libsnark).unwrap());
        assert!(verify(keys.circom().unwrap().vk(), public(&statement), &circom).unwrap());
    }
}

#[test]
fn bellperson_takes_the_bytes_of_arkworks_and_of_snarkjs_shaped_keys() {
    let statement = &statements()[0];
    let keys = Keys::new(statement);
    let host = Host::open(HostConfig::default()).unwrap();
    let blinding = Blinding::random().unwrap();
    let mut file = Vec::new();
    params::write(&mut file, keys.libsnark().unwrap()).unwrap().unwrap();
    let vk = bell::VerifyingKey::<Bls12>::read(&file[..]).unwrap();

    let proof = Kind::Arkworks.ready(&host, &keys).unwrap().prove(&blinding).unwrap();
    let mut bytes = Vec::new();
    convert::proof(&proof).serialize_compressed(&mut bytes).unwrap();
    assert_eq!(bytes, proof::to_bytes(&proof));
    assert!(bellperson_accepts(&vk, public(statement), &bytes));

    // A circom key has another H, and the same equation to verify.
    let circom = keys.circom().unwrap();
    let proof = Kind::TaceoCircom.ready(&host, &keys).unwrap().prove(&blinding).unwrap();
    let ours = circom.vk();
    let vk = bell::VerifyingKey::<Bls12> {
        alpha_g1: ours.alpha_g1,
        beta_g1: *circom.beta_g1(),
        beta_g2: ours.beta_g2,
        gamma_g2: ours.gamma_g2,
        delta_g1: *circom.delta_g1(),
        delta_g2: ours.delta_g2,
        ic: ours.ic.to_vec(),
    };
    assert!(bellperson_accepts(&vk, public(statement), &proof::to_bytes(&proof)));
}
