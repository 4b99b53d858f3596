//! Inputs of the benches: the same on every run and every machine, and with results that are known beforehand.

use blstrs::Scalar;
use ff::Field;
use group::{Group, GroupEncoding};
use prestage_groth16::ShapeError;
use prestage_harness::circuits::{self, Circuit, squares};
use prestage_msm::{Affine, to_affine_batch};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};

/// The generator behind every input; streams are independent of each other.
#[must_use]
pub fn rng(stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(0x7072_6573_7461_6765);
    rng.set_stream(stream);
    rng
}

/// `n` uniform scalars.
#[must_use]
pub fn scalars(n: usize, stream: u64) -> Vec<Scalar> {
    let mut rng = rng(stream);
    (0..n).map(|_| Scalar::random(&mut rng)).collect()
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
        let mut next = <A::Curve as Group>::generator() * first;
        let difference = <A::Curve as Group>::generator() * step;
        let points: Vec<A::Curve> = (0..n)
            .map(|_| {
                let point = next;
                next += difference;
                point
            })
            .collect();
        Self { first, step, points: to_affine_batch(&points) }
    }

    /// `Σ scalars[i]·points[i]`, computed in the field.
    #[must_use]
    pub fn sum(&self, scalars: &[Scalar]) -> A::Curve {
        let mut logarithm = self.first;
        let mut sum = Scalar::ZERO;
        for scalar in scalars.iter().take(self.points.len()) {
            sum += logarithm * scalar;
            logarithm += self.step;
        }
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
            let (points, scalars) = (Progression::<A>::new(20, 4), scalars(20, 5));
            assert_eq!(points.sum(&scalars), prestage_msm::naive::msm(&points.points, &scalars).unwrap());
        }
        check::<G1Affine>();
        check::<G2Affine>();
    }
}
