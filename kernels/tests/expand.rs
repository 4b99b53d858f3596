//! Rows M3 and M6 for scalars that travel sorted: the host build of the kernels that make integers of them, and sums
//! over those integers.
#![cfg(feature = "host")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::{G1Projective, Scalar};
use common::{transforms::run, *};
use ff::Field;
use group::{Curve as _, Group};
use prestage_kernels::{
    host::Order,
    msm::{self, Curve, Form, Ones, Plan},
    ntt::Fr,
};
use proptest::prelude::*;

type Integer = [u32; 8];

const ONE: Integer = [1, 0, 0, 0, 0, 0, 0, 0];
/// No scalar: what must not be read, or must have been overwritten.
const RUBBISH: u64 = 0xdead_beef_dead_beef;

fn integer(s: &Scalar) -> Integer {
    cast(&s.to_bytes_le())
}

/// A batch in memory aligned to 16 bytes, with rubbish in all bits that are not the batch's.
struct Batch {
    memory: Vec<[u64; 2]>,
    width: usize,
    shift: u32,
    scalars: Vec<Integer>,
}

impl Batch {
    /// `spare` words of each bitmap are not in use.
    fn new(scalars: Vec<Integer>, shift: u32, spare: usize) -> Self {
        let bits = scalars.len() + shift as usize;
        let width = bits.div_ceil(64) + spare;
        let mut words = vec![u64::MAX; 2 * width];
        for (i, s) in scalars.iter().enumerate() {
            let at = i + shift as usize;
            let set = [*s != ONE && *s != [0; 8], *s == ONE];
            for (k, set) in set.into_iter().enumerate() {
                if !set {
                    words[k * width + at / 64] &= !(1 << (at % 64));
                }
            }
            if set[0] {
                words.extend(cast::<Integer, [u64; 4]>(s));
            }
        }
        words.extend([RUBBISH; 3]);
        let memory = words.chunks(2).map(|c| [c[0], c.get(1).copied().unwrap_or(RUBBISH)]).collect();
        Self { memory, width, shift, scalars }
    }

    fn words(&self) -> *const u64 {
        self.memory.as_ptr().cast()
    }

    fn ranks(&self, order: Order) -> Vec<u32> {
        let n = self.scalars.len() as u64;
        let mut ranks = vec![0xdead_beef_u32; msm::expand_scratch_bytes(n) as usize / 4];
        run(&msm::ranks(self.words(), self.shift, n, ranks.as_mut_ptr()), order);
        ranks
    }

    fn expand(&self, ranks: &[u32], first: usize, n: usize, order: Order) -> Vec<Integer> {
        let rubbish: Integer = cast(&[RUBBISH; 4]);
        let mut out = vec![rubbish; n + 1];
        let (width, at) = (self.width as u64, out.as_mut_ptr());
        let launch = msm::expand(self.words(), width, self.shift, first as u64, n as u64, ranks.as_ptr(), at);
        run(&[launch], order);
        assert_eq!(out.pop(), Some(rubbish), "nothing past the end is written");
        out
    }

    /// All of it in chunks of `chunk` equals what was sorted.
    fn check(&self, chunk: usize, order: Order) {
        let ranks = self.ranks(order);
        for first in (0..self.scalars.len()).step_by(chunk) {
            let n = chunk.min(self.scalars.len() - first);
            let out = self.expand(&ranks, first, n, order);
            assert!(
                out == self.scalars[first..first + n],
                "{} scalars, shift {}, from {first}",
                self.scalars.len(),
                self.shift
            );
        }
    }
}

/// Sizes around a word and a block, every kind of content, the first and the last shift.
#[test]
fn m3_sorted_scalars_expand() {
    let other = |i: usize| integer(&random_scalar(i as u64));
    let two_limbs = |i: usize| [0, 0, 0, 0, 0, 0, 0, 1 + i as u32 % 9];
    let contents: [&dyn Fn(usize) -> Integer; 6] = [
        &|_| [0; 8],
        &|_| ONE,
        &two_limbs,
        &|_| integer(&-Scalar::ONE),
        &|i| [[0; 8], ONE, two_limbs(i), [0; 8], other(i % 8)][i * i % 5],
        &|i| if i % 64 == 63 { other(i % 8) } else { [0; 8] },
    ];
    let mut case = 0;
    for n in [0, 1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097] {
        for shift in [0, 1, 31, 32, 62, 63] {
            for content in contents {
                case += 1;
                let order = [Order::Forwards, Order::Backwards, Order::Shuffled(case as u64)][case % 3];
                let batch = Batch::new((0..n).map(content).collect(), shift, case % 3);
                batch.check([n.max(1), 64, 100][case / 3 % 3].max(n / 8 + 1), order);
            }
        }
    }
}

