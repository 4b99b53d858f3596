//! What happens to one tile: eight columns are loaded row by row, transformed, and stored.
//!
//! Whatever the order of the transform around it, the transform within a tile is the one whose values
//! grow slowest: decimation in time, from reversed to natural order (Cooley and Tukey). Rows are put
//! in the order that it wants while they are loaded, and in the order that is asked for while they
//! are stored, so no pass over memory ever reverses bits.

use blstrs::Scalar;
use ff::Field;

use crate::Order;
use crate::domain::Roots;
use crate::lanes::{LANES, Lanes};

/// The low `bits` bits of `i` reversed.
#[inline(always)]
pub(crate) const fn reverse(i: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - bits) }
}

/// Where the rows and columns of a tile lie.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Row 0, column 0.
    pub(crate) base: *mut Scalar,
    /// Elements from one row to the next.
    pub(crate) row_stride: usize,
    /// Elements from one column to the next.
    pub(crate) lane_stride: usize,
    /// Columns, at most eight.
    pub(crate) lanes: usize,
    /// Number of the first column within its block, for the twiddle factors.
    pub(crate) column: usize,
}

impl Tile {
    #[inline(always)]
    unsafe fn load<V: Lanes>(&self, row: usize) -> V {
        // SAFETY: the caller owns this row of the tile.
        unsafe {
            let p = self.base.add(row * self.row_stride);
            if self.lanes == LANES {
                return V::load(p, self.lane_stride);
            }
            let mut few = [Scalar::ZERO; LANES];
            for (l, x) in few.iter_mut().take(self.lanes).enumerate() {
                *x = p.add(l * self.lane_stride).read();
            }
            V::load(few.as_ptr(), 1)
        }
    }

    #[inline(always)]
    unsafe fn store<V: Lanes>(&self, row: usize, v: V) {
        // SAFETY: the caller owns this row of the tile.
        unsafe {
            let p = self.base.add(row * self.row_stride);
            if self.lanes == LANES {
                return v.store(p, self.lane_stride);
            }
            let mut few = [Scalar::ZERO; LANES];
            v.store(few.as_mut_ptr(), 1);
            for (l, x) in few.into_iter().take(self.lanes).enumerate() {
                p.add(l * self.lane_stride).write(x);
            }
        }
    }
}

/// When twiddle factors meet the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before the transform of the columns.
    Load,
    /// After it.
    Store,
}

/// The factors between two levels: row k of column j gets `constant row^k column^j w^(kj)`, where w
/// has order `2^log_block`.
pub(crate) struct Twiddle<'a, V: Lanes> {
    /// `column^l w^(kl)` for each row k and lane l.
    pub(crate) lanes: &'a [V],
    pub(crate) log_block: u32,
    pub(crate) roots: &'a Roots,
    pub(crate) constant: Scalar,
    pub(crate) row: Scalar,
    pub(crate) column: Scalar,
}

impl<V: Lanes> Twiddle<'_, V> {
    /// The part that depends on the tile, `constant column^j0 (row w^j0)^k`: eight rows to a vector.
    #[inline(always)]
    fn fill(&self, j0: usize, out: &mut [V]) {
        let mut ratio = self.row;
        for bit in 0..self.log_block {
            if j0 >> bit & 1 == 1 {
                ratio *= self.roots[(self.log_block - bit) as usize];
            }
        }
        let mut first = [self.constant; LANES];
        if self.column != Scalar::ONE {
            first[0] *= self.column.pow_vartime([j0 as u64]);
        }
        for l in 1..LANES {
            first[l] = first[l - 1] * ratio;
        }
        let step = V::factor(&ratio.square().square().square());
        let mut v = V::multipliers(&first);
        for slot in out.iter_mut() {
            *slot = v;
            v = v.mul(&step).multiplier();
        }
    }
}

/// One pass over the tiles of a level: the same transform of every column.
pub(crate) struct Pass<'a, V: Lanes> {
    /// Base-two logarithm of the number of rows.
    pub(crate) log_rows: u32,
    /// Order in which rows lie before and after.
    pub(crate) input: Order,
    pub(crate) output: Order,
    /// Factor of each row before and after the transform, by natural index.
    pub(crate) rows_in: Option<&'a [V::Factor]>,
    pub(crate) rows_out: Option<&'a [V::Factor]>,
    pub(crate) twiddle: Option<(Side, Twiddle<'a, V>)>,
    /// `roots[h + j]` is the root of order `2h` to the power j, for j < h.
    pub(crate) roots: &'a [V::Factor],
    /// Whether stored values are canonical, or merely below `2r` for the next pass.
    pub(crate) canonical: bool,
}

