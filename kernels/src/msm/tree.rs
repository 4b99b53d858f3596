//! Buckets added up as a tree: the host side of `cuda/msm_lists.cu` and `cuda/msm_tree.cuh`.

use super::reduce::{Part, Points, Weigh, buckets};
use super::{Curve, Digits, Group, Plan, SCAN_BLOCK, Sort, at, blocks, clear, narrow};
use crate::{Args, Argument, Launch, launch::Cursor};

/// `MsmLists` of cuda/msm_lists.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Lists {
    refs: *const u32,
    starts: *const u32,
    counts: *const u32,
    places: *const u64,
    totals: *const u64,
    level: *const u64,
    pairs: *mut u64,
    next_refs: *mut u32,
    next_starts: *mut u32,
    next_counts: *mut u32,
    finals: *mut u32,
    crowded: *mut u32,
    counters: *mut u32,
    n: u32,
    bases: u32,
}

// SAFETY: `repr(C)`, the layout of `MsmLists`.
unsafe impl Argument for Lists {}

/// `MsmHalving` of cuda/msm_lists.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Halving {
    rows: u32,
    row_pairs: u32,
    columns: [u32; 2],
    split: u32,
    half: u32,
    column_pairs: u32,
    sums: u32,
}

// SAFETY: `repr(C)`, the layout of `MsmHalving`.
unsafe impl Argument for Halving {}

/// The bit that marks bases among references.
const BASE: u32 = 1 << 30;
/// Lists whose pairs one block makes, if they are no more than so many.
const LISTS: u64 = 256;
const PAIRS: u64 = 16_384;
/// Blocks that make the pairs of crowded blocks.
const CROWDED: u64 = 1056;
/// Blocks that add up what is left of long lists.
const LONGER: u64 = 264;
const LONGER_THREADS: u32 = 128;
/// Levels of any sum.
const LEVELS: u64 = 32;
/// The first bucket: point 0 is infinity.
const BUCKETS: u32 = 1;

/// Threads that walk over a level's pairs: `tree_walkers` of cuda/msm_lists.cuh.
fn walkers(pairs: u64) -> u64 {
    pairs.min(67_584).max(pairs / 8).min(405_504)
}

/// `tree_inverters` of cuda/msm_lists.cuh.
fn inverters(walkers: u64) -> u64 {
    walkers.div_ceil(2).min(16_896).max(walkers.div_ceil(4).min(33_792))
}

/// Points of the tree: infinity, all buckets, and the sums of all levels of a group or of rows and columns of all.
pub(super) fn points(all: &Group, group: &Group, chunk: u64) -> u64 {
    1 + all.lists() + sums(all, group, chunk)
}

fn sums(all: &Group, group: &Group, chunk: u64) -> u64 {
    (chunk * u64::from(group.windows)).max(2 * all.buckets())
}

/// Levels that lists of up to `n` terms get before blocks add up what is left: enough that nothing is with random
/// scalars, and that no more than 2^13 terms of a list are with others.
fn levels(group: &Group, n: u64) -> u64 {
    let usual = n >> (group.width - 2);
    let longest = usual + 6 * usual.isqrt() + 12;
    let log = |n: u64| u64::from(n.max(1).next_power_of_two().ilog2());
    log(longest).max(log(n).saturating_sub(13)).min(log(n)).max(1)
}

/// The memory of a tree.
pub(super) struct Tree {
    curve: Curve,
    counts: [*mut u32; 2],
    starts: [*mut u32; 2],
    places: *mut u64,
    totals: *mut u64,
    levels: *mut u64,
    counters: *mut u32,
    crowded: *mut u32,
    longer: *mut u32,
    finals: *mut u32,
    refs: [*mut u32; 2],
    pairs: *mut u64,
    before: *mut u8,
    products: [*mut u8; 2],
    partial: *mut u8,
    shares: *mut u8,
    x: *mut u8,
    y: *mut u8,
    /// The first of the sums.
    sums: u32,
    grid: Option<Grid>,
    sort: Sort,
}

