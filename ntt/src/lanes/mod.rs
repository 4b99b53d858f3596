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
