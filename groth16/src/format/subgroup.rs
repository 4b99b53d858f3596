//! Whether many points are in the subgroup of order r, for less than the cost of a test for each.
//!
//! Let h be the part of a point outside the subgroup, of an order that divides the cofactor. The sum of all
//! points with random coefficients from −M to M is in the subgroup only if the coefficients' sum over these
//! parts vanishes. If one part is not zero and no prime up to 2M divides the cofactor, then at most one of
//! the 2M + 1 values of its coefficient makes it vanish. So a round lets a bad point through with probability
//! 1 / (2M + 1) at most, over coefficients that whoever made the file cannot know, and `ROUNDS` rounds with
//! 2^-64. G1's cofactor is divisible by 3, G2's by no prime below 13:
//!
//! | | M | rounds | additions per point | beside the test of one point |
//! |---|---|---|---|---|
//! | G1 | 1 | 41 | 27 | a scalar multiplication by z², 126 doublings |
//! | G2 | 6 | 18 | 17 | a scalar multiplication by z, 63 doublings |
//!
//! The additions are affine with shared inversions (blst), 5 multiplications and a squaring each.

use blst::{blst_p1s_add, blst_p2s_add};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use rand_chacha::ChaCha8Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

use super::point::Point;

/// Fewer points than this are tested one by one: a round's own test costs as much as many additions.
const FEWEST: usize = 256;
/// Most points of one batch; more do not make it cheaper.
const MOST: usize = 4096;

/// A group whose points are tested in batches.
pub(crate) trait Batch: PrimeCurveAffine {
    /// Largest coefficient: no prime up to twice this divides the cofactor.
    const M: usize;
    /// Rounds until a bad point passes with probability 2^-64 at most.
    const ROUNDS: usize;

    /// The sum of points on the curve, in the subgroup or not.
    fn sum(points: &[&Self]) -> Self::Curve;
}

impl Batch for G1Affine {
    const M: usize = 1;
    const ROUNDS: usize = 41;

    fn sum(points: &[&Self]) -> G1Projective {
        let mut sum = G1Projective::identity();
        if !points.is_empty() {
            // SAFETY: `G1Affine` is `repr(transparent)` over `blst_p1_affine`, so a slice of references is an
            // array of that many valid, non-null pointers, which the call reads. It writes one point to
            // `sum`, and zeros (what infinity is in `blst_p1`) are a valid one.
            unsafe { blst_p1s_add(sum.as_mut(), points.as_ptr().cast(), points.len()) };
        }
        sum
    }
}

impl Batch for G2Affine {
    const M: usize = 6;
    const ROUNDS: usize = 18;

    fn sum(points: &[&Self]) -> G2Projective {
        let mut sum = G2Projective::identity();
        if !points.is_empty() {
            // SAFETY: as for G1, with `G2Affine` transparent over `blst_p2_affine`.
            unsafe { blst_p2s_add(sum.as_mut(), points.as_ptr().cast(), points.len()) };
        }
        sum
    }
}

/// The first of the points that is outside the subgroup. All of them must be on the curve.
pub(crate) fn first_outside<P: Point>(points: &[P]) -> Option<usize> {
    let size = points.len().div_ceil(rayon::current_num_threads()).clamp(2 * FEWEST, MOST);
    points.par_chunks(size).enumerate().find_map_first(|(i, chunk)| {
        // Without randomness from the system there is no batch, only the slow way.
        let rng = (chunk.len() >= FEWEST).then(|| ChaCha8Rng::from_rng(OsRng).ok()).flatten();
        let all_in = rng.is_some_and(|mut rng| all_in_subgroup(chunk, &mut rng));
        if all_in { None } else { first_outside_naive(chunk).map(|at| i * size + at) }
    })
}

/// Point by point.
fn first_outside_naive<P: Point>(points: &[P]) -> Option<usize> {
    points.iter().position(|p| !p.in_subgroup())
}

