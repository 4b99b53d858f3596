//! Which launches make many multiples of one point: the host side of `cuda/fixed_base.cu`.
//!
//! The points of a key are multiples of two generators. With a table of the point's multiples by every digit of every
//! window, one of them is as many mixed additions as there are windows, and no doubling (Brickell, Gordon, McCurley, Wilson,
//! "Fast exponentiation with precomputation", EUROCRYPT 1992).
//!
//! The table, [`Window::table_len`] affine points, holds d·2^(b·j)·P at position j·2^(b−1) + d − 1 for window j of b bits and
//! d = 1 … 2^(b−1). Whoever launches makes it: at sixteen bits it is half a million points.

use crate::msm::Curve;
use crate::ntt::Fr;
use crate::{Args, Launch};

/// Points of which one thread makes affine coordinates with a single inversion, which costs as much as some 150 products.
const SHARED: u64 = 32;

/// Windows that the kernels take, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// 64 windows of 4 bits: a table of 512 points.
    Bits4,
    /// 32 windows of 8 bits: a table of 4,096 points.
    Bits8,
    /// 16 windows of 16 bits: a table of 524,288 points.
    Bits16,
}

impl Window {
    /// The window that suits `n` multiples, additions for the table counted.
    #[must_use]
    pub const fn of(n: usize) -> Self {
        match n {
            0..64 => Self::Bits4,
            64..0x8000 => Self::Bits8,
            _ => Self::Bits16,
        }
    }

    /// Its bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bits4 => 4,
            Self::Bits8 => 8,
            Self::Bits16 => 16,
        }
    }

    /// Points of the table.
    #[must_use]
    pub const fn table_len(self) -> usize {
        (256 / self.bits() as usize) << (self.bits() - 1)
    }
}

/// The multiples by `n` scalars, canonical and in Montgomery form, in XYZZ coordinates at `sums`.
#[must_use]
pub fn multiples(
    curve: Curve,
    window: Window,
    table: *const u8,
    scalars: *const Fr,
    n: u64,
    sums: *mut u8,
) -> Launch {
    let args = Args::new().with(sums).with(table).with(scalars).with(window.bits()).with(n);
    Launch::elementwise(curve.name("g1_multiples", "g2_multiples"), n, 128, args)
}

/// `n` points in XYZZ coordinates as affine points at `out`, laid out as in blst: canonical, in Montgomery form, (0, 0) for
/// infinity.
#[must_use]
pub fn normalise(curve: Curve, sums: *const u8, n: u64, out: *mut u8) -> Launch {
    let args = Args::new().with(out).with(sums).with(n);
    Launch::elementwise(curve.name("g1_normalise", "g2_normalise"), n.div_ceil(SHARED), 128, args)
}
