//! Steps on each value by itself. Values are canonical before and after.

use super::{Fr, FrPtr};
use crate::{Args, Launch};

/// Threads of a block.
pub(super) const BLOCK: u32 = 128;

pub(super) fn elementwise(kernel: &'static str, n: u64, args: Args) -> Launch {
    Launch::elementwise(kernel, n, BLOCK, args)
}

/// a := a·other over n values.
#[must_use]
pub fn combine_product(a: FrPtr, other: *const Fr, n: u64) -> Launch {
    elementwise("fr_product", n, Args::new().with(a).with(a.cast_const()).with(other).with(n))
}

/// a := (a − other)·scale over n values.
#[must_use]
pub fn combine_sub_scale(a: FrPtr, other: *const Fr, scale: Fr, n: u64) -> Launch {
    elementwise("fr_sub_scale", n, Args::new().with(a).with(other).with(scale).with(n))
}

/// a := (a·b − c)·scale over n values.
#[must_use]
pub fn quotient_pointwise(a: FrPtr, b: *const Fr, c: *const Fr, scale: Fr, n: u64) -> Launch {
    let args = Args::new().with(a).with(a.cast_const()).with(b).with(c).with(scale).with(n);
    elementwise("fr_quotient", n, args)
}

/// The bit reversal permutation of 2^lg values, in place; lg at most 32.
#[must_use]
pub fn reverse_in_place(values: FrPtr, lg: u32) -> Launch {
    elementwise("fr_bit_reverse_in_place", 1 << lg, Args::new().with(values).with(lg))
}

/// The squarings root^(2^j) in the first 32 elements at `at` and shift^(2^j) in the next 32: what [`scale`] and
/// [`Columns`](super::Columns) take.
#[must_use]
pub fn powers(at: FrPtr, root: Fr, shift: Fr) -> Launch {
    let args = Args::new().with(at).with(root).with(shift);
    Launch { kernel: "ntt_powers", grid: (1, 1), block: 32, shared_bytes: 0, args }
}

/// Multiplies value i of 2^lg by factor·shift^e, where e is i or, if `reversed`, i with its lg bits reversed;
/// `powers` are those of [`powers()`].
#[must_use]
pub fn scale(values: FrPtr, powers: *const Fr, factor: Fr, lg: u32, reversed: bool) -> Launch {
    let args = Args::new().with(values).with(powers).with(factor).with(lg).with(u32::from(reversed));
    elementwise("fr_scale", 1 << lg, args)
}
