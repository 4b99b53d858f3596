//! Many multiples of one point.

use blst::{p1_affines, p2_affines};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::PrimeField;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rayon::prelude::*;

/// Bits that the windows cover: one more than a scalar has, so that no carry leaves the top one.
const BITS: usize = 256;
/// Points per piece of parallel work. Below blst's own threshold for threads, so that pieces do not fight.
const PIECE: usize = 512;

/// A group whose projective points can be made affine many at a time, with one inversion.
pub(crate) trait Base: PrimeCurveAffine<Scalar = Scalar> + Send + Sync {
    /// None of the points may be at infinity.
    fn normalise(points: &[Self::Curve]) -> Vec<Self>;
}

impl Base for G1Affine {
    fn normalise(points: &[G1Projective]) -> Vec<Self> {
        let raw: Vec<_> = points.iter().map(|p| *p.as_ref()).collect();
        from_raw(p1_affines::from(&raw).as_slice(), |out: &mut Self, raw| *out.as_mut() = *raw)
    }
}

impl Base for G2Affine {
    fn normalise(points: &[G2Projective]) -> Vec<Self> {
        let raw: Vec<_> = points.iter().map(|p| *p.as_ref()).collect();
        from_raw(p2_affines::from(&raw).as_slice(), |out: &mut Self, raw| *out.as_mut() = *raw)
    }
}

fn from_raw<R, A: PrimeCurveAffine>(raw: &[R], set: impl Fn(&mut A, &R)) -> Vec<A> {
    let one = |raw| {
        let mut point = A::identity();
        set(&mut point, raw);
        point
    };
    raw.iter().map(one).collect()
}

/// Multiples of one point by windows of signed digits (Brickell, Gordon, McCurley, Wilson, "Fast exponentiation with
/// precomputation", EUROCRYPT 1992): with windows of c bits, ⌈256/c⌉ additions per scalar after a table of
/// ⌈256/c⌉ · 2^(c−1) points.
pub(crate) struct FixedBase<A> {
    bits: usize,
    /// Window j holds d·2^(cj)·G at position d − 1, for d from 1 to 2^(c−1).
    table: Vec<A>,
}

impl<A: Base> FixedBase<A> {
    /// The table for about `n` multiples of `base`, which is not at infinity.
    pub(crate) fn new(base: A, n: usize) -> Self {
        let cost = |c: &usize| BITS.div_ceil(*c) * (n + (1 << (c - 1)));
        let bits = (2..=13).min_by_key(cost).unwrap_or(8);
        let mut step = base.to_curve();
        let bases: Vec<A> = (0..BITS.div_ceil(bits))
            .map(|_| {
                let base = step.to_affine();
                for _ in 0..bits {
                    step = step.double();
                }
                base
            })
            .collect();
        let table = bases
            .into_par_iter()
            .flat_map_iter(|base| {
                let mut point = A::Curve::identity();
                let multiples: Vec<A::Curve> = (0..1usize << (bits - 1))
                    .map(|_| {
                        point += &base;
                        point
                    })
                    .collect();
                multiples.chunks(PIECE).flat_map(A::normalise).collect::<Vec<_>>()
            })
            .collect();
        Self { bits, table }
    }

    /// The multiples of the base by `scalars`, none of which is zero, in parallel.
    pub(crate) fn multiples(&self, scalars: &[Scalar]) -> Vec<A> {
        scalars
            .par_chunks(PIECE)
            .flat_map_iter(|scalars| {
                let points: Vec<A::Curve> = scalars.iter().map(|s| self.multiple(s)).collect();
                A::normalise(&points)
            })
            .collect()
    }

    fn multiple(&self, scalar: &Scalar) -> A::Curve {
        let bytes = scalar.to_repr();
        let half = 1u32 << (self.bits - 1);
        let mut sum = A::Curve::identity();
        let mut carry = 0;
        for (j, window) in self.table.chunks_exact(half as usize).enumerate() {
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
    use ff::Field;

    fn check<A: Base>() {
        let mut scalars = vec![Scalar::ONE, -Scalar::ONE, Scalar::from(2), -Scalar::from(2)];
        for k in 0..255 {
            let power = Scalar::from(2).pow_vartime([k]);
            scalars.extend([power, power - Scalar::from(3), -power]);
        }
        for n in [1, 300, 1 << 14] {
            let fixed = FixedBase::new(A::generator(), n);
            for (point, scalar) in fixed.multiples(&scalars).iter().zip(&scalars) {
                assert_eq!(*point, (A::generator() * *scalar).to_affine(), "{} bits, {scalar}", fixed.bits);
            }
            assert!(fixed.multiples(&[]).is_empty());
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
}
