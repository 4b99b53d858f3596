//! Rows M2 to M6 for the multi-scalar multiplication: the host build of its kernels, launched as on a device,
//! against the naive sum with blstrs.
#![cfg(feature = "host")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use common::*;
use ff::Field;
use group::{Curve as _, Group, prime::PrimeCurveAffine};
use prestage_kernels::{
    Args, Launch,
    host::{self, Order},
    msm::{Curve, Form, Ones, Plan, Terms},
    ntt::Fr,
};
use proptest::prelude::*;

fn run(launches: &[Launch], order: Order) {
    for launch in launches {
        // SAFETY: the launches come from the crate, over buffers of the sizes that it asks for.
        unsafe { host::launch(launch, order).unwrap_or_else(|e| panic!("{e}")) };
    }
}

/// 32-byte aligned memory full of a pattern.
fn memory(bytes: u64) -> Vec<[u64; 4]> {
    vec![[0xa5a5_a5a5_a5a5_a5a5; 4]; (bytes as usize).div_ceil(32)]
}

fn g2_from(l: &[u32; 48]) -> G2Projective {
    if l.iter().all(|&w| w == 0) {
        return G2Projective::identity();
    }
    let (x, y): (Fq24, Fq24) = (l[..24].try_into().unwrap(), l[24..].try_into().unwrap());
    G2Affine::from_raw_unchecked(cast(&x), cast(&y), false).into()
}

/// Σ over chunks with the given plan, from the window sums in Jacobian coordinates, which equal the affine ones.
macro_rules! msm {
    ($name:ident, $affine:ty, $projective:ty, $limbs:ident, $n:literal, $from:ident, $to_affine:literal) => {
        fn $name(
            plan: &Plan,
            bases: &[$affine],
            scalars: &[Scalar],
            ones: Ones,
            chunk: usize,
            order: Order,
        ) -> $projective {
            let bases: Vec<[u32; $n]> = bases.iter().map($limbs).collect();
            // Every other multiplication takes integers.
            let form = if scalars.len() % 2 == 0 { Form::Montgomery } else { Form::Integers };
            let scalars: Vec<Fr> = match form {
                Form::Montgomery => scalars.iter().map(|s| Fr(limbs(s))).collect(),
                Form::Integers => scalars.iter().map(|s| Fr(cast(&s.to_bytes_le()))).collect(),
            };
            let mut scratch = memory(plan.scratch_bytes());
            let mut results = vec![[[0u32; $n]; 2]; plan.results() as usize];
            let (scratch, out): (*mut u8, *mut u8) =
                (scratch.as_mut_ptr().cast(), results.as_mut_ptr().cast());
            run(&plan.clear(scratch), order);
            let mut chunks = (0..scalars.len().max(1)).step_by(chunk.max(1));
            // Every other one begins with empty buckets.
            let first = chunks.next().filter(|_| scalars.len() % 4 < 2);
            if first.is_none() {
                run(&plan.clear(scratch), order);
                chunks = (0..scalars.len()).step_by(chunk.max(1));
            }
            for at in first.into_iter().chain(chunks) {
                let end = (at + chunk).min(scalars.len());
                let (s, b, n) =
                    (scalars[at..end].as_ptr(), bases[at..end].as_ptr().cast(), (end - at) as u64);
                let launches = if at == 0 && first.is_some() {
                    plan.begin(ones, form, s, b, n, scratch)
                } else {
                    plan.accumulate(ones, form, s, b, n, scratch)
                };
                run(&launches, order);
            }
            run(&plan.reduce(scratch, out), order);
            let mut affine = vec![[0u32; $n]; results.len()];
            let args =
                Args::new().with(affine.as_mut_ptr()).with(results.as_ptr()).with(results.len() as u64);
            run(&[Launch::elementwise($to_affine, results.len() as u64, 32, args)], order);
            let mut jacobian = vec![[0u32; $n / 2 * 3]; results.len()];
            run(&[plan.to_jacobian(out.cast_const(), jacobian.as_mut_ptr().cast())], order);
            // blst's own points: x, y and z as they lie there.
            let points: Vec<$projective> = jacobian.iter().map(cast).collect();
            for (point, affine) in points.iter().zip(&affine) {
                assert_eq!(*point, <$projective>::from($from(affine)));
            }
            for coordinate in jacobian.iter().flat_map(|p| p.chunks_exact(12)) {
                assert!(less(coordinate.try_into().unwrap(), P), "canonical");
            }
            plan.fold(&points, <$projective>::identity(), |p| p.double(), |p, q| p + q)
        }
    };
}
msm!(msm_g1, G1Affine, G1Projective, g1_limbs, 24, g1_from, "g1_to_affine");
msm!(msm_g2, G2Affine, G2Projective, g2_limbs, 48, g2_from, "g2_to_affine");

