//! How a transform is cut into levels, and the tables of each.
//!
//! `n = R_0 R_1 … R_l` with at most `2^11` rows a level. Level i takes blocks of
//! `B_i = R_i B_(i+1)` values as a matrix of `R_i` rows and `B_(i+1)` columns: columns are transformed,
//! entry (k, j) is multiplied by `w^(kj)` with w of order `B_i`, and the rows are blocks of the next
//! level (Bailey's four-step algorithm, without its transpositions). Powers of w are not stored:
//! eight lanes come from a table of `8 R_i` values, and the rest is a geometric sequence of the tile.

use std::sync::OnceLock;

use blstrs::Scalar;
use ff::Field;

use crate::Direction;
use crate::domain::{Domain, Roots};
use crate::lanes::{Backend, LANES, Lanes};

/// Most rows of a level, as a logarithm: what a core's second-level cache holds, and what the lazy
/// arithmetic of the tile can bear.
pub(crate) const MAX_LOG_ROWS: u32 = 11;

/// A cache line, the unit of table and scratch memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u64; 8]);

impl Line {
    pub(crate) const ZERO: Self = Self([0; 8]);

    /// Lines that hold `count` values of type `T`.
    pub(crate) const fn needed<T>(count: usize) -> usize {
        (count * size_of::<T>()).div_ceil(size_of::<Self>())
    }

    /// The first `count` values of type `T`: words in arrays, for which any bits are valid.
    pub(crate) fn view<T: Words>(lines: &[Self], count: usize) -> &[T] {
        const { assert!(align_of::<T>() <= align_of::<Self>()) };
        assert!(Self::needed::<T>(count) <= lines.len(), "tables shorter than their layout");
        // SAFETY: size and alignment were checked; any words are a valid `T` by the contract of `Words`.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), count) }
    }

    /// As [`Line::view`], to write.
    pub(crate) fn view_mut<T: Words>(lines: &mut [Self], count: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<Self>()) };
        assert!(Self::needed::<T>(count) <= lines.len(), "tables shorter than their layout");
        // SAFETY: as in `view`; a `T` has no padding, so the lines stay initialised.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), count) }
    }
}

/// Values that are nothing but 64-bit words.
///
/// # Safety
/// Any bits are a valid value, and there is no padding.
pub(crate) unsafe trait Words: Copy {}

// SAFETY: an array of words.
unsafe impl<const N: usize> Words for [u64; N] {}

/// The levels of a transform, outermost first, as (rows, block) in logarithms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape(Vec<(u32, u32)>);

impl Shape {
    /// All levels of a transform of `2^log_size` values.
    pub(crate) fn whole(log_size: u32) -> Self {
        let mut log_block = log_size;
        Self(
            split(log_size)
                .into_iter()
                .map(|log_rows| {
                    let level = (log_rows, log_block);
                    log_block -= log_rows;
                    level
                })
                .collect(),
        )
    }

    /// One level alone.
    pub(crate) fn level(log_rows: u32, log_block: u32) -> Self {
        Self(vec![(log_rows, log_block)])
    }

    fn log_widest(&self) -> u32 {
        self.0.iter().map(|l| l.0).max().unwrap_or(0)
    }

    /// Lines of the tables of one direction.
    pub(crate) fn lines<V: Lanes>(&self) -> usize {
        let lanes = self.0.iter().filter(|(rows, block)| rows < block);
        Line::needed::<V::Factor>(1 << self.log_widest())
            + lanes.map(|(rows, _)| Line::needed::<V>(1 << rows)).sum::<usize>()
    }

    /// Computes the tables of one direction.
    pub(crate) fn fill<V: Lanes>(&self, powers: &Roots, lines: &mut [Line]) {
        let roots = 1usize << self.log_widest();
        let (head, mut rest) = lines.split_at_mut(Line::needed::<V::Factor>(roots));
        Line::view_mut::<V::Factor>(head, roots)
            .copy_from_slice(&root_factors::<V>(self.log_widest(), powers));
        for &(log_rows, log_block) in self.0.iter().filter(|(rows, block)| rows < block) {
            let (head, tail) = rest.split_at_mut(Line::needed::<V>(1 << log_rows));
            let lanes = lane_factors::<V>(log_rows, powers[log_block as usize], Scalar::ONE);
            Line::view_mut::<V>(head, 1 << log_rows).copy_from_slice(&lanes);
            rest = tail;
        }
    }