/// Ranks over more words than a block scans.
#[test]
fn m3_ranks_across_blocks_of_the_scan() {
    let content = |i: usize| {
        if i % 3 == 1 {
            [i as u32, 2, 0, 0, 0, 0, 0, 7]
        } else {
            [u32::from(i % 3 == 2), 0, 0, 0, 0, 0, 0, 0]
        }
    };
    for n in [2048 * 64 - 5, 2048 * 64, 2048 * 64 + 1, 300_000] {
        Batch::new((0..n).map(content).collect(), 5, 1).check(n / 2 + 1, Order::Forwards);
    }
}

/// The scratch holds the ranks and the totals above them at any size that a plan may have.
#[test]
fn expand_scratch_is_small() {
    for n in [0u64, 1, 64, 1 << 20, (1 << 31) - 1] {
        let bytes = msm::expand_scratch_bytes(n);
        assert!(bytes >= 4 * (n + 63).div_ceil(64) && bytes <= n / 16 + n / 20_000 + 512, "{n}: {bytes}");
    }
}

/// Scalars sorted, expanded by chunks and summed, windows folded on the host: the naive sum.
#[test]
fn m6_sums_of_sorted_scalars() {
    let n = 203;
    let points: Vec<G1Projective> =
        (0..n as u64).map(|i| G1Projective::generator() * Scalar::from(i * i + 1)).collect();
    let bases: Vec<[u32; 24]> = points.iter().map(|p| g1_limbs(&p.to_affine())).collect();
    let scalars: Vec<Scalar> = (0..n)
        .map(|i| match i % 5 {
            0 | 1 => Scalar::ZERO,
            2 => Scalar::ONE,
            3 => -Scalar::from(i as u64),
            _ => random_scalar(i as u64),
        })
        .collect();
    let expected = points.iter().zip(&scalars).fold(G1Projective::identity(), |s, (p, k)| s + p * k);
    let batch = Batch::new(scalars.iter().map(integer).collect(), 17, 0);
    let cases = [
        (Order::Forwards, Ones::Apart, 99),
        (Order::Backwards, Ones::ApartWithMinusOne, 9),
        (Order::Shuffled(1), Ones::Digits, 20),
    ];
    for (order, ones, group) in cases {
        let chunk = 64;
        let plan = Plan::new(Curve::G1, chunk as u64).with_group(group);
        let mut scratch = vec![[RUBBISH; 4]; (plan.scratch_bytes() as usize).div_ceil(32)];
        let mut results = vec![[0u64; 24]; plan.results() as usize];
        let (scratch, out): (*mut u8, *mut u8) = (scratch.as_mut_ptr().cast(), results.as_mut_ptr().cast());
        let ranks = batch.ranks(order);
        run(&plan.clear(scratch), order);
        for first in (0..n).step_by(chunk) {
            let terms = chunk.min(n - first);
            let integers = batch.expand(&ranks, first, terms, order);
            let (s, b) = (integers.as_ptr().cast::<Fr>(), bases[first..].as_ptr().cast());
            run(&plan.accumulate(ones, Form::Integers, s, b, terms as u64, scratch), order);
        }
        run(&plan.reduce(scratch, out), order);
        let mut points = vec![G1Projective::identity(); results.len()];
        run(&[plan.to_jacobian(out, points.as_mut_ptr().cast())], order);
        let sum = plan.fold(&points, G1Projective::identity(), |p| p.double(), |p, q| p + q);
        assert_eq!(sum, expected, "{ones:?}");
        // Without the ones, and without anything.
        let (ones, windows) = points.split_last().unwrap();
        let fold = |p: &[G1Projective]| plan.fold(p, G1Projective::identity(), |p| p.double(), |p, q| p + q);
        assert_eq!(fold(windows) + ones, expected);
        assert_eq!(fold(&[]), G1Projective::identity());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn m6_any_sorted_scalars(
        kinds in prop::collection::vec(0u8..4, 0..400), shift in 0u32..64, spare in 0usize..3, chunk in 1usize..200, order in order(),
    ) {
        let scalars = kinds.iter().enumerate().map(|(i, kind)| match kind {
            0 => [0; 8],
            1 => ONE,
            _ => [i as u32 + 2, 0, 0, 1, 0, 0, 0, u32::from(*kind)],
        });
        Batch::new(scalars.collect(), shift, spare).check(chunk, order);
    }
}
