//! Passes over a slice: which tiles there are, and what each level does to them.

use std::cell::RefCell;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::host::with_backend;
use crate::lanes::{Backend, LANES, Lanes};
use crate::tables::{Level, Line, Tables, lane_factors, row_factors};
use crate::tile::{Fused, Pass, Pointwise, Side, Tile, Twiddle};
use crate::{Direction, Order};

/// The two orders of passes that need no permutation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the outermost level in, twiddle factors after each (decimation in frequency).
    NaturalToReversed,
    /// From the innermost level out, twiddle factors before each (decimation in time).
    ReversedToNatural,
}

/// Coefficient i is multiplied by `constant ratio^i`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaling {
    pub(crate) constant: Scalar,
    pub(crate) ratio: Scalar,
}

impl Scaling {
    fn to_the(self, log: u32) -> Scalar {
        (0..log).fold(self.ratio, |x, _| x.square())
    }

    fn is_constant(self) -> bool {
        self.ratio == Scalar::ONE
    }
}

/// A slice that the tiles of one pass share out among threads.
#[derive(Clone, Copy)]
struct Values(*mut Scalar);

// SAFETY: a pass gives every index to exactly one tile, and every tile to one thread.
unsafe impl Send for Values {}
// SAFETY: as above.
unsafe impl Sync for Values {}

impl Values {
    const fn at(self, index: usize) -> *mut Scalar {
        self.0.wrapping_add(index)
    }
}

/// Below this many values a pass is not worth waking threads for.
const PARALLEL: usize = 1 << 10;

/// Runs `work` on each number below `count`, on all threads if there are enough `values`.
fn each(count: usize, values: usize, work: impl Fn(usize) + Sync + Send) {
    if values < PARALLEL || count < 2 {
        (0..count).for_each(work);
    } else {
        (0..count).into_par_iter().for_each(work);
    }
}

thread_local! {
    /// The tile that this thread works on; at most 0.8 MB, kept for the next pass.
    static SCRATCH: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) };
}

/// Lends `count` vectors of scratch to `work`, with any contents.
fn with_scratch<V: Lanes>(count: usize, work: impl FnOnce(&mut [V])) {
    let lines = Line::needed::<V>(count);
    SCRATCH.with_borrow_mut(|space| {
        if space.len() < lines {
            space.resize(lines, Line::ZERO);
        }
        work(Line::view_mut(space, count));
    });
}

/// Runs `tile` on each tile of a level.
fn each_tile<V: Lanes>(
    level: &Level<'_, V>,
    values: &mut [Scalar],
    tile: impl Fn(Tile, &mut [V]) + Sync + Send,
) {
    let all = values.len();
    let base = Values(values.as_mut_ptr());
    let rows = 1usize << level.log_rows;
    let columns = 1usize << level.log_columns();
    let blocks = all >> level.log_block;
    let scratch = Pass::<V>::scratch(level.log_rows);
    if columns == 1 {
        each(blocks.div_ceil(LANES), all, |t| {
            let block = t * LANES;
            let lanes = LANES.min(blocks - block);
            let base = base.at(block * rows);
            let place = Tile { base, row_stride: 1, lane_stride: rows, lanes, column: 0 };
            with_scratch(scratch, |s| tile(place, s));
        });
    } else {
        let across = columns.div_ceil(LANES);
        each(blocks * across, all, |t| {
            let (block, column) = (t / across, t % across * LANES);
            let lanes = LANES.min(columns - column);
            let base = base.at((block << level.log_block) + column);
            let place = Tile { base, row_stride: columns, lane_stride: 1, lanes, column };
            with_scratch(scratch, |s| tile(place, s));
        });
    }
}