impl Tree {
    pub(super) fn new(plan: &Plan, c: &mut Cursor) -> Self {
        let (curve, chunk, all, group) = (plan.curve, plan.chunk, &plan.all(), &plan.largest());
        let grid = plan.halves.then(|| Grid::new(all));
        let (lists, entries) = (group.lists(), chunk * u64::from(group.windows));
        let field = curve.field_bytes();
        let most = (entries / 2).max(lists).max(all.buckets());
        let counts = [c.take(4 * lists), c.take(4 * lists)];
        let starts = [c.take(4 * lists), c.take(4 * lists)];
        let (places, totals) = (c.take(8 * lists), c.take(8 * lists.div_ceil(SCAN_BLOCK)));
        let (levels, counters) = (c.take(8 * (LEVELS + 2)), c.take(8));
        let crowded = c.take(4 * lists.div_ceil(LISTS));
        // Lists that are left after the levels had more than 2^4 entries.
        let longer = c.take(4 * (entries / 16 + 1));
        let finals = c.take(4 * lists);
        // Lists of three become lists of two: of others less is left.
        let refs = [c.take(4 * entries), c.take(4 * (entries * 2 / 3 + 1))];
        let (pairs, before) = (c.take(8 * most), c.take(field * most));
        let products = [c.take(field * walkers(most)), c.take(field * walkers(most))];
        let partial = c.take(curve.xyzz_bytes() * LONGER * u64::from(LONGER_THREADS));
        let shares = c.take(curve.xyzz_bytes() * weigh(curve, all, grid, (0, 0)).blocks());
        // The sort is done before the first sum is written, and its memory is that of sums.
        let x = c.take(field * (1 + all.lists()));
        let mut over = c.clone();
        let sort = Sort::new(group, chunk, &mut over);
        c.take::<u8>(field * sums(all, group, chunk));
        c.reach(&over);
        let y = c.take(field * points(all, group, chunk));
        Self {
            curve,
            counts,
            starts,
            places,
            totals,
            levels,
            counters,
            crowded,
            longer,
            finals,
            refs,
            pairs,
            before,
            products,
            partial,
            shares,
            x,
            y,
            sums: BUCKETS + narrow(all.lists()),
            grid,
            sort,
        }
    }

    fn words(&self) -> u64 {
        self.curve.field_bytes() / 4
    }

    /// Infinity and `lists` empty buckets.
    pub(super) fn clear(&self, lists: u64) -> Vec<Launch> {
        [self.x, self.y].map(|c| clear(c.cast(), self.words() * (lists + 1))).into()
    }

    /// Sums of the pairs of level record `level`, at most `bound`.
    fn add_pairs(&self, level: *mut u64, bases: *const u8, bound: u64, launches: &mut Vec<Launch>) {
        let walkers = walkers(bound);
        let name = |g1, g2| self.curve.name(g1, g2);
        let level = level.cast_const();
        let points =
            |args: Args| args.with(bases).with(self.x).with(self.y).with(self.pairs.cast_const()).with(level);
        let [products, before] = self.products;
        let kernel = name("g1_tree_products", "g2_tree_products");
        let args = points(Args::new().with(self.before).with(products));
        launches.push(Launch::elementwise(kernel, walkers, 128, args));
        let kernel = name("g1_tree_invert", "g2_tree_invert");
        let args = Args::new().with(products).with(before).with(level);
        launches.push(Launch::elementwise(kernel, inverters(walkers), 64, args));
        let args = points(Args::new().with(self.before.cast_const()).with(products.cast_const()));
        launches.push(Launch::elementwise(name("g1_tree_add", "g2_tree_add"), walkers, 128, args));
    }

    /// Adds one chunk's entries to the buckets of a group, which is `first` buckets from the beginning; if it `begins`, the
    /// buckets are what they come to.
    pub(super) fn accumulate(
        &self,
        group: &Group,
        first: u64,
        digits: &Digits,
        bases: *const u8,
        begins: bool,
        launches: &mut Vec<Launch>,
    ) {
        let lists = group.lists();
        let buckets = BUCKETS + narrow(first);
        self.sort.launches(group, digits, [self.counts[0], self.starts[0], self.refs[0]], launches);
        if begins && group.first == 0 {
            launches.extend(self.clear(0));
        }
        let scanned = lists.div_ceil(SCAN_BLOCK);
        let count = levels(group, digits.n);
        let mut entries = digits.entries();
        for level in 0..count {
            let now = usize::from(!level.is_multiple_of(2));
            let next = 1 - now;
            let counts = self.counts[now].cast_const();
            let record = at(self.levels, level, 8);
            let args = Args::new().with(self.places).with(self.totals).with(counts).with(lists);
            launches.push(blocks("msm_list_steps", scanned, 256, 4096, args));
            let first = if level == 0 { self.sums } else { 0 };
            let args =
                Args::new().with(self.totals).with(scanned).with(record).with(first).with(self.counters);
            launches.push(blocks("msm_list_totals", 1, 1024, 16_384, args));
            let args = Args::new().with(Lists {
                refs: self.refs[now],
                starts: self.starts[now],
                counts,
                places: self.places,
                totals: self.totals,
                level: record,
                pairs: self.pairs,
                next_refs: self.refs[next],
                next_starts: self.starts[next],
                next_counts: self.counts[next],
                finals: self.finals,
                crowded: self.crowded,
                counters: self.counters,
                n: narrow(lists),
                bases: if level == 0 { BASE } else { 0 },
            });
            let shared = narrow(4 * (4 * LISTS + 1));
            launches.push(blocks("msm_list_pairs", lists.div_ceil(LISTS), 256, shared, args.clone()));
            // Lists that are still there have halved at each level.
            if digits.entries() >> level > PAIRS {
                launches.push(blocks("msm_list_crowded", CROWDED, 256, shared, args));
            }
            self.add_pairs(record, bases, entries / 2, launches);
            entries = (2 * entries / 3).min(entries.saturating_add(lists) / 2) + 1;
        }
        let last = usize::from(!count.is_multiple_of(2));
        let level = at(self.levels, count, 8).cast_const();
        if digits.n > 1 << count {
            let (counts, starts) = (self.counts[last].cast_const(), self.starts[last].cast_const());
            let args = Args::new().with(self.longer).with(self.counters).with(counts).with(lists);
            launches.push(Launch::elementwise("msm_list_longer", lists, 256, args));
            let args = Args::new().with(self.partial).with(bases).with(self.x).with(self.y).with(self.finals);
            let args = args.with(self.refs[last].cast_const()).with(starts).with(counts);
            let args = args.with(self.longer.cast_const()).with(self.counters.cast_const()).with(level);
            let kernel = self.curve.name("g1_tree_longer", "g2_tree_longer");
            launches.push(blocks(kernel, LONGER, LONGER_THREADS, 0, args));
        }
        if begins {
            let args = Args::new().with(bases).with(self.x).with(self.y).with(self.finals.cast_const());
            let args = args.with(buckets).with(narrow(lists));
            let kernel = self.curve.name("g1_tree_gather", "g2_tree_gather");
            launches.push(Launch::elementwise(kernel, lists, 128, args));
        } else {
            let args = Args::new().with(self.pairs).with(self.levels).with(self.finals.cast_const());
            let args = args.with(buckets).with(narrow(lists));
            launches.push(Launch::elementwise("msm_pairs_merge", lists, 256, args));
            self.add_pairs(self.levels, bases, lists, launches);
        }
    }

