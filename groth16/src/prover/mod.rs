//! The prover: a key made ready for one device, and the stages of a proof on it.

mod assemble;
mod assignment;
mod memory;
mod seam;
mod stages;
mod values;

use std::fmt;

use blstrs::{G1Affine, G2Affine};
use prestage_msm::{Msm, Points, Slots};
use prestage_ntt::{Domain, Ntt};
use prestage_vram::{Bytes, Device, Turn, Worker, host_work};

use crate::Error;
use crate::key::{ProvingKey, Quotient, Reduction};
use crate::plan::{Plan, Policy};
use crate::proof::Proof;
use crate::random::Blinding;
use crate::sizes::Shape;
use crate::verify::PreparedKey;

pub use assemble::Parts;
pub use assignment::Assignment;
pub use memory::DeviceFootprints;
pub use seam::{Provided, prove_provided};
pub use stages::{Committed, H, Staged, commit_h, quotient, stage, tail};

/// A key made ready for one device: its domain with the twiddle tables, its points, pinned places for results, and
/// its verifier. Make one per key and device and keep it; any number of workers may prove with it at once.
pub struct Prover<'d, D: Device, R: Reduction> {
    device: &'d D,
    key: ProvingKey<R>,
    domain: Domain,
    form: Quotient,
    shape: Shape,
    points: KeyPoints,
    g1: Slots<G1Affine>,
    g2: Slots<G2Affine>,
    verifier: PreparedKey,
}

struct KeyPoints {
    h: Points<G1Affine>,
    l: Points<G1Affine>,
    a: Points<G1Affine>,
    b1: Points<G1Affine>,
    b2: Points<G2Affine>,
}

/// How to prove.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// How a, b and c come to the device.
    pub policy: Policy,
    /// The blinding scalars. Fresh ones from the operating system unless set; set them in tests only.
    pub blinding: Option<Blinding>,
    /// Hands the proof out without verifying it first.
    pub unverified: bool,
}

impl Options {
    /// With this policy.
    #[must_use]
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// With known blinding scalars. **For tests: such a proof may reveal its witness.**
    #[must_use]
    pub const fn insecure_blinding(mut self, blinding: Blinding) -> Self {
        self.blinding = Some(blinding);
        self
    }

    /// Without verifying the proof before it is handed out.
    #[must_use]
    pub const fn unverified(mut self) -> Self {
        self.unverified = true;
        self
    }
}

/// A proof and how it came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proved {
    /// The proof.
    pub proof: Proof,
    /// What was planned.
    pub plan: Plan,
    /// The highest number of bytes held in each phase, as the ledger measured it.
    pub peaks: Vec<(&'static str, Bytes)>,
}

impl<'d, D: Ntt + Msm, R: Reduction> Prover<'d, D, R> {
    /// Makes `key` ready for `device`.
    ///
    /// # Errors
    /// [`Error::Ntt`] for a domain that cannot be, [`Error::Msm`] when no place for results can be pinned.
    pub fn new(device: &'d D, key: ProvingKey<R>) -> Result<Self, Error> {
        let size = key.domain_size();
        let size = usize::try_from(size).map_err(|_| Error::TooLarge { size })?;
        let domain = Domain::new(size, R::GENERATOR)?;
        Ok(Self {
            form: R::quotient(&domain)?,
            shape: Shape::of_key(&key),
            points: KeyPoints {
                h: key.h().clone().into(),
                l: key.l().points().clone().into(),
                a: key.a().points().clone().into(),
                b1: key.b_g1().points().clone().into(),
                b2: key.b_g2().points().clone().into(),
            },
            // Of H, L, A and B at once, and one more for a sum in batches.
            g1: Slots::open(device, 5)?,
            g2: Slots::open(device, 2)?,
            // Whether others should trust the key is not for its prover to say.
            verifier: PreparedKey::new_insecure(key.vk())?,
            device,
            key,
            domain,
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'d D {
        self.device
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &ProvingKey<R> {
        &self.key
    }

    /// The evaluation domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The counts that decide what a proof costs.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The plan of a proof in this turn: the largest of `policy` that fits the budget beside resident memory. Under
    /// [`Policy::Auto`] an assignment of which nothing could be pinned is proved unstaged.
    ///
    /// # Errors
    /// [`Error::PlanRefused`]; [`Error::Chunks`].
    pub fn plan(&self, turn: &Turn<'_, D>, assignment: &Assignment, policy: Policy) -> Result<Plan, Error> {
        let ledger = turn.device().ledger();
        let level = ledger.level();
        let budget = level.budget.saturating_sub(level.resident);
        let footprints = DeviceFootprints::new(self.device, &self.domain);
        if policy == Policy::Auto && !assignment.is_pinned() {
            let plan = Plan::new(&self.shape, &footprints, Policy::None, budget, ledger.margin());
            match plan {
                Ok(plan) => return Ok(plan.because("no host memory could be pinned")),
                // Less memory than that: pieces go through the host anyway.
                Err(Error::PlanRefused { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Plan::new(&self.shape, &footprints, policy, budget, ledger.margin())
    }

    /// Proves: waits for the turn, plans, runs the stages, gives the turn back, and assembles and verifies the proof.
    ///
    /// # Errors
    /// [`Error::PlanRefused`] when no plan fits, [`Error::NotVerified`] when the witness does not satisfy the
    /// circuit, and what the device says. Nothing is left on the device.
    pub fn prove(
        &self,
        worker: &mut Worker,
        assignment: &Assignment,
        options: &Options,
    ) -> Result<Proved, Error> {
        let blinding = options.blinding.map_or_else(Blinding::random, Ok)?;
        let turn = self.device.turn(worker)?;
        let plan = self.plan(&turn, assignment, options.policy)?;
        let staged = stage(&turn, self, assignment, plan.clone())?;
        let h = quotient(staged)?;
        let committed = commit_h(h)?;
        let parts = tail(committed, assignment)?;
        let peaks = turn.peaks();
        turn.release()?;
        let proof = host_work(self.device, worker.id(), "assemble, verify", || {
            if options.unverified {
                Ok(parts.finish_unverified(&self.key, &blinding))
            } else {
                parts.finish(&self.key, &self.verifier, &blinding)
            }
        })?;
        Ok(Proved { proof, plan, peaks })
    }

    /// The verifier of the key, whatever its points are.
    #[must_use]
    pub fn verifier(&self) -> &PreparedKey {
        &self.verifier
    }
}

impl<D: Device, R: Reduction> fmt::Debug for Prover<'_, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("device", &self.device.name())
            .field("reduction", &R::NAME)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}
