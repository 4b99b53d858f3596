//! Which launches make a multi-scalar multiplication: the host side of `cuda/msm*`.
//!
//! Σ sᵢ·Pᵢ by Pippenger's method: the scalars' signed digits are sorted into buckets, window by window; the points of
//! each bucket are added up; the buckets are reduced to one or two points a window. What is left,
//! Σ 2^offset·point, is the caller's: some 256 doublings on the host, by [`Plan::fold`].
//!
//! There are two ways to add up buckets, in both of which every thread has the same work whatever the scalars. The
//! *tree* adds points in affine coordinates, in pairs, level by level, an inversion shared by thousands: 1,671
//! multiplications an addition in G1 and some 130 bytes of scratch an entry (a digit that is not zero). *Slices* are
//! added in XYZZ coordinates: 2,606 multiplications and 12 bytes, and fewer launches. A [`Plan`] takes slices for small
//! sums and where scratch is short.
//!
//! Nothing here touches a device. A [`Plan`] fixes the windows and says how much scratch they need, and returns
//! launches that are the same on a device and on the host build. Bucket sums persist from one
//! [`Plan::accumulate`] to the next, so bases may arrive in chunks ([`Plan::chunked`]), each base once. So may scalars, and those that travel sorted into
//! zeros, ones and others become integers on the device: [`ranks()`] once a batch, [`expand()`] for each chunk.

mod chunks;
mod expand;
mod reduce;
mod results;
mod slices;
mod sort;
mod tree;

pub use chunks::Terms;
pub use expand::{expand, expand_scratch_bytes, ranks};

use crate::{Args, Launch, launch::Cursor, ntt::Fr};
use slices::Slices;
use sort::{Digits, Sort};
use tree::Tree;

/// The group that points are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// Over Fq: affine points of 96 bytes, XYZZ points of 192.
    G1,
    /// Over Fq2: affine points of 192 bytes, XYZZ points of 384.
    G2,
}

impl Curve {
    /// The bytes of an affine point: those of `blst_p1_affine` and `blst_p2_affine`.
    #[must_use]
    pub const fn affine_bytes(self) -> u64 {
        self.xyzz_bytes() / 2
    }

    /// The bytes of a point in XYZZ coordinates: X, Y, ZZ, ZZZ.
    #[must_use]
    pub const fn xyzz_bytes(self) -> u64 {
        match self {
            Self::G1 => 192,
            Self::G2 => 384,
        }
    }

    /// The bytes of a point in Jacobian coordinates, x, y, z: those of `blst_p1` and `blst_p2`.
    #[must_use]
    pub const fn jacobian_bytes(self) -> u64 {
        match self {
            Self::G1 => 144,
            Self::G2 => 288,
        }
    }

    /// The bytes of a coordinate.
    const fn field_bytes(self) -> u64 {
        self.xyzz_bytes() / 4
    }

    pub(crate) const fn name(self, g1: &'static str, g2: &'static str) -> &'static str {
        match self {
            Self::G1 => g1,
            Self::G2 => g2,
        }
    }
}

/// What becomes of scalars that need no digits. Zeros are always dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ones {
    /// They are scalars like others.
    Digits,
    /// Points of scalars 1 are added up by themselves.
    Apart,
    /// And so are those of −1, negated: bases must be known to be in the subgroup of order r.
    ApartWithMinusOne,
}

/// How scalars are given: 32 bytes each, canonical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// In Montgomery form.
    Montgomery,
    /// As integers: what [`expand()`] writes.
    Integers,
}

/// A window of the scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its lowest bit.
    pub offset: u32,
    /// Its width.
    pub bits: u32,
}

/// Sizes of a multi-scalar multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    curve: Curve,
    chunk: u64,
    width: u32,
    group: u32,
    tree: bool,
    halves: bool,
}

/// So many buckets of a tree are not worth the latency of row and column sums.
const FEW: u64 = 60_000;
/// Values that a block scans.
const SCAN_BLOCK: u64 = 2048;

/// The buckets of consecutive windows, one window after another, and at the end that of the ones.
#[derive(Debug, Clone, Copy)]
struct Group {
    first: u32,
    windows: u32,
    /// Windows of the full width; they come first.
    wide: u32,
    width: u32,
    /// The last windows: the group that has the bucket of the ones.
    collects: bool,
}

impl Group {
    fn narrow(self) -> u32 {
        self.windows - self.wide
    }

    /// Buckets of the windows.
    fn buckets(self) -> u64 {
        u64::from(self.windows + self.wide) << (self.width - 2)
    }

    /// All buckets.
    fn lists(self) -> u64 {
        self.buckets() + u64::from(self.collects)
    }
}

/// The way in which buckets are added up.
enum Way {
    Tree(Tree),
    Slices(Slices),
}