/// The batch test. `true` is wrong with probability 2^-64 at most, `false` never.
fn all_in_subgroup<P: Point>(points: &[P], rng: &mut impl RngCore) -> bool {
    let n_values = 2 * P::M + 1;
    // `with[v]` are the points whose coefficient is v − M.
    let mut with: Vec<Vec<&P>> = vec![Vec::with_capacity(2 * points.len() / n_values); n_values];
    (0..P::ROUNDS).all(|_| {
        with.iter_mut().for_each(Vec::clear);
        for point in points.iter().filter(|p| !bool::from(p.is_identity())) {
            // A value below 2M + 1 from 32 random bits: off from uniform by less than 2^-28.
            let value = (u64::from(rng.next_u32()) * n_values as u64) >> 32;
            if let Some(list) = usize::try_from(value).ok().and_then(|v| with.get_mut(v)) {
                list.push(point);
            }
        }
        // Σ k·(S_k − S_−k), by running sums from the largest k down.
        let (mut running, mut sum) = (P::Curve::identity(), P::Curve::identity());
        for k in (1..=P::M).rev() {
            running += P::sum(&with[P::M + k]) - P::sum(&with[P::M - k]);
            sum += running;
        }
        sum.to_affine().in_subgroup()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::PrimeField;
    use num_bigint::BigUint;

    /// On the curve, outside the subgroup, one for each small x that gives one.
    fn outside_g1() -> impl Iterator<Item = G1Affine> {
        (1..=255u8).filter_map(|x| {
            let mut bytes = [0; 48];
            (bytes[0], bytes[47]) = (0x80, x);
            Option::from(G1Affine::from_compressed_unchecked(&bytes))
        })
    }

    fn outside_g2() -> impl Iterator<Item = G2Affine> {
        (1..=255u8).filter_map(|x| {
            let mut bytes = [0; 96];
            (bytes[0], bytes[95]) = (0x80, x);
            Option::from(G2Affine::from_compressed_unchecked(&bytes))
        })
    }

    fn times<P: Group>(p: P, n: &BigUint) -> P {
        (0..n.bits()).rev().fold(P::identity(), |sum, bit| {
            let sum = sum.double();
            if n.bit(bit) { sum + p } else { sum }
        })
    }

    fn good<P: PrimeCurveAffine<Scalar = Scalar>>(n: usize) -> Vec<P> {
        let mut points: Vec<P> =
            (0..n).map(|i| (P::generator() * Scalar::from(i as u64)).to_affine()).collect();
        // Duplicates, negatives and infinities in one batch.
        points[n / 2] = points[n / 3];
        points[n / 2 + 1] = -points[n / 3];
        points[n - 1] = P::identity();
        points
    }

    /// The cofactors, from the curve's parameter z: (z − 1)² / 3 and the one of the twist.
    #[test]
    fn no_small_prime_but_3_divides_the_cofactors() {
        let z = -num_bigint::BigInt::from(0xd201_0000_0001_0000u64);
        let power = |e: u32| z.pow(e);
        let less: num_bigint::BigInt = &z - 1;
        let h1: num_bigint::BigInt = less.pow(2) / 3;
        let h2 =
            (power(8) - 4 * power(7) + 5 * power(6) - 4 * power(4) + 6 * power(3) - 4 * power(2) - 4 * &z
                + 13)
                / 9;
        let divisors = |h: &num_bigint::BigInt| (2..13).filter(|p| h % p == 0.into()).collect::<Vec<u32>>();
        assert_eq!((divisors(&h1), divisors(&h2)), (vec![3, 11], vec![]));
        const { assert!(2 * G1Affine::M < 3 && 2 * G2Affine::M < 13) };
        // h1 and h2 are what they are said to be: they take points outside into the subgroup.
        for p in outside_g1().take(3) {
            let inside = times(G1Projective::from(p), &h1.to_biguint().unwrap());
            assert!(bool::from(inside.to_affine().is_torsion_free()));
        }
        for p in outside_g2().take(3) {
            let inside = times(G2Projective::from(p), &h2.to_biguint().unwrap());
            assert!(bool::from(inside.to_affine().is_torsion_free()));
        }
        for (values, rounds) in
            [(2 * G1Affine::M + 1, G1Affine::ROUNDS), (2 * G2Affine::M + 1, G2Affine::ROUNDS)]
        {
            assert!((values as f64).log2() * rounds as f64 > 64.0);
        }
    }

    #[test]
    fn batches_find_what_the_slow_way_finds() {
        let (mut g1, mut g2): (Vec<G1Affine>, Vec<G2Affine>) = (good(3000), good(1500));
        assert_eq!((first_outside(&g1), first_outside(&g2)), (None, None));
        let r = BigUint::from_bytes_le(&(-Scalar::from(1)).to_repr()) + 1u8;
        let h3: BigUint = BigUint::from(0x396c_8c00_5555_e156_8c00_aaab_0000_aaabu128) / 3u8;
        for at in [2999, 1777, 3] {
            // What is left of a point after r and the rest of the cofactor: order 3, the easiest to miss.
            let order_3 = outside_g1()
                .map(|p| times(times(G1Projective::from(p), &r), &h3))
                .find(|t| !bool::from(t.is_identity()))
                .unwrap();
            g1[at] = (order_3 + g1[at]).to_affine();
            assert_eq!(first_outside(&g1), Some(at));
            assert_eq!(first_outside_naive(&g1), Some(at));
        }
        for (at, bad) in [1499, 600, 0].into_iter().zip(outside_g2()) {
            g2[at] = bad;
            assert_eq!(first_outside(&g2), Some(at));
            assert_eq!(first_outside_naive(&g2), Some(at));
        }
        // Two bad parts that cancel in a plain sum.
        let mut g1: Vec<G1Affine> = good(1000);
        let bad = outside_g1().next().unwrap();
        (g1[10], g1[20]) = (bad, -bad);
        assert_eq!(first_outside(&g1), Some(10));
        assert_eq!(first_outside::<G1Affine>(&[]), None);
        assert_eq!(first_outside(&[bad]), Some(0));
    }
}
