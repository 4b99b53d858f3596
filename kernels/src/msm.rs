//! Which launches make a multi-scalar multiplication: the host side of `cuda/msm_sort.cu` and `cuda/msm.cuh`.
//!
//! Σ sᵢ·Pᵢ by Pippenger's method: the scalars' signed digits are sorted into buckets, window by window; buckets are
//! summed in levels of slices, so that every thread has the same work whatever the scalars; running sums reduce the
//! buckets to one point per window. What is left, Σ 2^offset·window, is the caller's: some 256 doublings on the host, by
//! [`Plan::fold`].
//!
//! Nothing here touches a device. A [`Plan`] fixes the windows and says how much scratch they need, and returns
//! launches that are the same on a device and on the host build. Bucket sums persist from one
//! [`Plan::accumulate`] to the next, so bases may arrive in chunks. So may scalars, and those that travel sorted into
//! zeros, ones and others become integers on the device: [`ranks()`] once a batch, [`expand()`] for each chunk.

mod expand;
mod results;

pub use expand::{expand, expand_scratch_bytes, ranks};

use std::ops::Range;

use crate::{Args, Argument, Launch, launch::Cursor, ntt::Fr};

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
}

/// Terms of a slice: what one thread adds in a level.
const SLICE: u32 = 32;
/// Values that a block scans.
const SCAN_BLOCK: u64 = 2048;

/// `MsmDigits` of cuda/msm_sort.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Digits {
    scalars: *const Fr,
    n: u64,
    half: [u32; 8],
    width: u32,
    wide: u32,
    first: u32,
    windows: u32,
    ones: u32,
    integers: u32,
}

// SAFETY: `repr(C)`, the layout of `MsmDigits`.
unsafe impl Argument for Digits {}

/// Scratch, by use.
struct Scratch {
    counts: *mut u32,
    ends: *mut u32,
    starts: [*mut u32; 2],
    totals: *mut u32,
    entries: *mut u32,
    buckets: *mut u8,
    partial: [*mut u8; 2],
    chunks: *mut u8,
}

impl Plan {
    /// For chunks of up to `chunk` terms (below 2^31), with the window that suits their number.
    #[must_use]
    pub fn new(curve: Curve, chunk: u64) -> Self {
        let log = 64 - chunk.max(1).leading_zeros();
        let width = match log {
            0..=9 => 7,
            10..=12 => 8,
            13..=15 => 10,
            16..=17 => 12,
            18..=19 => 14,
            20..=21 => 16,
            22..=23 => 17,
            24..=25 => 19,
            _ => 20,
        };
        Self::with_width(curve, chunk, width)
    }

    /// With windows of `width` bits (5 to 22; brought into that range), all in one group.
    #[must_use]
    pub fn with_width(curve: Curve, chunk: u64, width: u32) -> Self {
        let width = width.clamp(5, 22);
        Self { curve, chunk: chunk.min((1 << 31) - 1), width, group: 256u32.div_ceil(width) }
    }