fn naive(bases: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    bases.iter().zip(scalars).fold(G1Projective::identity(), |s, (b, k)| s + b * k)
}

/// kᵢ·G for a random walk of kᵢ: n different points by n additions.
fn walk(n: usize, seed: u64) -> Vec<G1Affine> {
    let step = G1Projective::generator() * random_scalar(seed);
    let mut p = G1Projective::generator();
    let points: Vec<G1Projective> = (0..n)
        .map(|_| {
            p += step;
            p
        })
        .collect();
    let mut affine = vec![G1Affine::identity(); n];
    G1Projective::batch_normalize(&points, &mut affine);
    affine
}
fn random(n: usize, seed: u64) -> Vec<Scalar> {
    (0..n as u64).map(|i| random_scalar(seed ^ i << 20)).collect()
}

/// Sizes 0, 1, 2, … 70 and around the slice's and the scan block's edges.
#[test]
fn m2_sizes() {
    let (bases, scalars) = (walk(1100, 1), random(1100, 2));
    let mut sums = vec![G1Projective::identity()];
    for (b, s) in bases.iter().zip(&scalars) {
        let last = *sums.last().unwrap();
        sums.push(last + b * s);
    }
    let sizes = (0..=70).step_by(3).chain([1, 2, 31, 32, 33, 34, 64, 65, 600, 1023, 1024, 1025, 1100]);
    for (i, n) in sizes.enumerate() {
        let order = [Order::Forwards, Order::Backwards, Order::Shuffled(i as u64)][i % 3];
        let plan = Plan::new(Curve::G1, n as u64).with_tree(n % 3 != 0).with_halving(n % 2 == 0);
        assert_eq!(msm_g1(&plan, &bases[..n], &scalars[..n], Ones::Apart, n, order), sums[n], "{n} terms");
    }
}

/// Edge scalars and points: 0, ±1, powers of two and their neighbours; infinity, equal and opposite points.
#[test]
fn m3_edge_scalars_and_points() {
    let two = Scalar::from(2);
    let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, two, -two];
    for k in [1u64, 4, 6, 7, 8, 31, 32, 33, 63, 64, 127, 128, 200, 253, 254] {
        let p = two.pow_vartime([k]);
        scalars.extend([p, p - Scalar::ONE, -p, Scalar::ONE - p]);
    }
    let n = scalars.len();
    let different = walk(n, 3);
    let g = G1Affine::generator();
    let equal = vec![g; n];
    let opposite: Vec<G1Affine> = (0..n).map(|i| if i % 2 == 0 { g } else { -g }).collect();
    let infinite = vec![G1Affine::identity(); n];
    let mixed: Vec<G1Affine> = (0..n).map(|i| [g, different[i], -g, G1Affine::identity()][i % 4]).collect();
    for (i, bases) in [different, equal, opposite, infinite, mixed].iter().enumerate() {
        for (j, ones) in [Ones::Digits, Ones::Apart, Ones::ApartWithMinusOne].into_iter().enumerate() {
            let plan = Plan::with_width(Curve::G1, n as u64, 5 + (i + 3 * j) as u32 % 8)
                .with_tree((i + j) % 2 == 0)
                .with_halving(j % 2 == 0);
            let order = [Order::Forwards, Order::Backwards, Order::Shuffled(1)][(i + j) % 3];
            assert_eq!(
                msm_g1(&plan, bases, &scalars, ones, n, order),
                naive(bases, &scalars),
                "bases {i} {ones:?}"
            );
        }
    }
}

