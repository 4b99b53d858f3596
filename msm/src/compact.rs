//! Scalars as they travel: two bits each, and 32 bytes for those that need windows.
//!
//! ```text
//! in host memory   [ others: 1 bit each ][ ones: 1 bit each ][ integers of the others ]
//! in a slot        the same three parts, of one batch; bit `shift` of a bitmap is its first scalar's
//! ```
//!
//! Of a witness half is zero and most of the rest is one: it takes a tenth of the bytes this way, and nobody has to look at
//! each scalar again.

use crate::digits::Integer;
use crate::split::{CHUNK, to_integer};
use crate::{Error, Stats};
use blstrs::Scalar;
use ff::Field;
use prestage_transfer::{Pinned, Source, Transfer};
use prestage_vram::Bytes;
use rayon::prelude::*;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

const BITS: usize = u64::BITS as usize;
/// Words of a bitmap for one chunk.
const WORDS: usize = CHUNK / BITS;
/// Words of an integer.
pub(crate) const LIMBS: usize = 4;

/// The scalars of a sum in host memory, sorted into zeros, ones and others, page-locked where that can be had. Clones share
/// the memory. It shows sizes, never values.
///
/// Making one is host work that needs no turn.
///
/// ```
/// use blstrs::Scalar;
/// use prestage_msm::Compact;
/// use prestage_vram::{Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let witness: Vec<_> = (0..1000u64).map(|i| Scalar::from(i % 3)).collect();
/// let compact = Compact::new(&host, &witness)?;
/// assert_eq!((compact.len(), compact.stats().ones, compact.stats().others), (1000, 333, 333));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Compact(Arc<Inner>);

struct Inner {
    len: usize,
    stats: Stats,
    /// Others before each chunk.
    ranks: Vec<usize>,
    words: Words,
}

#[derive(Clone)]
enum Words {
    Pinned(Arc<Pinned<u64>>),
    Plain(Arc<Vec<u64>>),
}

impl Words {
    fn as_slice(&self) -> &[u64] {
        match self {
            Self::Pinned(words) => words,
            Self::Plain(words) => words,
        }
    }
}

/// What one chunk of scalars consists of.
struct Sorted {
    others: [u64; WORDS],
    ones: [u64; WORDS],
    count: usize,
}

impl Sorted {
    fn new(scalars: &[Scalar]) -> Self {
        let mut sorted = Self { others: [0; WORDS], ones: [0; WORDS], count: 0 };
        for (i, scalar) in scalars.iter().enumerate().filter(|(_, scalar)| !bool::from(scalar.is_zero())) {
            let (word, bit) = (i / BITS, 1 << (i % BITS));
            if *scalar == Scalar::ONE {
                sorted.ones[word] |= bit;
            } else {
                sorted.others[word] |= bit;
                sorted.count += 1;
            }
        }
        sorted
    }
}

impl Compact {
    /// Sorts `scalars`, on all threads of the current `rayon` pool.
    ///
    /// # Errors
    /// [`Error::Device`] when pinning fails for another reason than that memory cannot be page-locked.
    pub fn new(device: &impl Transfer, scalars: &[Scalar]) -> Result<Self, Error> {
        let len = scalars.len();
        let chunks: Vec<Sorted> = scalars.par_chunks(CHUNK).map(Sorted::new).collect();
        let mut ranks = Vec::with_capacity(chunks.len());
        let mut others = 0;
        for chunk in &chunks {
            ranks.push(others);
            others += chunk.count;
        }
        let ones = chunks.iter().flat_map(|chunk| chunk.ones).map(|word| word.count_ones() as usize).sum();
        let stats = Stats { zeros: len - ones - others, ones, others, additions: 0 };

        let width = len.div_ceil(BITS);
        let total = others.saturating_mul(LIMBS).saturating_add(2 * width);
        let write = |words: &mut [MaybeUninit<u64>]| {
            let (bitmaps, integers) = words.split_at_mut(2 * width);
            let (of_others, of_ones) = bitmaps.split_at_mut(width);
            let mut rest = integers;
            let integers: Vec<_> = chunks
                .iter()
                .map(|chunk| {
                    let (head, tail) = std::mem::take(&mut rest).split_at_mut(chunk.count * LIMBS);
                    rest = tail;
                    head
                })
                .collect();
            let bitmaps = of_others.par_chunks_mut(WORDS).zip(of_ones.par_chunks_mut(WORDS));
            let parts = bitmaps.zip(scalars.par_chunks(CHUNK)).zip(integers).zip(&chunks);
            parts.for_each(|((((of_others, of_ones), scalars), integers), sorted)| {
                of_others.iter_mut().zip(sorted.others).for_each(|(place, word)| _ = place.write(word));
                of_ones.iter_mut().zip(sorted.ones).for_each(|(place, word)| _ = place.write(word));
                let others = ones_of(sorted.others.iter().copied()).map(|i| to_integer(scalars[i]));
                let words = others.flatten();
                integers.iter_mut().zip(words).for_each(|(place, word)| _ = place.write(word));
            });
        };
        let words = match Pinned::uninit(device, total) {
            Ok(mut pinned) => {
                write(&mut pinned);
                // SAFETY: both bitmaps cover every scalar, and each chunk has as many integers as it has others.
                Words::Pinned(Arc::new(unsafe { pinned.assume_init() }))
            }
            Err(e) if e.is_unpinnable() => {
                let mut plain = Vec::with_capacity(total);
                write(&mut plain.spare_capacity_mut()[..total]);
                // SAFETY: as above.
                unsafe { plain.set_len(total) };
                Words::Plain(Arc::new(plain))
            }
            Err(e) => return Err(e.into()),
        };
        Ok(Self(Arc::new(Inner { len, stats, ranks, words })))
    }

