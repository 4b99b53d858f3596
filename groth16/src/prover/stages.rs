//! The stages of a proof, each consuming what the one before it returned, so that memory goes when its last use ends.

use std::fmt;
use std::ops::Range;

use blstrs::{G1Affine, Scalar};
use ff::Field;
use prestage_msm::{Affine, Bases, Batches, Compact, Deferred, Msm, Place, Scalars, Slots, batched};
use prestage_ntt::host::Combine;
use prestage_ntt::{Chunked, Domain, Ntt, Twiddles};
use prestage_transfer::{Lane, Lanes};
use prestage_vram::{Buf, Class, Device, Turn};

use super::resident::bases;
use super::values::{InFlight, Scratch, Values};
use super::{Assignment, Parts, Prover, asked};
use crate::Error;
use crate::key::{Quotient, Reduction};
use crate::plan::{LEAST, Plan, Policy, Sum};

pub(super) type Polynomial<'t, D> = Buf<'t, D, Scalar>;

/// a, b and c on their way to the device, as far as the plan stages them.
#[must_use = "a staged proof holds device memory: go on with `quotient`"]
pub struct Staged<'t, D: Device, R: Reduction> {
    prover: &'t Prover<'t, D, R>,
    plan: Plan,
    polynomials: Polynomials<'t, D>,
    in_flight: Vec<InFlight<'t, D>>,
    lanes: Lanes<'t, D>,
}

/// Where a, b and c are when the quotient begins.
enum Polynomials<'t, D: Device> {
    /// Uploads of all three are under way.
    Full { a: Polynomial<'t, D>, b: Polynomial<'t, D>, c: Polynomial<'t, D> },
    /// Uploads of a and b are under way; c takes b's slot.
    AThenBc { a: Polynomial<'t, D>, slot: Polynomial<'t, D>, c: Values },
    /// The upload of a is under way; b and c pass through the device in pieces, and these copies are used up.
    Chunked { a: Polynomial<'t, D>, b: Scratch, c: Scratch },
    /// Nothing is.
    Unstaged { a: Values, b: Values, c: Values },
}

/// Begins a proof: allocates what the plan stages and enqueues the uploads, each followed by a mark. The host does not
/// wait between them.
///
/// # Errors
/// [`Error::Shape`] when the assignment was made for another key; what the device says.
pub fn stage<'t, D: Ntt + Msm, R: Reduction>(
    turn: &'t Turn<'_, D>,
    prover: &'t Prover<'_, D, R>,
    assignment: &Assignment,
    plan: Plan,
) -> Result<Staged<'t, D, R>, Error> {
    stage_with(turn, prover, assignment, plan, None)
}

/// As [`stage`], with copies of b and c for a transform out of core that were made before the turn.
pub(super) fn stage_with<'t, D: Ntt + Msm, R: Reduction>(
    turn: &'t Turn<'_, D>,
    prover: &'t Prover<'t, D, R>,
    assignment: &Assignment,
    plan: Plan,
    copies: Option<[Scratch; 2]>,
) -> Result<Staged<'t, D, R>, Error> {
    assignment.fits(prover.key())?;
    let lanes = asked(turn, "open lanes", || Lanes::open(turn))?;
    turn.phase("stage");
    prover.resident.give_up(turn, &plan);
    turn.promise(plan.peak());
    let Assignment { a, b, c, .. } = assignment;
    let mut in_flight = Vec::with_capacity(3);
    let mut up = |label, values: &Values| {
        let buf = waiting(&lanes.upload, label, values.len())?;
        let (buf, upload) = values.upload(&lanes.upload, buf, &prover.rings)?;
        in_flight.push(upload);
        Ok::<_, Error>(buf)
    };
    let polynomials = match plan.policy() {
        Policy::AThenBc => Polynomials::AThenBc { a: up("a", a)?, slot: up("bc", b)?, c: c.clone() },
        Policy::Chunked(_) => {
            let a = up("a", a)?;
            let copy = |values: &Values| values.copy_in_turn(&prover.memory);
            let [b, c] = match copies {
                Some(copies) => copies,
                None => [copy(b)?, copy(c)?],
            };
            Polynomials::Chunked { a, b, c }
        }
        Policy::None => Polynomials::Unstaged { a: a.clone(), b: b.clone(), c: c.clone() },
        // A plan's policy is never `Auto`.
        Policy::Full | Policy::Auto => Polynomials::Full { a: up("a", a)?, b: up("b", b)?, c: up("c", c)? },
    };
    // Behind a, b and c: they are needed first.
    prover.resident.fetch(&lanes.upload, &prover.points, &plan)?;
    Ok(Staged { prover, plan, polynomials, in_flight, lanes })
}

/// Memory for one polynomial, waiting for a turn that computes while this one stages.
fn waiting<'t, D: Device>(
    lane: &Lane<'t, D>,
    label: &'static str,
    len: usize,
) -> Result<Buf<'t, D, std::mem::MaybeUninit<Scalar>>, Error> {
    Ok(lane.turn().alloc_waiting(label, len, Class::default(), lane.queue())?)
}