impl<V: Lanes> Pass<'_, V> {
    /// Vectors of scratch for one tile.
    pub(crate) const fn scratch(log_rows: u32) -> usize {
        (1 << log_rows) + (1usize << log_rows).div_ceil(LANES)
    }

    /// Transforms a tile in place.
    ///
    /// # Safety
    /// No one else reads or writes the tile meanwhile; `scratch` has [`Pass::scratch`] vectors.
    #[inline(always)]
    pub(crate) unsafe fn body(&self, tile: Tile, scratch: &mut [V]) {
        let rows = 1usize << self.log_rows;
        let (x, factors) = scratch.split_at_mut(rows);
        if let Some((_, twiddle)) = &self.twiddle {
            twiddle.fill(tile.column, factors);
        }
        for at in 0..rows {
            let mirrored = reverse(at, self.log_rows);
            let (k, slot) = if self.input == Order::Natural { (at, mirrored) } else { (mirrored, at) };
            // SAFETY: `at` is a row of the tile, which is the caller's.
            let mut v: V = unsafe { tile.load(at) };
            if let Some(f) = self.rows_in {
                v = v.mul(&f[k]);
            }
            if let Some((Side::Load, t)) = &self.twiddle {
                v = v.mul_each(&t.lanes[k]).mul_lane(&factors[k / LANES], k % LANES);
            }
            x[slot] = v;
        }
        decimate_in_time(x, self.roots);
        for at in 0..rows {
            let k = if self.output == Order::Natural { at } else { reverse(at, self.log_rows) };
            let mut v = x[k];
            let mut settled = false;
            if let Some((Side::Store, t)) = &self.twiddle {
                v = v.mul_each(&t.lanes[k]).mul_lane(&factors[k / LANES], k % LANES);
                settled = true;
            }
            if let Some(f) = self.rows_out {
                v = v.mul(&f[k]);
                settled = true;
            }
            if !settled {
                v = v.settle();
            }
            if self.canonical {
                v = v.canonical();
            }
            // SAFETY: as for the load.
            unsafe { tile.store(at, v) }
        }
    }
}

/// The middle of "inverse, scale, forward" on the innermost level: rows come and leave in natural
/// order, and the data stays in the tile in between.
pub(crate) struct Fused<'a, V: Lanes> {
    pub(crate) log_rows: u32,
    /// Tables of the inverse and of the forward transform, as in [`Pass::roots`].
    pub(crate) inverse: &'a [V::Factor],
    pub(crate) forward: &'a [V::Factor],
    /// Factor of each row between the two.
    pub(crate) scale: &'a [V::Factor],
    /// As in [`Pass::canonical`].
    pub(crate) canonical: bool,
}

impl<V: Lanes> Fused<'_, V> {
    /// Transforms a tile in place.
    ///
    /// # Safety
    /// As for [`Pass::body`].
    #[inline(always)]
    pub(crate) unsafe fn body(&self, tile: Tile, scratch: &mut [V]) {
        let rows = 1usize << self.log_rows;
        let x = &mut scratch[..rows];
        for at in 0..rows {
            // SAFETY: `at` is a row of the tile, which is the caller's.
            x[reverse(at, self.log_rows)] = unsafe { tile.load(at) };
        }
        decimate_in_time(x, self.inverse);
        for k in 0..rows {
            let mirrored = reverse(k, self.log_rows);
            if k <= mirrored {
                let a = x[k].mul(&self.scale[k]);
                let b = x[mirrored].mul(&self.scale[mirrored]);
                x[k] = b;
                x[mirrored] = a;
            }
        }
        decimate_in_time(x, self.forward);
        for (at, v) in x.iter().enumerate() {
            let mut v = v.settle();
            if self.canonical {
                v = v.canonical();
            }
            // SAFETY: as for the load.
            unsafe { tile.store(at, v) }
        }
    }
}

/// `a := (a b - c) s`, where b, c and s may be absent.
pub(crate) struct Pointwise<V: Lanes> {
    pub(crate) scale: Option<V::Factor>,
}