/// One huge bucket a window: all scalars equal, and all points too. What the levels of a tree and the slices of one
/// thread leave goes to blocks.
#[test]
fn m3_one_huge_bucket() {
    let n = 1100;
    let bases = walk(n, 4);
    let k = random_scalar(9);
    let sum = bases.iter().fold(G1Projective::identity(), |s, p| s + p);
    for tree in [false, true] {
        let plan = Plan::with_width(Curve::G1, n as u64, 8).with_tree(tree);
        assert_eq!(msm_g1(&plan, &bases, &vec![k; n], Ones::Apart, n, Order::Shuffled(2)), sum * k);
        assert_eq!(msm_g1(&plan, &bases, &vec![Scalar::ONE; n], Ones::Apart, n, Order::Forwards), sum);
        assert_eq!(
            msm_g1(&plan, &bases, &vec![-Scalar::ONE; n], Ones::ApartWithMinusOne, n, Order::Backwards),
            -sum
        );
        let g = vec![bases[7]; n];
        assert_eq!(
            msm_g1(&plan, &g, &vec![k; n], Ones::Apart, n, Order::Forwards),
            bases[7] * k * Scalar::from(n as u64)
        );
    }
}

/// So many equal scalars that the pairs of a level, and the slices of a bucket, are shared out among blocks.
#[test]
fn m3_crowded_buckets() {
    let (n, period) = (40_000, 50);
    let some = walk(period, 8);
    let bases: Vec<G1Affine> = (0..n).map(|i| some[i % period]).collect();
    let sum = some.iter().fold(G1Projective::identity(), |s, p| s + p) * Scalar::from((n / period) as u64);
    for (tree, order) in [(false, Order::Backwards), (true, Order::Shuffled(3))] {
        let plan = Plan::with_width(Curve::G1, n as u64, 10).with_tree(tree);
        let scalars = vec![Scalar::from(3); n];
        let expected = sum * Scalar::from(3);
        assert_eq!(msm_g1(&plan, &bases, &scalars, Ones::Apart, n, order), expected, "tree {tree}");
    }
}

/// A plan within a limit of scratch takes fewer windows at a time, then slices, and never more than it must.
#[test]
fn l10_scratch_stays_within_its_limit() {
    for curve in [Curve::G1, Curve::G2] {
        for log in [10, 16, 20, 24, 26] {
            let plan = Plan::new(curve, 1 << log);
            let mut last = u64::MAX;
            for shift in 0..8 {
                let limit = plan.scratch_bytes() >> shift;
                let bytes = plan.within(limit).scratch_bytes();
                // Where nothing fits, what is least.
                assert!(bytes <= limit || bytes == plan.within(0).scratch_bytes(), "{plan:?} {shift}");
                assert!(bytes <= last);
                last = bytes;
            }
            assert_eq!(plan.within(u64::MAX), plan, "no limit");
        }
    }
    let limited = Plan::new(Curve::G1, 1 << 24).within(3_000_000_000);
    assert!(limited.is_tree() && limited.scratch_bytes() <= 3_000_000_000);
}

