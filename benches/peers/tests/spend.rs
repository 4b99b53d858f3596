//! The Sapling Spend statement, proved under the key of the ceremony.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use bellperson::groth16 as bell;
use blstrs::{Bls12, Scalar};
use ff::Field;
use prestage_groth16::format::{Note, PointChecks, params, proof};
use prestage_groth16::{Assignment, Options, Prover};
use prestage_peers::spend;
use prestage_vram::{Host, HostConfig, Worker};

#[test]
fn f038_bellperson_verifies_the_sapling_spend_proof() {
    let circuit = spend::statement().unwrap();
    assert_eq!(circuit.r1cs.first_unsatisfied(&circuit.witness), Ok(None));
    assert_eq!(circuit.r1cs.n_constraints(), 98_777);
    assert_eq!(circuit.r1cs.n_public(), 7);
    let file = spend::parameters();
    let read = params::read(&file, PointChecks::Full).unwrap();
    assert!(matches!(read.notes[..], [Note::Trailing { .. }]));

    let host = Host::open(HostConfig::default()).unwrap();
    let prover = Prover::new(&host, read.value.with_r1cs(&circuit.r1cs).unwrap()).unwrap();
    let assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap();
    let ours = prover.prove(&mut Worker::new(0), &assignment, &Options::default()).unwrap().proof;

    let vk = bell::VerifyingKey::<Bls12>::read(&file[..]).unwrap();
    let theirs = bell::Proof::<Bls12>::read(&proof::to_bytes(&ours)[..]).unwrap();
    let mut public = circuit.witness.public(7).unwrap().to_vec();
    let vk = bell::prepare_verifying_key(&vk);
    assert!(bell::verify_proof(&vk, &theirs, &public).unwrap());
    public[6] += Scalar::ONE;
    assert!(!bell::verify_proof(&vk, &theirs, &public).unwrap());
}
