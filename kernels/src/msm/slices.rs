//! Buckets added up in slices: the host side of `cuda/msm.cuh`.

use super::reduce::{Points, buckets};
use super::{Curve, Digits, Group, Plan, SCAN_BLOCK, Sort, at, blocks, clear, narrow};
use crate::{Args, Argument, Launch, launch::Cursor};

/// `Slices` of cuda/msm.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Cut {
    counts: *const u32,
    starts: *const u32,
    places: *const u32,
    totals: *const u32,
    n: u32,
    size: u32,
}

// SAFETY: `repr(C)`, the layout of `Slices`.
unsafe impl Argument for Cut {}

/// Terms of a slice.
const SIZE: u64 = 32;
/// Slices that one thread adds up: buckets of more go to blocks.
const EACH: u64 = 32;

/// The memory of buckets that are added up in slices.
pub(super) struct Slices {
    curve: Curve,
    sort: Sort,
    entries: *mut u32,
    counts: *mut u32,
    starts: *mut u32,
    places: *mut u32,
    totals: *mut u32,
    counters: *mut u32,
    longer: *mut u32,
    buckets: *mut u8,
    partial: *mut u8,
    shares: *mut u8,
}

impl Slices {
    pub(super) fn new(plan: &Plan, c: &mut Cursor) -> Self {
        let (curve, chunk, all, group) = (plan.curve, plan.chunk, plan.all(), plan.largest());
        let (lists, entries) = (group.lists(), chunk * u64::from(group.windows));
        let point = curve.xyzz_bytes();
        Self {
            curve,
            sort: Sort::new(&group, chunk, c),
            entries: c.take(4 * entries),
            counts: c.take(4 * lists),
            starts: c.take(4 * lists),
            places: c.take(4 * lists),
            totals: c.take(4 * (lists.div_ceil(SCAN_BLOCK) + 1)),
            counters: c.take(8),
            longer: c.take(4 * (entries / (SIZE * EACH) + 1)),
            buckets: c.take(point * all.lists()),
            // Every bucket has at most one slice that is not full.
            partial: c.take(point * (entries / SIZE + lists)),
            shares: c.take(point * buckets(curve, &all, 0).blocks()),
        }
    }

    pub(super) fn clear(&self, lists: u64) -> Vec<Launch> {
        vec![clear(self.buckets.cast(), self.curve.xyzz_bytes() / 4 * lists)]
    }

    /// Adds one chunk's entries to the buckets of a group, which is `first` buckets from the beginning.
    pub(super) fn accumulate(
        &self,
        group: &Group,
        first: u64,
        digits: &Digits,
        bases: *const u8,
        launches: &mut Vec<Launch>,
    ) {
        self.sort.launches(group, digits, [self.counts, self.starts, self.entries], launches);
        let lists = group.lists();
        let size = narrow(SIZE);
        let scanned = lists.div_ceil(SCAN_BLOCK);
        let args = Args::new().with(self.places).with(self.totals).with(self.counts.cast_const());
        launches.push(blocks("msm_slices", scanned, 256, 2048, args.with(size).with(lists)));
        let args = Args::new().with(self.totals).with(scanned).with(self.counters);
        launches.push(blocks("msm_slice_totals", 1, 1024, 8192, args));

        let cut = Cut {
            counts: self.counts,
            starts: self.starts,
            places: self.places,
            totals: self.totals,
            n: narrow(lists),
            size,
        };
        let longest = digits.n.div_ceil(SIZE);
        let name = |g1, g2| self.curve.name(g1, g2);
        let partial = Args::new().with(self.partial);
        let both = Args::new().with(at(self.buckets, first, self.curve.xyzz_bytes())).with(self.partial);
        let args = both.clone().with(bases).with(self.entries.cast_const()).with(cut);
        let kernel = name("g1_sum_slices", "g2_sum_slices");
        launches.push(Launch::elementwise(kernel, digits.entries() / SIZE + lists, 128, args));
        if longest > 1 {
            let args = both.clone().with(cut).with(self.longer).with(self.counters);
            launches.push(Launch::elementwise(name("g1_merge_slices", "g2_merge_slices"), lists, 128, args));
        }
        if longest > EACH {
            let found = |args: Args| args.with(self.longer.cast_const()).with(self.counters.cast_const());
            let kernel = name("g1_fold_longer", "g2_fold_longer");
            launches.push(blocks(kernel, 264, 128, 0, found(partial.with(cut))));
            let kernel = name("g1_merge_longer", "g2_merge_longer");
            launches.push(blocks(kernel, 264, 128, 0, found(both.with(cut))));
        }
    }

    pub(super) fn reduce(&self, all: &Group, results: *mut u8, launches: &mut Vec<Launch>) {
        let points = Points::Buckets(self.buckets);
        buckets(self.curve, all, 0).launches(self.curve, points, self.shares, results, launches);
    }
}
