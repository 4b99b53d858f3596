//! Pippenger's bucket method over tasks that are a group of windows × a range of terms.
//!
//! For one window of w bits, term i goes to bucket |dᵢ| with the sign of its digit; the window's sum Σ j·B_j comes
//! from row and column sums: with j − 1 = 2^l·h + m,
//!
//! ```text
//! Σ j·B_j = 2^l · Σ h·R_h + Σ (m + 1)·C_m,    R_h = Σ_m B_(h,m),  C_m = Σ_h B_(h,m)
//! ```
//!
//! Rows and columns are summed like buckets, by affine additions with shared inversions, and only the 2·2^(w/2)
//! sums are left for running sums in Jacobian coordinates. In all, with W windows and n terms that need them,
//!
//! ```text
//! W · (n + 2^(w-1)) affine additions + W · 4·2^(w/2) Jacobian ones + 256 doublings.
//! ```
//!
//! Pippenger, "On the evaluation of powers and related problems", FOCS 1976; batched affine additions as in
//! Gabizon, Williamson, "Proposal: the turbo-PLONK program syntax", and Botrel, El Housni, "Faster Montgomery
//! multiplication and multi-scalar multiplication for SNARKs", TCHES 2023.

use crate::Affine;
use crate::buckets::{Buckets, Point};
use crate::digits::{Window, Windows};
use crate::field::Field;
use crate::scratch::Arena;
use crate::split::{CHUNK, Terms};
use group::Group;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How a sum is cut into tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) windows: Windows,
    /// Groups of consecutive windows; a task does all windows of one group at once, which pays where terms are
    /// few, because they share inversions.
    groups: usize,
    /// Ranges of the terms.
    ranges: usize,
}

impl Shape {
    /// One window a task.
    pub(crate) const fn single(windows: Windows) -> Self {
        Self { windows, groups: windows.count(), ranges: 1 }
    }

    /// The fastest shape by [`Shape::cost`] that takes at most `slots` slots, where that is given, and no more than
    /// four times as many as there are terms.
    ///
    /// Grouped windows stay within [`Shape::grouped_slots`], and partial results within [`Shape::RESULTS`]; so the
    /// memory that a plan reserves never falls as sums grow longer.
    pub(crate) fn best(terms: usize, threads: usize, slots: Option<usize>) -> Self {
        let mut best = Self::single(Windows::NARROWEST);
        let mut least = usize::MAX;
        let most = slots.unwrap_or(usize::MAX).min(terms.saturating_mul(4));
        let most_ranges = terms.div_ceil(CHUNK).min(threads);
        for windows in Windows::all() {
            let count = windows.count();
            let per_group = (Self::grouped_slots(terms) / Self::single(windows).stride()).max(1);
            let grouped = count.div_ceil(per_group).next_multiple_of(threads).min(count);
            for groups in [count, grouped] {
                let ranges = (0..usize::BITS).map(|log| 1 << log);
                for ranges in ranges.take_while(|r| *r == 1 || *r <= most_ranges) {
                    let shape = Self { windows, groups, ranges };
                    let fits = shape.results() <= Self::RESULTS && shape.slots() <= most;
                    let cost = shape.cost(terms, threads);
                    if fits && cost < least {
                        (best, least) = (shape, cost);
                    }
                }
            }
        }
        best
    }

    /// Partial results of any shape: as many as there are windows of one bit.
    pub(crate) const RESULTS: usize = 256;

    /// Slots that a group of more than one window may take for a sum of so many terms.
    pub(crate) fn grouped_slots(terms: usize) -> usize {
        terms.min(1 << 10) << 2
    }

    /// Modelled time, in field products.
    fn cost(&self, terms: usize, threads: usize) -> usize {
        // One affine addition with its copies; one inversion; a mixed and a full Jacobian addition. Ratios
        // measured with blst on a Xeon with ADX.
        const ADD: usize = 8;
        const INVERT: usize = 80;
        const RUN: usize = 34;
        // Slots of 96 bytes that the second-level cache holds beside the rest; beyond them additions wait.
        const CACHED: usize = 6 << 10;
        const WAIT: usize = 2;
        // Batches that run out are not full: so many inversions at the end of a phase.
        const TAIL: usize = 8;
        const BATCH: usize = 512;
        // More terms than any memory holds: no product below overflows.
        let per_task = terms.min(1 << 48).div_ceil(self.ranges);
        let buckets = self.windows.buckets();
        let additions = per_task + buckets.min(per_task);
        let add = if self.slots() <= CACHED { ADD } else { ADD + WAIT };
        let window = additions * add + additions * INVERT / BATCH + self.sums() * RUN;
        let task = self.per_group() * window + 2 * TAIL * INVERT;
        let rounds = (self.groups * self.ranges).div_ceil(threads);
        rounds.saturating_mul(task) + self.results() * RUN
    }

