//! Verification.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use prestage_groth16::format::json;
use prestage_groth16::{Error, PreparedKey, Proof, ShapeError, VerifyingKey, verify};

use super::fixture;

fn statement(name: &str) -> (VerifyingKey, Vec<Scalar>, Proof) {
    let read = |file: &str| fixture(&format!("{name}/{file}"));
    (
        json::read_verifying_key(&read("vkey.json")).unwrap(),
        json::read_public(&read("public.json")).unwrap(),
        json::read_proof(&read("proof.json")).unwrap(),
    )
}

#[test]
fn b155_a_wrong_number_of_inputs_is_an_error() {
    for name in ["nopublic", "multiplier", "allpublic", "boundary_full"] {
        let (vk, public, proof) = statement(name);
        let vk = PreparedKey::new(&vk).unwrap();
        assert!(vk.verify(&public, &proof).unwrap());
        for len in [public.len() + 1, public.len().wrapping_sub(1), 0] {
            if len == public.len() || len == usize::MAX {
                continue;
            }
            let mut inputs = public.clone();
            inputs.resize(len, Scalar::ZERO);
            let count =
                ShapeError::Count { what: "public inputs", expected: public.len() as u64, got: len as u64 };
            assert!(matches!(vk.verify(&inputs, &proof), Err(Error::Shape(e)) if e == count), "{name}");
            let batch = vk.verify_batch(&[(&public, &proof), (&inputs, &proof)]);
            assert!(matches!(batch, Err(Error::Shape(_))), "{name}");
        }
    }
}

#[test]
fn b162_infinities_in_the_equation() {
    // e(A, B) = e(α, β)·e(IC, γ)·e(C, δ) with A = a·G, B = b·H and so on is ab = αβ + ic·γ + cδ.
    let g1 = |k: u64| (G1Affine::generator() * Scalar::from(k)).to_affine();
    let g2 = |k: u64| (G2Affine::generator() * Scalar::from(k)).to_affine();
    let minus = |p: G1Affine| -p;
    let vk = |ic: G1Affine| VerifyingKey {
        alpha_g1: g1(2),
        beta_g1: None,
        beta_g2: g2(3),
        gamma_g2: g2(5),
        delta_g1: None,
        delta_g2: g2(7),
        ic: vec![ic].into(),
    };
    let o1 = G1Affine::identity();
    let o2 = G2Affine::identity();
    let check = |ic, a, b, c, valid: bool| {
        let vk = PreparedKey::new(&vk(ic)).unwrap();
        let proof = Proof { a, b, c };
        assert_eq!(vk.verify(&[], &proof).unwrap(), valid);
        assert_eq!(vk.verify_batch(&[(&[], &proof), (&[], &proof)]).unwrap(), valid);
    };
    // IC = O, C = O: 6 = 6.
    check(o1, g1(2), g2(3), o1, true);
    check(o1, g1(2), g2(4), o1, false);
    // IC = O: 13 = 6 + 7.
    check(o1, g1(13), g2(1), g1(1), true);
    // C = O: 11 = 6 + 5.
    check(g1(1), g1(11), g2(1), o1, true);
    check(g1(1), g1(12), g2(1), o1, false);
    // A = O or B = O: 0 = 6 + 15 − 21.
    check(g1(3), o1, g2(9), minus(g1(3)), true);
    check(g1(3), g1(9), o2, minus(g1(3)), true);
    check(g1(3), o1, o2, g1(3), false);
}

#[test]
fn b168_keys_under_which_anyone_can_prove_are_refused() {
    let (good, public, proof) = statement("multiplier");
    let refused = |vk: VerifyingKey| {
        let reason = match verify(&vk, &public, &proof) {
            Err(Error::InsecureKey { reason }) => reason,
            other => panic!("{other:?}"),
        };
        // On request it is used all the same.
        PreparedKey::new_insecure(&vk).unwrap().verify(&public, &proof).unwrap();
        reason
    };
    let generator = G2Affine::generator();
    let reason = refused(VerifyingKey { delta_g2: generator, ..good.clone() });
    assert!(reason.contains("delta is the generator"));
    assert!(refused(VerifyingKey { gamma_g2: good.delta_g2, ..good.clone() }).contains("gamma equals delta"));
    for vk in [
        VerifyingKey { alpha_g1: G1Affine::identity(), ..good.clone() },
        VerifyingKey { beta_g2: G2Affine::identity(), ..good.clone() },
        VerifyingKey { gamma_g2: G2Affine::identity(), ..good.clone() },
        VerifyingKey { delta_g2: G2Affine::identity(), ..good.clone() },
    ] {
        assert!(refused(vk).contains("at infinity"));
    }
    let empty = VerifyingKey { ic: [].into(), ..good };
    assert!(matches!(PreparedKey::new(&empty), Err(Error::Shape(ShapeError::Count { .. }))));
}

/// A key whose δ is the generator: a proof of anything, made without a witness.
#[test]
fn b168_what_the_refusal_prevents() {
    let (good, _, _) = statement("multiplier");
    let vk = VerifyingKey { delta_g2: G2Affine::generator(), gamma_g2: G2Affine::generator(), ..good };
    let public = [Scalar::from(424_242)];
    let inputs = vk.ic[0] + vk.ic[1] * public[0];
    let forged = Proof { a: vk.alpha_g1, b: vk.beta_g2, c: (-inputs).to_affine() };
    assert!(PreparedKey::new_insecure(&vk).unwrap().verify(&public, &forged).unwrap());
    assert!(matches!(verify(&vk, &public, &forged), Err(Error::InsecureKey { .. })));
}

/// Points that a decoder of this crate would not let through are refused by the verifier too.
#[test]
fn b156_the_verifier_tests_the_subgroup_itself() {
    let (vk, public, proof) = statement("multiplier");
    let vk = PreparedKey::new(&vk).unwrap();
    // On the curve, outside the subgroup: the first x for which y² = x³ + 4 has a root and r·P is not infinity.
    let torsion = (1u64..)
        .find_map(|x| {
            let mut bytes = [0; 48];
            bytes[40..].copy_from_slice(&x.to_be_bytes());
            bytes[0] |= 0x80;
            let point: Option<G1Affine> = G1Affine::from_compressed_unchecked(&bytes).into();
            point.filter(|p| !bool::from(p.is_torsion_free()))
        })
        .unwrap();
    let a = Proof { a: torsion, ..proof };
    let c = Proof { c: torsion, ..proof };
    for (name, proof) in [("A", a), ("C", c)] {
        assert!(matches!(vk.verify(&public, &proof), Err(Error::NotInSubgroup { name: n }) if n == name));
        assert!(vk.verify_batch(&[(&public, &proof)]).is_err());
    }
}
