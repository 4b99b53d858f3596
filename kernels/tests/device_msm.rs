//! Multi-scalar multiplications on a device: against the host build where they are small, against the logarithms of
//! their points where they are large. Otherwise as tests/device.rs.
#![cfg(all(feature = "cuda", feature = "host"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::{G1Projective, G2Projective, Scalar};
use common::{known::*, machine::*, *};
use ff::Field;
use prestage_kernels::msm::{Curve, Form, Ones, Plan};

/// The results of a whole sum, in affine coordinates.
fn results(m: &mut dyn Machine, plan: &Plan, ones: Ones, bases: &[u8], scalars: &[Fr8]) -> Vec<u8> {
    let n = scalars.len() as u64;
    let (bases, scalars) = (place(m, bases), place(m, scalars));
    let (point, kernel) = match plan.curve() {
        Curve::G1 => (192, "g1_to_affine"),
        Curve::G2 => (384, "g2_to_affine"),
    };
    let count = plan.results() as usize;
    let (scratch, out, affine) =
        (m.alloc(plan.scratch_bytes() as usize), m.alloc(point * count), m.alloc(point / 2 * count));
    m.run(&plan.launches(ones, Form::Montgomery, scalars.cast(), bases, n, scratch, out));
    let args = prestage_kernels::Args::new().with(affine).with(out.cast_const()).with(count as u64);
    m.launch(&prestage_kernels::Launch::elementwise(kernel, count as u64, 32, args));
    m.read(affine, point / 2 * count)
}

fn canonical(n: usize, seed: u64) -> Vec<Fr8> {
    fr_values(n, seed).into_iter().map(|v| modulo(v, R)).collect()
}

/// Both ways and both curves; one scalar for all, few, many.
#[test]
fn device_small_sums_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    type Skew = (&'static str, fn(usize, Fr8) -> Fr8);
    let skews: [Skew; 3] = [
        ("random", |_, s| s),
        ("equal", |_, _| limbs(&Scalar::from(0x1234_5678_9abc))),
        ("few", |i, _| limbs(&Scalar::from(1 + (i as u64 & 1) * 77))),
    ];
    for n in [0usize, 1, 33, 1000, 5000] {
        for (what, skew) in skews {
            let scalars: Vec<Fr8> =
                canonical(n, 3).into_iter().enumerate().map(|(i, s)| skew(i, s)).collect();
            for tree in [false, true] {
                let plan = Plan::new(Curve::G1, n as u64).with_tree(tree);
                compare(&mut gpu, &format!("G1 sum of {n}, {what}, tree {tree}"), |m| {
                    results(m, &plan, Ones::Apart, bytes_of(&g1_points(n)), &scalars)
                });
                let n = n.min(700);
                let plan = Plan::new(Curve::G2, n as u64).with_tree(tree);
                compare(&mut gpu, &format!("G2 sum of {n}, {what}, tree {tree}"), |m| {
                    results(m, &plan, Ones::Digits, bytes_of(&g2_points(n)), &scalars[..n])
                });
            }
        }
    }
}

fn check<C: Known>(gpu: &mut Gpu, plan: &Plan, n: usize, scalars: &[Fr8], ones: Ones, what: &str) {
    let sum = KnownSum::<C>::place(gpu, n, scalars);
    assert_eq!(sum.run(gpu, plan, ones), sum.expected, "2^{} {what}, {plan:?}", n.ilog2());
    gpu.free();
}

/// Large sums, skewed ones and little scratch.
#[test]
fn device_large_sums() {
    let Some(mut gpu) = device() else { return };
    let random = |n: usize| (0..n as u64).map(random_limbs).collect::<Vec<_>>();
    for lg in [16u32, 18, 20] {
        let n = 1usize << lg;
        for tree in [false, true] {
            let plan = Plan::new(Curve::G1, n as u64).with_tree(tree);
            check::<G1Projective>(&mut gpu, &plan, n, &random(n), Ones::Apart, "random");
            let plan = plan.with_group(3);
            let skewed: Vec<Fr8> = (0..n as u64)
                .map(|i| match i % 8 {
                    0..3 => limbs(&Scalar::ONE),
                    3..5 => limbs(&Scalar::from(3)),
                    _ => random_limbs(i),
                })
                .collect();
            check::<G1Projective>(&mut gpu, &plan, n, &skewed, Ones::Apart, "skewed");
            let equal = vec![random_limbs(5); n];
            check::<G1Projective>(&mut gpu, &plan, n, &equal, Ones::Digits, "equal");
        }
    }
    let n = 1 << 16;
    for tree in [false, true] {
        let plan = Plan::new(Curve::G2, n as u64).with_tree(tree);
        check::<G2Projective>(&mut gpu, &plan, n, &random(n), Ones::Apart, "random");
        check::<G2Projective>(&mut gpu, &plan, n, &vec![random_limbs(7); n], Ones::Apart, "equal");
    }
}