    /// How many scalars there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of each kind. No addition has been counted yet.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats
    }

    /// Whether the memory is page-locked.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self.0.words, Words::Pinned(_))
    }

    /// Others before scalar `i`.
    fn rank(&self, i: usize) -> usize {
        let chunk = (i / CHUNK).min(self.0.ranks.len().saturating_sub(1));
        let before = self.0.ranks.get(chunk).copied().unwrap_or(0);
        let words = self.0.words.as_slice().get(chunk * WORDS..i.div_ceil(BITS)).unwrap_or_default();
        let partial = |(k, word): (usize, &u64)| {
            let bits = i - (chunk * WORDS + k) * BITS;
            if bits < BITS { word & ((1 << bits) - 1) } else { *word }.count_ones() as usize
        };
        before + words.iter().enumerate().map(partial).sum::<usize>()
    }

    /// What travels of the scalars in `range`, and how it lies in a slot for batches of `batch`.
    pub(crate) fn pieces(&self, range: &Range<usize>, batch: usize) -> Pieces {
        let width = self.len().div_ceil(BITS);
        let bitmap = range.start / BITS..range.end.div_ceil(BITS);
        let integers = self.rank(range.start)..self.rank(range.end);
        let start = 2 * width + LIMBS * integers.start;
        Pieces {
            layout: Layout {
                width: Layout::words_for(batch),
                shift: range.start % BITS,
                len: range.len(),
                others: integers.len(),
            },
            others: self.part(bitmap.clone()),
            ones: self.part(width + bitmap.start..width + bitmap.end),
            integers: self.part(start..start + LIMBS * integers.len()),
        }
    }

    fn part(&self, range: Range<usize>) -> WordsPart {
        WordsPart { words: self.0.words.clone(), range }
    }
}

impl fmt::Debug for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compact")
            .field("len", &self.len())
            .field("pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}

/// One batch of scalars on its way.
pub(crate) struct Pieces {
    pub(crate) layout: Layout,
    pub(crate) others: WordsPart,
    pub(crate) ones: WordsPart,
    pub(crate) integers: WordsPart,
}

/// A part of compact scalars, as an upload holds it.
pub(crate) struct WordsPart {
    words: Words,
    range: Range<usize>,
}

// SAFETY: the range is fixed, and the shared memory stays where it is, written by nobody, for as long as this holds it.
unsafe impl Source<u64> for WordsPart {
    fn elements(&self) -> &[u64] {
        self.words.as_slice().get(self.range.clone()).unwrap_or_default()
    }
}

/// How one batch of compact scalars lies in a slot of `u64` words: [`Layout::width`] words with a bit for each scalar that
/// is neither zero nor one, as many with a bit for each one, then the former as integers of four words below r, least
/// significant first. Bit [`Layout::shift`] of a bitmap is the first scalar's; bits past the last are not the batch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    width: usize,
    shift: usize,
    len: usize,
    others: usize,
}

impl Layout {
    /// Words of a slot for batches of up to `batch` scalars.
    #[must_use]
    pub fn slot(batch: usize) -> usize {
        Self::start_of_integers(Self::words_for(batch)).saturating_add(batch.saturating_mul(LIMBS))
    }

    fn words_for(batch: usize) -> usize {
        batch.div_ceil(BITS).saturating_add(1)
    }

    const fn start_of_integers(width: usize) -> usize {
        width.saturating_mul(2)
    }

    /// Words of a bitmap, whether all are in use or not.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// The bit of the first scalar, below 64.
    #[must_use]
    pub const fn shift(&self) -> usize {
        self.shift
    }

    /// Scalars in the batch.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Scalars of the batch that are neither zero nor one.
    #[must_use]
    pub const fn others(&self) -> usize {
        self.others
    }

    /// The word at which the integers begin.
    #[must_use]
    pub const fn integers(&self) -> usize {
        Self::start_of_integers(self.width)
    }

    /// Words of a bitmap that the batch has bits in.
    #[must_use]
    pub const fn used(&self) -> usize {
        (self.shift + self.len).div_ceil(BITS)
    }

    /// What the batch takes in bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes::of::<u64>(2 * self.used() + LIMBS * self.others)
    }
}

/// One batch of compact scalars where they lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    layout: Layout,
    others: &'a [u64],
    ones: &'a [u64],
    integers: &'a [Integer],
}

