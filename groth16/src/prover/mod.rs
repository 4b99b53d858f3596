//! The prover: a key made ready for one device, and the stages of a proof on it.

mod assemble;
mod assignment;
mod joint;
mod memory;
mod resident;
mod seam;
mod stages;
mod values;

use std::fmt;

use blstrs::{G1Affine, G2Affine, Scalar};
use prestage_msm::{Affine, Msm, PointRings, Points, Slots, point_rings};
use prestage_ntt::{Domain, Ntt};
use prestage_transfer::{PinnedPool, Rings};
use prestage_vram::{Bytes, Device, Event, Ledger, Span, Track, Turn, Worker, WorkerId, host_work};

use crate::Error;
use crate::key::{ProvingKey, Quotient, Reduction};
use crate::plan::{Plan, Policy, Residency};
use crate::proof::Proof;
use crate::random::Blinding;
use crate::sizes::Shape;
use crate::verify::PreparedKey;
use resident::{On, Store};
use values::{Scratch, Values, polynomial_rings};

pub use assemble::Parts;
pub use assignment::Assignment;
pub use joint::{JointProof, Share};
pub use memory::DeviceFootprints;
pub use seam::{Provided, prove_provided};
pub use stages::{Committed, H, Staged, commit_h, quotient, stage, tail};

/// A key made ready for one device: its domain with the twiddle tables, its points, pinned places for results, and
/// its verifier. Make one per key and device and keep it; any number of workers may prove with it at once.
///
/// Page-locked memory of its assignments is kept from one to the next, in a [`PinnedPool`]: no more of it than was in use at
/// once, until the prover is dropped.
pub struct Prover<'d, D: Device, R: Reduction> {
    device: &'d D,
    key: ProvingKey<R>,
    domain: Domain,
    form: Quotient,
    shape: Shape,
    points: KeyPoints,
    proofs: Proofs,
    residency: Residency,
    resident: Box<dyn Store<D> + 'd>,
    g1: Slots<G1Affine>,
    g2: Slots<G2Affine>,
    rings: Rings<Scalar>,
    /// Page-locked memory of assignments and of copies, kept from proof to proof.
    memory: PinnedPool,
    verifier: PreparedKey,
}

#[derive(Clone)]
struct KeyPoints {
    h: Points<G1Affine>,
    l: Points<G1Affine>,
    a: Points<G1Affine>,
    b1: Points<G1Affine>,
    b2: Points<G2Affine>,
}

impl KeyPoints {
    fn of<R: Reduction>(key: &ProvingKey<R>) -> Self {
        Self {
            h: key.h().clone().into(),
            l: key.l().points().clone().into(),
            a: key.a().points().clone().into(),
            b1: key.b_g1().points().clone().into(),
            b2: key.b_g2().points().clone().into(),
        }
    }

    /// Page-locked, where that can be had.
    fn held<D: Msm>(self, device: &D) -> Result<Self, Error> {
        Ok(Self {
            h: device.hold(self.h)?,
            l: device.hold(self.l)?,
            a: device.hold(self.a)?,
            b1: device.hold(self.b1)?,
            b2: device.hold(self.b2)?,
        })
    }

    /// Through a ring, where they are not page-locked.
    fn ringed<D: Msm>(self, device: &D) -> Result<Self, Error> {
        fn unlocked<A: Affine>(points: &Points<A>) -> Bytes {
            if points.is_locked() { Bytes::ZERO } else { Bytes::of::<A>(points.len()) }
        }
        let in_g1 = [&self.h, &self.l, &self.a, &self.b1].map(unlocked);
        let longest = in_g1.into_iter().fold(unlocked(&self.b2), Bytes::max);
        if longest == Bytes::ZERO || !device.streams() {
            return Ok(self);
        }
        let rings = point_rings(device, longest)?;
        Ok(Self {
            h: self.h.through(&rings),
            l: self.l.through(&rings),
            a: self.a.through(&rings),
            b1: self.b1.through(&rings),
            b2: self.b2.through(&rings),
        })
    }
}

/// How many proofs a prover is for: what decides how the key's points in host memory come to a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proofs {
    /// One. Points go through a ring that the proving thread fills, where at least [`Rings::THREADS`] threads of the current
    /// `rayon` pool help it; they are page-locked where fewer do.
    One,
    /// Many. Points are page-locked once, which takes longer than one proof gains and leaves the threads to others.
    #[default]
    Many,
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

