//! The plan of one device among several that make a proof together.

use blstrs::Scalar;
use prestage_vram::Bytes;

use super::{Footprints, Phase, Plan, Sum};
use crate::Error;
use crate::sizes::Shape;

/// Pieces of a sum for each device: enough that none waits long for who has the last, few enough that each is worth its buckets.
const PIECES: usize = 4;

impl Sum {
    /// The order in which devices take up the sums that they share: the longest first, so that the last pieces are short; H when its
    /// scalars are there.
    pub(crate) const SHARED: [Self; 5] = [Self::B2, Self::L, Self::A, Self::B1, Self::H];
}

impl Plan {
    /// This plan where `devices` devices share the sums, in pieces of no less than `least` terms of the full size. Scalars of H
    /// come from host memory, those of two pieces at a time, which is less than the quotient that the whole plan holds: what fits
    /// whole fits shared. Without the quotient unless the device `leads`.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub(crate) fn share(
        self,
        shape: &Shape,
        footprints: &impl Footprints,
        devices: usize,
        least: usize,
        leads: bool,
    ) -> Result<Self, Error> {
        let scale = footprints.scale().max(1);
        let least = usize::try_from((least as u64).div_ceil(scale)).unwrap_or(least);
        let mut phases: Vec<_> = match leads {
            true => self.phases.iter().take(2).copied().collect(),
            false => Vec::new(),
        };
        let mut batches = self.batches;
        for sum in Sum::SHARED {
            let len = sum.len(shape)?;
            let wanted = len.div_ceil(devices.max(1).saturating_mul(PIECES)).max(least);
            let piece = wanted.min(self.batch(sum));
            let scratch = match self.keeps(sum) {
                true => footprints.scratch_beside_points(sum, piece, piece),
                false => footprints.scratch(sum, piece, piece),
            };
            let scalars = if sum == Sum::H { (2 * piece).min(len) as u64 } else { 0 };
            batches[sum as usize] = piece;
            phases.push(Phase { name: sum.name(), peak: scratch + Bytes::of::<Scalar>(1) * scale * scalars });
        }
        let reason = format!("{}; sums shared by {devices} devices", self.reason);
        Ok(Self { phases, batches, reason, ..self })
    }
}