/// The scalars of the H query, in the place of a. b and c are gone.
#[must_use = "it holds device memory: go on with `commit_h`"]
pub struct H<'t, D: Device, R: Reduction> {
    prover: &'t Prover<'t, D, R>,
    plan: Plan,
    pub(super) a: Polynomial<'t, D>,
    pub(super) in_flight: Vec<InFlight<'t, D>>,
    pub(super) lanes: Lanes<'t, D>,
}

/// Enqueues the quotient: each polynomial goes from its values on the domain to those on the key's coset as soon as
/// its own upload has passed, then `(a·b − c)·scale` takes the place of a, and where the key wants coefficients one
/// more transform gives them. b and c are freed on the lane that used them last.
///
/// Moves the turn on to its computing half.
///
/// # Errors
/// What the device says.
pub fn quotient<D: Ntt + Msm, R: Reduction>(staged: Staged<'_, D, R>) -> Result<H<'_, D, R>, Error> {
    let Staged { prover, plan, polynomials, mut in_flight, lanes } = staged;
    lanes.turn().compute()?;
    lanes.turn().phase("quotient");
    let Quotient { shift, scale, coefficients } = prover.form;
    let lane = &lanes.compute;
    let mut ntt = Twiddles::for_turn(lane, transforms(prover.domain(), plan.policy())?.on_coset(shift))?;
    // From a·b and c.
    let last = |ntt: &mut Twiddles<'_, D>, a: &mut Polynomial<'_, D>, c: &mut Polynomial<'_, D>| {
        match coefficients {
            true => ntt.quotient_coefficients(lane, a, None, Some(c), shift, scale),
            false => ntt.combine(lane, a, c, Combine::SubScale(scale)),
        }
    };
    let a = match polynomials {
        Polynomials::Full { mut a, mut b, mut c } => {
            for polynomial in [&mut a, &mut b, &mut c] {
                ntt.coset_evaluations(lane, polynomial, shift)?;
            }
            if coefficients {
                ntt.quotient_coefficients(lane, &mut a, Some(&mut b), Some(&mut c), shift, scale)?;
            } else {
                ntt.quotient(lane, &mut a, &mut b, &mut c, scale)?;
            }
            a
        }
        Polynomials::AThenBc { mut a, mut slot, c } => {
            ntt.coset_evaluations(lane, &mut a, shift)?;
            ntt.coset_evaluations(lane, &mut slot, shift)?;
            ntt.combine(lane, &mut a, &mut slot, Combine::Mul)?;
            let (mut slot, upload) = c.upload(&lanes.upload, slot.into_uninit(), &prover.rings)?;
            in_flight.push(upload);
            ntt.coset_evaluations(lane, &mut slot, shift)?;
            last(&mut ntt, &mut a, &mut slot)?;
            a
        }
        Polynomials::Chunked { mut a, mut b, mut c } => {
            ntt.coset_evaluations(lane, &mut a, shift)?;
            let mut slots = Chunked::open(&lanes, &ntt)?;
            let minus = Combine::SubScale(if coefficients { Scalar::ONE } else { scale });
            for (values, how) in [(&mut b, Combine::Mul), (&mut c, minus)] {
                slots = values.outside(lanes.device(), &prover.rings, |values| {
                    slots.coset_evaluations(&lanes, &mut ntt, values, shift, &mut a, how)
                })?;
            }
            if coefficients {
                ntt.quotient_coefficients(lane, &mut a, None, None, shift, scale)?;
            }
            a
        }
        Polynomials::Unstaged { a, b, c } => {
            let (mut a, upload) = a.upload(lane, lane.alloc("a", a.len())?, &prover.rings)?;
            in_flight.push(upload);
            ntt.coset_evaluations(lane, &mut a, shift)?;
            let mut up = |ntt: &mut Twiddles<'_, D>, values: Values, slot| {
                let (mut slot, upload) = values.upload(lane, slot, &prover.rings)?;
                in_flight.push(upload);
                ntt.coset_evaluations(lane, &mut slot, shift)?;
                Ok::<_, Error>(slot)
            };
            let slot = lane.alloc("bc", b.len())?;
            let mut slot = up(&mut ntt, b, slot)?;
            ntt.combine(lane, &mut a, &mut slot, Combine::Mul)?;
            let mut slot = up(&mut ntt, c, slot.into_uninit())?;
            last(&mut ntt, &mut a, &mut slot)?;
            a
        }
    };
    drop(ntt);
    Ok(H { prover, plan, a, in_flight, lanes })
}

/// What a policy makes of the transforms: whole polynomials, or pieces.
pub(super) fn transforms(domain: &Domain, policy: Policy) -> Result<prestage_ntt::Plan, prestage_ntt::Error> {
    match policy {
        // At most 64; a number that does not fit is refused as one that is too large.
        Policy::Chunked(chunks) => {
            prestage_ntt::Plan::chunked(domain.clone(), usize::try_from(chunks).unwrap_or(usize::MAX))
        }
        _ => Ok(prestage_ntt::Plan::whole(domain.clone())),
    }
}

