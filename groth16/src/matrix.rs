//! Sparse matrices over the scalar field, row by row.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use blst::blst_fr;
use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::density::Density;
use crate::shape::{ShapeError, expect_count};

/// Index of the coefficient 1 in every table of coefficients.
const ONE: u32 = 0;
/// Index of the coefficient −1.
const MINUS_ONE: u32 = 1;
/// Rows per piece of parallel work.
const PIECE: usize = 1024;
/// Terms that one thread should have for a pass over all of them to pay.
const TERMS: usize = 1 << 16;

/// A sparse matrix in compressed rows. A term costs eight bytes: its wire and the index of its coefficient in
/// a table of distinct ones, since circuits use few (mostly 1 and −1, which are added and subtracted without
/// a multiplication).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Row `i` holds the terms from `offsets[i]` to `offsets[i + 1]`.
    offsets: Vec<u64>,
    wires: Vec<u32>,
    /// Per term, an index into `table`.
    coefficients: Vec<u32>,
    table: Vec<Scalar>,
    n_wires: u32,
}

impl Matrix {
    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    #[must_use]
    pub fn n_wires(&self) -> u32 {
        self.n_wires
    }

    /// Number of stored terms; a wire named twice in a row counts twice.
    #[must_use]
    pub fn n_terms(&self) -> usize {
        self.wires.len()
    }

    /// The terms of row `i` as they were given; none past the last row.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = (u32, Scalar)> + '_ {
        self.span(i).map(|t| (self.wires[t], self.table[self.coefficients[t] as usize]))
    }

    fn span(&self, i: usize) -> std::ops::Range<usize> {
        // Offsets never exceed `wires.len()`, which is a `usize`.
        let at = |i: usize| self.offsets.get(i).map_or(self.wires.len(), |&o| index(o));
        at(i)..at(i.saturating_add(1))
    }

    /// `⟨row i, w⟩`. Wires past the end of `w` count as zero; [`evaluate`](Self::evaluate) refuses such a `w`.
    #[must_use]
    pub fn dot(&self, i: usize, w: &[Scalar]) -> Scalar {
        let span = self.span(i);
        let terms = self.wires[span.clone()].iter().zip(&self.coefficients[span]);
        let products = terms.filter_map(|(&wire, &c)| {
            let value = w.get(wire as usize)?;
            Some(match c {
                ONE => *value,
                MINUS_ONE => -value,
                c => self.table[c as usize] * value,
            })
        });
        // Most rows have one term: nothing is added then.
        products.reduce(|sum, product| sum + product).unwrap_or(Scalar::ZERO)
    }

    /// Writes `⟨row i, w⟩` to `out[i]` for every row, in parallel.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when `w` has not one value per wire, or `out` not one place per row.
    pub fn evaluate(&self, w: &[Scalar], out: &mut [Scalar]) -> Result<(), ShapeError> {
        expect_count("values for the wires", u64::from(self.n_wires), w.len() as u64)?;
        expect_count("places for the rows", self.n_rows() as u64, out.len() as u64)?;
        out.par_iter_mut().with_min_len(PIECE).enumerate().for_each(|(i, out)| *out = self.dot(i, w));
        Ok(())
    }

    /// `Σ_rows M[row][wire] · x[row]` for every wire of `wires`, in parallel: each thread passes over all terms and adds up
    /// those of its own wires. Rows past the end of `x` count as zero.
    pub(crate) fn columns(&self, x: &[Scalar], wires: Range<u32>) -> Vec<Scalar> {
        let mut sums = zeros(wires.len());
        let threads = rayon::current_num_threads().min(1 + self.n_terms() / TERMS);
        let width = wires.len().div_ceil(threads).max(1);
        sums.par_chunks_mut(width).zip(wires.into_par_iter().step_by(width)).for_each(|(sums, first)| {
            for (row, value) in (0..self.n_rows()).zip(x) {
                for t in self.span(row) {
                    let place = self.wires[t].checked_sub(first).and_then(|wire| sums.get_mut(wire as usize));
                    let Some(sum) = place else { continue };
                    match self.coefficients[t] {
                        ONE => *sum += value,
                        MINUS_ONE => *sum -= value,
                        c => *sum += self.table[c as usize] * value,
                    }
                }
            }
        });
        sums
    }

    /// Which of `n` wires some term with a non-zero coefficient names, and the first `more` of them in any case.
    pub(crate) fn wires_named(&self, n: usize, more: usize) -> Density {
        let words: Vec<AtomicU64> = (0..n.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let zeros: Vec<bool> = self.table.iter().map(|c| c.is_zero().into()).collect();
        self.wires.par_iter().zip(&self.coefficients).with_min_len(PIECE).for_each(|(&wire, &c)| {
            let (word, bit) = (&words[wire as usize / 64], 1 << (wire % 64));
            // Most wires are named more than once: looking costs less than writing.
            if !zeros[c as usize] && word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        });
        Density::from_fn(n, |i| i < more || words[i / 64].load(Ordering::Relaxed) >> (i % 64) & 1 == 1)
    }
}

