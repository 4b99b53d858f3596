//! How a transform is cut into levels, and the tables of each.
//!
//! `n = R_0 R_1 … R_l` with at most `2^11` rows a level. Level i takes blocks of
//! `B_i = R_i B_(i+1)` values as a matrix of `R_i` rows and `B_(i+1)` columns: columns are transformed,
//! entry (k, j) is multiplied by `w^(kj)` with w of order `B_i`, and the rows are blocks of the next
//! level (Bailey's four-step algorithm, without its transpositions). Powers of w are not stored:
//! eight lanes come from a table of `8 R_i` values, and the rest is a geometric sequence of the tile.

use std::sync::Arc;

use blstrs::Scalar;
use ff::Field;

use crate::domain::{Domain, Roots};
use crate::lanes::{Cache, LANES, Lanes};
use crate::{Direction, lanes};

/// Most rows of a level, as a logarithm: what a core's second-level cache holds, and what the lazy
/// arithmetic of the tile can bear.
pub(crate) const MAX_LOG_ROWS: u32 = 11;

/// Tables that the clones of a domain share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) portable: Cache<lanes::portable::Portable>,
    #[cfg(target_arch = "x86_64")]
    pub(crate) ifma: Cache<lanes::ifma::Ifma>,
}

/// Tables of one direction.
pub(crate) struct Tables<V: Lanes> {
    /// `roots[h + j]` is the root of order `2h` to the power j, for j < h.
    pub(crate) roots: Vec<V::Factor>,
    /// Roots by order.
    pub(crate) powers: Roots,
    /// From the outermost, whose columns are furthest apart, to the innermost, whose rows are
    /// neighbours.
    pub(crate) levels: Vec<Level<V>>,
}

/// One level: `2^log_rows` rows in blocks of `2^log_block` values.
pub(crate) struct Level<V> {
    pub(crate) log_rows: u32,
    pub(crate) log_block: u32,
    /// `w^(kl)` for row k, lane l; empty where there is one column.
    pub(crate) lanes: Vec<V>,
}

impl<V: Lanes> Level<V> {
    /// Base-two logarithm of the columns of a block.
    pub(crate) const fn log_columns(&self) -> u32 {
        self.log_block - self.log_rows
    }

    pub(crate) fn new(log_rows: u32, log_block: u32, powers: &Roots) -> Self {
        let lanes = match log_block - log_rows {
            0 => Vec::new(),
            _ => lane_factors(log_rows, powers[log_block as usize], Scalar::ONE),
        };
        Self { log_rows, log_block, lanes }
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

impl<V: Lanes> Tables<V> {
    fn new(domain: &Domain, direction: Direction) -> Self {
        let powers = domain.roots(direction);
        let mut log_block = domain.log_size();
        let mut widest = 0;
        let levels = split(domain.log_size())
            .into_iter()
            .map(|log_rows| {
                let level = Level::new(log_rows, log_block, &powers);
                log_block -= log_rows;
                widest = widest.max(log_rows);
                level
            })
            .collect();
        Self { roots: root_factors::<V>(widest, &powers), powers, levels }
    }

    /// The domain's tables of a direction, built on first use.
    pub(crate) fn of(domain: &Domain, direction: Direction) -> Arc<Self> {
        let cell = &V::cache(domain.shared())[usize::from(direction == Direction::Inverse)];
        cell.get_or_init(|| Arc::new(Self::new(domain, direction))).clone()
    }
}
