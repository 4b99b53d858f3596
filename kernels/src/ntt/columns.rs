//! Transforms of more values than fit, by columns: the host side of `cuda/ntt_columns.cuh`.

use super::pointwise::{BLOCK, elementwise};
use super::{Fr, FrPtr};
use crate::{Args, Argument, Launch};

/// The domain of 2^lg points as a matrix of k rows of m values, of which a slot holds some columns: k rows of
/// m / k values, one after another, from column `first_column` on. Slots do not overlap: `first_column` is a
/// multiple of m / k.
///
/// The order is the one of [`Order::Natural`](super::Order::Natural) everywhere, and values are canonical before
/// and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// The logarithm of n, at least twice that of k and at most 32.
    pub lg: u32,
    /// The logarithm of k: 1 to 6; brought into that range.
    pub log_chunks: u32,
}

/// What becomes of the values a when others, b, are combined into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// a·b.
    Mul,
    /// (a − b)·s.
    SubScale(Fr),
}

/// `NttColumns` of cuda/ntt_columns.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Parameters {
    scale: Fr,
    slot: FrPtr,
    powers: *const Fr,
    first: u64,
    lg: u32,
    lk: u32,
    lc: u32,
    log_width: u32,
    unused: u64,
}

// SAFETY: `repr(C)`, the layout of `NttColumns`.
unsafe impl Argument for Parameters {}

/// The most bits of a tile: 2^9 elements, four a thread.
const TILE_BITS: u32 = 9;

impl Columns {
    fn log_rows(&self) -> u32 {
        self.log_chunks.clamp(1, 6)
    }

    /// The logarithm of the values of a row of the slot.
    fn log_width(&self) -> u32 {
        self.lg.min(32).saturating_sub(2 * self.log_rows())
    }

    /// The logarithm of m: the values of a slot, and those of a row of the domain.
    fn log_slot(&self) -> u32 {
        self.log_width() + self.log_rows()
    }

    fn launch(&self, kernel: &'static str, slot: FrPtr, first: u64, powers: *const Fr, scale: Fr) -> Launch {
        let (lk, log_width) = (self.log_rows(), self.log_width());
        let lc = TILE_BITS.saturating_sub(lk).min(log_width);
        // The tile, the columns' factors, the roots of order k, the rows' factors.
        let elements = (1 << (lk + lc)) + (lk << lc) + (1 << lk) / 2 + (1 << lk);
        let parameters = Parameters { scale, slot, powers, first, lg: self.lg, lk, lc, log_width, unused: 0 };
        Launch {
            kernel,
            grid: (1 << (log_width - lc), 1),
            block: BLOCK,
            shared_bytes: 32 * elements,
            args: Args::new().with(parameters),
        }
    }

    /// The first step: each column of the slot is transformed inversely, in place, and entry (row i, column j of the
    /// domain) multiplied by g^i·w^(−ij)·`scale`. `powers` are those of [`powers()`](super::powers()) for 1/w and g;
    /// `scale` is 1/k to have the inverse of [`Columns::last`].
    #[must_use]
    pub fn first(&self, slot: FrPtr, first_column: u64, powers: *const Fr, scale: Fr) -> Launch {
        self.launch("ntt_first_columns", slot, first_column, powers, scale)
    }

    /// The last step: entry (i, j) is multiplied by w^(ij) and each column transformed, in place. `powers` begin with
    /// the squarings of w.
    #[must_use]
    pub fn last(&self, slot: FrPtr, first_column: u64, powers: *const Fr) -> Launch {
        self.launch("ntt_last_columns", slot, first_column, powers, Fr::ONE)
    }

    /// Combines the slot into the n values at `a`, at the slot's columns.
    #[must_use]
    pub fn combine(&self, a: FrPtr, slot: *const Fr, first_column: u64, how: Combine) -> Launch {
        let (scale, subtract) = match how {
            Combine::Mul => (Fr::ONE, 0u32),
            Combine::SubScale(scale) => (scale, 1),
        };
        let args = Args::new().with(a).with(slot).with(scale).with(self.log_slot()).with(self.log_width());
        elementwise("ntt_combine_columns", 1 << self.log_slot(), args.with(first_column).with(subtract))
    }
}