/// Zeros, written by all threads: memory of this size is not touched by one alone.
pub(crate) fn zeros(n: usize) -> Vec<Scalar> {
    (0..n).into_par_iter().with_min_len(PIECE).map(|_| Scalar::ZERO).collect()
}

/// Offsets count terms that are in memory, so they fit.
#[allow(clippy::cast_possible_truncation)]
fn index(offset: u64) -> usize {
    offset as usize
}

/// Gives each distinct coefficient an index; 1 and −1 have theirs from the start.
#[derive(Debug)]
struct Table {
    values: Vec<Scalar>,
    /// Keyed by the Montgomery limbs, which are unique per value. The default hasher is seeded, so a hostile
    /// file cannot aim for collisions.
    index: HashMap<[u64; 4], u32>,
    last: ([u64; 4], u32),
}

impl Table {
    fn new() -> Self {
        let values = vec![Scalar::ONE, -Scalar::ONE];
        let index = values.iter().map(limbs).zip([ONE, MINUS_ONE]).collect();
        Self { last: (limbs(&values[0]), ONE), values, index }
    }

    fn intern(&mut self, value: Scalar) -> Result<u32, ShapeError> {
        let key = limbs(&value);
        if key == self.last.0 {
            return Ok(self.last.1);
        }
        let at = if let Some(&at) = self.index.get(&key) {
            at
        } else {
            let at = u32::try_from(self.values.len())
                .map_err(|_| ShapeError::Coefficients { max: u64::from(u32::MAX) })?;
            self.values.push(value);
            self.index.insert(key, at);
            at
        };
        self.last = (key, at);
        Ok(at)
    }
}

fn limbs(value: &Scalar) -> [u64; 4] {
    blst_fr::from(*value).l
}

/// Builds a [`Matrix`] row after row.
#[derive(Debug)]
pub struct MatrixBuilder {
    offsets: Vec<u64>,
    wires: Vec<u32>,
    coefficients: Vec<u32>,
    table: Table,
    n_wires: u32,
}

impl MatrixBuilder {
    /// A matrix over `n_wires` columns, with no row yet.
    #[must_use]
    pub fn new(n_wires: u32) -> Self {
        Self { offsets: vec![0], wires: Vec::new(), coefficients: Vec::new(), table: Table::new(), n_wires }
    }

    /// Appends a term to the row that [`end_row`](Self::end_row) will close.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Wire`] when the wire does not exist.
    pub fn term(&mut self, wire: u32, coefficient: Scalar) -> Result<(), ShapeError> {
        if wire >= self.n_wires {
            return Err(ShapeError::Wire {
                row: self.offsets.len() as u64 - 1,
                wire: u64::from(wire),
                n_wires: u64::from(self.n_wires),
            });
        }
        let at = self.table.intern(coefficient)?;
        self.wires.push(wire);
        self.coefficients.push(at);
        Ok(())
    }

    /// Closes the current row, which may be empty.
    pub fn end_row(&mut self) {
        self.offsets.push(self.wires.len() as u64);
    }

    /// Number of closed rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The closed rows of `pieces`, one piece after another.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when a piece has another number of columns; [`ShapeError::Coefficients`].
    pub(crate) fn join(n_wires: u32, pieces: Vec<Self>) -> Result<Matrix, ShapeError> {
        let mut all = Self::new(n_wires);
        let terms = |piece: &Self| piece.offsets.last().copied().map_or(0, index);
        all.offsets.reserve_exact(pieces.iter().map(Self::n_rows).sum());
        let total = pieces.iter().map(terms).sum();
        all.wires.reserve_exact(total);
        all.coefficients.reserve_exact(total);
        for piece in pieces {
            expect_count("columns of a piece", n_wires.into(), piece.n_wires.into())?;
            let (before, end) = (all.wires.len() as u64, terms(&piece));
            let names: Vec<u32> =
                piece.table.values.iter().map(|value| all.table.intern(*value)).collect::<Result<_, _>>()?;
            all.offsets.extend(piece.offsets.iter().skip(1).map(|offset| before + offset));
            all.wires.extend_from_slice(&piece.wires[..end]);
            all.coefficients.extend(piece.coefficients[..end].iter().map(|c| names[*c as usize]));
        }
        Ok(all.finish())
    }

    /// The matrix of the closed rows.
    #[must_use]
    pub fn finish(mut self) -> Matrix {
        let end = self.offsets.last().copied().map_or(0, index);
        self.wires.truncate(end);
        self.coefficients.truncate(end);
        self.wires.shrink_to_fit();
        self.coefficients.shrink_to_fit();
        Matrix {
            offsets: self.offsets,
            wires: self.wires,
            coefficients: self.coefficients,
            table: self.table.values,
            n_wires: self.n_wires,
        }
    }
}

