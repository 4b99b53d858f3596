//! Scalars and points from blst's types to arkworks' and back.
//!
//! Both libraries keep field elements as little-endian 64-bit words in Montgomery form with R = 2^256 and 2^384, so
//! words are copied. Only infinity differs: blst has both coordinates zero, arkworks has a flag.

use ark_bls12_381::{Bls12_381, Fq, Fq2, Fr, G1Affine as ArkG1, G2Affine as ArkG2};
use ark_ec::AffineRepr;
use ark_ff::BigInt;
use blst::{blst_fp, blst_fp2, blst_fr, blst_p1_affine, blst_p2_affine};
use blstrs::{Fp, Fp2, G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use prestage_groth16::{Matrix, Proof, ProvingKey, Query, R1cs, Reduction, VerifyingKey};

/// A scalar for arkworks.
#[must_use]
pub fn scalar(s: &Scalar) -> Fr {
    Fr::new_unchecked(BigInt(blst_fr::from(*s).l))
}

/// Scalars for arkworks.
#[must_use]
pub fn scalars(s: &[Scalar]) -> Vec<Fr> {
    s.iter().map(scalar).collect()
}

/// A scalar from arkworks.
#[must_use]
pub fn scalar_from(s: &Fr) -> Scalar {
    Scalar::from(blst_fr { l: s.0.0 })
}

fn fq(x: &blst_fp) -> Fq {
    Fq::new_unchecked(BigInt(x.l))
}

fn fp(x: &Fq) -> Fp {
    Fp::from(blst_fp { l: x.0.0 })
}

/// A point of G1 for arkworks.
pub fn g1(p: &G1Affine) -> ArkG1 {
    let raw: &blst_p1_affine = p.as_ref();
    if bool::from(p.is_identity()) { ArkG1::zero() } else { ArkG1::new_unchecked(fq(&raw.x), fq(&raw.y)) }
}

/// A point of G2 for arkworks.
pub fn g2(p: &G2Affine) -> ArkG2 {
    let raw: &blst_p2_affine = p.as_ref();
    let fq2 = |x: &blst_fp2| Fq2::new(fq(&x.fp[0]), fq(&x.fp[1]));
    if bool::from(p.is_identity()) { ArkG2::zero() } else { ArkG2::new_unchecked(fq2(&raw.x), fq2(&raw.y)) }
}

/// A point of G1 from arkworks.
#[must_use]
pub fn g1_from(p: &ArkG1) -> G1Affine {
    p.xy().map_or_else(G1Affine::identity, |(x, y)| G1Affine::from_raw_unchecked(fp(&x), fp(&y), false))
}

/// A point of G2 from arkworks.
#[must_use]
pub fn g2_from(p: &ArkG2) -> G2Affine {
    let fp2 = |x: &Fq2| Fp2::new(fp(&x.c0), fp(&x.c1));
    p.xy().map_or_else(G2Affine::identity, |(x, y)| G2Affine::from_raw_unchecked(fp2(&x), fp2(&y), false))
}

/// A proof from arkworks, its points taken as they are.
#[must_use]
pub fn proof_from(p: &ark_groth16::Proof<Bls12_381>) -> Proof {
    Proof { a: g1_from(&p.a), b: g2_from(&p.b), c: g1_from(&p.c) }
}

/// A proof for arkworks, its points taken as they are.
#[must_use]
pub fn proof(p: &Proof) -> ark_groth16::Proof<Bls12_381> {
    ark_groth16::Proof { a: g1(&p.a), b: g2(&p.b), c: g1(&p.c) }
}

/// A verifying key for arkworks.
#[must_use]
pub fn verifying_key(vk: &VerifyingKey) -> ark_groth16::VerifyingKey<Bls12_381> {
    ark_groth16::VerifyingKey {
        alpha_g1: g1(&vk.alpha_g1),
        beta_g2: g2(&vk.beta_g2),
        gamma_g2: g2(&vk.gamma_g2),
        delta_g2: g2(&vk.delta_g2),
        gamma_abc_g1: vk.ic.iter().map(g1).collect(),
    }
}

/// A proving key for arkworks and taceo, whichever reduction it was made for. Infinities are put back in their places.
#[must_use]
pub fn proving_key<R: Reduction>(key: &ProvingKey<R>) -> ark_groth16::ProvingKey<Bls12_381> {
    ark_groth16::ProvingKey {
        vk: verifying_key(key.vk()),
        beta_g1: g1(key.beta_g1()),
        delta_g1: g1(key.delta_g1()),
        a_query: query(key.a(), g1),
        b_g1_query: query(key.b_g1(), g1),
        b_g2_query: query(key.b_g2(), g2),
        h_query: key.h().iter().map(g1).collect(),
        l_query: query(key.l(), g1),
    }
}

fn query<P, Q: AffineRepr>(query: &Query<P>, point: fn(&P) -> Q) -> Vec<Q> {
    by_wire(query, Q::zero(), point)
}

/// One point per wire, infinities in their places.
pub(crate) fn by_wire<P, Q: Clone>(query: &Query<P>, infinity: Q, point: impl Fn(&P) -> Q) -> Vec<Q> {
    let mut points = vec![infinity; query.density().len()];
    for (wire, p) in query.density().ones().zip(query.points().iter()) {
        points[wire] = point(p);
    }
    points
}

/// Rows of a matrix in arkworks' form: per row, coefficients with the index of their wire.
pub type Rows = Vec<Vec<(Fr, usize)>>;

/// The matrices A, B and C of a constraint system for arkworks and taceo.
#[must_use]
pub fn matrices(r1cs: &R1cs) -> [Rows; 3] {
    let rows = |m: &Matrix| {
        (0..m.n_rows()).map(|i| m.row(i).map(|(wire, c)| (scalar(&c), wire as usize)).collect()).collect()
    };
    [r1cs.a(), r1cs.b(), r1cs.c()].map(rows)
}

#[cfg(test)]
mod tests {
    use ark_ec::{CurveGroup, PrimeGroup};
    use ark_serialize::CanonicalSerialize;
    use ff::{Field, PrimeField};
    use group::Curve;

    use super::*;

    #[test]
    fn words_are_copied_both_ways() {
        for s in [Scalar::ZERO, Scalar::ONE, -Scalar::from(5), Scalar::from(1 << 40).square()] {
            let mut bytes = Vec::new();
            scalar(&s).serialize_compressed(&mut bytes).unwrap();
            assert_eq!(bytes, s.to_repr());
            assert_eq!(scalar_from(&scalar(&s)), s);

            let (p, q) = ((G1Affine::generator() * s).to_affine(), (G2Affine::generator() * s).to_affine());
            assert_eq!(g1(&p), (ark_bls12_381::G1Projective::generator() * scalar(&s)).into_affine());
            assert_eq!(g2(&q), (ark_bls12_381::G2Projective::generator() * scalar(&s)).into_affine());
            assert_eq!((g1_from(&g1(&p)), g2_from(&g2(&q))), (p, q));
        }
    }
}