impl<'a> View<'a> {
    /// The batch in the slot at `slot`.
    ///
    /// # Safety
    /// The pieces of the batch lie in the slot as `layout` says, and nobody writes to them while the view lives.
    pub(crate) const unsafe fn new(layout: Layout, slot: *const u64) -> Self {
        let used = layout.used();
        // SAFETY: the three parts are inside the slot, initialised and left alone by this function's contract.
        unsafe {
            Self {
                layout,
                others: std::slice::from_raw_parts(slot, used),
                ones: std::slice::from_raw_parts(slot.add(layout.width), used),
                integers: std::slice::from_raw_parts(slot.add(layout.integers()).cast(), layout.others),
            }
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.layout.len
    }

    /// The others, in order.
    pub(crate) const fn integers(&self) -> &'a [Integer] {
        self.integers
    }

    /// The positions of the others and of the ones among the scalars in `range`, from its start.
    pub(crate) fn positions(
        &self,
        range: Range<usize>,
    ) -> (impl Iterator<Item = usize> + 'a, impl Iterator<Item = usize> + 'a) {
        (self.set(self.others, range.clone()), self.set(self.ones, range))
    }

    fn set(&self, bitmap: &'a [u64], range: Range<usize>) -> impl Iterator<Item = usize> + 'a {
        let (start, len) = (range.start + self.layout.shift, range.len());
        let word = move |i: usize| bitmap.get(i).copied().unwrap_or(0);
        let windows = (0..len.div_ceil(BITS)).map(move |k| {
            let (at, shift) = ((start + k * BITS) / BITS, start % BITS);
            let window =
                if shift == 0 { word(at) } else { word(at) >> shift | word(at + 1) << (BITS - shift) };
            let left = len - k * BITS;
            if left < BITS { window & ((1 << left) - 1) } else { window }
        });
        ones_of(windows)
    }
}

/// Positions of the set bits, lowest first.
fn ones_of(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(k, word)| {
        let bits = std::iter::successors((word != 0).then_some(word), |w| {
            let rest = w & (w - 1);
            (rest != 0).then_some(rest)
        });
        bits.map(move |w| k * BITS + w.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prestage_vram::{Host, HostConfig};

    /// The slot that a device would hold after the uploads of one batch, with rubbish where nothing is written.
    fn slot(compact: &Compact, range: Range<usize>, batch: usize) -> (Layout, Vec<u64>) {
        let pieces = compact.pieces(&range, batch);
        let mut slot = vec![u64::MAX; Layout::slot(batch)];
        let starts = [0, pieces.layout.width(), pieces.layout.integers()];
        for (piece, start) in [&pieces.others, &pieces.ones, &pieces.integers].into_iter().zip(starts) {
            slot[start..start + piece.elements().len()].copy_from_slice(piece.elements());
        }
        (pieces.layout, slot)
    }

    #[test]
    fn every_batch_holds_its_scalars() {
        let host = Host::open(HostConfig::default()).unwrap();
        for n in [1, 63, 64, 65, 1000, CHUNK - 1, CHUNK, 2 * CHUNK + 77] {
            let scalars: Vec<_> = (0..n as u64).map(|i| Scalar::from(i * i % 7 % 3)).collect();
            let compact = Compact::new(&host, &scalars).unwrap();
            for batch in [1, 2, 61, 64, 100, CHUNK, n].into_iter().filter(|batch| n / batch < 300) {
                for start in (0..n).step_by(batch) {
                    let range = start..n.min(start + batch);
                    let (layout, slot) = slot(&compact, range.clone(), batch);
                    // SAFETY: filled as a device fills it, and left alone.
                    let view = unsafe { View::new(layout, slot.as_ptr()) };
                    let (others, ones) = view.positions(0..view.len());
                    let at = |i: usize| scalars[start + i];
                    let others: Vec<_> = others.collect();
                    let expected: Vec<_> = (0..range.len()).filter(|i| at(*i) == Scalar::from(2)).collect();
                    assert_eq!(others, expected, "{n} {range:?}");
                    assert_eq!(view.integers(), vec![[2, 0, 0, 0]; others.len()]);
                    assert!(ones.eq((0..range.len()).filter(|i| at(*i) == Scalar::ONE)), "{n} {range:?}");
                }
            }
        }
    }

    #[test]
    fn a_witness_takes_a_tenth() {
        let host = Host::open(HostConfig::default()).unwrap();
        let scalars: Vec<_> = (0..10_000u64).map(|i| Scalar::from(i % 11 * (i % 2))).collect();
        let compact = Compact::new(&host, &scalars[..100]).unwrap();
        assert!(compact.is_pinned());
        let compact = Compact::new(&host, &scalars).unwrap();
        let words = compact.0.words.as_slice().len();
        assert_eq!(words, 2 * 10_000usize.div_ceil(64) + 4 * compact.stats().others);
        assert_eq!(compact.stats().zeros + compact.stats().ones + compact.stats().others, 10_000);
        assert!(Compact::new(&host, &[]).unwrap().is_empty());
    }
}
