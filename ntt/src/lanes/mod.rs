//! Eight field elements at a time: the arithmetic under a tile.
//!
//! A tile holds rows of eight independent columns, so every operation of a column transform is the
//! same on eight values and a twiddle factor is one number for the whole row. Two backends implement
//! it: [`portable`] on 64-bit limbs and, where the processor has it, [`ifma`] on 52-bit limbs.
//!
//! **Range.** Between operations a row is *loose*: congruent to its value and below [`Lanes::BOUND`]
//! times r. A product is below `2r` whatever the operand; `add` of a product, and `sub` of a product,
//! raise the bound of the other operand by `2r` at most. A column transform of `2^11` rows that starts
//! from `2r` therefore ends below `26r`, and needs no reduction in between.

#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
pub(crate) mod portable;

use blstrs::Scalar;

use crate::tables::Words;
use crate::tile::{Fused, Pass, Pointwise, Tile};

/// Columns of a tile.
pub(crate) const LANES: usize = 8;

/// The arithmetic that transforms run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Scalar 64-bit multiplications, on every processor.
    Portable,
    /// AVX-512 IFMA: eight 52-bit multiply-adds per instruction (Intel since 2019, AMD since Zen 4).
    Ifma,
}

impl Backend {
    /// The fastest backend that this processor runs.
    #[must_use]
    pub fn detect() -> Self {
        if Self::Ifma.is_available() { Self::Ifma } else { Self::Portable }
    }

    /// Whether this processor runs the backend.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ifma => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Ifma => false,
        }
    }
}

