//! Inputs of the benches: the same on every run and every machine, and with results that are known beforehand.

use blstrs::Scalar;
use ff::Field;
use group::{Group, GroupEncoding};
use prestage_groth16::ShapeError;
use prestage_harness::circuits::{self, Circuit, squares};
use prestage_msm::{Affine, to_affine_batch};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// The generator behind every input; streams are independent of each other.
#[must_use]
pub fn rng(stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(0x7072_6573_7461_6765);
    rng.set_stream(stream);
    rng
}

/// Elements that one thread makes at a time.
const BLOCK: usize = 1 << 14;

/// `n` uniform scalars.
#[must_use]
pub fn scalars(n: usize, stream: u64) -> Vec<Scalar> {
    let mut scalars = vec![Scalar::ZERO; n];
    scalars.par_chunks_mut(BLOCK).enumerate().for_each(|(index, block)| {
        let mut rng = rng(stream);
        // Far more words than a block takes.
        rng.set_word_pos((index as u128) << 32);
        block.fill_with(|| Scalar::random(&mut rng));
    });
    scalars
}

/// `n` scalars as a witness has them: of eight, three are zero, four are one, and one is uniform.
#[must_use]
pub fn bits(n: usize, stream: u64) -> Vec<Scalar> {
    let mut rng = rng(stream);
    let mut scalar = || match rng.next_u32() % 8 {
        0..3 => Scalar::ZERO,
        3..7 => Scalar::ONE,
        _ => Scalar::random(&mut rng),
    };
    (0..n).map(|_| scalar()).collect()
}

/// The points `(first + i·step)·G`. Their logarithms are known, so any sum of them is one multiplication.
#[derive(Clone, Debug)]
pub struct Progression<A> {
    first: Scalar,
    step: Scalar,
    /// The points.
    pub points: Vec<A>,
}

impl<A: Affine> Progression<A>
where
    A::Curve: Group<Scalar = Scalar> + GroupEncoding,
{
    /// `n` points.
    #[must_use]
    pub fn new(n: usize, stream: u64) -> Self {
        let mut rng = rng(stream);
        let (first, step) = (Scalar::random(&mut rng), Scalar::random(&mut rng));
        let difference = to_affine_batch::<A>(&[A::generator() * step])[0];
        let mut points = vec![A::identity(); n];
        points.par_chunks_mut(BLOCK).enumerate().for_each(|(index, block)| {
            let mut next = A::generator() * (first + step * Scalar::from((index * BLOCK) as u64));
            let mut curve = vec![next; block.len()];
            for point in &mut curve {
                *point = next;
                next += difference;
            }
            block.copy_from_slice(&to_affine_batch(&curve));
        });
        Self { first, step, points }
    }

    /// `Σ scalars[i]·points[i]`, computed in the field.
    #[must_use]
    pub fn sum(&self, scalars: &[Scalar]) -> A::Curve {
        let scalars = &scalars[..scalars.len().min(self.points.len())];
        let sum: Scalar = scalars
            .par_chunks(BLOCK)
            .enumerate()
            .map(|(index, block)| {
                let mut logarithm = self.first + self.step * Scalar::from((index * BLOCK) as u64);
                let mut sum = Scalar::ZERO;
                for scalar in block {
                    sum += logarithm * scalar;
                    logarithm += self.step;
                }
                sum
            })
            .sum();
        A::generator() * sum
    }
}

/// The circuits of the benches, by name: made for a number of rows that is given as an exponent of two.
pub const CIRCUITS: [NamedCircuit; 2] =
    [("squares", |log| squares(log, rng(0))), ("bits", |log| circuits::bits(log, rng(0)))];

/// A circuit's name and how it is made.
pub type NamedCircuit = (&'static str, fn(u32) -> Result<Circuit, ShapeError>);

#[cfg(test)]
mod tests {
    use blstrs::{G1Affine, G2Affine};
    use ff::PrimeField;

    use super::*;

    #[test]
    fn inputs_are_the_same_every_time_and_differ_by_stream() {
        assert_eq!(scalars(5, 1), scalars(5, 1));
        assert_ne!(scalars(5, 1), scalars(5, 2));
        let bits = bits(800, 3);
        let ones = bits.iter().filter(|s| **s == Scalar::ONE).count();
        assert!((300..500).contains(&ones), "{ones}");
        assert!(bits.iter().any(|s| s.to_repr()[20] != 0));
    }

    #[test]
    fn sums_are_known() {
        fn check<A: Affine>()
        where
            A::Curve: Group<Scalar = Scalar> + GroupEncoding,
        {
            // More than a block, whose terms are nearly all zero: they are looked at where blocks meet.
            let n = BLOCK + 20;
            let points = Progression::<A>::new(n, 4);
            let mut scalars = scalars(n, 5);
            scalars[10..BLOCK - 10].fill(Scalar::ZERO);
            assert_eq!(points.sum(&scalars), prestage_msm::msm(&points.points, &scalars).unwrap());
            let (points, scalars) = (&points.points[..10], &scalars[..10]);
            let sum = Progression::<A>::new(10, 4).sum(scalars);
            assert_eq!(sum, prestage_msm::naive::msm(points, scalars).unwrap());
        }
        check::<G1Affine>();
        check::<G2Affine>();
    }
}
