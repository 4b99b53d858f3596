//! The split of witness-shaped scalars: zeros are dropped, ones are only added, the others need windows.
//!
//! Scalars are classified in chunks. A chunk's part of the index holds the positions of its others from the
//! front and those of its ones from the back, so chunks are written in parallel and nothing is moved afterwards.
//! There is no dense variant: with no ones at all the index costs 2 bytes read per addition of 96.
//!
//! −1 is left among the others: (r − 1)·P = −P only if P lies in the subgroup of order r, and nothing here
//! relies on that.

use crate::Affine;
use crate::compact::View;
use crate::digits::Integer;
use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;
use std::ops::Range;

/// Scalars in a chunk.
pub(crate) const CHUNK: usize = 1 << 12;

/// A position within a chunk.
pub(crate) type Index = u16;

/// How many of a chunk's scalars are of which kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunk {
    others: usize,
    ones: usize,
    /// Where its integers begin.
    at: usize,
}

/// The classified terms of a sum.
#[derive(Debug)]
pub(crate) struct Terms<'a, A> {
    bases: &'a [A],
    chunks: &'a [Chunk],
    integers: &'a [Integer],
    index: &'a [Index],
}

impl<'a, A: Affine> Terms<'a, A> {
    /// Classifies `scalars`, as many as there are `bases`; `integers` and `index` are as long, and `chunks` has one
    /// entry for each [`CHUNK`] of them. With `split` unset ones count as others.
    pub(crate) fn classify(
        bases: &'a [A],
        scalars: &[Scalar],
        chunks: &'a mut [Chunk],
        integers: &'a mut [Integer],
        index: &'a mut [Index],
        split: bool,
        threads: usize,
    ) -> Self {
        if threads == 1 {
            let parts = scalars.chunks(CHUNK).zip(integers.chunks_mut(CHUNK)).zip(index.chunks_mut(CHUNK));
            (0..).zip(&mut *chunks).zip(parts).for_each(|((i, chunk), ((scalars, integers), index))| {
                *chunk = Chunk { at: i * CHUNK, ..classify(scalars, integers, index, split) };
            });
        } else {
            let parts = scalars
                .par_chunks(CHUNK)
                .zip(integers.par_chunks_mut(CHUNK))
                .zip(index.par_chunks_mut(CHUNK));
            chunks.par_iter_mut().enumerate().zip(parts).for_each(
                |((i, chunk), ((scalars, integers), index))| {
                    *chunk = Chunk { at: i * CHUNK, ..classify(scalars, integers, index, split) };
                },
            );
        }
        Self { bases, chunks, integers, index }
    }

    /// The terms of scalars that have been sorted already; `chunks` and `index` as for [`Terms::classify`].
    pub(crate) fn sorted(
        bases: &'a [A],
        scalars: View<'a>,
        chunks: &'a mut [Chunk],
        index: &'a mut [Index],
        threads: usize,
    ) -> Self {
        let range = |i: usize| i * CHUNK..scalars.len().min((i + 1) * CHUNK);
        let place = |(i, (chunk, index)): (usize, (&mut Chunk, &mut [Index]))| {
            *chunk = place(scalars.positions(range(i)), index);
        };
        if threads == 1 {
            chunks.iter_mut().zip(index.chunks_mut(CHUNK)).enumerate().for_each(place);
        } else {
            chunks.par_iter_mut().zip(index.par_chunks_mut(CHUNK)).enumerate().for_each(place);
        }
        let mut at = 0;
        for chunk in &mut *chunks {
            chunk.at = at;
            at += chunk.others;
        }
        Self { bases, chunks, integers: scalars.integers(), index }
    }