/// The H sum under way. No polynomial is left on the device.
#[must_use = "the sum is under way: go on with `tail`"]
pub struct Committed<'t, D: Msm, R: Reduction> {
    prover: &'t Prover<'t, D, R>,
    plan: Plan,
    h: Deferred<'t, D, G1Affine>,
    lanes: Lanes<'t, D>,
}

/// Enqueues the H sum, and frees a behind it.
///
/// # Errors
/// What the device says. Scratch that is refused in spite of the plan makes for smaller batches first.
pub fn commit_h<D: Ntt + Msm, R: Reduction>(h: H<'_, D, R>) -> Result<Committed<'_, D, R>, Error> {
    let H { prover, plan, mut a, in_flight, lanes } = h;
    let points = &prover.points.h;
    let scalars = Home::Device(&mut a, 0..points.len());
    let kept = prover.resident.g1(Sum::H);
    let h = sum(&lanes, &plan, Sum::H, bases(kept.as_ref(), points), scalars, &prover.g1)?;
    drop(a);
    for upload in in_flight {
        upload.wait()?;
    }
    Ok(Committed { prover, plan, h, lanes })
}

/// Enqueues L, A and both B one behind the other, and waits for all five sums.
///
/// # Errors
/// As [`commit_h`].
pub fn tail<D: Ntt + Msm, R: Reduction>(
    committed: Committed<'_, D, R>,
    assignment: &Assignment,
) -> Result<Parts, Error> {
    let Committed { prover, plan, h, lanes } = committed;
    assignment.fits(prover.key())?;
    let points = &prover.points;
    let in_g1 = |which, points, scalars| {
        let kept = prover.resident.g1(which);
        sum(&lanes, &plan, which, bases(kept.as_ref(), points), Home::all(scalars), &prover.g1)
    };
    let l = in_g1(Sum::L, &points.l, &assignment.l_scalars)?;
    let a = in_g1(Sum::A, &points.a, &assignment.a_scalars)?;
    let b1 = in_g1(Sum::B1, &points.b1, &assignment.b1_scalars)?;
    let kept = prover.resident.g2();
    let in_g2 = bases(kept.as_ref(), &points.b2);
    let b2 = sum(&lanes, &plan, Sum::B2, in_g2, Home::all(&assignment.b2_scalars), &prover.g2)?;
    Ok(Parts {
        h: h.finish()?,
        l: l.finish()?,
        a: a.finish()?,
        b1: b1.finish()?,
        b2: b2.finish()?,
        public: assignment.public().to_vec(),
    })
}

/// Where the scalars of a sum are, as often as they are asked for.
pub(super) enum Home<'s, 'a, D: Device> {
    Device(&'s mut Polynomial<'a, D>, Range<usize>),
    Host(&'s Compact, Range<usize>),
}

impl<'s, 'a, D: Device> Home<'s, 'a, D> {
    fn all(compact: &'s Compact) -> Self {
        Self::Host(compact, 0..compact.len())
    }

    fn scalars(&mut self) -> Result<Scalars<'_, 'a, D>, Error> {
        match self {
            Self::Device(buf, range) => Ok(Scalars::device_range(buf, range.clone())?),
            Self::Host(compact, range) => Ok(Scalars::host_range((*compact).clone(), range.clone())?),
        }
    }
}

/// Enqueues one sum in the batches of the plan. When the scratch is refused all the same, for one because another
/// process has taken memory since, it tries again in smaller batches: a sum is right or an error, never silently
/// the identity.
pub(super) fn sum<'t, 'r: 't, D: Msm, A: Affine>(
    lanes: &Lanes<'t, D>,
    plan: &Plan,
    which: Sum,
    points: Bases<'_, 'r, D, A>,
    mut scalars: Home<'_, '_, D>,
    slots: &Slots<A>,
) -> Result<Deferred<'t, D, A>, Error> {
    let name = which.name();
    lanes.turn().phase(name);
    lanes.turn().promise(plan.peak_from(name));
    let mut batch = plan.batch(which);
    loop {
        let batches = Batches::new(lanes.device(), points.len(), batch);
        let batches = if points.place() == Place::Device { batches.resident() } else { batches };
        match batched(lanes, name, points, scalars.scalars()?, &batches, slots).map_err(Error::from) {
            Err(e) if e.refused().is_some() && batch > LEAST => batch = batch.div_ceil(2),
            outcome => return outcome,
        }
    }
}

impl<D: Device, R: Reduction> fmt::Debug for Staged<'_, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl<D: Device, R: Reduction> fmt::Debug for H<'_, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("H").field("plan", &self.plan).field("a", &self.a).finish_non_exhaustive()
    }
}

impl<D: Msm, R: Reduction> fmt::Debug for Committed<'_, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed").field("plan", &self.plan).field("h", &self.h).finish_non_exhaustive()
    }
}
