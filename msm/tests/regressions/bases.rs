//! Infinities, equal and opposite points.

use crate::common::{Known, random, run};
use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use prestage_msm::{Affine, Plan, msm, to_affine_batch};

fn infinity_in_bases<A: Affine>() {
    let mut known = Known::<A>::new(8, 112);
    known.infinity(3);
    let scalars = random(8, 112);
    assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
    for scalar in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(5)] {
        for n in [1, 2, 8, 100, 5000] {
            assert_eq!(msm(&vec![A::identity(); n], &vec![scalar; n]).unwrap(), A::Curve::identity());
        }
    }
}

#[test]
fn b112_infinity_in_bases() {
    infinity_in_bases::<G1Affine>();
    infinity_in_bases::<G2Affine>();
}

#[test]
fn b119_opposite_and_equal_points_in_one_bucket() {
    // Every window of equal scalars has one bucket: it meets P, then −P, then P twice, then P again.
    for n in [5, 50, 500, 1 << 13] {
        let mut known = Known::<G1Affine>::new(n, 119);
        for i in (0..n - 4).step_by(5) {
            known.negate(i, i + 1);
            known.copy(i, i + 2);
            known.copy(i, i + 3);
            known.copy(i, i + 4);
        }
        for scalar in [Scalar::from(3), -Scalar::from(3), random(1, 119)[0]] {
            assert_eq!(msm(&known.bases, &vec![scalar; n]).unwrap(), known.sum(&vec![scalar; n]));
        }
    }
}

fn copies<A: Affine>(n: usize) {
    let scalar = random(1, 120)[0];
    let sum = msm(&vec![A::generator(); n], &vec![scalar; n]).unwrap();
    assert_eq!(sum, A::Curve::generator() * (Scalar::from(n as u64) * scalar));
}

#[test]
fn b120_copies_of_one_base() {
    copies::<G1Affine>(8192);
    copies::<G2Affine>(8192);
}

#[test]
fn b121_tenth_duplicates_tenth_opposite() {
    for seed in 0..8 {
        let n = 700;
        let mut known = Known::<G1Affine>::new(n, seed);
        for i in (10..n).step_by(10) {
            known.copy(i - 10, i);
            known.negate(i - 7, i - 3);
        }
        let mut scalars = random(n, seed);
        for i in (10..n).step_by(20) {
            scalars[i] = scalars[i - 10];
            scalars[i - 3] = scalars[i - 7];
        }
        assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
    }
}

#[test]
fn b122_hot_buckets_give_one_result() {
    let n = 600;
    let mut known = Known::<G1Affine>::new(n, 122);
    for i in (0..n - 1).step_by(4) {
        known.negate(i, i + 1);
    }
    let scalars = vec![random(1, 122)[0]; n];
    let expected = known.sum(&scalars).to_affine();
    for run in 0..100 {
        let sum = msm(&known.bases, &scalars).unwrap().to_affine();
        assert!(bool::from(sum.is_on_curve()), "{run}");
        assert_eq!(sum, expected, "{run}");
    }
}

#[test]
fn b123_one_input_left_after_infinities() {
    for (n, left) in [(2, 0), (2, 1), (5, 0), (5, 4), (300, 299)] {
        let mut known = Known::<G1Affine>::new(n, 123);
        for i in (0..n).filter(|i| *i != left) {
            known.infinity(i);
        }
        let scalars = random(n, 123);
        assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
        assert_eq!(msm(&known.bases, &vec![Scalar::ONE; n]).unwrap(), known.bases[left].to_curve());
    }
}

#[test]
fn b130_infinity_in_a_batch_conversion() {
    let g = G1Projective::generator();
    let o = G1Projective::identity();
    let affine = |points: &[G1Projective]| points.iter().map(G1Affine::from).collect::<Vec<_>>();
    for points in [vec![], vec![o], vec![g, o, g.double()], vec![o, o, g], vec![o; 3000]] {
        assert_eq!(to_affine_batch::<G1Affine>(&points), affine(&points));
    }
    let mut many: Vec<_> = std::iter::successors(Some(g), |p| Some(p.double())).take(2500).collect();
    for i in [0, 5, 1023, 1024, 2499] {
        many[i] = o;
    }
    assert_eq!(to_affine_batch::<G1Affine>(&many), affine(&many));
}

/// A query that is mostly infinity, as B over G2 is in circuits with many public inputs (202 of 222).
#[test]
fn f036_query_full_of_infinities() {
    let mut known = Known::<G2Affine>::new(222, 36);
    for i in 0..202 {
        known.infinity((i * 35) % 222);
    }
    assert_eq!(known.bases.iter().filter(|p| bool::from(p.is_identity())).count(), 202);
    let scalars = random(222, 36);
    assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
}

/// A third of the bases infinite, and two thirds, at lengths on both sides of blst's share.
#[test]
fn f030_infinities_at_the_density_of_real_queries() {
    for (n, keep) in [(12, 3), (200, 3), (10_611, 3), (3000, 2)] {
        let mut known = Known::<G1Affine>::new(n, 30);
        for i in (0..n).filter(|i| (i % 3 == 0) == (keep == 3)) {
            known.infinity(i);
        }
        let scalars = random(n, 31);
        let plan = Plan::new(n, 2);
        assert_eq!(run(&plan, &known.bases, &scalars).0, known.sum(&scalars));
    }
}