/// One transform between the two orders, in place.
pub(crate) fn transform<V: Lanes>(
    tables: &Tables<'_, V>,
    values: &mut [Scalar],
    direction: Direction,
    way: Way,
    scaling: Scaling,
) {
    // Coefficients in natural order are scaled by position: row, then column of the outermost level.
    // In reversed order each level scales its own rows, from the digit that it holds.
    let by_position = (way == Way::NaturalToReversed) == (direction == Direction::Forward);
    let log_size = tables.log_size();
    let last = tables.levels.len() - 1;
    let mut outward: Vec<usize> = (0..=last).collect();
    if way == Way::ReversedToNatural {
        outward.reverse();
    }
    for (done, &i) in outward.iter().enumerate() {
        let level = &tables.levels[i];
        let constant = if i == 0 { scaling.constant } else { Scalar::ONE };
        let mut pass = Pass::<V> {
            log_rows: level.log_rows,
            input: Order::Natural,
            output: Order::Natural,
            rows_in: None,
            rows_out: None,
            twiddle: None,
            roots: tables.roots,
            canonical: done == last,
        };
        match way {
            Way::NaturalToReversed => pass.output = Order::Reversed,
            Way::ReversedToNatural => pass.input = Order::Reversed,
        }
        let lanes;
        if i < last {
            let mut twiddle = twiddle(level, tables, constant);
            if !scaling.is_constant() {
                if !by_position {
                    twiddle.row = scaling.to_the(log_size - level.log_block);
                } else if i == 0 {
                    let root = tables.powers[level.log_block as usize];
                    lanes = lane_factors::<V>(level.log_rows, root, scaling.ratio);
                    twiddle.lanes = &lanes;
                    twiddle.column = scaling.ratio;
                }
            }
            let side = if way == Way::NaturalToReversed { Side::Store } else { Side::Load };
            pass.twiddle = Some((side, twiddle));
        }
        // The rows of the outermost or of the innermost level have factors of their own.
        let edge = i == if by_position { 0 } else { last };
        let constant = if last == 0 { scaling.constant } else { Scalar::ONE };
        let rows;
        if edge && !(scaling.is_constant() && constant == Scalar::ONE) {
            let stride = if by_position { level.log_columns() } else { log_size - level.log_block };
            rows = row_factors::<V>(level.log_rows, constant, scaling.to_the(stride));
            match direction {
                Direction::Forward => pass.rows_in = Some(&rows),
                Direction::Inverse => pass.rows_out = Some(&rows),
            }
        }
        run(&pass, level, values);
    }
}

/// The factors of a level without a coset.
pub(crate) fn twiddle<'a, V: Lanes>(
    level: &'a Level<'a, V>,
    tables: &'a Tables<'a, V>,
    constant: Scalar,
) -> Twiddle<'a, V> {
    Twiddle {
        lanes: level.lanes,
        log_block: level.log_block,
        roots: tables.powers,
        constant,
        row: Scalar::ONE,
        column: Scalar::ONE,
    }
}

/// Runs a pass over all tiles of a level.
fn run<V: Lanes>(pass: &Pass<'_, V>, level: &Level<'_, V>, values: &mut [Scalar]) {
    each_tile(level, values, |tile, scratch| {
        // SAFETY: tiles of a level are disjoint; the backend is the domain's, so it was checked.
        unsafe { V::pass(pass, tile, scratch) }
    });
}

