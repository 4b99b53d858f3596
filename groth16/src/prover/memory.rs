//! What the stages of a device say of their memory, in the planner's terms.

use blstrs::{G1Affine, G2Affine};
use prestage_msm::{Batches, Msm, Place};
use prestage_ntt::{Domain, Ntt};
use prestage_vram::Bytes;

use super::stages::transforms;
use crate::Error;
use crate::plan::{Footprints, Policy, Sum};

/// The footprints of a device's own stages for proofs over one domain. It asks, and touches no memory: plans for
/// shapes of any size can be made with it, no key needed.
///
/// ```
/// use prestage_groth16::{Counts, DeviceFootprints, Libsnark, Plan, Policy, Reduction, Shape};
/// use prestage_ntt::Domain;
/// use prestage_vram::{Bytes, Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let shape = Shape::new::<Libsnark>(&Counts::POREP_32G)?;
/// let domain = Domain::new(1 << 27, Libsnark::GENERATOR)?;
/// let footprints = DeviceFootprints::new(&host, &domain);
/// let plan = Plan::new(&shape, &footprints, Policy::Auto, Bytes::gib(12), Bytes::mib(512))?;
/// assert_eq!(plan.policy(), Policy::AThenBc);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeviceFootprints<'p, D> {
    device: &'p D,
    domain: &'p Domain,
}

impl<'p, D: Ntt + Msm> DeviceFootprints<'p, D> {
    /// The stages of `device` over `domain`.
    #[must_use]
    pub const fn new(device: &'p D, domain: &'p Domain) -> Self {
        Self { device, domain }
    }
}

impl<D: Ntt + Msm> Footprints for DeviceFootprints<'_, D> {
    fn tables(&self, policy: Policy) -> Result<Bytes, Error> {
        // The reduction's coset is another, whose tables are as large.
        let plan = transforms(self.domain, policy)?.on_coset(self.domain.generator().into());
        Ok(plan.footprint(self.device).tables)
    }

    fn scratch(&self, sum: Sum, len: usize, batch: usize) -> Bytes {
        self.footprint(sum, &Batches::new(self.device, len, batch))
    }

    fn scratch_beside_points(&self, sum: Sum, len: usize, batch: usize) -> Bytes {
        self.footprint(sum, &Batches::new(self.device, len, batch).resident())
    }

    fn streams(&self) -> bool {
        self.device.streams()
    }

    fn scale(&self) -> u64 {
        self.device.scale()
    }
}

impl<D: Ntt + Msm> DeviceFootprints<'_, D> {
    fn footprint(&self, sum: Sum, batches: &Batches) -> Bytes {
        match sum {
            // The quotient is on the device already.
            Sum::H => batches.footprint::<G1Affine, D>(self.device, Place::Device),
            Sum::L | Sum::A | Sum::B1 => batches.footprint::<G1Affine, D>(self.device, Place::Host),
            Sum::B2 => batches.footprint::<G2Affine, D>(self.device, Place::Host),
        }
    }
}