/// A row of eight loose values.
///
/// # Safety
/// Methods of an implementation may use instructions that the processor must have. An implementation
/// for which that matters is only named after [`Backend::is_available`] said yes, and enters its code
/// through [`Lanes::pass`], [`Lanes::fused`] and [`Lanes::pointwise`].
pub(crate) unsafe trait Lanes: Words + Send + Sync + 'static {
    /// A constant that multiplies all lanes.
    type Factor: Words + Send + Sync + 'static;

    /// Prepares a constant.
    fn factor(x: &Scalar) -> Self::Factor;
    /// Prepares eight multipliers, one per lane. A product of two multipliers is a multiplier.
    fn multipliers(x: &[Scalar; LANES]) -> Self;
    /// Loads eight values below `2r` from `p + lane * stride` (in elements).
    ///
    /// # Safety
    /// The eight places are readable.
    unsafe fn load(p: *const Scalar, stride: usize) -> Self;
    /// Stores eight values that are below `2r`.
    ///
    /// # Safety
    /// The eight places are writable.
    unsafe fn store(self, p: *mut Scalar, stride: usize);
    /// Any loose value to one below `2r`, ready for `store` or as the subtrahend of `sub`.
    fn settle(self) -> Self;
    /// A value below `2r` to the canonical one.
    fn canonical(self) -> Self;
    /// `self * f`, below `2r`.
    fn mul(self, f: &Self::Factor) -> Self;
    /// A product of multipliers, made fit to multiply by.
    fn multiplier(self) -> Self;
    /// Product of two rows of values below `2r` (canonical, the second).
    fn product(self, other: Self) -> Self;
    /// Lane by lane with multipliers, below `2r`.
    fn mul_each(self, m: &Self) -> Self;
    /// By one lane of `m`, below `2r`.
    fn mul_lane(self, m: &Self, lane: usize) -> Self;
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference, for `other < 2r`.
    fn sub(self, other: Self) -> Self;
    /// Difference, for `other < 4r`.
    fn sub_twice(self, other: Self) -> Self;

    /// Runs [`Pass::body`] with the instructions of this backend.
    ///
    /// # Safety
    /// As for [`Pass::body`], and the processor has the instructions.
    unsafe fn pass(pass: &Pass<'_, Self>, tile: Tile, scratch: &mut [Self]);
    /// Runs [`Fused::body`] with the instructions of this backend.
    ///
    /// # Safety
    /// As for [`Fused::body`], and the processor has the instructions.
    unsafe fn fused(fused: &Fused<'_, Self>, tile: Tile, scratch: &mut [Self]);
    /// Runs [`Pointwise::body`] with the instructions of this backend.
    ///
    /// # Safety
    /// As for [`Pointwise::body`], and the processor has the instructions.
    unsafe fn pointwise(op: &Pointwise<Self>, at: usize, a: *mut Scalar, b: *const Scalar, c: *const Scalar);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{self, Limbs, R, R2};
    use ff::Field;

    /// Values below `2r` at the edges, as they may lie in memory between passes.
    const EDGES: [Limbs; LANES] = [
        [0; 4],
        [1, 0, 0, 0],
        [R[0] - 1, R[1], R[2], R[3]],
        R,
        [R[0] + 1, R[1], R[2], R[3]],
        [R2[0] - 1, R2[1], R2[2], R2[3]],
        [u64::MAX, u64::MAX, u64::MAX, R[3] - 1],
        [0, 0, 0, 1 << 63],
    ];

    fn rotated(by: usize) -> [Limbs; LANES] {
        std::array::from_fn(|l| EDGES[(l + by) % LANES])
    }

    fn reduced(x: Limbs) -> Scalar {
        field::scalar(field::reduce(&x))
    }

    fn load<V: Lanes>(x: &[Limbs; LANES]) -> V {
        let x = x.map(field::scalar);
        // SAFETY: eight neighbours; the caller has checked the processor.
        unsafe { V::load(x.as_ptr(), 1) }
    }

    fn canonical<V: Lanes>(v: V) -> [Scalar; LANES] {
        let mut out = [Scalar::ZERO; LANES];
        // SAFETY: as above.
        unsafe { v.canonical().store(out.as_mut_ptr(), 1) };
        out
    }

    /// Random values never come near the edges of lazy arithmetic, so each operation meets them here.
    fn agrees_at_every_edge<V: Lanes>() {
        for by in 0..LANES {
            let (xs, ys) = (rotated(0), rotated(by));
            let (x, y) = (load::<V>(&xs), load::<V>(&ys));
            let is = |v: V, what: &str, f: &dyn Fn(Scalar, Scalar) -> Scalar| {
                let got = canonical(v);
                for l in 0..LANES {
                    assert_eq!(got[l], f(reduced(xs[l]), reduced(ys[l])), "{what}, {by}, lane {l}");
                }
            };
            is(x, "load", &|a, _| a);
            is(x.sub(y).settle(), "sub", &|a, b| a - b);
            is(x.sub_twice(y.add(y)).settle(), "sub_twice", &|a, b| a - b - b);
            // As high as a column transform gets: x + 12 y < 26 r.
            let mut high = x;
            let mut k = Scalar::ZERO;
            for _ in 0..12 {
                high = high.add(y);
                k += Scalar::ONE;
                is(high.settle(), "sum", &|a, b| a + b * k);
                is(high.sub(y).settle(), "sum less", &|a, b| a + b * (k - Scalar::ONE));
            }
            for c in [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(7).invert().unwrap()] {
                let f = V::factor(&c);
                is(high.mul(&f), "mul", &|a, b| (a + b * k) * c);
                is(x.sub(high.mul(&f)).settle(), "butterfly", &|a, b| a - (a + b * k) * c);
                is(x.mul(&f).mul(&f), "mul twice", &|a, _| a * c * c);
            }
            let m = V::multipliers(&ys.map(reduced));
            is(high.mul_each(&m), "mul_each", &|a, b| (a + b * k) * b);
            is(x.mul_each(&m.mul_each(&m).multiplier()), "multiplier", &|a, b| a * b * b);
            is(x.product(load(&ys.map(|y| field::reduce(&y)))), "product", &|a, b| a * b);
            for (lane, y) in ys.iter().enumerate() {
                is(high.mul_lane(&m, lane), "mul_lane", &|a, b| (a + b * k) * reduced(*y));
            }
        }
    }

    #[test]
    fn portable_agrees_with_blst_at_every_edge() {
        agrees_at_every_edge::<portable::Portable>();
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn ifma_agrees_with_blst_at_every_edge() {
        if Backend::Ifma.is_available() {
            agrees_at_every_edge::<ifma::Ifma>();
        }
    }
}