/// A proof whose device work is done. The turn has been given back.
#[derive(Clone, Debug)]
#[must_use = "what is left is host work: `finish`"]
pub struct Computed {
    parts: Parts,
    blinding: Blinding,
    unverified: bool,
    plan: Plan,
    peaks: Vec<(&'static str, Bytes)>,
}

impl Computed {
    /// Assembles the proof and, unless the options said otherwise, verifies it.
    ///
    /// # Errors
    /// [`Error::NotVerified`]: the proof is not handed out.
    pub fn finish<D: Device, R: Reduction>(self, prover: &Prover<'_, D, R>) -> Result<Proved, Error> {
        let Self { parts, blinding, unverified, plan, peaks } = self;
        let proof = if unverified {
            parts.finish_unverified(&prover.key, &blinding)
        } else {
            parts.finish(&prover.key, &prover.verifier, &blinding)?
        };
        Ok(Proved { proof, plan, peaks })
    }
}

impl<'d, D: Ntt + Msm, R: Reduction> Prover<'d, D, R> {
    /// Makes `key` ready for many proofs on `device`.
    ///
    /// # Errors
    /// [`Error::Ntt`] for a domain that cannot be, [`Error::Msm`] when no place for results can be pinned.
    pub fn new(device: &'d D, key: ProvingKey<R>) -> Result<Self, Error> {
        Self::for_proofs(device, key, Proofs::Many)
    }

    /// Makes `key` ready for one proof or for many. For one, no points stay on the device ([`Residency::None`]): that gains
    /// nothing.
    ///
    /// # Errors
    /// As [`Prover::new`].
    pub fn for_proofs(device: &'d D, key: ProvingKey<R>, proofs: Proofs) -> Result<Self, Error> {
        let points = KeyPoints::of(&key);
        let residency = match proofs {
            Proofs::One => Residency::None,
            Proofs::Many => Residency::default(),
        };
        Ok(Self::with(device, key, points, proofs)?.keeping(residency))
    }

