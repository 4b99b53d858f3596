//! From a plan's results to one point.

use super::Plan;
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

    /// Σ 2^offset·window + the sum of the ones, of points in the order of the results: one a window from the lowest,
    /// then that of the ones. Points that are missing count as `zero`.
    pub fn fold<P: Copy>(
        &self,
        results: &[P],
        zero: P,
        double: impl Fn(P) -> P,
        add: impl Fn(P, P) -> P,
    ) -> P {
        let windows = self.windows();
        let (points, ones) = results.split_at(windows.len().min(results.len()));
        let sum =
            windows.iter().zip(points).rev().fold(zero, |sum, (window, &point)| {
                add((0..window.bits).fold(sum, |sum, _| double(sum)), point)
            });
        ones.first().map_or(sum, |&ones| add(sum, ones))
    }
}