    /// With at most `group` windows at a time: less scratch, the scalars read once a group.
    #[must_use]
    pub fn with_group(self, group: u32) -> Self {
        Self { group: group.clamp(1, self.window_count()), ..self }
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

    /// The groups of windows, in order.
    #[must_use]
    pub fn groups(&self) -> Vec<Range<u32>> {
        let all = self.window_count();
        (0..all).step_by(self.group as usize).map(|first| first..(first + self.group).min(all)).collect()
    }

    /// Points of the result: one a window and the sum of the ones at the end, in XYZZ coordinates.
    #[must_use]
    pub fn results(&self) -> u64 {
        u64::from(self.window_count()) + 1
    }

    fn buckets_per_window(&self) -> u64 {
        1 << (self.width - 1)
    }

    /// Buckets of the largest group, the one of the ones included.
    fn buckets(&self) -> u64 {
        u64::from(self.group) * self.buckets_per_window() + 1
    }

    /// Buckets that one thread reduces.
    fn reduced_each(&self) -> u64 {
        self.buckets_per_window().min(32)
    }

    fn layout(&self, base: *mut u8) -> (Scratch, u64) {
        let (buckets, point) = (self.buckets(), self.curve.xyzz_bytes());
        let entries = self.chunk * u64::from(self.group);
        // Every bucket has at most one slice that is not full.
        let slices = entries / u64::from(SLICE) + buckets;
        let later = slices / u64::from(SLICE) + buckets;
        let mut c = Cursor::new(base);
        let scratch = Scratch {
            counts: c.take(4 * buckets),
            ends: c.take(4 * (buckets + 1)),
            starts: [c.take(4 * (buckets + 1)), c.take(4 * (buckets + 1))],
            totals: c.take(4 * scan_totals(buckets + 1)),
            entries: c.take(4 * entries),
            buckets: c.take(point * buckets),
            partial: [c.take(point * slices), c.take(point * later)],
            chunks: c
                .take(2 * point * u64::from(self.group) * (self.buckets_per_window() / self.reduced_each())),
        };
        let bytes = c.used();
        (scratch, bytes)
    }

    /// The bytes of scratch, which must be aligned to 32.
    #[must_use]
    pub fn scratch_bytes(&self) -> u64 {
        self.layout(std::ptr::null_mut()).1
    }

    /// Empties the buckets.
    #[must_use]
    pub fn clear(&self, scratch: *mut u8) -> Vec<Launch> {
        let s = self.layout(scratch).0;
        vec![clear(s.buckets.cast(), self.curve.xyzz_bytes() / 4 * self.buckets())]
    }

    /// Adds Σ sᵢ·Pᵢ over one chunk of `n` terms, `n` at most the plan's, to the buckets of a group. Scalars have the
    /// given form; bases are affine, (0, 0) for infinity. Ones are added in the first group.
    #[must_use]
    #[allow(clippy::too_many_arguments)]
    pub fn accumulate(
        &self,
        group: &Range<u32>,
        ones: Ones,
        form: Form,
        scalars: *const Fr,
        bases: *const u8,
        n: u64,
        scratch: *mut u8,
    ) -> Vec<Launch> {
        let n = n.min(self.chunk);
        let s = self.layout(scratch).0;
        let windows = group.end - group.start;
        let buckets = u64::from(windows) * self.buckets_per_window() + 1;
        let mut half = [0u32; 8];
        for w in self.windows() {
            let bit = w.offset + w.bits - 1;
            half[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        let ones = match ones {
            Ones::Digits => 0,
            Ones::Apart => 1,
            Ones::ApartWithMinusOne => 2,
        };
        let digits = Digits {
            scalars,
            n,
            half,
            width: self.width,
            wide: self.wide(),
            first: group.start,
            windows,
            ones,
            integers: u32::from(form == Form::Integers),
        };
        let each = |kernel, args| Launch::elementwise(kernel, n, 256, args);
        let over = |kernel, args| Launch::elementwise(kernel, buckets + 1, 256, args);

        let mut launches = vec![clear(s.counts, buckets)];
        launches.push(each("msm_count", Args::new().with(digits).with(s.counts)));
        let slices = |at: *mut u32, size: u32| {
            over("msm_slices", Args::new().with(at).with(s.counts.cast_const()).with(size).with(buckets))
        };
        launches.push(slices(s.ends, 1));
        scan(s.ends, s.totals, buckets + 1, &mut launches);
        launches.push(each("msm_scatter", Args::new().with(digits).with(s.ends).with(s.entries)));

        let (mut longest, mut terms) = (n, n * u64::from(windows));
        let mut level = 0;
        while longest > 0 {
            let starts = s.starts[level % 2];
            launches.push(slices(starts, SLICE));
            scan(starts, s.totals, buckets + 1, &mut launches);
            let slices = terms / u64::from(SLICE) + buckets;
            let args = Args::new().with(s.buckets).with(s.partial[level % 2]);
            let (kernel, args) = if level == 0 {
                let args = args.with(bases).with(s.entries.cast_const()).with(s.ends.cast_const());
                (self.curve.name("g1_sum_entries", "g2_sum_entries"), args)
            } else {
                let before = (level + 1) % 2;
                let args = args.with(s.partial[before].cast_const()).with(s.starts[before].cast_const());
                (self.curve.name("g1_sum_partials", "g2_sum_partials"), args)
            };
            let args = args.with(s.counts.cast_const()).with(starts.cast_const());
            // A bucket count fits 32 bits: at most 52 windows of 2^21 buckets are less.
            let args = args.with(u32::try_from(buckets).unwrap_or(u32::MAX)).with(SLICE);
            launches.push(Launch::elementwise(kernel, slices, 128, args));
            if longest <= u64::from(SLICE) {
                break;
            }
            launches.push(over("msm_next_counts", Args::new().with(s.counts).with(SLICE).with(buckets)));
            longest = longest.div_ceil(u64::from(SLICE));
            terms = slices;
            level += 1;
        }
        launches
    }

    /// Reduces the buckets of a group to the points of its windows, in their places of `results`; with the first
    /// group, the sum of the ones too.
    #[must_use]
    pub fn reduce(&self, group: &Range<u32>, scratch: *mut u8, results: *mut u8) -> Vec<Launch> {
        let s = self.layout(scratch).0;
        let windows = group.end - group.start;
        let (each, point) = (self.reduced_each(), self.curve.xyzz_bytes());
        let chunks = u32::try_from(self.buckets_per_window() / each).unwrap_or(u32::MAX);
        let each = u32::try_from(each).unwrap_or(u32::MAX);
        let at = |base: *mut u8, index: u64| {
            base.wrapping_byte_add(usize::try_from(index * point).unwrap_or(usize::MAX))
        };
        let fold = |to: *mut u8, from: *mut u8, n: u32, rows: u32| Launch {
            kernel: self.curve.name("g1_fold_rows", "g2_fold_rows"),
            grid: (rows, 1),
            block: 128,
            shared_bytes: 0,
            args: Args::new().with(to).with(from).with(n),
        };
        let args =
            Args::new().with(s.chunks).with(s.buckets.cast_const()).with(each).with(chunks).with(windows);
        let mut launches = vec![
            Launch::elementwise(
                self.curve.name("g1_reduce_chunks", "g2_reduce_chunks"),
                u64::from(chunks) * u64::from(windows),
                128,
                args,
            ),
            fold(at(results, u64::from(group.start)), s.chunks, chunks, windows),
        ];
        if group.start == 0 {
            let ones = at(s.buckets, u64::from(windows) * self.buckets_per_window());
            launches.push(fold(at(results, self.results() - 1), ones, 1, 1));
        }
        launches
    }

    /// All of it for one chunk: [`Plan::clear`], [`Plan::accumulate`] and [`Plan::reduce`], group by group.
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
        self.groups()
            .iter()
            .flat_map(|group| {
                let mut launches = self.clear(scratch);
                launches.extend(self.accumulate(group, ones, form, scalars, bases, n, scratch));
                launches.extend(self.reduce(group, scratch, results));
                launches
            })
            .collect()
    }
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
