//! What the stages of a device say of their memory, in the planner's terms.

use blstrs::{G1Affine, G2Affine};
use prestage_msm::{Batches, Msm, Place};
use prestage_ntt::{Domain, Ntt};
use prestage_vram::Bytes;

use super::stages::transforms;
use crate::Error;
use crate::plan::{Footprints, Policy, Sum};

/// The stages of `device` for keys over `domain`.
pub(super) struct DeviceFootprints<'p, D> {
    pub(super) device: &'p D,
    pub(super) domain: &'p Domain,
}

impl<D: Ntt + Msm> Footprints for DeviceFootprints<'_, D> {
    fn tables(&self, policy: Policy) -> Result<Bytes, Error> {
        Ok(transforms(self.domain, policy)?.footprint(self.device).tables)
    }

    fn scratch(&self, sum: Sum, len: usize, batch: usize) -> Bytes {
        let batches = Batches::new(self.device, len, batch);
        match sum {
            // The quotient is on the device already.
            Sum::H => batches.footprint::<G1Affine, D>(self.device, Place::Device),
            Sum::L | Sum::A | Sum::B1 => batches.footprint::<G1Affine, D>(self.device, Place::Host),
            Sum::B2 => batches.footprint::<G2Affine, D>(self.device, Place::Host),
        }
    }
}
