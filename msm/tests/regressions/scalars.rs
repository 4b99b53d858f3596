//! Skewed scalars and their digits.

use crate::common::{Known, random, run};
use blstrs::{G1Affine, Scalar};
use ff::Field;
use prestage_msm::{Error, Plan, msm, naive};

#[test]
fn b114_scalars_from_a_few_values() {
    let n = (1 << 10) + 3;
    let known = Known::<G1Affine>::new(n, 114);
    let (zero, one, minus) = (Scalar::ZERO, Scalar::ONE, -Scalar::ONE);
    let full = random(n, 114);
    let among =
        |values: &[Scalar]| (0..n).map(|i| values[(i * i + i / 3) % values.len()]).collect::<Vec<_>>();
    let mostly_zero = (0..n).map(|i| if i % 10 == 9 { full[i] } else { zero }).collect();
    for scalars in [
        among(&[zero]),
        among(&[one]),
        among(&[minus]),
        among(&[zero, one, minus]),
        among(&full[..1]),
        mostly_zero,
    ] {
        assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
    }
}

/// All scalars equal: every window has one bucket with everything in it. Work is counted, not timed.
#[test]
fn b118_one_bucket_holds_everything() {
    let n = 1 << 18;
    let known = Known::<G1Affine>::new(n, 118);
    let plan = Plan::new(n, 2);
    let scalars = vec![random(1, 118)[0]; n];
    let (sum, stats) = run(&plan, &known.bases, &scalars);
    assert_eq!(sum, known.sum(&scalars));
    // Random scalars would take one addition for each term and window, and one more for each bucket.
    let windows = 256u64.div_ceil(u64::from(plan.window()));
    assert!(stats.additions <= windows * n as u64, "{stats:?}");
}

#[test]
fn b125_largest_digits_at_every_window() {
    let half = Scalar::from(2).invert().unwrap();
    let mut scalars = vec![-Scalar::ONE, half, half - Scalar::ONE];
    let mut power = Scalar::ONE;
    for _ in 0..254 {
        power = power.double();
        scalars.push(power - Scalar::ONE);
    }
    let known = Known::<G1Affine>::new(scalars.len(), 125);
    let expected = known.sum(&scalars);
    for bits in 1..=20 {
        let plan = Plan::new(scalars.len(), 1).with_window(bits).unwrap();
        assert_eq!(run(&plan, &known.bases, &scalars).0, expected, "{bits}");
    }
}

#[test]
fn b129_unequal_lengths_are_an_error() {
    let known = Known::<G1Affine>::new(101, 129);
    let scalars = random(101, 129);
    for (bases, count) in [(101, 100), (100, 101), (0, 1), (1, 0), (101, 1)] {
        let (known, scalars) = (&known.bases[..bases], &scalars[..count]);
        for error in [msm(known, scalars).unwrap_err(), naive::msm(known, scalars).unwrap_err()] {
            assert!(
                matches!(error, Error::LengthMismatch { bases: b, scalars: s } if (b, s) == (bases, count))
            );
        }
    }
}

/// A second way to the same sum: without the split, with another window, naively.
#[test]
fn b135_every_path_agrees() {
    let n = 300;
    let known = Known::<G1Affine>::new(n, 135);
    let full = random(n, 135);
    let scalars: Vec<_> = (0..n).map(|i| if i % 2 == 0 { Scalar::ONE } else { full[i] }).collect();
    let expected = naive::msm(&known.bases, &scalars).unwrap();
    let plan = Plan::new(n, 2);
    for plan in [plan, plan.without_split(), plan.with_window(9).unwrap(), Plan::new(2 * n, 3)] {
        assert_eq!(run(&plan, &known.bases, &scalars).0, expected, "{plan:?}");
    }
}
