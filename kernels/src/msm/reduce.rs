//! Weighted sums over few points: the host side of `cuda/msm_quads.cuh`.

use super::{Curve, Group, blocks, narrow};
use crate::{Args, Argument, Launch};

/// `WeighPart` of cuda/msm_quads.cuh: sums of 2^log points each from point `first` on, their results from `out` on.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Part {
    pub(super) first: u32,
    pub(super) log: u32,
    pub(super) sums: u32,
    pub(super) out: u32,
}

/// `Weigh` of cuda/msm_quads.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Weigh {
    part: [Part; 4],
    from_one: u32,
    log_each: u32,
    quads: u32,
}

// SAFETY: `repr(C)`, the layout of `Weigh`.
unsafe impl Argument for Weigh {}

impl Weigh {
    /// The first `from_one` parts have weights from one, the others from zero.
    pub(super) fn new(curve: Curve, part: [Part; 4], from_one: u32) -> Self {
        let points: u64 = part.iter().map(|p| u64::from(p.sums) << p.log).sum();
        // Few points to a quad are the least latency while all quads are on the chip at once.
        let log_each = (2..6).find(|log| points >> log <= 1 << 14).unwrap_or(6);
        // Four tiles of their coordinates are at most 24 KiB; short sums need fewer.
        let most = match curve {
            Curve::G1 => 32,
            Curve::G2 => 16,
        };
        let longest = part.iter().filter(|p| p.sums > 0).map(|p| p.log).max().unwrap_or(0);
        let quads = most.min(1 << longest.saturating_sub(log_each));
        Self { part, from_one, log_each, quads }
    }

    /// Blocks, each of which leaves a point.
    pub(super) fn blocks(&self) -> u64 {
        let each = u64::from(self.quads) << self.log_each;
        self.part.iter().map(|p| u64::from(p.sums) * ((1 << p.log) / each).max(1)).sum()
    }

    /// The sums of `points` to their places in `results`; `shares` has room for a point a block.
    pub(super) fn launches(
        &self,
        curve: Curve,
        points: Points,
        shares: *mut u8,
        results: *mut u8,
        launches: &mut Vec<Launch>,
    ) {
        let (x, y) = match points {
            Points::Tree(x, y) => (x, y),
            Points::Buckets(buckets) => (buckets, std::ptr::null_mut()),
        };
        let args = Args::new().with(shares).with(x.cast_const()).with(y.cast_const()).with(*self);
        let kernel = curve.name("g1_weigh", "g2_weigh");
        let threads = 4 * self.quads;
        let shared = narrow(u64::from(threads) * (curve.xyzz_bytes() + 4));
        launches.push(blocks(kernel, self.blocks(), threads, shared, args));
        let sums = self.part.iter().map(|p| u64::from(p.sums)).sum();
        let args = Args::new().with(results).with(shares).with(*self);
        launches.push(blocks(curve.name("g1_weigh_fold", "g2_weigh_fold"), sums, 32, 0, args));
    }
}

/// Where the points of weighted sums are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Points {
    /// Affine, x and y apart.
    Tree(*mut u8, *mut u8),
    /// In XYZZ coordinates.
    Buckets(*mut u8),
}

/// Σ (b + 1)·bucket over each window, and the bucket of the ones; the first bucket is point `first`.
pub(super) fn buckets(curve: Curve, all: &Group, first: u32) -> Weigh {
    let wide = Part { first, log: all.width - 1, sums: all.wide, out: 0 };
    let after = first + (all.wide << wide.log);
    let narrower = Part { first: after, log: all.width - 2, sums: all.narrow(), out: all.wide };
    let ones = Part { first: first + narrow(all.buckets()), log: 0, sums: 1, out: all.windows };
    Weigh::new(curve, [wide, narrower, ones, Part::default()], 3)
}
