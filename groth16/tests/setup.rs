//! Keys from setup, proofs by the formulas, verification: what the staged prover is then held against.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use blstrs::{G1Affine, Scalar};
use common::{Circuit, blinding, reference, squares};
use ff::Field;
use group::prime::PrimeCurveAffine;
use prestage_groth16::{
    Circom, Error, Libsnark, PreparedKey, Proof, R1cs, Reduction, ShapeError, Trapdoor, Witness, setup,
    setup_insecure_from_seed, verify,
};
use prestage_msm::Threads;

fn proves<R: Reduction>(r1cs: &R1cs, witness: &Witness) {
    let key = setup_insecure_from_seed::<R>(r1cs, [3; 32]).unwrap();
    key.fits(r1cs).unwrap();
    let proof = reference(&key, r1cs, witness, blinding(1));
    let public = witness.public(r1cs.n_public()).unwrap();
    assert!(verify(key.vk(), public, &proof).unwrap(), "{} of {} rows", R::NAME, r1cs.n_rows());
}

#[test]
fn random_circuits_prove_under_both_reductions() {
    for seed in 0..6 {
        let circuit = Circuit { seed, constraints: 40, public: 3, free: 4, unused: 2 };
        let (r1cs, witness) = circuit.build();
        assert_eq!(r1cs.first_unsatisfied(&witness), Ok(None));
        proves::<Libsnark>(&r1cs, &witness);
        proves::<Circom>(&r1cs, &witness);
    }
}

fn opens<R: Reduction>(r1cs: &R1cs, witness: &Witness) {
    let trapdoor = Trapdoor::<R>::insecure_from_seed(r1cs, [3; 32]).unwrap();
    let key = trapdoor.key(r1cs, &Threads).unwrap();
    let opened = trapdoor.open(r1cs, witness).unwrap();
    let proof = reference(&key, r1cs, witness, blinding(1));
    assert_eq!(opened.proof(&blinding(1)), proof, "{} of {} rows", R::NAME, r1cs.n_rows());
    assert_ne!(opened.proof(&blinding(2)), proof, "another blinding");
    // A proof that verifies, of another witness: the pairing alone would not tell.
    assert_ne!(
        Trapdoor::<R>::insecure_from_seed(r1cs, [4; 32])
            .unwrap()
            .open(r1cs, witness)
            .unwrap()
            .proof(&blinding(1)),
        proof
    );

    let mut values = witness.values().to_vec();
    *values.last_mut().unwrap() += Scalar::ONE;
    let wrong = Witness::new(values).unwrap();
    if r1cs.first_unsatisfied(&wrong).unwrap().is_some() {
        let made = reference(&key, r1cs, &wrong, blinding(1));
        assert_ne!(trapdoor.open(r1cs, &wrong).unwrap().proof(&blinding(1)), made, "no proof of a falsehood");
    }
    let short = Witness::new(vec![Scalar::ONE]).unwrap();
    assert!(matches!(trapdoor.open(r1cs, &short), Err(Error::Shape(ShapeError::Count { .. }))));
}

/// The trapdoor gives the proof that the prover makes, under both reductions, and no other.
#[test]
fn proofs_are_what_the_trapdoor_says() {
    for seed in 0..6 {
        let (r1cs, witness) = Circuit { seed, constraints: 40, public: 3, free: 4, unused: 2 }.build();
        opens::<Libsnark>(&r1cs, &witness);
        opens::<Circom>(&r1cs, &witness);
        let (other, _) = squares(90, 3);
        let trapdoor = Trapdoor::<Libsnark>::insecure_from_seed(&r1cs, [3; 32]).unwrap();
        assert!(matches!(trapdoor.key(&other, &Threads), Err(Error::Shape(ShapeError::Count { .. }))));
    }
}

#[test]
fn trapdoors_are_fresh_unless_seeded() {
    let (r1cs, _) = squares(4, 3);
    let fresh = [setup::<Libsnark>(&r1cs).unwrap(), setup::<Libsnark>(&r1cs).unwrap()];
    assert_ne!(fresh[0].vk(), fresh[1].vk());
    let seeded = |seed| setup_insecure_from_seed::<Libsnark>(&r1cs, [seed; 32]).unwrap();
    assert_eq!((seeded(1).vk(), seeded(1).h()), (seeded(1).vk(), seeded(1).h()));
    assert_ne!(seeded(1).vk(), seeded(2).vk());
}

#[test]
fn f4_changed_proofs_and_inputs_are_rejected() {
    let (r1cs, witness) = Circuit { seed: 9, constraints: 20, public: 2, free: 3, unused: 0 }.build();
    let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [1; 32]).unwrap();
    let proof = reference(&key, &r1cs, &witness, blinding(1));
    let public = witness.public(2).unwrap().to_vec();
    let vk = PreparedKey::new(key.vk()).unwrap();
    assert!(vk.verify(&public, &proof).unwrap());

    let g1 = G1Affine::generator();
    let h = {
        let scalars = common::h_scalars::<Libsnark>(common::evaluations(&r1cs, &witness));
        prestage_msm::host::msm(key.h(), &scalars).unwrap()
    };
    assert!(!bool::from(group::Group::is_identity(&h)));
    let wrong = [
        Proof { a: (g1 + proof.a.to_curve()).into(), ..proof },
        Proof { b: (blstrs::G2Affine::generator() + proof.b.to_curve()).into(), ..proof },
        Proof { c: (g1 + proof.c.to_curve()).into(), ..proof },
        Proof { c: (proof.c.to_curve() - h).into(), ..proof },
        Proof { a: -proof.a, ..proof },
    ];
    for proof in &wrong {
        assert!(!vk.verify(&public, proof).unwrap());
        assert!(!vk.verify_batch(&[(&public, proof)]).unwrap());
    }
    // Malleable: both signs changed is a proof again.
    assert!(vk.verify(&public, &Proof { a: -proof.a, b: -proof.b, c: proof.c }).unwrap());

    for i in 0..2 {
        let mut public = public.clone();
        public[i] += Scalar::ONE;
        assert!(!vk.verify(&public, &proof).unwrap());
    }
    for public in [&public[..1], &[], &[Scalar::ONE; 3]] {
        let count = ShapeError::Count { what: "public inputs", expected: 2, got: public.len() as u64 };
        assert!(matches!(vk.verify(public, &proof), Err(Error::Shape(e)) if e == count));
        assert!(vk.verify_batch(&[(public, &proof)]).is_err());
    }
}

#[test]
fn batches_hold_only_when_every_proof_does() {
    let (r1cs, witness) = squares(7, 5);
    let key = setup_insecure_from_seed::<Circom>(&r1cs, [2; 32]).unwrap();
    let vk = PreparedKey::new(key.vk()).unwrap();
    let public = witness.public(1).unwrap();
    let proofs: Vec<_> = (0..5).map(|i| reference(&key, &r1cs, &witness, blinding(i))).collect();
    let batch: Vec<_> = proofs.iter().map(|p| (public, p)).collect();
    for n in 0..=5 {
        assert!(vk.verify_batch(&batch[..n]).unwrap());
    }
    // Two wrong proofs whose errors would cancel in a plain sum.
    let bump = G1Affine::generator().to_curve();
    let mut wrong = proofs.clone();
    wrong[1].c = (wrong[1].c.to_curve() + bump).into();
    wrong[3].c = (wrong[3].c.to_curve() - bump).into();
    let batch: Vec<_> = wrong.iter().map(|p| (public, p)).collect();
    assert!(!vk.verify_batch(&batch).unwrap());
}
