//! Digits and their sort into buckets: the host side of `cuda/msm_sort.cu`.

use super::{Form, Group, Ones, Plan, blocks, clear, narrow};
use crate::{Args, Argument, Launch, launch::Cursor, ntt::Fr};

/// `MsmDigits` of cuda/msm_sort.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Digits {
    scalars: *const Fr,
    pub(super) n: u64,
    half: [u32; 8],
    width: u32,
    wide: u32,
    first: u32,
    windows: u32,
    ones: u32,
    collects: u32,
    integers: u32,
    fine: u32,
}

// SAFETY: `repr(C)`, the layout of `MsmDigits`.
unsafe impl Argument for Digits {}

impl Digits {
    pub(super) fn new(
        plan: &Plan,
        group: &Group,
        ones: Ones,
        form: Form,
        scalars: *const Fr,
        n: u64,
    ) -> Self {
        let mut half = [0u32; 8];
        for w in plan.windows() {
            let bit = w.offset + w.bits - 1;
            half[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        Self {
            scalars,
            n,
            half,
            width: group.width,
            wide: plan.wide(),
            first: group.first,
            windows: group.windows,
            ones: match ones {
                Ones::Digits => 0,
                Ones::Apart => 1,
                Ones::ApartWithMinusOne => 2,
            },
            collects: u32::from(group.collects),
            integers: u32::from(form == Form::Integers),
            fine: fine(group, plan.chunk),
        }
    }

    /// Entries, at most.
    pub(super) fn entries(&self) -> u64 {
        self.n * u64::from(self.windows)
    }
}

/// `MsmBins` of cuda/msm_sort.cu.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Bins {
    spread: *const u64,
    ends: *const u32,
    entries: *mut u32,
    starts: *mut u32,
    counts: *mut u32,
    crowded: *mut u32,
    cursors: *mut u32,
    fine: u32,
    n: u32,
    slots: u32,
    most: u32,
}

// SAFETY: `repr(C)`, the layout of `MsmBins`.
unsafe impl Argument for Bins {}

/// Bins of a group, at most: their counters are a block's shared memory.
const BINS: u64 = 20_480;
/// Blocks that sort crowded bins.
const CROWDED: u64 = 528;
/// The shared memory that a block may have on every card.
const SHARED: u64 = 48 << 10;

/// The logarithm of a bin's buckets: bins of 2^12 entries up to 2^20 terms, then twice as many bins of twice as many
/// entries for four times as many terms up to 2^24, as long as counters fit shared memory.
fn fine(group: &Group, chunk: u64) -> u32 {
    let log = chunk.max(1).ilog2();
    let bins = if log <= 20 { log.saturating_sub(12) } else { ((log - 4) / 2).min(10) };
    let least = (group.width - 1).saturating_sub(bins);
    (least..).find(|fine| bins_of(group, *fine) <= BINS).unwrap_or(least).min(group.width - 2)
}

/// The bins of a group, the last one that of the ones.
fn bins_of(group: &Group, fine: u32) -> u64 {
    (group.buckets() >> fine) + 1
}

/// The memory of a sort.
pub(super) struct Sort {
    keys: *mut u32,
    spread: *mut u64,
    /// Entries of each bin, then where it begins, then where it ends.
    bins: *mut u32,
    /// Numbers of crowded bins, after how many they are.
    crowded: *mut u32,
    cursors: *mut u32,
}

impl Sort {
    /// For up to `chunk` terms of a group.
    pub(super) fn new(group: &Group, chunk: u64, c: &mut Cursor) -> Self {
        let entries = chunk * u64::from(group.windows);
        Self {
            keys: c.take(4 * entries),
            spread: c.take(8 * entries),
            bins: c.take(4 * (BINS + 1)),
            crowded: c.take(4 * (BINS + 2)),
            cursors: c.take(4 * group.lists()),
        }
    }

    /// The entries of each bucket: how many, where they begin, and all of them.
    pub(super) fn launches(
        &self,
        group: &Group,
        digits: &Digits,
        [counts, starts, entries]: [*mut u32; 3],
        launches: &mut Vec<Launch>,
    ) {
        let (n, fine) = (digits.n, digits.fine);
        let bins = bins_of(group, fine);
        let bytes = |words: u64| 4 * narrow(words);
        launches.push(clear(self.bins, bins));
        launches.push(clear(self.crowded, 1));
        let each = (n / (256 * 528)).clamp(1, 16);
        let args = Args::new().with(*digits).with(self.keys).with(self.bins).with(narrow(each));
        launches.push(blocks("msm_digits", n.div_ceil(256 * each), 256, bytes(bins.div_ceil(2)), args));
        launches.push(blocks("msm_bins", 1, 1024, 8192, Args::new().with(self.bins).with(bins)));
        let args = Args::new().with(*digits).with(self.keys.cast_const()).with(self.bins).with(self.spread);
        let own = (1 << (group.width - 1 - fine)) + 1;
        let mut spread = blocks("msm_spread", n.div_ceil(4096), 256, bytes(2 * (4096 + 256 + own)), args);
        spread.grid.1 = group.windows;
        launches.push(spread);
        // With random scalars, a bin of a narrow window has so many.
        let usual = n >> (group.width - 2 - fine);
        let threads: u32 = if usual > 8192 { 512 } else { 256 };
        let own = (1 << fine) + 2 * u64::from(threads);
        let slots = (SHARED / 4 - own).min((2 * usual).next_multiple_of(64).max(64));
        let most = 4 * usual + 4096;
        let args = Args::new().with(Bins {
            spread: self.spread,
            ends: self.bins,
            entries,
            starts,
            counts,
            crowded: self.crowded,
            cursors: self.cursors,
            fine,
            n: narrow(group.lists()),
            slots: narrow(slots),
            most: narrow(most),
        });
        launches.push(blocks("msm_sort_bin", bins, threads, bytes(own + slots), args.clone()));
        if n > most {
            for kernel in ["msm_crowd_count", "msm_crowd_starts", "msm_crowd_place"] {
                launches.push(blocks(kernel, CROWDED, 512, bytes((1 << fine) + 1024), args.clone()));
            }
        }
    }
}
