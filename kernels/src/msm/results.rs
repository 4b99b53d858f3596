//! From a plan's results to one point.

use super::{Plan, tree::Grid};
use crate::{Args, Launch};

impl Plan {
    /// The results, [`Plan::results`] points in XYZZ coordinates, to as many Jacobian points of
    /// [`Curve::jacobian_bytes`](super::Curve::jacobian_bytes) at `out`, laid out as in blst: x, y, z, canonical, in
    /// Montgomery form; z = 0 for infinity. `out` is aligned to 16 bytes.
    #[must_use]
    pub fn to_jacobian(&self, results: *const u8, out: *mut u8) -> Launch {
        let args = Args::new().with(out).with(results).with(self.results());
        Launch::elementwise(self.curve.name("g1_to_jacobian", "g2_to_jacobian"), self.results(), 32, args)
    }

    /// How many doublings each result but that of the ones is away from the sum.
    fn offsets(&self) -> Vec<u32> {
        let windows = self.windows();
        let mut offsets: Vec<u32> = windows.iter().map(|w| w.offset).collect();
        if self.halves {
            let low = Grid::new(&self.all()).low;
            offsets.extend(windows.iter().map(|w| w.offset + low));
        }
        offsets
    }

    /// Σ 2^offset·point + the sum of the ones, of points in the order of the results. Points that are missing count as
    /// `zero`.
    pub fn fold<P: Copy>(
        &self,
        results: &[P],
        zero: P,
        double: impl Fn(P) -> P,
        add: impl Fn(P, P) -> P,
    ) -> P {
        let offsets = self.offsets();
        let (points, ones) = results.split_at(offsets.len().min(results.len()));
        let mut terms: Vec<(u32, P)> = offsets.into_iter().zip(points.iter().copied()).collect();
        terms.sort_by_key(|(offset, _)| std::cmp::Reverse(*offset));
        let doubled = |sum, times| (0..times).fold(sum, |sum, _| double(sum));
        let mut above = terms.first().map_or(0, |(offset, _)| *offset);
        let mut sum = zero;
        for (offset, point) in terms {
            sum = add(doubled(sum, above - offset), point);
            above = offset;
        }
        let sum = doubled(sum, above);
        ones.first().map_or(sum, |&ones| add(sum, ones))
    }
}