/// Evaluations on the domain to evaluations on the coset, both in natural order.
pub(crate) fn coset_evaluations<V: Lanes>(
    inverse: &Tables<'_, V>,
    forward: &Tables<'_, V>,
    values: &mut [Scalar],
    scaling: Scaling,
) {
    let log_size = inverse.log_size();
    let last = inverse.levels.len() - 1;
    let pass = |i: usize, tables: &Tables<'_, V>, values: &mut [Scalar], way: Way, scaled: bool| {
        let level = &tables.levels[i];
        let constant = if scaled && i == 0 { scaling.constant } else { Scalar::ONE };
        let mut twiddle = twiddle(level, tables, constant);
        let (side, input, output) = match way {
            Way::NaturalToReversed => (Side::Store, Order::Natural, Order::Reversed),
            Way::ReversedToNatural => (Side::Load, Order::Reversed, Order::Natural),
        };
        if scaled && !scaling.is_constant() {
            twiddle.row = scaling.to_the(log_size - level.log_block);
        }
        let pass = Pass {
            log_rows: level.log_rows,
            input,
            output,
            rows_in: None,
            rows_out: None,
            twiddle: Some((side, twiddle)),
            roots: tables.roots,
            canonical: !scaled && i == 0,
        };
        run(&pass, level, values);
    };
    for i in 0..last {
        pass(i, inverse, values, Way::NaturalToReversed, true);
    }
    let level = &inverse.levels[last];
    let constant = if last == 0 { scaling.constant } else { Scalar::ONE };
    let fused = Fused::<V> {
        log_rows: level.log_rows,
        inverse: inverse.roots,
        forward: forward.roots,
        scale: &row_factors::<V>(level.log_rows, constant, scaling.to_the(log_size - level.log_block)),
        canonical: last == 0,
    };
    each_tile(level, values, |tile, scratch| {
        // SAFETY: as in `run`.
        unsafe { V::fused(&fused, tile, scratch) }
    });
    for i in (0..last).rev() {
        pass(i, forward, values, Way::ReversedToNatural, false);
    }
}

/// The outer levels of an out-of-core transform, on a slot that holds some columns of all rows: rows lie
/// and stay in natural order.
pub(crate) fn columns<V: Lanes>(
    tables: &Tables<'_, V>,
    slot: &mut [Scalar],
    first: usize,
    direction: Direction,
    scaling: Scaling,
) {
    let Some(level) = tables.levels.first() else { return };
    let mut twiddle = twiddle(level, tables, scaling.constant);
    twiddle.row = scaling.ratio;
    let side = if direction == Direction::Inverse { Side::Store } else { Side::Load };
    let pass = Pass::<V> {
        log_rows: level.log_rows,
        input: Order::Natural,
        output: Order::Natural,
        rows_in: None,
        rows_out: None,
        twiddle: Some((side, twiddle)),
        roots: tables.roots,
        canonical: true,
    };
    let width = slot.len() >> level.log_rows;
    let all = slot.len();
    let base = Values(slot.as_mut_ptr());
    each(width.div_ceil(LANES), all, |t| {
        let column = t * LANES;
        let lanes = LANES.min(width - column);
        let tile =
            Tile { base: base.at(column), row_stride: width, lane_stride: 1, lanes, column: first + column };
        with_scratch(Pass::<V>::scratch(level.log_rows), |scratch| {
            // SAFETY: tiles are disjoint columns of the slot; the backend was checked.
            unsafe { V::pass(&pass, tile, scratch) }
        });
    });
}

/// Values that one task of a pointwise pass takes.
const RUN: usize = 1 << 10;

/// `a := (a b - c) scale` where b and c may be absent. The slices are of equal length.
pub(crate) fn pointwise(a: &mut [Scalar], b: Option<&[Scalar]>, c: Option<&[Scalar]>, scale: Scalar) {
    let whole = a.len() / LANES * LANES;
    let backend = Backend::detect();
    with_backend!(backend, V => {
        let op = Pointwise::<V> { scale: (scale != Scalar::ONE).then(|| V::factor(&scale)) };
        let b = Values(b.map_or(std::ptr::null_mut(), |b| b.as_ptr().cast_mut()));
        let c = Values(c.map_or(std::ptr::null_mut(), |c| c.as_ptr().cast_mut()));
        let a = Values(a.as_mut_ptr());
        each(whole.div_ceil(RUN), whole, |run| {
            for at in (run * RUN..whole.min((run + 1) * RUN)).step_by(LANES) {
                // SAFETY: `at + 8 <= whole`, the slices' common length or less; runs are disjoint; b and
                // c are only read; the backend was detected.
                unsafe { V::pointwise(&op, at, a.at(0), b.at(0), c.at(0)) }
            }
        });
    });
    for i in whole..a.len() {
        let mut v = a[i];
        v *= b.map_or(Scalar::ONE, |b| b[i]);
        v -= c.map_or(Scalar::ZERO, |c| c[i]);
        a[i] = v * scale;
    }
}