/// Fills a [`Matrix`] from terms in any order, once the length of each row is known: how a zkey stores it.
#[derive(Debug)]
pub(crate) struct MatrixScatter {
    matrix: Matrix,
    table: Table,
    /// Where the next term of each row goes.
    next: Vec<u64>,
}

impl MatrixScatter {
    /// `lengths[i]` is the number of terms of row `i`; their sum is bounded by the file that they come from.
    pub(crate) fn new(lengths: &[u32], n_wires: u32) -> Self {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut sum = 0u64;
        offsets.push(0);
        for &n in lengths {
            sum += u64::from(n);
            offsets.push(sum);
        }
        let next = offsets[..lengths.len()].to_vec();
        let (wires, coefficients) = (vec![0; index(sum)], vec![ONE; index(sum)]);
        let matrix = Matrix { offsets, wires, coefficients, table: Vec::new(), n_wires };
        Self { matrix, table: Table::new(), next }
    }

    /// Places a term. The caller has checked row and wire, and counted the row's terms.
    pub(crate) fn place(&mut self, row: usize, wire: u32, coefficient: Scalar) -> Result<(), ShapeError> {
        let at = index(self.next[row]);
        self.next[row] += 1;
        self.matrix.wires[at] = wire;
        self.matrix.coefficients[at] = self.table.intern(coefficient)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Matrix {
        self.matrix.table = self.table.values;
        self.matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(matrix: &Matrix) -> Vec<Vec<(u32, Scalar)>> {
        (0..matrix.n_rows()).map(|i| matrix.row(i).collect()).collect()
    }

    #[test]
    fn evaluates_like_the_dense_sum() {
        let terms: Vec<Vec<(u32, Scalar)>> = vec![
            vec![(0, Scalar::ONE), (2, -Scalar::ONE), (2, Scalar::from(5))],
            vec![],
            vec![(1, Scalar::from(7)), (1, Scalar::from(7)), (0, Scalar::ZERO)],
        ];
        let mut b = MatrixBuilder::new(3);
        for row in &terms {
            for &(wire, c) in row {
                b.term(wire, c).unwrap();
            }
            b.end_row();
        }
        let m = b.finish();
        assert_eq!(rows(&m), terms);
        let w = [Scalar::ONE, Scalar::from(10), Scalar::from(100)];
        let mut out = [Scalar::ZERO; 3];
        m.evaluate(&w, &mut out).unwrap();
        assert_eq!(out, [Scalar::from(401), Scalar::ZERO, Scalar::from(140)]);
        assert!(m.evaluate(&w[..2], &mut out).is_err());

        // The zero coefficient marks nothing.
        let seen = m.wires_named(3, 0);
        assert_eq!(seen, Density::full(3));
    }

    #[test]
    fn columns_are_those_of_the_dense_matrix() {
        let (rows, wires) = (9000u32, 7000u32);
        let mut b = MatrixBuilder::new(wires);
        let coefficient = |k: u32| [Scalar::ONE, -Scalar::ONE, Scalar::from(5), Scalar::ZERO][k as usize % 4];
        for row in 0..rows {
            for k in 0..row % 20 {
                b.term((row * 31 + k * k * 17) % wires, coefficient(row + k)).unwrap();
            }
            b.end_row();
        }
        let m = b.finish();
        assert!(m.n_terms() > TERMS, "more than one thread has something to do");
        // The last rows have no value.
        let x: Vec<_> = (0..u64::from(rows) - 100).map(|i| Scalar::from(i * i + 1)).collect();
        let mut expected = vec![Scalar::ZERO; wires as usize];
        for (row, x) in x.iter().enumerate() {
            m.row(row).for_each(|(wire, c)| expected[wire as usize] += c * x);
        }
        assert_eq!(m.columns(&x, 0..wires), expected);
        assert_eq!(m.columns(&x, 3..5), expected[3..5]);
        assert_eq!(m.columns(&x, 6000..wires), expected[6000..]);
        assert!(m.columns(&x, 4..4).is_empty());
    }

    #[test]
    fn b182_wire_out_of_range_is_refused() {
        let mut b = MatrixBuilder::new(3);
        for wire in [3, u32::MAX] {
            assert_eq!(
                b.term(wire, Scalar::ONE),
                Err(ShapeError::Wire { row: 0, wire: u64::from(wire), n_wires: 3 })
            );
        }
    }

    #[test]
    fn scattered_terms_make_the_same_rows() {
        let mut s = MatrixScatter::new(&[1, 0, 2], 4);
        s.place(2, 3, Scalar::from(9)).unwrap();
        s.place(0, 1, Scalar::ONE).unwrap();
        s.place(2, 0, -Scalar::ONE).unwrap();
        let expected = vec![vec![(1, Scalar::ONE)], vec![], vec![(3, Scalar::from(9)), (0, -Scalar::ONE)]];
        assert_eq!(rows(&s.finish()), expected);
    }
}
