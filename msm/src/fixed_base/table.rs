//! Multiples of one point by windows of signed digits (Brickell, Gordon, McCurley, Wilson, "Fast exponentiation with
//! precomputation", EUROCRYPT 1992).

use crate::{Affine, to_affine_batch};
use blstrs::Scalar;
use ff::PrimeField;
use group::Group;
use rayon::prelude::*;

/// Bits that the windows cover: one more than a scalar has, so that no carry leaves the top one.
const BITS: usize = 256;

/// The multiples of a point by every digit of every window.
pub(super) struct Table<A> {
    bits: usize,
    /// Window j holds d·2^(cj)·P at position d − 1, for d from 1 to 2^(c−1).
    points: Vec<A>,
}

impl<A: Affine> Table<A> {
    /// With the windows that suit `n` multiples.
    pub(super) fn for_multiples(base: &A, n: usize) -> Self {
        let cost = |c: &usize| BITS.div_ceil(*c).saturating_mul(n.saturating_add(1 << (c - 1)));
        Self::new(base, (2..=13).min_by_key(cost).unwrap_or(8))
    }

    /// With windows of `bits` bits, at least one.
    pub(super) fn new(base: &A, bits: usize) -> Self {
        let mut step = base.to_curve();
        let bases: Vec<A::Curve> = (0..BITS.div_ceil(bits))
            .map(|_| {
                let base = step;
                for _ in 0..bits {
                    step = step.double();
                }
                base
            })
            .collect();
        let points = to_affine_batch::<A>(&bases)
            .into_par_iter()
            .flat_map_iter(|base| {
                let mut point = A::Curve::identity();
                let multiples: Vec<A::Curve> = (0..1usize << (bits - 1))
                    .map(|_| {
                        point += &base;
                        point
                    })
                    .collect();
                to_affine_batch(&multiples)
            })
            .collect();
        Self { bits, points }
    }

    /// The points, window after window.
    #[cfg(feature = "cuda")]
    pub(super) fn into_points(self) -> Vec<A> {
        self.points
    }

    pub(super) fn multiple(&self, scalar: &Scalar) -> A::Curve {
        let bytes = scalar.to_repr();
        let half = 1u32 << (self.bits - 1);
        let mut sum = A::Curve::identity();
        let mut carry = 0;
        for (j, window) in self.points.chunks_exact(half as usize).enumerate() {
            let digit = bits_of(&bytes, j * self.bits, self.bits) + carry;
            carry = u32::from(digit > half);
            let magnitude = if digit > half { 2 * half - digit } else { digit };
            let Some(point) = (magnitude as usize).checked_sub(1).and_then(|d| window.get(d)) else {
                continue;
            };
            if carry == 1 {
                sum += &-*point;
            } else {
                sum += point;
            }
        }
        sum
    }
}

/// `len` bits of a little-endian number from bit `start` on; bits past the end are zero.
fn bits_of(bytes: &[u8; 32], start: usize, len: usize) -> u32 {
    let byte = |i: usize| u32::from(bytes.get(start / 8 + i).copied().unwrap_or(0));
    let word = byte(0) | byte(1) << 8 | byte(2) << 16;
    (word >> (start % 8)) & ((1 << len) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::{G1Affine, G2Affine};
    use ff::Field;
    use group::Curve;
    use group::prime::PrimeCurveAffine;

    fn check<A: Affine>() {
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2), -Scalar::from(2)];
        for k in 0..255 {
            let power = Scalar::from(2).pow_vartime([k]);
            scalars.extend([power, power - Scalar::from(3), -power]);
        }
        for n in [1, 300, 1 << 14] {
            let table = Table::for_multiples(&A::generator(), n);
            for scalar in &scalars {
                let (got, expected) = (table.multiple(scalar), A::generator() * *scalar);
                assert_eq!(got.to_affine(), expected.to_affine(), "{} bits, {scalar}", table.bits);
            }
        }
    }

    #[test]
    fn equals_the_naive_multiples_in_g1() {
        check::<G1Affine>();
    }

    #[test]
    fn equals_the_naive_multiples_in_g2() {
        check::<G2Affine>();
    }

    /// Where the kernels look for a point is where it lies.
    #[test]
    fn lies_as_the_kernels_expect() {
        use prestage_kernels::fixed_base::Window;
        for window in [Window::Bits4, Window::Bits8] {
            let bits = window.bits() as usize;
            let table = Table::new(&G1Affine::generator(), bits);
            assert_eq!(table.points.len(), window.table_len());
            for (j, d) in [(0, 1), (0, 1 << (bits - 1)), (1, 3), (256 / bits - 1, 5)] {
                let place = (j << (bits - 1)) + d - 1;
                let scalar = Scalar::from(2).pow_vartime([(bits * j) as u64]) * Scalar::from(d as u64);
                assert_eq!(table.points[place], (G1Affine::generator() * scalar).to_affine(), "{j} {d}");
            }
        }
    }
}
