//! The plan of a proof: how it will use device memory, decided before the first byte moves.
//!
//! With n the bytes of one polynomial and T those of tables, the quotient takes
//!
//! | policy | a, b, c | bytes |
//! |---|---|---|
//! | [`Full`](Policy::Full) | staged together | 3n + T |
//! | [`AThenBc`](Policy::AThenBc) | a, and one slot for b, then c | 2n + T |
//! | [`Chunked(k)`](Policy::Chunked) | a; b and c transformed out of core through host memory, in k pieces | n + 2n/k + T |
//! | [`None`](Policy::None) | as `AThenBc`, each upload at the moment of use, on the compute lane | 2n + T |
//!
//! After it b and c are gone, and after the H sum a is. The sums run in batches whose scratch fits what is left. Points of the
//! key stay on the device where all of this, and the next proof's a, b and c, fit beside them ([`Residency`]).

mod policy;
mod residency;
mod share;
mod steps;

use prestage_vram::Bytes;

use crate::Error;
use crate::sizes::Shape;

use policy::MAX_CHUNKS;
pub use policy::Policy;
pub use residency::{ParseResidencyError, Residency};
pub use steps::{Change, Step};

/// A sum shorter than this gains little from less scratch: the plan does not cut it to save memory that is free.
const COMFORTABLE: usize = 1 << 20;
/// Sums are not cut into batches smaller than this.
pub(crate) const LEAST: usize = 1 << 8;

/// The five sums of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sum {
    /// The quotient's, in G1.
    H,
    /// The private wires', in G1.
    L,
    /// A, in G1.
    A,
    /// B in G1.
    B1,
    /// B in G2.
    B2,
}

impl Sum {
    /// All of them, in the order in which a proof computes them.
    pub const ALL: [Self; 5] = [Self::H, Self::L, Self::A, Self::B1, Self::B2];

    /// Its name, which is that of its phase.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::H => "h",
            Self::L => "l",
            Self::A => "a",
            Self::B1 => "b1",
            Self::B2 => "b2",
        }
    }

    fn len(self, shape: &Shape) -> Result<usize, Error> {
        let len = match self {
            Self::H => shape.h,
            Self::L => shape.l,
            Self::A => shape.a,
            Self::B1 => shape.b_g1,
            Self::B2 => shape.b_g2,
        };
        usize::try_from(len).map_err(|_| Error::TooLarge { size: len })
    }
}

/// What the stages state about the memory that they take beside the polynomials: a device's own
/// ([`DeviceFootprints`](crate::DeviceFootprints)), or anything that stands in for them.
pub trait Footprints {
    /// T: tables of the quotient under `policy`; its polynomials and their pieces are counted elsewhere.
    ///
    /// # Errors
    /// What the stage says of such a domain.
    fn tables(&self, policy: Policy) -> Result<Bytes, Error>;

    /// What a sum of `len` terms in batches of `batch` holds at its peak: scratch, and slots for scalars and results.
    fn scratch(&self, sum: Sum, len: usize, batch: usize) -> Bytes;

    /// The same where the points of the sum stay on the device: without the slots that they are streamed through.
    fn scratch_beside_points(&self, sum: Sum, len: usize, batch: usize) -> Bytes {
        self.scratch(sum, len, batch)
    }

    /// Whether points come up a link, so that keeping them on the device gains anything.
    fn streams(&self) -> bool {
        true
    }

    /// How many elements of the full size one element of the shape stands for: more than one on a simulated card.
    fn scale(&self) -> u64 {
        1
    }
}

/// The most that a proof holds in one of its phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Its name, as leases and refusals carry it.
    pub name: &'static str,
    /// The highest number of bytes held at once.
    pub peak: Bytes,
}

/// How a proof will use device memory: which policy, what each phase holds at most, in what batches the sums run, and
/// why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    policy: Policy,
    reason: String,
    polynomial: Bytes,
    tables: Bytes,
    budget: Bytes,
    phases: Vec<Phase>,
    /// Terms per batch, in the order of [`Sum::ALL`].
    batches: [usize; 5],
    /// Points that stay on the device, in the same order; zero for those that are streamed.
    points: [Bytes; 5],
}

/// No points stay on the device.
const STREAMED: [Bytes; 5] = [Bytes::ZERO; 5];