    /// Weighted sums of the buckets, or of their row and column sums.
    pub(super) fn reduce(&self, group: &Group, results: *mut u8, launches: &mut Vec<Launch>) {
        let sums = self.grid.map_or((0, 0), |grid| self.halve(group, grid, launches));
        let weigh = weigh(self.curve, group, self.grid, sums);
        weigh.launches(self.curve, Points::Tree(self.x, self.y), self.shares, results, launches);
    }

    /// Halves rows and columns of every window until they are one point each: the first row sum and the first column sum.
    fn halve(&self, group: &Group, grid: Grid, launches: &mut Vec<Launch>) -> (u32, u32) {
        let mut rows = (BUCKETS, group.buckets());
        let mut columns = BUCKETS;
        let mut sums = self.sums;
        let mixed = group.narrow() > 0;
        for step in 0..grid.low.max(grid.high) {
            let row_pairs = if step < grid.low { rows.1 / 2 } else { 0 };
            // Wide windows have one more step, the first.
            let halved = if mixed && step == 0 { group.wide } else { group.windows };
            let half = (grid.low + grid.high).saturating_sub(step + 1);
            let column_pairs = if step < grid.high { u64::from(halved) << half } else { 0 };
            let after = mixed && step == 1;
            let halving = Halving {
                rows: rows.0,
                row_pairs: narrow(row_pairs),
                columns: [columns, BUCKETS + (group.wide << (grid.low + grid.high))],
                split: if after { group.wide } else { u32::MAX },
                half,
                column_pairs: narrow(column_pairs),
                sums,
            };
            let pairs = row_pairs + column_pairs;
            let args = Args::new().with(self.pairs).with(self.levels).with(halving);
            launches.push(Launch::elementwise("msm_pairs_halve", pairs, 256, args));
            self.add_pairs(self.levels, std::ptr::null(), pairs, launches);
            if row_pairs > 0 {
                rows = (sums, row_pairs);
            }
            if column_pairs > 0 {
                columns = sums + narrow(row_pairs);
            }
            sums += narrow(pairs);
        }
        (rows.0, columns)
    }
}

/// A window's buckets as rows of 2^low columns: wide windows have 2^high rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) low: u32,
    high: u32,
}

impl Grid {
    pub(super) fn new(all: &Group) -> Self {
        let bits = all.width - 1;
        Self { low: bits / 2, high: bits - bits / 2 }
    }
}

/// With bucket (hi, lo) of a window at hi·2^low + lo, Σ (b + 1)·bucket is Σ (lo + 1)·column + 2^low·Σ hi·row. Results:
/// columns of all windows, rows of all windows, ones. Without a grid, of the buckets themselves.
fn weigh(curve: Curve, all: &Group, grid: Option<Grid>, (rows, columns): (u32, u32)) -> Weigh {
    let Some(Grid { low, high }) = grid else { return buckets(curve, all, BUCKETS) };
    let columns = Part { first: columns, log: low, sums: all.windows, out: 0 };
    let ones = Part { first: BUCKETS + narrow(all.buckets()), log: 0, sums: 1, out: 2 * all.windows };
    let wide = Part { first: rows, log: high, sums: all.wide, out: all.windows };
    let first = rows + (all.wide << high);
    let rest = Part { first, log: high - 1, sums: all.narrow(), out: all.windows + all.wide };
    Weigh::new(curve, [columns, ones, wide, rest], 2)
}
