//! Which wires of a circuit a query has a point for.

use rayon::prelude::*;

use crate::shape::{ShapeError, expect_count};

const BITS: usize = u64::BITS as usize;
/// Words per piece of parallel work in [`Density::gather`]: 4,096 wires.
const PIECE: usize = 64;

/// A bitmap over wires: bit `i` is set when the query holds a point for wire `i`.
///
/// Points at infinity add nothing to a multi-scalar multiplication, and on real circuits most of B is at
/// infinity (three wires in four of a 32 GiB proof of replication). So queries store the other points only,
/// next to each other, and the scalars are gathered to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Density {
    words: Vec<u64>,
    len: usize,
    count: usize,
}

impl Density {
    /// Every one of `len` wires has a point.
    #[must_use]
    pub fn full(len: usize) -> Self {
        let mut words = vec![u64::MAX; len.div_ceil(BITS)];
        mask_tail(&mut words, len);
        Self { words, len, count: len }
    }

    /// Wire `i` of `len` has a point when `present(i)`. Evaluated in parallel.
    pub fn from_fn(len: usize, present: impl Fn(usize) -> bool + Sync) -> Self {
        let words: Vec<u64> = (0..len.div_ceil(BITS))
            .into_par_iter()
            .with_min_len(PIECE)
            .map(|w| {
                let start = w * BITS;
                (start..len.min(start + BITS))
                    .fold(0, |bits, i| bits | (u64::from(present(i)) << (i - start)))
            })
            .collect();
        Self::counted(words, len)
    }

    /// Takes a bitmap as other provers hold it: bit `i % 64` of word `i / 64`, least significant first.
    /// Bits from `len` on are ignored.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when `words` is not exactly long enough for `len` bits.
    pub fn from_words(mut words: Vec<u64>, len: usize) -> Result<Self, ShapeError> {
        expect_count("words of a density map", len.div_ceil(BITS) as u64, words.len() as u64)?;
        mask_tail(&mut words, len);
        Ok(Self::counted(words, len))
    }

    fn counted(words: Vec<u64>, len: usize) -> Self {
        let count = words.par_iter().map(|w| w.count_ones() as usize).sum();
        Self { words, len, count }
    }

    /// Number of wires covered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no wire is covered at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of wires that have a point.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether every wire has a point.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Whether wire `i` has a point. `false` past the end.
    #[must_use]
    pub fn get(&self, i: usize) -> bool {
        i < self.len && self.words[i / BITS] >> (i % BITS) & 1 == 1
    }

    /// The bitmap: bit `i % 64` of word `i / 64`; bits past the end are zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The wires that have a point, in increasing order.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(w, &word)| ones_of(word).map(move |bit| w * BITS + bit))
    }

    /// The values of the wires that have a point, in order: the scalars that belong to a query's points.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when there is not one value for each wire.
    pub fn gather<T: Copy + Send + Sync>(&self, values: &[T]) -> Result<Vec<T>, ShapeError> {
        expect_count("values for a density map", self.len as u64, values.len() as u64)?;
        if self.is_full() {
            return Ok(values.to_vec());
        }
        let Some(&filler) = values.first() else { return Ok(Vec::new()) };
        let mut out = vec![filler; self.count];
        self.try_fill(&mut out, |slot, wire| {
            *slot = values[wire];
            Ok::<_, ShapeError>(())
        })?;
        Ok(out)
    }

    /// Calls `fill(slot, wire)` for each wire that has a point and its slot of `out`, in parallel.
    /// `out` holds [`count`](Self::count) slots. The error is that of the first wire that has one.
    pub(crate) fn try_fill<T: Send, E: Send>(
        &self,
        out: &mut [T],
        fill: impl Fn(&mut T, usize) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let mut rest = out;
        let mut pieces = Vec::with_capacity(self.words.len().div_ceil(PIECE));
        for (p, words) in self.words.chunks(PIECE).enumerate() {
            let n: usize = words.iter().map(|w| w.count_ones() as usize).sum();
            let (head, tail) = rest.split_at_mut(n.min(rest.len()));
            pieces.push((p * PIECE * BITS, words, head));
            rest = tail;
        }
        let failed = pieces.into_par_iter().find_map_first(|(start, words, slots)| {
            let wires = words
                .iter()
                .enumerate()
                .flat_map(|(w, &word)| ones_of(word).map(move |bit| start + w * BITS + bit));
            slots.iter_mut().zip(wires).find_map(|(slot, wire)| fill(slot, wire).err())
        });
        failed.map_or(Ok(()), Err)
    }
}

fn mask_tail(words: &mut [u64], len: usize) {
    if let (Some(last), tail @ 1..) = (words.last_mut(), len % BITS) {
        *last &= (1 << tail) - 1;
    }
}

/// Positions of the set bits of a word, lowest first.
fn ones_of(word: u64) -> impl Iterator<Item = usize> {
    std::iter::successors((word != 0).then_some(word), |w| {
        let rest = w & (w - 1);
        (rest != 0).then_some(rest)
    })
    .map(|w| w.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_gathers_like_a_list_of_bools() {
        for len in [0, 1, 63, 64, 65, 127, 128, 5000, 10_000] {
            for modulus in [1, 2, 3, 64, 7919] {
                let bits: Vec<bool> = (0..len).map(|i| i % modulus == 0).collect();
                let density = Density::from_fn(len, |i| bits[i]);
                let naive: Vec<usize> = (0..len).filter(|&i| bits[i]).collect();
                assert_eq!(density.ones().collect::<Vec<_>>(), naive);
                assert_eq!(density.count(), naive.len());
                assert_eq!(density.gather(&(0..len).collect::<Vec<_>>()).unwrap(), naive);
                assert!((0..len + 70).all(|i| density.get(i) == (i < len && bits[i])));
                assert_eq!(density.is_full(), naive.len() == len);
            }
        }
    }

    #[test]
    fn words_beyond_the_end_are_masked_and_a_wrong_number_refused() {
        let d = Density::from_words(vec![u64::MAX, u64::MAX], 70).unwrap();
        assert_eq!(d, Density::full(70));
        assert!(Density::from_words(vec![0], 70).is_err());
        assert!(Density::full(3).gather(&[1, 2]).is_err());
    }
}