    /// Makes the same key ready for another device, which was opened beside this one's
    /// ([`prestage_vram::LedgerConfig::beside`]): they share the key's points in host memory, page-locked once.
    ///
    /// # Errors
    /// As [`Prover::new`].
    pub fn beside<'e>(&self, device: &'e D) -> Result<Prover<'e, D, R>, Error> {
        let prover = Prover::with(device, self.key.clone(), self.points.clone(), self.proofs)?;
        Ok(prover.keeping(self.residency))
    }

    fn with(device: &'d D, key: ProvingKey<R>, points: KeyPoints, proofs: Proofs) -> Result<Self, Error> {
        let size = key.domain_size();
        let size = usize::try_from(size).map_err(|_| Error::TooLarge { size })?;
        let domain = Domain::new(size, R::GENERATOR)?;
        Ntt::prepare(device)?;
        Msm::prepare(device)?;
        // What proofs need of page-locked memory comes before what they gain by more of it. Of H, L, A and B at once, and one more
        // for a sum in batches.
        let (g1, g2) = (Slots::open(device, 5)?, Slots::open(device, 2)?);
        let rings = polynomial_rings(device, size)?;
        let lock = proofs == Proofs::Many || rayon::current_num_threads() < PointRings::THREADS;
        let points = if lock { points.held(device)? } else { points };
        Ok(Self {
            form: R::quotient(&domain)?,
            shape: Shape::of_key(&key),
            points: points.ringed(device)?,
            proofs,
            residency: Residency::default(),
            resident: Box::new(On::new(device)),
            g1,
            g2,
            rings,
            memory: PinnedPool::new(device),
            // Whether others should trust the key is not for its prover to say.
            verifier: PreparedKey::new_insecure(key.vk())?,
            device,
            key,
            domain,
        })
    }

    /// Keeps other points of the key on the device than [`Residency::Auto`] would. They are uploaded by the first proof and stay
    /// until the prover is dropped, or a proof is planned that needs their memory.
    #[must_use]
    pub fn keeping(self, residency: Residency) -> Self {
        Self { residency, ..self }
    }

    /// How many proofs it is for.
    #[must_use]
    pub fn proofs(&self) -> Proofs {
        self.proofs
    }

    /// Which points of the key stay on the device.
    #[must_use]
    pub fn residency(&self) -> Residency {
        self.residency
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
        self.plan_now(turn.device().ledger(), assignment, policy)
    }

    /// The plan as the account stands, which outside of a turn is only what may be expected.
    fn plan_now(&self, ledger: &Ledger, assignment: &Assignment, policy: Policy) -> Result<Plan, Error> {
        let level = ledger.level();
        // Its own points are the plan's business.
        let others = level.resident.saturating_sub(self.resident.charge());
        let budget = level.budget.saturating_sub(others);
        let footprints = DeviceFootprints::new(self.device, &self.domain);
        let planned = |policy| {
            let wanted = (policy, self.residency);
            Plan::beside_points(&self.shape, &footprints, wanted, budget, ledger.margin(), ledger.ahead())
        };
        if policy == Policy::Auto && !assignment.is_pinned() {
            match planned(Policy::None) {
                Ok(plan) => return Ok(plan.because("no host memory could be pinned")),
                // Less memory than that: pieces go through the host anyway.
                Err(Error::PlanRefused { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        planned(policy)
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
        let id = worker.id();
        let computed = self.compute(worker, assignment, options, &|| false)?;
        host_work(self.device, id, "assemble, verify", || computed.finish(self))
    }

    /// The device's part of a proof: waits for the turn, plans, runs the stages, gives the turn back. What is left is
    /// host work: [`Computed::finish`].
    ///
    /// `stop` is asked before the turn and between the stages.
    ///
    /// # Errors
    /// [`Error::PlanRefused`] when no plan fits, [`Error::Stopped`] when `stop` says so, and what the device says. Nothing
    /// is left on the device.
    pub fn compute(
        &self,
        worker: &mut Worker,
        assignment: &Assignment,
        options: &Options,
        stop: &dyn Fn() -> bool,
    ) -> Result<Computed, Error> {
        let going = |before| if stop() { Err(Error::Stopped { before }) } else { Ok(()) };
        let blinding = options.blinding.map_or_else(Blinding::random, Ok)?;
        going("its turn")?;
        let copies = self.copies(worker.id(), assignment, options.policy)?;
        let turn = self.device.turn(worker)?;
        going("staging")?;
        let plan = asked(&turn, "plan", || self.plan(&turn, assignment, options.policy))?;
        let staged = stages::stage_with(&turn, self, assignment, plan.clone(), copies)?;
        going("the quotient")?;
        let h = quotient(staged)?;
        going("the H sum")?;
        let committed = commit_h(h)?;
        going("the other sums")?;
        let parts = tail(committed, assignment)?;
        let peaks = turn.peaks();
        turn.release()?;
        Ok(Computed { parts, blinding, unverified: options.unverified, plan, peaks })
    }

    /// Copies of b and c where the plan will probably be to transform them out of core, which uses them up: pinning and copying
    /// are no work for a turn.
    fn copies(
        &self,
        worker: WorkerId,
        assignment: &Assignment,
        policy: Policy,
    ) -> Result<Option<[Scratch; 2]>, Error> {
        let plan = || self.plan_now(self.device.ledger(), assignment, policy).map(|plan| plan.policy());
        match recorded(self.device, worker, Track::Host, "plan", plan) {
            Ok(Policy::Chunked(_)) => host_work(self.device, worker, "copy b, c", || {
                let copy = |values: &Values| values.copy(&self.memory, self.device);
                Ok(Some([copy(&assignment.b)?, copy(&assignment.c)?]))
            }),
            // A plan that is refused may not be when the turn has come.
            Ok(_) | Err(Error::PlanRefused { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Page-locked memory that waits for the next proof.
    #[must_use]
    pub fn memory(&self) -> &PinnedPool {
        &self.memory
    }

    /// The verifier of the key, whatever its points are.
    #[must_use]
    pub fn verifier(&self) -> &PreparedKey {
        &self.verifier
    }
}

/// Puts what a worker asks of its device on record, beside allocations: on small proofs it is not nothing.
fn asked<D: Device, T>(turn: &Turn<'_, D>, name: &'static str, ask: impl FnOnce() -> T) -> T {
    recorded(turn.device(), turn.worker(), Track::Memory, name, ask)
}

/// Puts what takes time on record; what takes none leaves no trace.
fn recorded<D: Device, T>(
    device: &D,
    worker: WorkerId,
    track: Track,
    name: &'static str,
    ask: impl FnOnce() -> T,
) -> T {
    let start = device.now();
    let answer = ask();
    let end = device.now();
    if end > start {
        let (name, bytes) = (name.into(), Bytes::ZERO);
        device.ledger().emit(Event::Span(Span { track, worker, name, start, end, bytes }));
    }
    answer
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
