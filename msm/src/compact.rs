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
use prestage_transfer::{Pinned, PinnedPool, Source, Transfer};
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

/// The scalars of a sum among the values of wires: all of them, or those that a bitmap names. They are read where they lie.
///
/// ```
/// use blstrs::Scalar;
/// use prestage_msm::Chosen;
///
/// let wires: Vec<_> = (0..100).map(Scalar::from).collect();
/// let (inputs, others) = wires.split_at(3);
/// assert_eq!(Chosen::all([inputs, others]).len(), 100);
/// // Wires 1, 2 and 65.
/// assert_eq!(Chosen::of([inputs, others], &[0b110, 0b10]).len(), 3);
/// ```
#[derive(Clone, Copy)]
pub struct Chosen<'a> {
    values: [&'a [Scalar]; 2],
    bits: Option<&'a [u64]>,
    len: usize,
}

impl<'a> Chosen<'a> {
    /// All values, those of the second slice after those of the first.
    #[must_use]
    pub const fn all(values: [&'a [Scalar]; 2]) -> Self {
        Self { values, bits: None, len: values[0].len() + values[1].len() }
    }

    /// The values, counted through both slices, whose bit is set: bit `i % 64` of word `i / 64` is value `i`'s. Values past
    /// the bitmap are not chosen; bits past the values are ignored.
    #[must_use]
    pub fn of(values: [&'a [Scalar]; 2], bits: &'a [u64]) -> Self {
        let wires = values[0].len() + values[1].len();
        let set = |(k, word): (usize, &u64)| {
            let left = wires.saturating_sub(k * BITS);
            if left < BITS { word & ((1 << left) - 1) } else { *word }.count_ones() as usize
        };
        Self { values, bits: Some(bits), len: bits.par_iter().enumerate().with_min_len(CHUNK).map(set).sum() }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The wire at which each chunk begins.
    fn starts(&self) -> Vec<usize> {
        let Some(bits) = self.bits else { return (0..self.len).step_by(CHUNK).collect() };
        let mut starts = Vec::with_capacity(self.len.div_ceil(CHUNK));
        let mut rank = 0;
        for (k, word) in bits.iter().enumerate() {
            let after = rank + word.count_ones() as usize;
            // At most one begins in a word, which is shorter than a chunk.
            let next = starts.len() * CHUNK;
            if next < after && next < self.len {
                let first = ones_of(std::iter::once(*word)).nth(next - rank).unwrap_or(0);
                starts.push(k * BITS + first);
            }
            rank = after;
        }
        starts
    }

    /// Calls `with` for those of `count` scalars from that of wire `start` on, numbered from 0, that are `wanted`. The others are
    /// not read.
    fn each(
        &self,
        start: usize,
        count: usize,
        wanted: impl Fn(usize) -> bool,
        mut with: impl FnMut(usize, &Scalar),
    ) {
        let [first, second] = self.values;
        let Some(bits) = self.bits else {
            let left = first.get(start..).unwrap_or_default();
            let right = second.get(start.saturating_sub(first.len())..).unwrap_or_default();
            let scalars = left.iter().chain(right).take(count).enumerate();
            return scalars.filter(|(i, _)| wanted(*i)).for_each(|(i, scalar)| with(i, scalar));
        };
        let value = |wire: usize| match wire.checked_sub(first.len()) {
            None => first.get(wire),
            Some(wire) => second.get(wire),
        };
        let words = bits.iter().enumerate().skip(start / BITS).map(|(k, word)| {
            if k == start / BITS { (k, word & (u64::MAX << (start % BITS))) } else { (k, *word) }
        });
        let wires = words.flat_map(|(k, word)| ones_of(std::iter::once(word)).map(move |i| k * BITS + i));
        let scalars = wires.take(count).filter_map(value).enumerate();
        scalars.filter(|(i, _)| wanted(*i)).for_each(|(i, scalar)| with(i, scalar));
    }
}

impl fmt::Debug for Chosen<'_> {
    /// Shows how many, never values: they are a witness.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen").field("len", &self.len).finish_non_exhaustive()
    }
}

/// What one chunk of scalars consists of.
struct Sorted {
    others: [u64; WORDS],
    ones: [u64; WORDS],
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    others: usize,
    ones: usize,
}

impl Sorted {
    fn new(scalars: &Chosen<'_>, start: usize, count: usize) -> Self {
        let mut sorted = Self { others: [0; WORDS], ones: [0; WORDS], counts: Counts::default() };
        let all = |_| true;
        scalars.each(start, count, all, |i, scalar| {
            if *scalar == Scalar::ZERO {
                return;
            }
            let (word, bit) = (i / BITS, 1 << (i % BITS));
            if *scalar == Scalar::ONE {
                sorted.ones[word] |= bit;
                sorted.counts.ones += 1;
            } else {
                sorted.others[word] |= bit;
                sorted.counts.others += 1;
            }
        });
        sorted
    }