impl Plan {
    /// The largest plan of `policy` that fits `budget`; under [`Policy::Auto`] the first of `Full`, `AThenBc`,
    /// `Chunked(2)`, `Chunked(4)`, …, `Chunked(64)`. `margin` is named when none fits, and not counted.
    ///
    /// # Errors
    /// [`Error::PlanRefused`] with the need of the smallest plan that was tried; [`Error::Chunks`] for a
    /// `Chunked(k)` that does not exist; what `footprints` says.
    pub fn new(
        shape: &Shape,
        footprints: &impl Footprints,
        policy: Policy,
        budget: Bytes,
        margin: Bytes,
    ) -> Result<Self, Error> {
        Self::choose(policy, shape.domain, budget, |policy| {
            Self::try_new(shape, footprints, policy, budget, margin, false, STREAMED)
        })
    }

    /// As [`Plan::new`] for devices on which the next proof stages while this one computes: where it costs little, the
    /// sums run in batches small enough that all of the next proof's polynomials fit beside them.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn ahead(
        shape: &Shape,
        footprints: &impl Footprints,
        policy: Policy,
        budget: Bytes,
        margin: Bytes,
    ) -> Result<Self, Error> {
        Self::choose(policy, shape.domain, budget, |policy| {
            Self::try_new(shape, footprints, policy, budget, margin, true, STREAMED)
        })
    }

    /// As [`Plan::ahead`] or, with `ahead` unset, [`Plan::new`], beside the points of the key that `residency` keeps on the
    /// device. Which those are under [`Residency::Auto`] depends on the budget and not on `policy`: they never take memory that a
    /// larger policy could use.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn beside_points(
        shape: &Shape,
        footprints: &impl Footprints,
        (policy, residency): (Policy, Residency),
        budget: Bytes,
        margin: Bytes,
        ahead: bool,
    ) -> Result<Self, Error> {
        let points = Self::points_for(shape, footprints, residency, budget, margin, ahead)?;
        let left = budget.saturating_sub(points.into_iter().sum());
        let plan = Self::choose(policy, shape.domain, left, |policy| {
            Self::try_new(shape, footprints, policy, left, margin, ahead, points)
        })?;
        Ok(Self { budget, ..plan }.with_points())
    }

    /// The points that stay on the device.
    fn points_for(
        shape: &Shape,
        footprints: &impl Footprints,
        residency: Residency,
        budget: Bytes,
        margin: Bytes,
        ahead: bool,
    ) -> Result<[Bytes; 5], Error> {
        let scale = footprints.scale().max(1);
        let all = shape.key_bytes().map(|bytes| bytes * scale);
        let mut room = match residency {
            Residency::All => return Ok(all),
            Residency::Auto if footprints.streams() => {
                match Self::try_new(shape, footprints, Policy::Full, budget, margin, ahead, STREAMED) {
                    Ok(full) => {
                        let next =
                            if ahead { Policy::Full.polynomials(full.polynomial).0 } else { Bytes::ZERO };
                        budget.saturating_sub(full.peak() + next)
                    }
                    Err(Error::PlanRefused { .. }) => Bytes::ZERO,
                    Err(other) => return Err(other),
                }
            }
            _ => Bytes::ZERO,
        };
        let mut points = STREAMED;
        for sum in Sum::KEPT_FIRST {
            let bytes = all[sum as usize];
            if bytes <= room {
                points[sum as usize] = bytes;
                room = room.saturating_sub(bytes);
            }
        }
        Ok(points)
    }

    /// Says in the reason which points stay.
    fn with_points(mut self) -> Self {
        let kept: Vec<_> = Sum::ALL.into_iter().filter(|sum| self.keeps(*sum)).map(Sum::name).collect();
        if !kept.is_empty() {
            self.reason += &format!(
                "; the points of {} stay on the device: {}",
                kept.join(", "),
                self.points.into_iter().sum::<Bytes>()
            );
        }
        self
    }

    fn choose(
        policy: Policy,
        domain: u64,
        budget: Bytes,
        try_new: impl Fn(Policy) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        policy.check()?;
        if policy != Policy::Auto {
            let plan = try_new(policy)?;
            return Ok(Self { reason: format!("{policy} was asked for"), ..plan });
        }
        let chunked = (1..=MAX_CHUNKS.ilog2()).map(|log| Policy::Chunked(1 << log));
        let mut passed: Option<Error> = None;
        for policy in [Policy::Full, Policy::AThenBc].into_iter().chain(chunked) {
            if !policy.possible(domain) {
                continue;
            }
            match try_new(policy) {
                Ok(plan) => {
                    let reason = match passed {
                        None => format!("{policy} is the largest plan and fits: {}", plan.need_of(budget)),
                        Some(Error::PlanRefused { policy: larger, need, .. }) => {
                            format!("{larger} needs {need}; {policy} fits: {}", plan.need_of(budget))
                        }
                        Some(other) => format!("{policy} fits: {}; before it: {other}", plan.need_of(budget)),
                    };
                    return Ok(Self { reason, ..plan });
                }
                Err(refused @ Error::PlanRefused { .. }) => passed = Some(refused),
                Err(other) => return Err(other),
            }
        }
        Err(passed.unwrap_or(Error::TooLarge { size: domain }))
    }

    #[allow(clippy::too_many_arguments)]
    fn try_new(
        shape: &Shape,
        footprints: &impl Footprints,
        policy: Policy,
        budget: Bytes,
        margin: Bytes,
        ahead: bool,
        points: [Bytes; 5],
    ) -> Result<Self, Error> {
        let refuse = |phase, need| Err(Error::PlanRefused { policy, phase, need, free: budget, margin });
        let scale = footprints.scale().max(1);
        let polynomial = shape.polynomial() * scale;
        let tables = footprints.tables(policy)?;
        let (staged, quotient) = policy.polynomials(polynomial);
        let quotient = quotient + tables;
        if quotient > budget {
            return refuse("quotient", quotient);
        }
        let mut phases =
            vec![Phase { name: "stage", peak: staged }, Phase { name: "quotient", peak: quotient }];
        let mut batches = [0; 5];
        for (sum, batch) in Sum::ALL.into_iter().zip(&mut batches) {
            let held = if sum == Sum::H { polynomial } else { Bytes::ZERO };
            let len = sum.len(shape)?;
            let stay = points[sum as usize] > Bytes::ZERO;
            let scratch = |batch| match stay {
                true => footprints.scratch_beside_points(sum, len, batch),
                false => footprints.scratch(sum, len, batch),
            };
            let peak = |batch: usize| held + scratch(batch);
            // No more than the quotient took, unless there is plenty or that would cut a sum that is short anyway.
            let at_scale = |terms: usize| (terms as u64).div_ceil(scale).try_into().unwrap_or(terms);
            let limit = quotient
                .max(Bytes::new(budget.get() / 2))
                .max(peak(len.min(at_scale(COMFORTABLE))))
                .min(budget);
            let least = len.min(at_scale(LEAST));
            let halves = || (0..usize::BITS).map(|log| len.div_ceil(1 << log)).take_while(|n| *n > least);
            // What the next proof stages may come before this one's a has gone: room for the rest of it, as long as the
            // batches stay comfortable.
            let roomy = ahead.then(|| budget.saturating_sub(staged.saturating_sub(held))).and_then(|room| {
                let comfortable = halves().take_while(|n| *n >= at_scale(COMFORTABLE));
                comfortable.into_iter().find(|n| peak(*n) <= limit.min(room))
            });
            let Some(fitting) = roomy.or_else(|| halves().chain([least]).find(|n| peak(*n) <= limit)) else {
                return refuse(sum.name(), peak(least));
            };
            *batch = fitting;
            phases.push(Phase { name: sum.name(), peak: peak(fitting) });
        }
        Ok(Self { policy, reason: String::new(), polynomial, tables, budget, phases, batches, points })
    }

    /// The same plan with another reason.
    pub(crate) fn because(self, reason: &str) -> Self {
        Self { reason: format!("{}: {reason}", self.policy), ..self }
    }

    fn need_of(&self, budget: Bytes) -> String {
        format!("{} of a budget of {budget}", self.peak())
    }

    /// The policy, never [`Policy::Auto`].
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Why this plan, in words.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Bytes of one polynomial, n.
    #[must_use]
    pub fn polynomial(&self) -> Bytes {
        self.polynomial
    }

    /// Bytes of tables during the quotient, T.
    #[must_use]
    pub fn tables(&self) -> Bytes {
        self.tables
    }

    /// Whether the points of a sum stay on the device.
    #[must_use]
    pub fn keeps(&self, sum: Sum) -> bool {
        self.points[sum as usize] > Bytes::ZERO
    }

    /// Points of the key that stay on the device, in the order of [`Sum::ALL`]: resident memory, in no phase's peak.
    #[must_use]
    pub fn points(&self) -> [Bytes; 5] {
        self.points
    }

    /// The budget that it was made for, points that stay included.
    #[must_use]
    pub fn budget(&self) -> Bytes {
        self.budget
    }

    /// What each phase holds at most, in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The most that any phase holds.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.peak_from("stage")
    }

    /// The most that this phase and those after it hold.
    #[must_use]
    pub fn peak_from(&self, phase: &str) -> Bytes {
        self.phases.iter().skip_while(|p| p.name != phase).map(|p| p.peak).max().unwrap_or(Bytes::ZERO)
    }

    /// Terms per batch of a sum.
    #[must_use]
    pub fn batch(&self, sum: Sum) -> usize {
        self.batches[sum as usize]
    }
}

#[cfg(test)]
mod tests;