impl Plan {
    /// For chunks of up to `chunk` terms (below 2^30), with the window and the way that suit their number.
    #[must_use]
    pub fn new(curve: Curve, chunk: u64) -> Self {
        let log = 64 - chunk.max(1).leading_zeros();
        let width = match log {
            0..=9 => 7,
            10..=12 => 8,
            13..=15 => 10,
            16..=17 => 11,
            18..=19 => 14,
            20..=21 => 16,
            22..=23 => 18,
            24..=25 => 20,
            _ => 22,
        };
        let tree = match curve {
            Curve::G1 => chunk > 3 << 16,
            Curve::G2 => chunk > 3 << 14,
        };
        Self::with_width(curve, chunk, width).with_tree(tree)
    }

    /// With windows of at most `width` bits (5 to 22; brought into that range), all in one group, added up in slices.
    #[must_use]
    pub fn with_width(curve: Curve, chunk: u64, width: u32) -> Self {
        let group = 256u32.div_ceil(width.clamp(5, 22));
        Self {
            curve,
            chunk: chunk.min((1 << 30) - 1),
            width: 256u32.div_ceil(group),
            group,
            tree: false,
            halves: false,
        }
    }

    /// With the buckets of at most `group` windows added up at a time: less scratch, the scalars read once a group.
    #[must_use]
    pub fn with_group(self, group: u32) -> Self {
        Self { group: group.clamp(1, self.window_count()), ..self }
    }

    /// With buckets added up as a tree, or in slices.
    #[must_use]
    pub fn with_tree(self, tree: bool) -> Self {
        Self { tree, ..self }.with_halving(self.all().buckets() > FEW)
    }

    /// With a tree's buckets reduced to row and column sums first, which leave two results a window, or at once. By itself
    /// a plan does what is faster.
    #[must_use]
    pub fn with_halving(self, halves: bool) -> Self {
        Self { halves: halves && self.tree, ..self }
    }

    /// The fastest variant whose scratch is at most `bytes`: fewer windows at a time, of equal number, then slices, then
    /// narrower windows. Where none is, the smallest that was tried.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        let narrower = (8..self.width).rev().step_by(2).map(|w| Self::with_width(self.curve, self.chunk, w));
        let widths = std::iter::once(self).chain(narrower.map(|plan| plan.with_tree(self.tree)));
        let variants = widths.flat_map(|plan| [plan, plan.with_tree(false)]).flat_map(|plan| {
            let all = plan.window_count();
            (1..=all).map(move |groups| plan.with_group(all.div_ceil(groups)))
        });
        let mut smallest = self;
        for plan in variants.filter(Self::indices_fit) {
            if plan.scratch_bytes() <= bytes {
                return plan;
            }
            if plan.scratch_bytes() < smallest.scratch_bytes() {
                smallest = plan;
            }
        }
        smallest
    }

    /// The curve.
    #[must_use]
    pub const fn curve(&self) -> Curve {
        self.curve
    }

    /// Whether buckets are added up as a tree.
    #[must_use]
    pub const fn is_tree(&self) -> bool {
        self.tree
    }

    /// Whether points of the tree can be told apart in 30 bits.
    fn indices_fit(&self) -> bool {
        !self.tree || tree::points(&self.all(), &self.largest(), self.chunk) < 1 << 30
    }

    fn window_count(&self) -> u32 {
        256u32.div_ceil(self.width)
    }

    /// How many windows have the full width; the others are a bit narrower, so that all add up to 256 bits and no
    /// window is nearly empty.
    fn wide(&self) -> u32 {
        256 - self.window_count() * (self.width - 1)
    }

    /// The windows from the lowest.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        let wide = self.wide();
        let mut offset = 0;
        (0..self.window_count())
            .map(|w| {
                let bits = if w < wide { self.width } else { self.width - 1 };
                let window = Window { offset, bits };
                offset += bits;
                window
            })
            .collect()
    }

    /// Points of the result, in XYZZ coordinates: one or two a window, and the sum of the ones at the end.
    #[must_use]
    pub fn results(&self) -> u64 {
        u64::from(self.window_count()) * if self.halves { 2 } else { 1 } + 1
    }

    fn group(&self, first: u32, count: u32) -> Group {
        let all = self.window_count();
        let windows = count.min(all - first);
        let wide = self.wide().saturating_sub(first).min(windows);
        Group { first, windows, wide, width: self.width, collects: first + windows == all }
    }

    /// All windows.
    fn all(&self) -> Group {
        self.group(0, self.window_count())
    }

    /// The windows whose buckets are added up at a time.
    fn parts(&self) -> impl Iterator<Item = Group> {
        let plan = *self;
        (0..self.window_count()).step_by(self.group as usize).map(move |first| plan.group(first, plan.group))
    }

    /// A group of the most windows and buckets.
    fn largest(&self) -> Group {
        Group { collects: true, ..self.group(0, self.group) }
    }

    fn layout(&self, base: *mut u8) -> (Way, u64) {
        let mut c = Cursor::new(base);
        let way = if self.tree {
            Way::Tree(Tree::new(self, &mut c))
        } else {
            Way::Slices(Slices::new(self, &mut c))
        };
        (way, c.used())
    }

    /// The bytes of scratch, which must be aligned to 32.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.layout(std::ptr::null_mut()).1
    }

    /// Empties the buckets.
    #[must_use]
    pub fn clear(&self, scratch: *mut u8) -> Vec<Launch> {
        let lists = self.all().lists();
        match self.layout(scratch).0 {
            Way::Tree(tree) => tree.clear(lists),
            Way::Slices(slices) => slices.clear(lists),
        }
    }

    /// Adds Σ sᵢ·Pᵢ over one chunk of `n` terms, `n` at most the plan's, to the buckets. Scalars have the given form;
    /// bases are affine, (0, 0) for infinity.
    #[must_use]
    #[allow(clippy::too_many_arguments)]
    pub fn accumulate(
        &self,
        ones: Ones,
        form: Form,
        scalars: *const Fr,
        bases: *const u8,
        n: u64,
        scratch: *mut u8,
    ) -> Vec<Launch> {
        self.chunk((ones, form, scalars, n), bases, scratch, false)
    }

    /// [`Plan::clear`] and [`Plan::accumulate`] in one, which is faster: for the first chunk.
    #[must_use]
    #[allow(clippy::too_many_arguments)]
    pub fn begin(
        &self,
        ones: Ones,
        form: Form,
        scalars: *const Fr,
        bases: *const u8,
        n: u64,
        scratch: *mut u8,
    ) -> Vec<Launch> {
        self.chunk((ones, form, scalars, n), bases, scratch, true)
    }

    fn chunk(
        &self,
        (ones, form, scalars, n): (Ones, Form, *const Fr, u64),
        bases: *const u8,
        scratch: *mut u8,
        begins: bool,
    ) -> Vec<Launch> {
        let n = n.min(self.chunk);
        let way = self.layout(scratch).0;
        let mut launches = Vec::new();
        if let (Way::Slices(slices), true) = (&way, begins) {
            launches = slices.clear(self.all().lists());
        }
        // The first bucket of a part, among all.
        let mut first = 0;
        for group in self.parts() {
            let digits = Digits::new(self, &group, ones, form, scalars, n);
            match &way {
                Way::Tree(tree) => tree.accumulate(&group, first, &digits, bases, begins, &mut launches),
                Way::Slices(slices) => slices.accumulate(&group, first, &digits, bases, &mut launches),
            }
            first += group.buckets();
        }
        launches
    }

    /// Reduces the buckets to the points of the windows and the sum of the ones.
    #[must_use]
    pub fn reduce(&self, scratch: *mut u8, results: *mut u8) -> Vec<Launch> {
        let mut launches = Vec::new();
        match self.layout(scratch).0 {
            Way::Tree(tree) => tree.reduce(&self.all(), results, &mut launches),
            Way::Slices(slices) => slices.reduce(&self.all(), results, &mut launches),
        }
        launches
    }

    /// All of it for one chunk: [`Plan::begin`] and [`Plan::reduce`].
    #[must_use]
    #[allow(clippy::too_many_arguments)]
    pub fn launches(
        &self,
        ones: Ones,
        form: Form,
        scalars: *const Fr,
        bases: *const u8,
        n: u64,
        scratch: *mut u8,
        results: *mut u8,
    ) -> Vec<Launch> {
        let mut launches = self.begin(ones, form, scalars, bases, n, scratch);
        launches.extend(self.reduce(scratch, results));
        launches
    }
}