    fn is_other(&self, i: usize) -> bool {
        self.others[i / BITS] >> (i % BITS) & 1 == 1
    }
}

impl Compact {
    /// Sorts `scalars`, on all threads of the current `rayon` pool.
    ///
    /// # Errors
    /// [`Error::Device`] when pinning fails for another reason than that memory cannot be page-locked.
    pub fn new(device: &impl Transfer, scalars: &[Scalar]) -> Result<Self, Error> {
        Self::sorted(&Chosen::all([scalars, &[]]), |len| Pinned::uninit(device, len))
    }

    /// The same of chosen scalars, in memory of `pool`.
    ///
    /// # Errors
    /// As [`Compact::new`].
    pub fn kept(pool: &PinnedPool, device: &impl Transfer, scalars: &Chosen<'_>) -> Result<Self, Error> {
        Self::sorted(scalars, |len| pool.uninit(device, len))
    }

    fn sorted(
        scalars: &Chosen<'_>,
        pin: impl FnOnce(usize) -> Result<Pinned<MaybeUninit<u64>>, prestage_transfer::Error>,
    ) -> Result<Self, Error> {
        let (len, starts) = (scalars.len(), scalars.starts());
        let count = |chunk: usize| CHUNK.min(len - chunk * CHUNK);
        let chunks: Vec<Sorted> = (0..starts.len())
            .into_par_iter()
            .map(|chunk| Sorted::new(scalars, starts[chunk], count(chunk)))
            .collect();
        let mut ranks = Vec::with_capacity(chunks.len());
        let mut sum = Counts::default();
        for Sorted { counts, .. } in &chunks {
            ranks.push(sum.others);
            sum = Counts { others: sum.others + counts.others, ones: sum.ones + counts.ones };
        }
        let Counts { others, ones } = sum;
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
                    let (head, tail) = std::mem::take(&mut rest).split_at_mut(chunk.counts.others * LIMBS);
                    rest = tail;
                    head
                })
                .collect();
            let bitmaps = of_others.par_chunks_mut(WORDS).zip(of_ones.par_chunks_mut(WORDS));
            let parts = bitmaps.zip(integers).zip(&chunks).enumerate();
            parts.for_each(|(chunk, (((of_others, of_ones), integers), sorted))| {
                of_others.iter_mut().zip(sorted.others).for_each(|(place, word)| _ = place.write(word));
                of_ones.iter_mut().zip(sorted.ones).for_each(|(place, word)| _ = place.write(word));
                let mut places = integers.chunks_exact_mut(LIMBS);
                let others = |i| sorted.is_other(i);
                scalars.each(starts[chunk], count(chunk), others, |_, scalar| {
                    if let Some(place) = places.next() {
                        let words = to_integer(*scalar);
                        place.iter_mut().zip(words).for_each(|(place, word)| _ = place.write(word));
                    }
                });
            });
        };
        let words = match pin(total) {
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

/// One batch of scalars in host memory, as they go to a slot or are read in place.
pub(crate) struct Pieces {
    pub(crate) layout: Layout,
    pub(crate) others: WordsPart,
    pub(crate) ones: WordsPart,
    pub(crate) integers: WordsPart,
}

impl Pieces {
    /// The batch where it lies.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            layout: self.layout,
            others: self.others.elements(),
            ones: self.ones.elements(),
            integers: self.integers.elements().as_chunks().0,
        }
    }
}

/// A part of compact scalars, as what reads it holds it.
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
    fn chosen_scalars_are_those_gathered() {
        let host = Host::open(HostConfig::default()).unwrap();
        let pool = PinnedPool::new(&host);
        let values: Vec<_> =
            (0..3 * CHUNK as u64 + 77).map(|i| Scalar::from(i * i % 7 % 3 + i / 9000)).collect();
        let words = values.len().div_ceil(BITS);
        let bitmaps: [Vec<u64>; 5] = [
            vec![u64::MAX; words],
            vec![0; words],
            (0..words as u64).map(|k| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(k + 1)).collect(),
            (0..words as u64).map(|k| if k % 5 < 2 { u64::MAX } else { 1 << (k % 64) }).collect(),
            vec![u64::MAX; 3],
        ];
        for bits in bitmaps {
            let set = |i: usize| bits.get(i / BITS).is_some_and(|word| word >> (i % BITS) & 1 == 1);
            let gathered: Vec<_> = (0..values.len()).filter(|i| set(*i)).map(|i| values[i]).collect();
            let expected = Compact::new(&host, &gathered).unwrap();
            for split in [0, 1, 328, values.len()] {
                let (first, second) = values.split_at(split);
                let chosen = Chosen::of([first, second], &bits);
                let compact = Compact::kept(&pool, &host, &chosen).unwrap();
                assert_eq!((compact.len(), compact.stats()), (gathered.len(), expected.stats()));
                assert_eq!(compact.0.words.as_slice(), expected.0.words.as_slice());
                assert_eq!(compact.0.ranks, expected.0.ranks);
            }
        }
        let (first, second) = values.split_at(500);
        let all = Compact::kept(&pool, &host, &Chosen::all([first, second])).unwrap();
        assert_eq!(all.0.words.as_slice(), Compact::new(&host, &values).unwrap().0.words.as_slice());
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
