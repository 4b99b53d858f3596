//! Scalars that travel sorted, on their way to digits.
//!
//! A batch of n terms in device memory is `width` words of 64 bits with a bit for each scalar that is neither zero
//! nor one, as many words with a bit for each one, then the former as canonical integers of 32 bytes, in order. Bit
//! `shift` (below 64) of a bitmap is the first scalar's.

use super::{scan, scan_totals};
use crate::{Args, Launch};

/// Bits of a word.
const BITS: u64 = 64;

/// Words of a bitmap that have bits of a batch.
const fn used(shift: u32, n: u64) -> u64 {
    (n + shift as u64).div_ceil(BITS)
}

/// The bytes of `ranks` for batches of up to `terms` scalars, whatever their shift.
#[must_use]
pub const fn expand_scratch_bytes(terms: u64) -> u64 {
    let words = used(63, terms);
    4 * (words + scan_totals(words))
}

/// Once for a batch of `n` scalars at `words`: how many integers come before each word of the first bitmap.
#[must_use]
pub fn ranks(words: *const u64, shift: u32, n: u64, ranks: *mut u32) -> Vec<Launch> {
    if n == 0 {
        return Vec::new();
    }
    let used = used(shift, n);
    let args = Args::new().with(ranks).with(words).with(shift).with(used);
    let mut launches = vec![Launch::elementwise("msm_count_bits", used, 256, args)];
    let totals = ranks.wrapping_add(usize::try_from(used).unwrap_or(usize::MAX));
    scan(ranks, totals, used, &mut launches);
    launches
}

/// Scalars `first` to `first + n` of the batch at `words`, aligned to 16 bytes, to integers at `out`: eight limbs of
/// 32 bits each, least significant first, as [`Plan::accumulate`](super::Plan::accumulate) takes them with
/// [`Form::Integers`](super::Form::Integers). [`ranks()`] ran before.
#[must_use]
pub fn expand(
    words: *const u64,
    width: u64,
    shift: u32,
    first: u64,
    n: u64,
    ranks: *const u32,
    out: *mut [u32; 8],
) -> Launch {
    let args = Args::new().with(out).with(words).with(ranks).with(width);
    Launch::elementwise("msm_expand", n, 256, args.with(shift).with(first).with(n))
}
