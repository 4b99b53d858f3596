//! Lengths that broke something.

use crate::common::{Known, random, run};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::{Curve, Group};
use prestage_msm::{Affine, Plan, msm, naive};

fn sizes<A: Affine>(sizes: &[usize]) {
    let max = *sizes.iter().max().unwrap();
    let known = Known::<A>::new(max, 115);
    let scalars = random(max, 115);
    for &n in sizes {
        let known = Known { bases: known.bases[..n].to_vec(), logs: known.logs[..n].to_vec() };
        assert_eq!(msm(&known.bases, &scalars[..n]).unwrap(), known.sum(&scalars[..n]), "{} {n}", A::NAME);
    }
}

#[test]
fn b115_beyond_16_bit_indices() {
    sizes::<G1Affine>(&[65_535, 65_536, 65_537, (1 << 17) + 1]);
}

#[test]
fn f035_beyond_unsigned_shorts_in_g2() {
    sizes::<G2Affine>(&[65_535, 65_537]);
}

/// Chunks of 4096 scalars, batches of 512 and 256 additions: one less, exactly, one more.
#[test]
fn b116_around_the_blocks_of_work() {
    sizes::<G1Affine>(&[255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 8191, 8192, 8193, 12_289]);
}

#[test]
fn b117_small_sums_of_ones_and_others() {
    let known = Known::<G1Affine>::new(600, 117);
    let full = random(600, 117);
    let scalars: Vec<_> = (0..600).map(|i| if i % 3 == 0 { Scalar::ONE } else { full[i] }).collect();
    for n in 1..=600 {
        let part = Known { bases: known.bases[..n].to_vec(), logs: known.logs[..n].to_vec() };
        assert_eq!(msm(&part.bases, &scalars[..n]).unwrap(), part.sum(&scalars[..n]), "{n}");
    }
}

fn one_term<A: Affine>() {
    let base = (A::generator() * Scalar::from(7)).to_affine();
    for scalar in [Scalar::ZERO, Scalar::ONE, Scalar::from(2), -Scalar::ONE] {
        let expected = A::Curve::generator() * (Scalar::from(7) * scalar);
        assert_eq!(msm(&[base], &[scalar]).unwrap(), expected);
        assert_eq!(naive::msm(&[base], &[scalar]).unwrap(), expected);
        for bits in 1..=20 {
            let plan = Plan::new(1, 1).with_window(bits).unwrap();
            assert_eq!(run(&plan, &[base], &[scalar]).0, expected, "{bits}");
        }
    }
}

#[test]
fn b124_one_term() {
    one_term::<G1Affine>();
    one_term::<G2Affine>();
}

#[test]
fn b128_window_of_tiny_and_huge_sums() {
    for n in (0..=1000).chain([1 << 20, 1 << 27, 1 << 32, usize::MAX]) {
        for threads in [0, 1, 2, 192] {
            let plan = Plan::new(n, threads);
            assert!((1..=20).contains(&plan.window()), "{plan:?}");
            assert!(plan.footprint::<G2Affine>().get() > 32 * (n as u64).min(1 << 40), "{plan:?}");
        }
    }
}

/// A section of a key that comes out empty: the sum of nothing is infinity, on every path.
#[test]
fn f008_empty_sum() {
    assert!(bool::from(msm::<G1Affine>(&[], &[]).unwrap().is_identity()));
    assert!(bool::from(msm::<G2Affine>(&[], &[]).unwrap().is_identity()));
    for planned in [0, 1, 32, 10_000] {
        for plan in [Plan::new(planned, 2), Plan::new(planned, 2).with_window(5).unwrap()] {
            assert!(bool::from(run::<G1Affine>(&plan, &[], &[]).0.is_identity()));
        }
    }
}
