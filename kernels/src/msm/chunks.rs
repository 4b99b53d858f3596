//! How a long sum is cut into chunks.

use std::ops::Range;

use super::{Curve, Plan};

/// Where the terms of a sum are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// All on the device when the sum begins.
    There,
    /// Their bases come up a link, chunk by chunk, into two slots.
    Streamed,
}

/// Chunks are not made smaller than this for less scratch.
const LEAST: u64 = 1 << 18;
/// The first chunk where bases are streamed, so that kernels soon have something to do. The next ones have four times as many
/// terms each, up to the plan's, and so take the link about as long as the one before takes the kernels.
const FIRST: u64 = 1 << 19;
/// What a chunk's pass over some of the windows costs beside its additions, by its ten levels of pairs, as additions in G1:
/// 2^24 terms at one window a time take 13.8 ms more than all windows at once do, in 12 more passes, on a card that makes 5 G
/// additions a second (`docs/results/2026-11-30-msm-h200.md`).
const PASS: u64 = 5_700_000;
/// What the link takes for a base, in additions, on the same card: 1.7 ns in G1. The kernels wait for the first chunk.
const LINK: u64 = 9;

impl Plan {
    /// For a sum of `n` terms whose scratch is at most `bytes`, as are the two slots of streamed bases: the chunk, and of its
    /// windows as many at a time, that cost least. Larger chunks have wider windows, and fewer of them; more windows at a time
    /// have fewer passes; both want scratch. Each base is taken up once. Where nothing fits, the smallest that was tried.
    #[must_use]
    pub fn chunked(curve: Curve, n: u64, terms: Terms, bytes: u64) -> Self {
        let all = n.clamp(1, (1 << 30) - 1);
        let powers = (LEAST.ilog2()..30).map(|log| 1u64 << log).take_while(|chunk| *chunk < all);
        let fits = |chunk: u64| {
            let slots = if terms == Terms::Streamed { 2 * chunk * curve.affine_bytes() } else { 0 };
            let plan = Self::new(curve, chunk);
            let groups = (1..=plan.window_count()).map(move |groups| plan.window_count().div_ceil(groups));
            let mut plans = groups.map(|group| plan.with_group(group)).filter(Self::indices_fit);
            plans.find(|plan| slots <= bytes && plan.scratch_bytes() <= bytes)
        };
        let plans = powers.chain([all]).filter_map(fits);
        plans
            .min_by_key(|plan| plan.cost(n, terms))
            .unwrap_or_else(|| Self::new(curve, all.min(LEAST)).within(bytes))
    }

    /// Terms of a chunk, at most.
    #[must_use]
    pub const fn chunk_terms(&self) -> u64 {
        self.chunk
    }

    /// The chunks of a sum of `n` terms, in order.
    pub fn chunks(&self, n: u64, terms: Terms) -> impl Iterator<Item = Range<u64>> {
        let most = self.chunk.max(1);
        let mut size = if terms == Terms::Streamed && n > most { FIRST.min(most) } else { most };
        let mut start = 0;
        // A sum of nothing has one chunk, which empties the buckets.
        let mut any = true;
        std::iter::from_fn(move || {
            let chunk = start..n.min(start + size);
            (any || start < n).then(|| {
                any = false;
                start = chunk.end;
                size = most.min(4 * size);
                chunk
            })
        })
    }

    /// What a sum of `n` terms takes, in additions of the tree, as far as it depends on the plan.
    fn cost(&self, n: u64, terms: Terms) -> u64 {
        let passes = u64::from(self.window_count().div_ceil(self.group));
        let chunks = self.chunks(n, terms).count() as u64;
        let first = self.chunks(n, terms).next().map_or(0, |chunk| chunk.end);
        let waits = if terms == Terms::Streamed { LINK * first } else { 0 };
        n * u64::from(self.window_count()) + chunks * (self.all().buckets() + passes * PASS) + waits
    }
}