impl<V: Lanes> Pointwise<V> {
    /// Works on the eight values from index `at`. A null `b` or `c` is absent.
    ///
    /// # Safety
    /// Eight canonical values are readable at index `at` of each pointer that is not null, and those of
    /// `a` writable; no one else uses them.
    #[inline(always)]
    pub(crate) unsafe fn body(&self, at: usize, a: *mut Scalar, b: *const Scalar, c: *const Scalar) {
        // SAFETY: the caller's promise, for each pointer that is not null.
        unsafe {
            let mut v = V::load(a.add(at), 1);
            if !b.is_null() {
                v = v.product(V::load(b.add(at), 1));
            }
            if !c.is_null() {
                v = v.sub(V::load(c.add(at), 1));
            }
            v = match &self.scale {
                Some(s) => v.mul(s),
                None => v.settle(),
            };
            v.canonical().store(a.add(at), 1);
        }
    }
}

/// Rows that are taken through all their layers before the next: they fit the first-level cache.
const BLOCK: [usize; 2] = [64, 32];

/// In-place transform of every column, rows from reversed to natural order: radix 4, preceded by one
/// layer of radix 2 where the number of layers is odd.
///
/// `x.len() / 2 * log2(x.len())` products in all, less the trivial ones of the first two layers and of
/// each first butterfly. Values below `2r` end below `26r` for up to `2^11` rows.
#[inline(always)]
fn decimate_in_time<V: Lanes>(x: &mut [V], roots: &[V::Factor]) {
    let rows = x.len();
    let odd = rows.trailing_zeros() & 1 == 1;
    let block = BLOCK[usize::from(odd)].min(rows);
    let mut first = 1;
    for x in x.chunks_exact_mut(block) {
        first = if odd {
            for pair in x.chunks_exact_mut(2) {
                (pair[0], pair[1]) = (pair[0].add(pair[1]), pair[0].sub(pair[1]));
            }
            2
        } else if rows > 1 {
            for quad in x.chunks_exact_mut(4) {
                let (a0, a1) = (quad[0].add(quad[1]), quad[0].sub(quad[1]));
                let (b0, b1) = (quad[2].add(quad[3]), quad[2].sub(quad[3]));
                let b1 = b1.mul(&roots[3]);
                (quad[0], quad[2]) = (a0.add(b0), a0.sub_twice(b0));
                (quad[1], quad[3]) = (a1.add(b1), a1.sub(b1));
            }
            4
        } else {
            1
        };
        let mut half = first;
        while half < block {
            layer(x, half, roots);
            half *= 4;
        }
        first = half;
    }
    let mut half = first;
    while half < rows {
        layer(x, half, roots);
        half *= 4;
    }
}

/// Two layers of butterflies at once: of half-size `half` and `2 half`.
#[inline(always)]
fn layer<V: Lanes>(x: &mut [V], half: usize, roots: &[V::Factor]) {
    let (r1, r2) = (&roots[half..2 * half], &roots[2 * half..4 * half]);
    for quad in x.chunks_exact_mut(4 * half) {
        let (q0, rest) = quad.split_at_mut(half);
        let (q1, rest) = rest.split_at_mut(half);
        let (q2, q3) = rest.split_at_mut(half);
        // The first butterfly has trivial factors but for one.
        let (t1, t3) = (q1[0].settle(), q3[0].settle());
        let (a0, a1) = (q0[0].add(t1), q0[0].sub(t1));
        let (b0, b1) = (q2[0].add(t3), q2[0].sub(t3));
        let (u0, u1) = (b0.settle(), b1.mul(&r2[half]));
        (q0[0], q2[0]) = (a0.add(u0), a0.sub(u0));
        (q1[0], q3[0]) = (a1.add(u1), a1.sub(u1));
        for j in 1..half {
            let (t1, t3) = (q1[j].mul(&r1[j]), q3[j].mul(&r1[j]));
            let (a0, a1) = (q0[j].add(t1), q0[j].sub(t1));
            let (b0, b1) = (q2[j].add(t3), q2[j].sub(t3));
            let (u0, u1) = (b0.mul(&r2[j]), b1.mul(&r2[half + j]));
            (q0[j], q2[j]) = (a0.add(u0), a0.sub(u0));
            (q1[j], q3[j]) = (a1.add(u1), a1.sub(u1));
        }
    }
}
