//! Rows M2 to M5: sums against the naive one at every size, window and kind of scalar.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use blstrs::{G1Affine, G2Affine, Scalar};
use common::{Known, random, run};
use ff::{Field, PrimeField};
use group::Group;
use prestage_msm::{Affine, Error, Plan, msm, msm_with, naive};
use proptest::prelude::*;
use rand_core::RngCore;

/// Sizes 0 … 600 of the same random terms: the expected sum grows by one naive term each.
fn every_size<A: Affine>() {
    let known = Known::<A>::new(600, 1);
    let scalars = random(600, 2);
    let mut expected = A::Curve::identity();
    for n in 0..=600 {
        assert_eq!(msm(&known.bases[..n], &scalars[..n]).unwrap(), expected, "{} {n}", A::NAME);
        if n < 600 {
            expected += known.bases[n] * scalars[n];
        }
    }
    assert_eq!(expected, known.sum(&scalars));
}

#[test]
fn m2_every_size_to_600_g1() {
    every_size::<G1Affine>();
}

#[test]
fn m2_every_size_to_600_g2() {
    every_size::<G2Affine>();
}

/// Lengths up to `max` at which the plan differs from that of one less.
fn switches(max: usize, threads: usize) -> Vec<usize> {
    let shape = |n| format!("{:?}", Plan::new(n, threads)).split_once("shape").unwrap().1.to_string();
    (1..=max).filter(|n| shape(*n) != shape(n - 1)).collect()
}

fn both_sides_of_switches<A: Affine>(max: usize, step: usize) {
    let known = Known::<A>::new(max, 3);
    let scalars = random(max, 4);
    let mut met = 0;
    for threads in [1, 2, 5] {
        for at in switches(max, threads).into_iter().step_by(step) {
            met += 1;
            for n in [at - 1, at] {
                let known = Known { bases: known.bases[..n].to_vec(), logs: known.logs[..n].to_vec() };
                let sum = run(&Plan::new(n, threads), &known.bases, &scalars[..n]).0;
                assert_eq!(sum, known.sum(&scalars[..n]), "{} {n} on {threads}", A::NAME);
            }
        }
    }
    assert!(met > 5, "{met}");
}

#[test]
fn m2_both_sides_of_every_switch_g1() {
    both_sides_of_switches::<G1Affine>(1 << 14, 1);
}

#[test]
fn m2_both_sides_of_switches_g2() {
    both_sides_of_switches::<G2Affine>(1 << 12, 1);
}

/// A sum within a larger plan: the shape narrows to the terms at hand.
#[test]
fn m2_short_sums_under_long_plans() {
    let known = Known::<G1Affine>::new(5000, 5);
    let scalars = random(5000, 6);
    for threads in [1, 2, 3, 64] {
        for planned in [5000, 1 << 14, 1 << 18] {
            for n in [0, 1, 2, 31, 32, 33, 100, 4095, 4096, 4097, 5000] {
                let part = Known { bases: known.bases[..n].to_vec(), logs: known.logs[..n].to_vec() };
                let sum = run(&Plan::new(planned, threads), &part.bases, &scalars[..n]).0;
                assert_eq!(sum, part.sum(&scalars[..n]), "{n} of {planned} on {threads}");
            }
        }
    }
}

/// Each kind of awkward scalars, by name.
fn skewed(n: usize) -> Vec<(&'static str, Vec<Scalar>)> {
    let minus = -Scalar::ONE;
    let power = |k: usize| Scalar::from(2).pow_vartime([(k % 255) as u64]);
    let full = random(n, 7);
    let mut few = vec![Scalar::ZERO, Scalar::ONE, minus, Scalar::from(2), minus - Scalar::ONE];
    few.push(Scalar::from(2).invert().unwrap());
    vec![
        ("zero", vec![Scalar::ZERO; n]),
        ("one", vec![Scalar::ONE; n]),
        ("r - 1", vec![minus; n]),
        ("all equal", vec![full[0]; n]),
        ("2^k", (0..n).map(power).collect()),
        ("2^k - 1", (0..n).map(|k| power(k) - Scalar::ONE).collect()),
        ("one huge bucket", (0..n).map(|i| if i % 50 == 0 { full[i] } else { Scalar::from(77) }).collect()),
        ("small", full.iter().map(|s| Scalar::from(u64::from(s.to_repr()[0]))).collect()),
        ("few values", (0..n).map(|i| few[i % few.len()]).collect()),
        ("90 % zeros", (0..n).map(|i| if i % 10 == 3 { full[i] } else { Scalar::ZERO }).collect()),
    ]
}

