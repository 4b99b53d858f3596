//! Points and scalars for the tests, and the naive sum made fast enough to compare with.

#![allow(dead_code)] // Each test binary uses its part.

use blstrs::Scalar;
use ff::Field;
use group::Group;
use prestage_msm::{Affine, Plan, Stats, msm_with, to_affine_batch};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;
use std::mem::MaybeUninit;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// `n` points with known logarithms: P_i = x_i·G. A sum Σ s_i·P_i is then (Σ s_i·x_i)·G, exactly, at any length.
pub(crate) struct Known<A: Affine> {
    pub(crate) bases: Vec<A>,
    pub(crate) logs: Vec<Scalar>,
}

impl<A: Affine> Known<A> {
    /// Points G·x, G·x², G·x³ … for one random x would need a multiplication each; these take an addition:
    /// x_i = u + i·v.
    pub(crate) fn new(n: usize, seed: u64) -> Self {
        let mut rng = rng(seed);
        let (mut log, step) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
        let (mut point, step_point) = (A::Curve::generator() * log, A::Curve::generator() * step);
        let (mut points, mut logs) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for _ in 0..n {
            points.push(point);
            logs.push(log);
            point += step_point;
            log += step;
        }
        Self { bases: to_affine_batch(&points), logs }
    }

    /// `n` points, the first `distinct` of them over and over.
    pub(crate) fn repeated(n: usize, distinct: usize, seed: u64) -> Self {
        let Self { bases, logs } = Self::new(distinct, seed);
        Self {
            bases: (0..n).map(|i| bases[i % distinct]).collect(),
            logs: (0..n).map(|i| logs[i % distinct]).collect(),
        }
    }

    pub(crate) fn set(&mut self, i: usize, base: A, log: Scalar) {
        self.bases[i] = base;
        self.logs[i] = log;
    }

    pub(crate) fn infinity(&mut self, i: usize) {
        self.set(i, A::identity(), Scalar::ZERO);
    }

    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.set(to, self.bases[from], self.logs[from]);
    }

    pub(crate) fn negate(&mut self, from: usize, to: usize) {
        self.set(to, -self.bases[from], -self.logs[from]);
    }

    /// Σ s_i·P_i through the logarithms.
    pub(crate) fn sum(&self, scalars: &[Scalar]) -> A::Curve {
        assert_eq!(self.logs.len(), scalars.len());
        let sum = self.logs.par_iter().zip(scalars).map(|(x, s)| *x * s).sum::<Scalar>();
        A::Curve::generator() * sum
    }
}

pub(crate) fn random(n: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = rng(seed);
    (0..n).map(|_| Scalar::random(&mut rng)).collect()
}

/// The sum under `plan`, in scratch of exactly its footprint and full of garbage.
pub(crate) fn run<A: Affine>(plan: &Plan, bases: &[A], scalars: &[Scalar]) -> (A::Curve, Stats) {
    let bytes = plan.footprint::<A>().to_usize().unwrap();
    let mut scratch = vec![MaybeUninit::new(0xa5); bytes];
    msm_with(plan, bases, scalars, &mut scratch).unwrap()
}