    /// How many chunks there are.
    pub(crate) const fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// How many scalars need windows, and how many are one.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.chunks.iter().fold((0, 0), |sum, chunk| (sum.0 + chunk.others, sum.1 + chunk.ones))
    }

    /// The others of these chunks, with their scalars.
    pub(crate) fn others(&self, chunks: Range<usize>) -> impl Iterator<Item = (&'a A, &'a Integer)> {
        self.parts(chunks).flat_map(|(chunk, bases, integers, index)| {
            index[..chunk.others].iter().map(|&i| &bases[usize::from(i)]).zip(integers)
        })
    }

    /// The ones of these chunks.
    pub(crate) fn ones(&self, chunks: Range<usize>) -> impl Iterator<Item = &'a A> {
        self.parts(chunks).flat_map(|(chunk, bases, _, index)| {
            index[index.len() - chunk.ones..].iter().map(|&i| &bases[usize::from(i)])
        })
    }

    #[allow(clippy::type_complexity)]
    fn parts(
        &self,
        chunks: Range<usize>,
    ) -> impl Iterator<Item = (Chunk, &'a [A], &'a [Integer], &'a [Index])> {
        let (bases, integers, index) = (self.bases, self.integers, self.index);
        let start = chunks.start;
        self.chunks[chunks].iter().enumerate().map(move |(i, &chunk)| {
            let start = (start + i) * CHUNK;
            let part = start..bases.len().min(start + CHUNK);
            let integers = &integers[chunk.at..chunk.at + chunk.others];
            (chunk, &bases[part.clone()], integers, &index[part])
        })
    }
}

/// Writes a chunk's integers and its part of the index.
fn classify(scalars: &[Scalar], integers: &mut [Integer], index: &mut [Index], split: bool) -> Chunk {
    const ONE: Integer = [1, 0, 0, 0];
    let mut chunk = Chunk::default();
    for (i, scalar) in (0..).zip(scalars) {
        if bool::from(scalar.is_zero()) {
            continue;
        }
        let integer = to_integer(*scalar);
        if split && integer == ONE {
            chunk.ones += 1;
            index[scalars.len() - chunk.ones] = i;
        } else {
            integers[chunk.others] = integer;
            index[chunk.others] = i;
            chunk.others += 1;
        }
    }
    chunk
}

/// Writes a chunk's part of the index: the others from the front, the ones from the back.
fn place(
    (others, ones): (impl Iterator<Item = usize>, impl Iterator<Item = usize>),
    index: &mut [Index],
) -> Chunk {
    let mut chunk = Chunk::default();
    // A position within a chunk fits: a chunk has 2^12.
    #[allow(clippy::cast_possible_truncation)]
    let narrow = |i: usize| i as Index;
    for (place, i) in index.iter_mut().zip(others) {
        *place = narrow(i);
        chunk.others += 1;
    }
    for (place, i) in index.iter_mut().rev().zip(ones) {
        *place = narrow(i);
        chunk.ones += 1;
    }
    chunk
}

/// The integer below r that a scalar stands for.
pub(crate) fn to_integer(scalar: Scalar) -> Integer {
    let mut integer = [0; 4];
    // SAFETY: blst reads one element and writes four words.
    unsafe { blst::blst_uint64_from_fr(integer.as_mut_ptr(), &scalar.into()) };
    integer
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::G1Affine;
    use group::prime::PrimeCurveAffine;

    #[test]
    fn m5_every_scalar_is_of_one_kind() {
        let scalars: Vec<_> = (0..2 * CHUNK as u64 + 5).map(|i| Scalar::from(i % 7 % 3)).collect();
        let n = scalars.len();
        let bases = vec![G1Affine::generator(); n];
        for (split, threads) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
            let mut chunks = vec![Chunk::default(); 3];
            let (mut integers, mut index) = (vec![[9; 4]; n], vec![9; n]);
            let terms =
                Terms::classify(&bases, &scalars, &mut chunks, &mut integers, &mut index, split, threads);
            let count = |k: u64| scalars.iter().filter(|s| **s == Scalar::from(k)).count();
            let expected = if split { (count(2), count(1)) } else { (count(2) + count(1), 0) };
            assert_eq!(terms.counts(), expected);
            assert_eq!(terms.ones(0..3).count(), expected.1);
            for (i, (base, integer)) in terms.others(1..3).enumerate() {
                assert!(integer[0] == 2 || !split && integer[0] == 1, "{i}");
                assert!(bases[CHUNK..].as_ptr_range().contains(&std::ptr::from_ref(base)));
            }
        }
    }

    #[test]
    fn integers_are_canonical() {
        assert_eq!(to_integer(-Scalar::ONE)[0], 0xffff_ffff_0000_0000);
        assert_eq!(to_integer(-Scalar::ONE)[3], 0x73ed_a753_299d_7d48);
        assert_eq!(to_integer(Scalar::from(u64::MAX)), [u64::MAX, 0, 0, 0]);
    }
}