    /// The tables that [`Shape::fill`] wrote.
    pub(crate) fn view<'a, V: Lanes>(&self, powers: &'a Roots, lines: &'a [Line]) -> Tables<'a, V> {
        let roots = 1usize << self.log_widest();
        let (head, mut rest) = lines.split_at(Line::needed::<V::Factor>(roots));
        let levels = self
            .0
            .iter()
            .map(|&(log_rows, log_block)| {
                let count = if log_rows < log_block { 1 << log_rows } else { 0 };
                let (head, tail) = rest.split_at(Line::needed::<V>(count));
                rest = tail;
                Level { log_rows, log_block, lanes: Line::view(head, count) }
            })
            .collect();
        Tables { roots: Line::view(head, roots), powers, levels }
    }
}

/// Tables of one direction.
pub(crate) struct Tables<'a, V: Lanes> {
    /// `roots[h + j]` is the root of order `2h` to the power j, for j < h.
    pub(crate) roots: &'a [V::Factor],
    /// Roots by order.
    pub(crate) powers: &'a Roots,
    /// From the outermost, whose columns are furthest apart, to the innermost, whose rows are
    /// neighbours.
    pub(crate) levels: Vec<Level<'a, V>>,
}

impl<V: Lanes> Tables<'_, V> {
    /// Base-two logarithm of the values of the transform.
    pub(crate) fn log_size(&self) -> u32 {
        self.levels.first().map_or(0, |l| l.log_block)
    }
}

/// One level: `2^log_rows` rows in blocks of `2^log_block` values.
pub(crate) struct Level<'a, V> {
    pub(crate) log_rows: u32,
    pub(crate) log_block: u32,
    /// `w^(kl)` for row k, lane l; empty where there is one column.
    pub(crate) lanes: &'a [V],
}

impl<V> Level<'_, V> {
    /// Base-two logarithm of the columns of a block.
    pub(crate) const fn log_columns(&self) -> u32 {
        self.log_block - self.log_rows
    }
}

/// Tables of a domain in ordinary memory, by backend and direction, for transforms of slices. Clones
/// of the domain share them.
#[derive(Default)]
pub(crate) struct Shared([[OnceLock<Vec<Line>>; 2]; 2]);

impl Shared {
    /// The domain's tables of a direction, built on first use.
    pub(crate) fn tables<V: Lanes>(domain: &Domain, direction: Direction) -> Tables<'_, V> {
        let shape = Shape::whole(domain.log_size());
        let powers = domain.roots(direction);
        let cell = &domain.shared().0[usize::from(domain.backend() == Backend::Ifma)]
            [usize::from(direction == Direction::Inverse)];
        let lines = cell.get_or_init(|| {
            let mut lines = vec![Line::ZERO; shape.lines::<V>()];
            shape.fill::<V>(powers, &mut lines);
            lines
        });
        shape.view(powers, lines)
    }
}

/// `column^l root^(kl)` for each of `2^log_rows` rows k and each lane l.
pub(crate) fn lane_factors<V: Lanes>(log_rows: u32, root: Scalar, column: Scalar) -> Vec<V> {
    let mut base = column;
    (0..1usize << log_rows)
        .map(|_| {
            let mut row = [Scalar::ONE; LANES];
            for l in 1..LANES {
                row[l] = row[l - 1] * base;
            }
            base *= root;
            V::multipliers(&row)
        })
        .collect()
}

/// `first ratio^k` for `2^log_rows` rows k.
pub(crate) fn row_factors<V: Lanes>(log_rows: u32, first: Scalar, ratio: Scalar) -> Vec<V::Factor> {
    let mut next = first;
    (0..1usize << log_rows)
        .map(|_| {
            let f = V::factor(&next);
            next *= ratio;
            f
        })
        .collect()
}

/// `roots[h + j]` as in [`Tables::roots`], for up to `2^log_rows` rows.
pub(crate) fn root_factors<V: Lanes>(log_rows: u32, powers: &Roots) -> Vec<V::Factor> {
    let mut all = Vec::with_capacity(1 << log_rows);
    all.push(V::factor(&Scalar::ONE));
    for log_half in 0..log_rows {
        all.extend(row_factors::<V>(log_half, Scalar::ONE, powers[log_half as usize + 1]));
    }
    all
}

/// Rows of each level as logarithms, the outermost first.
pub(crate) fn split(log_size: u32) -> Vec<u32> {
    // From 2^6 two levels are at least eight wide in both directions.
    let levels = if log_size < 6 { 1 } else { log_size.div_ceil(MAX_LOG_ROWS).max(2) };
    (0..levels).map(|i| (log_size + i) / levels).collect()
}