/// Chunks follow the card: each term is in one of them, scratch and the slots of streamed bases are within the limit, and a large
/// card cuts a long sum less finely than a small one.
#[test]
fn l10_chunks_follow_the_limit_of_scratch() {
    let gib = |n: u64| n << 30;
    for curve in [Curve::G1, Curve::G2] {
        for terms in [Terms::There, Terms::Streamed] {
            for n in [0, 1, 1000, 1 << 20, 3 << 20, 1 << 22, (1 << 24) - 5, 1 << 27, (1 << 30) + 7] {
                for limit in [gib(1) / 2, gib(1), gib(3) / 2, gib(3), gib(5), gib(9), gib(64)] {
                    let plan = Plan::chunked(curve, n, terms, limit);
                    let what = format!("{curve:?}, {n} terms, {terms:?}, {limit} bytes: {plan:?}");
                    let mut end = 0;
                    for chunk in plan.chunks(n, terms) {
                        assert!(chunk.start == end && chunk.end - end <= plan.chunk_terms(), "{what}");
                        end = chunk.end;
                    }
                    assert_eq!(end, n, "{what}");
                    assert!(plan.scratch_bytes() <= limit, "{what}");
                    let slots = 2 * plan.chunk_terms() * curve.affine_bytes();
                    assert!(terms == Terms::There || slots <= limit, "{what}");
                }
            }
        }
    }
    // The measured sum of 2^24 terms within 3 GB is one chunk.
    let limited = Plan::chunked(Curve::G1, 1 << 24, Terms::There, 3_000_000_000);
    assert_eq!(limited, Plan::new(Curve::G1, 1 << 24).within(3_000_000_000));
    assert!(limited.is_tree() && limited.chunk_terms() == 1 << 24);
    // A card of 16 GiB, and an H200: an eighth of each.
    let of = |card: u64| Plan::chunked(Curve::G1, 1 << 27, Terms::Streamed, gib(card) / 8).chunk_terms();
    assert_eq!(of(16), 1 << 22);
    assert!(of(140) > 1 << 22, "{}", of(140));
}

/// Without streaming, chunks are equal; with it the first are small, and each is at most four times the one before.
#[test]
fn chunks_grow_while_bases_arrive() {
    let plan = Plan::with_width(Curve::G1, 1 << 23, 20);
    let sizes = |n, terms| plan.chunks(n, terms).map(|chunk| chunk.end - chunk.start).collect::<Vec<_>>();
    assert_eq!(sizes((1 << 24) + 1, Terms::There), [1 << 23, 1 << 23, 1]);
    assert_eq!(sizes(1 << 24, Terms::Streamed), [1 << 19, 1 << 21, 1 << 23, (1 << 24) - (0b10101 << 19)]);
    assert_eq!(sizes(1 << 23, Terms::Streamed), [1 << 23]);
    assert_eq!(sizes(0, Terms::Streamed), [0], "which empties the buckets");
}

/// Every window width that a plan may have recomposes the edges of the scalars.
#[test]
fn m4_every_window() {
    let scalars = [
        -Scalar::ONE,
        -Scalar::from(2),
        Scalar::from(2).pow_vartime([254]),
        random_scalar(1),
        random_scalar(2),
    ];
    let bases = walk(scalars.len(), 5);
    let expected = naive(&bases, &scalars);
    for width in 5..=13 {
        let plan = Plan::with_width(Curve::G1, scalars.len() as u64, width).with_tree(width % 3 != 0);
        let plan = plan.with_halving(width % 2 == 0);
        let windows = plan.windows();
        assert_eq!(windows.iter().map(|w| w.bits).sum::<u32>(), 256);
        assert!(windows.iter().all(|w| w.bits == width || w.bits == width - 1));
        assert_eq!(
            msm_g1(&plan, &bases, &scalars, Ones::Digits, 5, Order::Backwards),
            expected,
            "width {width}"
        );
    }
    for width in [14, 16, 20, 22] {
        let windows = Plan::with_width(Curve::G1, 1, width).windows();
        assert_eq!(windows.iter().map(|w| w.bits).sum::<u32>(), 256);
    }
}

