//! Signed digits: how a 255-bit scalar is cut into windows.
//!
//! A window of w bits at offset o has the digit
//!
//! ```text
//! d = k[o .. o+w] + k[o-1] − 2^w·k[o+w-1],    −2^(w-1) ≤ d ≤ 2^(w-1)
//! ```
//!
//! (Booth's recoding): a window whose top bit is set borrows 2^w, and the next one pays it back by reading that
//! same bit as its carry. No carry runs from window to window, so each digit is read on its own, and half the
//! buckets suffice because −d·P = d·(−P). Nothing is left over at the top: scalars are below r < 2^255, so bit
//! 255 is clear and the last window, which ends at bit 256, borrows nothing.

use crate::Error;

/// The integer value of a scalar, little-endian limbs, below r < 2^255.
pub(crate) type Integer = [u64; 4];

/// Bits that the windows cover: 255 of a scalar and the last carry.
const BITS: u32 = 256;

/// A cut of 256 bits into windows of two neighbouring widths, so that none is nearly empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    count: u32,
}

impl Windows {
    /// The largest width: 2^19 buckets.
    pub(crate) const MAX_BITS: u32 = 20;

    /// The cut with the fewest buckets.
    pub(crate) const NARROWEST: Self = Self { count: BITS };

    /// Every cut there is, the fewest windows first.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (1..=Self::MAX_BITS).rev().filter_map(|bits| Self::new(bits).ok())
    }

    /// As few windows as have at most `bits` bits each.
    pub(crate) fn new(bits: u32) -> Result<Self, Error> {
        if (1..=Self::MAX_BITS).contains(&bits) {
            Ok(Self { count: BITS.div_ceil(bits) })
        } else {
            Err(Error::WindowOutOfRange { bits, max: Self::MAX_BITS })
        }
    }

    /// How many windows there are: 13 to 256.
    pub(crate) const fn count(self) -> usize {
        self.count as usize
    }

    /// Width of the widest window.
    pub(crate) const fn bits(self) -> u32 {
        BITS.div_ceil(self.count)
    }

    /// Buckets of the widest window.
    pub(crate) const fn buckets(self) -> usize {
        1 << (self.bits() - 1)
    }

    /// The window of this index, the lowest bits first.
    pub(crate) fn get(self, index: usize) -> Window {
        // The indices are below 256: no truncation.
        let at = |i: usize| u32::try_from(i * BITS as usize / self.count()).unwrap_or(BITS);
        Window { offset: at(index), width: at(index + 1) - at(index) }
    }
}

/// `width` bits from bit `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) offset: u32,
    pub(crate) width: u32,
}

impl Window {
    /// Buckets that the digits of this window need: |d| is 1 to this.
    pub(crate) const fn buckets(self) -> usize {
        1 << (self.width - 1)
    }

    /// This window's digit of `k`: its absolute value and whether it is negative.
    #[inline]
    pub(crate) const fn digit(self, k: &Integer) -> (usize, bool) {
        // The window and the bit below it; below bit 0 there is a zero.
        let bits = if self.offset == 0 { k[0] << 1 } else { shifted(k, self.offset - 1) };
        let bits = bits & ((1 << (self.width + 1)) - 1);
        let borrows = bits >> self.width != 0;
        let value = (bits + 1) >> 1;
        let magnitude = if borrows { (1 << self.width) - value } else { value };
        // At most 2^19.
        #[allow(clippy::cast_possible_truncation)]
        (magnitude as usize, borrows)
    }
}

/// The low 64 bits of `k >> shift`, for a shift below 256.
#[inline]
const fn shifted(k: &Integer, shift: u32) -> u64 {
    let (limb, bit) = ((shift / 64) as usize, shift % 64);
    let low = k[limb] >> bit;
    if bit == 0 || limb == 3 { low } else { low | k[limb + 1] << (64 - bit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::{Field, PrimeField};

    fn integer(k: &Scalar) -> Integer {
        let mut limbs = [0; 4];
        for (limb, bytes) in limbs.iter_mut().zip(k.to_bytes_le().as_chunks().0) {
            *limb = u64::from_le_bytes(*bytes);
        }
        limbs
    }

    /// 0, 1, 2, (r ± 1)/2, r − 2, r − 1, and 2^k, 2^k ± 1 for every k.
    fn edges() -> Vec<Scalar> {
        let half = (Scalar::ONE + Scalar::ONE).invert().unwrap();
        let mut edges = vec![Scalar::ZERO, -Scalar::ONE, -Scalar::from(2), half, half - Scalar::ONE];
        let mut power = Scalar::ONE;
        for _ in 0..Scalar::NUM_BITS {
            edges.extend([power, power - Scalar::ONE, power + Scalar::ONE, -power]);
            power = power.double();
        }
        edges
    }

    #[test]
    fn m4_windows_tile_256_bits_at_every_width() {
        for bits in 1..=Windows::MAX_BITS {
            let windows = Windows::new(bits).unwrap();
            let mut end = 0;
            for i in 0..windows.count() {
                let window = windows.get(i);
                assert_eq!(window.offset, end);
                assert!(window.width >= 1 && window.width <= bits && windows.bits() - window.width <= 1);
                assert!(window.buckets() <= windows.buckets());
                end += window.width;
            }
            assert_eq!(end, 256, "{bits}");
        }
    }

    #[test]
    fn m4_digits_recompose_at_every_width() {
        for bits in 1..=Windows::MAX_BITS {
            let windows = Windows::new(bits).unwrap();
            for k in edges() {
                let integer = integer(&k);
                let mut sum = Scalar::ZERO;
                for i in (0..windows.count()).rev() {
                    let window = windows.get(i);
                    let (magnitude, negative) = window.digit(&integer);
                    assert!(magnitude <= window.buckets(), "{bits} {i} {magnitude}");
                    for _ in 0..window.width {
                        sum = sum.double();
                    }
                    let digit = Scalar::from(magnitude as u64);
                    sum += if negative { -digit } else { digit };
                }
                assert_eq!(sum, k, "{bits}");
            }
        }
    }

    #[test]
    fn widths_outside_are_refused() {
        for bits in [0, Windows::MAX_BITS + 1, u32::MAX] {
            let error = Windows::new(bits).unwrap_err();
            assert!(matches!(error, Error::WindowOutOfRange { bits: b, max: 20 } if b == bits));
        }
    }
}