/// Bases with what may break an addition: infinities, equal and opposite points.
fn awkward<A: Affine>(n: usize) -> Vec<(&'static str, Known<A>)> {
    let plain = || Known::<A>::new(n, 8);
    let mut mixed = plain();
    for i in (5..n).step_by(7) {
        match i % 3 {
            0 => mixed.infinity(i),
            1 => mixed.copy(i - 5, i),
            _ => mixed.negate(i - 5, i),
        }
    }
    let mut equal = plain();
    let mut opposite = plain();
    let mut infinite = plain();
    for i in 0..n {
        equal.copy(0, i);
        infinite.infinity(i);
        if i % 2 == 1 {
            opposite.negate(i - 1, i);
        }
    }
    vec![
        ("distinct", plain()),
        ("mixed", mixed),
        ("all equal", equal),
        ("opposite pairs", opposite),
        ("all infinite", infinite),
    ]
}

fn awkward_sums<A: Affine>(n: usize) {
    let plan = Plan::new(n, 2);
    let random = run(&plan, &Known::<A>::new(n, 8).bases, &random(n, 9));
    for (kind, known) in awkward::<A>(n) {
        for (scalars_kind, scalars) in skewed(n) {
            for plan in [plan, plan.without_split()] {
                let (sum, stats) = run(&plan, &known.bases, &scalars);
                assert_eq!(sum, known.sum(&scalars), "{} {kind}, {scalars_kind}", A::NAME);
                assert!(
                    2 * stats.additions <= 3 * random.1.additions,
                    "{kind}, {scalars_kind}: {stats:?} {:?} {plan:?}",
                    random.1
                );
            }
        }
    }
}

#[test]
fn m3_awkward_bases_and_scalars_g1() {
    awkward_sums::<G1Affine>(1500);
}

#[test]
fn m3_awkward_bases_and_scalars_g2() {
    awkward_sums::<G2Affine>(700);
}

#[test]
fn m3_additions_are_bounded_by_the_formula() {
    let n = 5000;
    let known = Known::<G1Affine>::new(n, 10);
    for bits in [4, 8, 11, 13] {
        let plan = Plan::new(n, 2).with_window(bits).unwrap();
        let windows = 256u64.div_ceil(u64::from(bits));
        let (_, stats) = run(&plan, &known.bases, &random(n, 11));
        assert!(stats.additions <= windows * (n as u64 + (1 << (bits - 1))), "{bits} {stats:?}");
        assert!(stats.additions >= windows * (n as u64 - (1 << (bits - 1))) * 9 / 10, "{bits} {stats:?}");
        assert_eq!((stats.zeros, stats.ones, stats.others), (0, 0, n));
    }
}

/// The naive sum itself, where nothing is known about the points.
#[test]
fn m3_awkward_against_the_naive_sum() {
    for (kind, known) in awkward::<G1Affine>(60) {
        for (scalars_kind, scalars) in skewed(60) {
            let expected = naive::msm(&known.bases, &scalars).unwrap();
            assert_eq!(known.sum(&scalars), expected);
            for bits in [1, 3, 7] {
                let plan = Plan::new(60, 1).with_window(bits).unwrap();
                assert_eq!(run(&plan, &known.bases, &scalars).0, expected, "{kind}, {scalars_kind}");
            }
        }
    }
}

fn every_window<A: Affine>(n: usize) {
    let known = Known::<A>::new(n, 12);
    let mut scalars = random(n, 13);
    let half = Scalar::from(2).invert().unwrap();
    let edges = [-Scalar::ONE, half, half - Scalar::ONE, -Scalar::from(2), Scalar::ZERO, Scalar::ONE];
    scalars[..edges.len()].copy_from_slice(&edges);
    for (k, scalar) in scalars[edges.len()..].iter_mut().take(255).enumerate() {
        *scalar = Scalar::from(2).pow_vartime([k as u64]);
        if k % 2 == 1 {
            *scalar -= Scalar::ONE;
        }
    }
    let expected = known.sum(&scalars);
    for bits in 1..=20 {
        let plan = Plan::new(n, 2).with_window(bits).unwrap();
        assert_eq!(run(&plan, &known.bases, &scalars).0, expected, "{} {bits}", A::NAME);
    }
    for bits in [0, 21, 64] {
        let error = Plan::new(n, 2).with_window(bits).unwrap_err();
        assert!(matches!(error, Error::WindowOutOfRange { bits: b, max: 20 } if b == bits));
    }
}

