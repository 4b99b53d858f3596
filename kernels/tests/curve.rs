//! Row M6 for the curves: the host build of G1 and G2 against blstrs, with equal, opposite and infinite operands
//! in every pair of places.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use common::*;
use group::{Curve, Group, prime::PrimeCurveAffine};
use prestage_kernels::{
    Args, Launch,
    check::CurveOp,
    host::{self, Order},
};
use proptest::{collection::vec, prelude::*};

const OPS: [CurveOp; 5] = [CurveOp::Mixed, CurveOp::Full, CurveOp::Double, CurveOp::Affine, CurveOp::Negate];

fn check_g1(pairs: &[(G1Affine, G1Affine)], z: &[Fq12], block: u32, order: Order) {
    let a: Vec<[u32; 24]> = pairs.iter().map(|(p, _)| g1_limbs(p)).collect();
    let b: Vec<[u32; 24]> = pairs.iter().map(|(_, q)| g1_limbs(q)).collect();
    for op in OPS {
        let n = pairs.len();
        let mut out = vec![[0u32; 24]; n];
        let args = Args::new().with(op as u32).with(out.as_mut_ptr()).with(a.as_ptr()).with(b.as_ptr());
        let args = args.with(z.as_ptr()).with(n as u64);
        // SAFETY: n elements behind each pointer.
        unsafe { host::launch(&Launch::elementwise("g1_check", n as u64, block, args), order).unwrap() };
        for (i, (p, q)) in pairs.iter().enumerate() {
            let expected = match op {
                CurveOp::Double => G1Projective::from(p).double(),
                CurveOp::Negate => -G1Projective::from(p),
                _ => G1Projective::from(p) + q,
            };
            assert_eq!(out[i], g1_limbs(&expected.to_affine()), "{op:?} of pair {i}");
        }
    }
}

fn check_g2(pairs: &[(G2Affine, G2Affine)], z: &[Fq24], block: u32, order: Order) {
    let a: Vec<[u32; 48]> = pairs.iter().map(|(p, _)| g2_limbs(p)).collect();
    let b: Vec<[u32; 48]> = pairs.iter().map(|(_, q)| g2_limbs(q)).collect();
    for op in OPS {
        let n = pairs.len();
        let mut out = vec![[0u32; 48]; n];
        let args = Args::new().with(op as u32).with(out.as_mut_ptr()).with(a.as_ptr()).with(b.as_ptr());
        let args = args.with(z.as_ptr()).with(n as u64);
        // SAFETY: n elements behind each pointer.
        unsafe { host::launch(&Launch::elementwise("g2_check", n as u64, block, args), order).unwrap() };
        for (i, (p, q)) in pairs.iter().enumerate() {
            let expected = match op {
                CurveOp::Double => G2Projective::from(p).double(),
                CurveOp::Negate => -G2Projective::from(p),
                _ => G2Projective::from(p) + q,
            };
            assert_eq!(out[i], g2_limbs(&expected.to_affine()), "{op:?} of pair {i}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn m6_g1_equals_blstrs(pairs in vec((g1_point(), g1_point()), 1..12), seed in any::<u64>(), block in 1u32..=128, order in order()) {
        let z: Vec<Fq12> = (0..pairs.len() as u64).map(|i| limbs(&random_fp(seed ^ i))).collect();
        check_g1(&pairs, &z, block, order);
    }

    #[test]
    fn m6_g2_equals_blstrs(pairs in vec((g2_point(), g2_point()), 1..6), seed in any::<u64>(), block in 1u32..=128, order in order()) {
        let z: Vec<Fq24> =
            (0..pairs.len() as u64).map(|i| joined(limbs(&random_fp(seed ^ i)), limbs(&random_fp(seed ^ i ^ 1 << 40)))).collect();
        check_g2(&pairs, &z, block, order);
    }
}

/// Every pair of O, G, −G, 2G, −2G: each exceptional case in each place.
#[test]
fn m6_exceptional_pairs() {
    let g1 = |k: u64| (G1Projective::generator() * Scalar::from(k)).to_affine();
    let points = [G1Affine::identity(), g1(1), -g1(1), g1(2), -g1(2)];
    let pairs: Vec<_> = points.iter().flat_map(|p| points.iter().map(|q| (*p, *q))).collect();
    let z: Vec<Fq12> = (0..pairs.len() as u64).map(|i| limbs(&random_fp(i))).collect();
    check_g1(&pairs, &z, 7, Order::Backwards);

    let g2 = |k: u64| (G2Projective::generator() * Scalar::from(k)).to_affine();
    let points = [G2Affine::identity(), g2(1), -g2(1), g2(2), -g2(2)];
    let pairs: Vec<_> = points.iter().flat_map(|p| points.iter().map(|q| (*p, *q))).collect();
    let z: Vec<Fq24> =
        (0..pairs.len() as u64).map(|i| joined(limbs(&random_fp(i)), limbs(&random_fp(i + 99)))).collect();
    check_g2(&pairs, &z, 7, Order::Shuffled(3));
}

/// A sum that passes through the doubling and the infinity on its way: −3Q + k·Q for k = 0 … 8.
#[test]
fn m6_sums_through_infinity() {
    let q = G1Projective::generator() * random_scalar(5);
    let start = (-(q + q + q)).to_affine();
    for steps in 0u32..9 {
        let (s, b) = ([g1_limbs(&start)], [g1_limbs(&q.to_affine())]);
        let mut out = [[0u32; 24]];
        let args =
            Args::new().with(out.as_mut_ptr()).with(s.as_ptr()).with(b.as_ptr()).with(steps).with(1u64);
        // SAFETY: one element behind each pointer.
        unsafe { host::launch(&Launch::elementwise("g1_chain", 1, 1, args), Order::Forwards).unwrap() };
        let expected = (G1Projective::from(start) + q * Scalar::from(u64::from(steps))).to_affine();
        assert_eq!(out[0], g1_limbs(&expected), "{steps} steps");
    }
}