/// An address `index` elements of `size` bytes further on.
fn at<T>(base: *mut T, index: u64, size: u64) -> *mut T {
    base.wrapping_byte_add(usize::try_from(index * size).unwrap_or(usize::MAX))
}

/// Counts of lists, entries and points stay below 2^31.
fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// `blocks` blocks of `block` threads with `shared_bytes` of shared memory.
fn blocks(kernel: &'static str, blocks: u64, block: u32, shared_bytes: u32, args: Args) -> Launch {
    Launch { kernel, grid: (narrow(blocks.max(1)), 1), block, shared_bytes, args }
}

fn clear(at: *mut u32, words: u64) -> Launch {
    Launch::elementwise("msm_clear", words, 256, Args::new().with(at).with(words))
}

/// Words that [`scan`] needs for the totals of its blocks.
const fn scan_totals(n: u64) -> u64 {
    // Each level has a total a block; beyond the second they are few.
    n.div_ceil(SCAN_BLOCK) + n.div_ceil(SCAN_BLOCK * SCAN_BLOCK) + 64
}

/// The exclusive scan of `n` values in place: blocks, then their totals, then the totals back in.
fn scan(data: *mut u32, totals: *mut u32, n: u64, launches: &mut Vec<Launch>) {
    let blocks = n.div_ceil(SCAN_BLOCK);
    launches.push(Launch {
        kernel: "msm_scan",
        grid: (u32::try_from(blocks).unwrap_or(u32::MAX), 1),
        block: 256,
        shared_bytes: 2048,
        args: Args::new().with(data).with(totals).with(n),
    });
    if blocks > 1 {
        let above = totals.wrapping_add(usize::try_from(blocks).unwrap_or(usize::MAX));
        scan(totals, above, blocks, launches);
        let args = Args::new().with(data).with(totals.cast_const()).with(n);
        launches.push(Launch::elementwise("msm_scan_add", n, 256, args));
    }
}