#[test]
fn m4_every_window_g1() {
    every_window::<G1Affine>(400);
}

#[test]
fn m4_every_window_g2() {
    every_window::<G2Affine>(300);
}

#[test]
fn m5_split_and_dense_agree() {
    let n = 6000;
    let known = Known::<G1Affine>::new(n, 14);
    let full = random(n, 15);
    let others = [0, 1, 30, 31, 32, 33, n / 100, n / 2, n / 2 + 1, n];
    for others in others {
        // Others spread evenly, or all at the end; the rest ones.
        let spread = |i: usize| (i * others) / n != ((i + 1) * others) / n;
        let last = |i: usize| i >= n - others;
        for other in [&spread as &dyn Fn(usize) -> bool, &last] {
            let scalars: Vec<_> = (0..n).map(|i| if other(i) { full[i] } else { Scalar::ONE }).collect();
            let expected = known.sum(&scalars);
            for threads in [1, 2] {
                let plan = Plan::new(n, threads);
                let (split, stats) = run(&plan, &known.bases, &scalars);
                assert_eq!((stats.zeros, stats.ones, stats.others), (0, n - others, others));
                let (dense, dense_stats) = run(&plan.without_split(), &known.bases, &scalars);
                assert_eq!((dense_stats.ones, dense_stats.others), (0, n));
                assert!(split == expected && dense == expected, "{others} on {threads}");
            }
        }
    }
}

#[test]
fn lengths_beyond_the_plan_and_short_scratch_are_errors() {
    let known = Known::<G1Affine>::new(40, 16);
    let scalars = random(40, 17);
    let plan = Plan::new(39, 1);
    let need = plan.footprint::<G1Affine>();
    let mut scratch = vec![std::mem::MaybeUninit::uninit(); need.to_usize().unwrap()];
    let error = msm_with(&plan, &known.bases, &scalars, &mut scratch).unwrap_err();
    assert!(matches!(error, Error::LongerThanPlanned { len: 40, planned: 39 }));
    scratch.pop();
    let error = msm_with(&plan, &known.bases[..39], &scalars[..39], &mut scratch).unwrap_err();
    assert!(matches!(error, Error::ScratchTooSmall { need: n, got } if n == need && got < need));
}

/// A planner that halves a batch to save memory does save memory.
#[test]
fn footprint_never_falls_with_length() {
    for threads in [1, 2, 3, 16, 64, 192] {
        let lens = (0..1 << 12).chain((12..28).flat_map(|log| (8..16).map(move |m| m << (log - 3))));
        let mut last = prestage_vram::Bytes::ZERO;
        for len in lens {
            let footprint = Plan::new(len, threads).footprint::<G1Affine>();
            assert!(footprint >= last, "{len} on {threads}: {footprint} after {last}");
            last = footprint;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any mixture of kinds of bases and scalars, any plan.
    #[test]
    fn m3_any_mixture(n in 0usize..300, seed: u64, bits in 1u32..14, threads in 1usize..4, split: bool) {
        let mut rng = common::rng(seed);
        let mut known = Known::<G1Affine>::new(n, seed);
        let mut scalars = random(n, seed ^ 1);
        for i in 0..n {
            let j = rng.next_u32() as usize % n;
            match rng.next_u32() % 8 {
                0 => known.infinity(i),
                1 => known.copy(j, i),
                2 => known.negate(j, i),
                _ => {}
            }
            match rng.next_u32() % 8 {
                0 => scalars[i] = Scalar::from(u64::from(rng.next_u32() % 4)),
                1 => scalars[i] = -scalars[j],
                2 => scalars[i] = scalars[j],
                _ => {}
            }
        }
        let mut plan = Plan::new(n, threads).with_window(bits).unwrap();
        if !split {
            plan = plan.without_split();
        }
        prop_assert_eq!(run(&plan, &known.bases, &scalars).0, known.sum(&scalars));
        prop_assert_eq!(msm(&known.bases, &scalars).unwrap(), known.sum(&scalars));
    }
}
