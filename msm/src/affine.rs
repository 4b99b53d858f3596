//! The two groups as one trait, so that one algorithm serves both.

use crate::field::Field;
use blst::{blst_fp, blst_fp2};
use blstrs::{Fp, Fp2, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

/// An affine point of G1 or G2: what a sum's bases are. Sealed; `A::Curve` is the projective type of the result.
pub trait Affine: PrimeCurveAffine<Scalar = Scalar> + Raw<Point = Self::Curve> {
    /// `"G1"` or `"G2"`.
    const NAME: &'static str;
}

impl Affine for G1Affine {
    const NAME: &'static str = "G1";
}

impl Affine for G2Affine {
    const NAME: &'static str = "G2";
}

/// Coordinates, and blst's own multi-scalar multiplication. Not nameable outside the crate.
pub trait Raw: Copy + Sized + Send + Sync + 'static {
    /// Field of the coordinates.
    type Field: Field;
    /// The projective (Jacobian) point.
    type Point: Copy + Send + Sync + 'static;

    /// x and y, both zero at infinity.
    fn xy(&self) -> (&Self::Field, &Self::Field);
    /// The point with these coordinates, which must lie on the curve or both be zero (infinity).
    fn from_xy(x: &Self::Field, y: &Self::Field) -> Self;
    /// Jacobian coordinates: x = X/Z², y = Y/Z³; Z = 0 at infinity.
    fn xyz(point: &Self::Point) -> (Self::Field, Self::Field, Self::Field);
    /// The length, in 64-bit words, of the scratch that [`Raw::blst_pippenger`] needs for `n` points.
    fn blst_scratch_words(n: usize) -> usize;
    /// Σ scalars\[i\]·points\[i\] by blst's Pippenger on the calling thread, the scalars as little-endian
    /// integers below r. `None` when there are no points, when the lengths differ or when the scratch is
    /// shorter than [`Raw::blst_scratch_words`].
    fn blst_pippenger(
        points: &[*const Self],
        scalars: &[[u64; 4]],
        scratch: &mut [u64],
    ) -> Option<Self::Point>;
}

macro_rules! raw {
    ($affine:ty, $point:ty, $field:ty, $coord:ty, $raw_affine:ty, $raw:ty, $sizeof:path, $pippenger:path) => {
        impl Raw for $affine {
            type Field = $field;
            type Point = $point;

            #[inline]
            fn xy(&self) -> (&$field, &$field) {
                let raw: &$raw_affine = self.as_ref();
                (&raw.x, &raw.y)
            }

            fn from_xy(x: &$field, y: &$field) -> Self {
                let infinity = x.is_zero() && y.is_zero();
                <$affine>::from_raw_unchecked(<$coord>::from(*x), <$coord>::from(*y), infinity)
            }

            fn xyz(point: &$point) -> ($field, $field, $field) {
                let raw: &$raw = point.as_ref();
                (raw.x, raw.y, raw.z)
            }

            fn blst_scratch_words(n: usize) -> usize {
                // SAFETY: a pure function of its argument.
                unsafe { $sizeof(n) }.div_ceil(8)
            }

            fn blst_pippenger(
                points: &[*const Self],
                scalars: &[[u64; 4]],
                scratch: &mut [u64],
            ) -> Option<$point> {
                let n = points.len();
                if n == 0 || scalars.len() != n || scratch.len() < Self::blst_scratch_words(n) {
                    return None;
                }
                // One pointer and then null means that the scalars follow one another.
                let scalars = [scalars.as_ptr().cast::<u8>(), std::ptr::null()];
                let mut out = <$point>::identity();
                // SAFETY: `points` holds n ≥ 1 pointers to points that outlive the call (the caller made them
                // from references) and to a type that is `repr(transparent)` over blst's; the n scalars of 32
                // bytes each follow one another, little-endian on every machine that blstrs supports; the
                // scratch is as long as blst says.
                unsafe {
                    $pippenger(
                        out.as_mut(),
                        points.as_ptr().cast(),
                        n,
                        scalars.as_ptr(),
                        255,
                        scratch.as_mut_ptr(),
                    );
                }
                Some(out)
            }
        }
    };
}

raw!(
    G1Affine,
    G1Projective,
    blst_fp,
    Fp,
    blst::blst_p1_affine,
    blst::blst_p1,
    blst::blst_p1s_mult_pippenger_scratch_sizeof,
    blst::blst_p1s_mult_pippenger
);
raw!(
    G2Affine,
    G2Projective,
    blst_fp2,
    Fp2,
    blst::blst_p2_affine,
    blst::blst_p2,
    blst::blst_p2s_mult_pippenger_scratch_sizeof,
    blst::blst_p2s_mult_pippenger
);

/// Points per inversion in [`to_affine_batch`].
const NORMALISE: usize = 1 << 10;

/// Converts projective points to affine ones, in parallel, with one inversion for a thousand points
/// (3M + S for the shared inverse and 3M + S for the coordinates, each).
///
/// Infinity stays infinity and does not disturb its neighbours.
///
/// ```
/// use blstrs::{G1Affine, G1Projective};
/// use group::Group;
///
/// let g = G1Projective::generator();
/// let points = prestage_msm::to_affine_batch::<G1Affine>(&[g, G1Projective::identity(), g.double()]);
/// assert_eq!(points, [G1Affine::from(g), G1Affine::default(), G1Affine::from(g.double())]);
/// ```
#[must_use]
pub fn to_affine_batch<A: Affine>(points: &[A::Curve]) -> Vec<A> {
    let mut affine = vec![A::identity(); points.len()];
    affine.par_chunks_mut(NORMALISE).zip(points.par_chunks(NORMALISE)).for_each(|(out, points)| {
        let mut product = A::Field::ONE;
        let mut prefix = Vec::with_capacity(points.len());
        for point in points {
            prefix.push(product);
            let (_, _, z) = A::xyz(point);
            if !z.is_zero() {
                product = product.mul(&z);
            }
        }
        let mut inverse = product.invert();
        for ((out, point), prefix) in out.iter_mut().zip(points).zip(&prefix).rev() {
            let (x, y, z) = A::xyz(point);
            if !z.is_zero() {
                let z_inv = inverse.mul(prefix);
                inverse = inverse.mul(&z);
                let z_inv2 = z_inv.square();
                *out = A::from_xy(&x.mul(&z_inv2), &y.mul(&z_inv2.mul(&z_inv)));
            }
        }
    });
    affine
}