/// Shares of ones, in one chunk and in several, in one group of windows and in several.
#[test]
fn m5_ones_chunks_and_groups() {
    let n = 150;
    let bases = walk(n, 6);
    for (i, percent) in [0, 50, 99, 100].into_iter().enumerate() {
        let scalars: Vec<Scalar> = (0..n)
            .map(|k| if k * 37 % 100 < percent { Scalar::ONE } else { random_scalar(k as u64) })
            .collect();
        let expected = naive(&bases, &scalars);
        let cuts = [(n, 99, true), (n, 5, true), (64, 99, false), (40, 7, true), (40, 11, false)];
        for (chunk, group, tree) in cuts {
            let plan = Plan::with_width(Curve::G1, chunk as u64, 7).with_group(group).with_tree(tree);
            let plan = plan.with_halving(i % 2 == 0);
            let ones = if i % 2 == 0 { Ones::Apart } else { Ones::ApartWithMinusOne };
            let sum = msm_g1(&plan, &bases, &scalars, ones, chunk, Order::Shuffled(chunk as u64));
            assert_eq!(sum, expected, "{percent} % ones, chunks of {chunk}, groups of {group}, tree {tree}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn m6_g1_any_terms(terms in prop::collection::vec((g1_point(), lazy_fr()), 0..90), width in 5u32..9, tree: bool, order in order()) {
        let (bases, scalars): (Vec<G1Affine>, Vec<Scalar>) = terms.into_iter().map(|(p, s)| (p, scalar(s))).unzip();
        let plan = Plan::with_width(Curve::G1, bases.len() as u64, width).with_tree(tree);
        let plan = plan.with_halving(bases.len() % 2 == 0);
        let sum = msm_g1(&plan, &bases, &scalars, Ones::ApartWithMinusOne, bases.len(), order);
        prop_assert_eq!(sum, naive(&bases, &scalars));
    }
}
proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn m6_g2_any_terms(terms in prop::collection::vec((g2_point(), lazy_fr()), 0..50), width in 5u32..8, tree: bool, order in order()) {
        let (bases, scalars): (Vec<G2Affine>, Vec<Scalar>) = terms.into_iter().map(|(p, s)| (p, scalar(s))).unzip();
        let plan = Plan::with_width(Curve::G2, bases.len() as u64, width).with_tree(tree);
        let plan = plan.with_halving(bases.len() % 2 == 0);
        let sum = msm_g2(&plan, &bases, &scalars, Ones::Apart, bases.len(), order);
        let expected = bases.iter().zip(&scalars).fold(G2Projective::identity(), |s, (b, k)| s + b * k);
        prop_assert_eq!(sum, expected);
    }
}

/// The scan over one block and over many.
#[test]
fn m6_scan_across_blocks() {
    for n in [1usize, 7, 2048, 2049, 5000] {
        let mut data: Vec<u32> = (0..n as u32).map(|i| i * 7 % 13).collect();
        let expected: Vec<u32> = data
            .iter()
            .scan(0, |s, &v| {
                *s += v;
                Some(*s - v)
            })
            .collect();
        let blocks = n.div_ceil(2048);
        let mut totals = vec![0u32; blocks];
        let launch = |data: *mut u32, totals: *mut u32, n: usize| Launch {
            kernel: "msm_scan",
            grid: (n.div_ceil(2048) as u32, 1),
            block: 256,
            shared_bytes: 2048,
            args: Args::new().with(data).with(totals).with(n as u64),
        };
        run(&[launch(data.as_mut_ptr(), totals.as_mut_ptr(), n)], Order::Shuffled(n as u64));
        let mut top = [0u32];
        run(&[launch(totals.as_mut_ptr(), top.as_mut_ptr(), blocks)], Order::Backwards);
        let args = Args::new().with(data.as_mut_ptr()).with(totals.as_ptr()).with(n as u64);
        run(&[Launch::elementwise("msm_scan_add", n as u64, 256, args)], Order::Forwards);
        assert_eq!(data, expected, "{n} values");
        assert_eq!(top[0], (0..n as u32).map(|i| i * 7 % 13).sum::<u32>());
    }
}