    /// Windows in the largest group.
    const fn per_group(&self) -> usize {
        self.windows.count().div_ceil(self.groups)
    }

    /// The windows of a group.
    fn group(&self, group: usize) -> Range<usize> {
        let count = self.windows.count();
        count * group / self.groups..count * (group + 1) / self.groups
    }

    /// Row and column sums of the widest window.
    const fn sums(&self) -> usize {
        let bits = self.windows.bits();
        (1 << (bits / 2)) + (1 << ((bits - 1) / 2))
    }

    /// Slots of one window: its buckets and their sums.
    const fn stride(&self) -> usize {
        self.windows.buckets() + self.sums()
    }

    /// Slots of a task. At least the one that a task of ones takes.
    pub(crate) const fn slots(&self) -> usize {
        self.per_group() * self.stride()
    }

    /// Partial results: a sum for each window and range.
    pub(crate) const fn results(&self) -> usize {
        self.windows.count() * self.ranges
    }
}

/// The sum of all terms and how many affine additions it took. Those that need windows are cut by `shape` (`None`
/// leaves them out), the ones into `ones` tasks. Each of `threads` threads takes `lane` bytes of the arena and one
/// task after the other. `None` when the arena or `results` is too small.
#[allow(clippy::too_many_arguments)]
pub(crate) fn sum<A: Affine>(
    terms: &Terms<'_, A>,
    shape: Option<&Shape>,
    ones: usize,
    arena: &mut Arena<'_>,
    lane: usize,
    threads: usize,
    results: &mut [A::Curve],
) -> Option<(A::Curve, u64)> {
    let (windowed, tasks) = shape.map_or((0, 0), |shape| (shape.results(), shape.groups * shape.ranges));
    let results = results.get_mut(..windowed + ones)?;
    results.fill(A::Curve::identity());
    let (next, additions) = (AtomicUsize::new(0), AtomicU64::new(0));
    let shared = Mutex::new(&mut *results);
    let work = |mut arena: Arena<'_>| {
        let slots = shape.map_or(1, Shape::slots);
        let mut buckets = Buckets::<A::Field>::new(&mut arena, slots)?;
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            let store = |at: usize, sum: A::Curve| {
                shared.lock().unwrap_or_else(PoisonError::into_inner)[at] = sum;
            };
            buckets.clear();
            match shape {
                Some(shape) if task < tasks => {
                    let (group, range) = (shape.group(task % shape.groups), task / shape.groups);
                    let chunks = part(terms.chunks(), range, shape.ranges);
                    windows(terms.others(chunks), shape, group, &mut buckets, |window, sum| {
                        store(range * shape.windows.count() + window, sum);
                    });
                }
                _ if task < tasks + ones => {
                    let task = task - tasks;
                    for base in terms.ones(part(terms.chunks(), task, ones)) {
                        add(&mut buckets, 0, base, false);
                    }
                    buckets.settle();
                    store(windowed + task, running_sum::<A>(&buckets, 0..1));
                }
                _ => break,
            }
        }
        additions.fetch_add(buckets.additions(), Ordering::Relaxed);
        Some(())
    };
    let threads = threads.min(tasks + ones);
    if threads <= 1 {
        work(arena.split(lane)?)?;
    } else {
        let failed = AtomicUsize::new(0);
        rayon::scope(|scope| {
            for _ in 0..threads {
                let arena = arena.split(lane);
                scope.spawn(|_| {
                    if arena.and_then(&work).is_none() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        if failed.into_inner() > 0 {
            return None;
        }
    }
    Some((combine::<A>(results, windowed, shape), additions.into_inner()))
}

/// Horner's rule over the windows, ranges added up, and the ones.
fn combine<A: Affine>(results: &[A::Curve], windowed: usize, shape: Option<&Shape>) -> A::Curve {
    let (windowed, ones) = results.split_at(windowed);
    let mut sum = A::Curve::identity();
    if let Some(shape) = shape {
        let count = shape.windows.count();
        for window in (0..count).rev() {
            for _ in 0..shape.windows.get(window).width {
                sum = sum.double();
            }
            for partial in windowed[window..].iter().step_by(count) {
                sum += partial;
            }
        }
    }
    for partial in ones {
        sum += partial;
    }
    sum
}

/// The `index`-th of `parts` nearly equal parts of `0..len`.
fn part(len: usize, index: usize, parts: usize) -> Range<usize> {
    len * index / parts..len * (index + 1) / parts
}

/// Sums of the windows `group` over `terms`, handed to `store` with the window's number.
fn windows<'t, A: Affine>(
    terms: impl Iterator<Item = (&'t A, &'t [u64; 4])>,
    shape: &Shape,
    group: Range<usize>,
    buckets: &mut Buckets<'_, A::Field>,
    mut store: impl FnMut(usize, A::Curve),
) {
    let windows: Vec<Window> = group.clone().map(|window| shape.windows.get(window)).collect();
    for (base, integer) in terms {
        for (i, window) in windows.iter().enumerate() {
            let (digit, negative) = window.digit(integer);
            if digit > 0 {
                add(buckets, i * shape.stride() + digit - 1, base, negative);
            }
        }
    }
    buckets.settle();
    for (i, window) in windows.iter().enumerate() {
        add_rows_and_columns(buckets, i * shape.stride(), *window);
    }
    buckets.settle();
    for (i, (number, window)) in group.zip(&windows).enumerate() {
        let grid = Grid::new(i * shape.stride(), *window);
        let mut sum = running_sum::<A>(buckets, grid.rows());
        for _ in 0..grid.low_bits {
            sum = sum.double();
        }
        store(number, sum + running_sum::<A>(buckets, grid.columns()));
    }
}

/// Adds a base, or its negative, to a slot; infinity adds nothing.
#[inline]
fn add<A: Affine>(buckets: &mut Buckets<'_, A::Field>, slot: usize, base: &A, negative: bool) {
    let (x, y) = base.xy();
    if !(x.is_zero() && y.is_zero()) {
        buckets.add(slot, Point { x: *x, y: if negative { y.neg() } else { *y } });
    }
}

/// Where a window's buckets and their sums are: bucket j at `first` + j − 1, with j − 1 = 2^low_bits·row + column;
/// then the sums of the rows from 1 on (row 0 has weight 0) and of the columns.
struct Grid {
    first: usize,
    buckets: usize,
    low_bits: u32,
}

impl Grid {
    const fn new(first: usize, window: Window) -> Self {
        Self { first, buckets: window.buckets(), low_bits: (window.width - 1) / 2 }
    }

    const fn rows(&self) -> Range<usize> {
        let start = self.first + self.buckets;
        start..start + (self.buckets >> self.low_bits) - 1
    }

    const fn columns(&self) -> Range<usize> {
        let start = self.rows().end;
        start..start + (1 << self.low_bits)
    }
}

fn add_rows_and_columns<F: Field>(buckets: &mut Buckets<'_, F>, first: usize, window: Window) {
    let grid = Grid::new(first, window);
    for i in 0..grid.buckets {
        if let Some(point) = buckets.get(first + i) {
            let (row, column) = (i >> grid.low_bits, i & ((1 << grid.low_bits) - 1));
            if row > 0 {
                buckets.add(grid.rows().start + row - 1, point);
            }
            buckets.add(grid.columns().start + column, point);
        }
    }
}

/// 1·S₀ + 2·S₁ + … over these slots.
fn running_sum<A: Affine>(buckets: &Buckets<'_, A::Field>, slots: Range<usize>) -> A::Curve {
    let (mut run, mut sum) = (A::Curve::identity(), A::Curve::identity());
    for slot in slots.rev() {
        if let Some(point) = buckets.get(slot) {
            run += A::from_xy(&point.x, &point.y);
        }
        sum += run;
    }
    sum
}
