//! One proof by several devices at once, for its latency.
//!
//! ```text
//! first device   [ a, b, c | quotient ][ h to the host ]
//!                                      [ pieces of B2, L, A, B1 and H ]
//! each other     [ pieces of B2, L, A, B1 ]      ·      [ pieces of H ]
//! ```
//!
//! A device takes the next piece when it is free. It holds its turn only while it has work, never while it waits for another
//! device: so no circle of waits can form, whatever else the devices do. What a device has begun when it fails waits for the
//! others again, the quotient too.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use blstrs::{G1Affine, G2Affine};
use prestage_msm::{Affine, Compact, Deferred, Joint, Msm, Piece, Points, Resident, Slots};
use prestage_ntt::Ntt;
use prestage_transfer::Lanes;
use prestage_vram::{Bytes, Cause, Device, Event, Ledger, Turn, Worker, WorkerId};

use super::resident::bases;
use super::stages::{H, Home, quotient, stage_with, sum};
use super::values::{Place, Values};
use super::{Assignment, DeviceFootprints, Options, Parts, Prover, asked};
use crate::Error;
use crate::key::Reduction;
use crate::plan::{Phase, Plan, Policy, Sum};
use crate::proof::Proof;
use crate::random::Blinding;

/// Pieces are not shorter than this: such a sum is over before another device has its first scalars.
const SHORT: usize = 1 << 18;

/// One proof that several devices make together: one computes the quotient, and the terms of all sums go, piece by piece, to
/// whichever device is free. The proof is the same bytes as that of one device.
///
/// ```
/// # use blstrs::Scalar;
/// # use ff::Field;
/// # use prestage_groth16::{Assignment, Libsnark, Options, R1cs, Witness, setup_insecure_from_seed};
/// use prestage_groth16::{JointProof, Prover};
/// use prestage_vram::{Device, Host, HostConfig, LedgerConfig, Worker};
/// # let one = Scalar::ONE;
/// # let mut circuit = R1cs::builder(3, 1)?;
/// # circuit.constraint(&[(2, one)], &[(2, one)], &[(1, one)])?;
/// # let (circuit, witness) = (circuit.finish(), Witness::new(vec![one, Scalar::from(9), Scalar::from(3)])?);
/// # let key = setup_insecure_from_seed::<Libsnark>(&circuit, [7; 32])?;
///
/// let first = Host::open(HostConfig::default())?;
/// let ledger = LedgerConfig { beside: Some(first.ledger().clone()), ..LedgerConfig::default() };
/// let second = Host::open(HostConfig { ledger, ..HostConfig::default() })?;
/// let prover = Prover::new(&first, key)?;
/// let provers = [&prover, &prover.beside(&second)?];
///
/// let assignment = Assignment::new(&prover, &circuit, &witness)?;
/// let joint = JointProof::new(&prover, &assignment, &Options::default(), provers.len())?;
/// std::thread::scope(|scope| {
///     for (i, prover) in provers.into_iter().enumerate() {
///         let joint = &joint;
///         scope.spawn(move || joint.work(prover, &mut Worker::new(0), i == 0, &|| false));
///     }
/// });
/// let proof = joint.finish(&prover)?;
/// assert!(prover.verifier().verify(assignment.public(), &proof)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JointProof<'a> {
    assignment: &'a Assignment,
    policy: Policy,
    blinding: Blinding,
    unverified: bool,
    /// How many devices there are.
    devices: usize,
    /// Terms of the smallest piece at full size.
    least: usize,
    quotient: Mutex<Quotient>,
    sums: Sums,
    /// Of the devices that are at work.
    ledgers: Mutex<Vec<Ledger>>,
}

/// How far the quotient is.
enum Quotient {
    /// Nobody has begun it, or who had has failed. With the memory that it goes to, if there is some.
    Open { given_up: bool, place: Option<Place> },
    /// A device is at it.
    Taken,
    /// Its values, the scalars of H.
    Done(Values),
}

struct Sums {
    h: Joint<G1Affine>,
    l: Joint<G1Affine>,
    a: Joint<G1Affine>,
    b1: Joint<G1Affine>,
    b2: Joint<G2Affine>,
}

impl Sums {
    fn are_complete(&self) -> bool {
        let Self { h, l, a, b1, b2 } = self;
        [h, l, a, b1].into_iter().all(|sum| sum.sum().is_some()) && b2.sum().is_some()
    }

    /// Whether a sum other than H has terms that nobody has taken.
    fn others_wait(&self) -> bool {
        let Self { l, a, b1, b2, .. } = self;
        [l, a, b1].into_iter().any(Joint::is_waiting) || b2.is_waiting()
    }
}

/// What a device should do next.
enum Next {
    Quotient,
    Sums,
    /// Wait for the other devices.
    Wait,
    /// The proof is complete.
    Leave,
}

/// What a device did for a proof in one of its turns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Share {
    /// How a, b and c came to the device, if it computed the quotient.
    pub policy: Option<Policy>,
    /// Why the plan is as it is, in words.
    pub reason: String,
    /// The most that it was to hold in each phase.
    pub phases: Vec<Phase>,
    /// The most that it held, as the ledger measured it.
    pub peaks: Vec<(&'static str, Bytes)>,
    /// Terms that it summed, in the order of [`Sum::ALL`].
    pub terms: [usize; 5],
}

impl<'a> JointProof<'a> {
    /// A proof for `devices` devices. `prover` is that of any of them; all provers come from one by [`Prover::beside`], and so know
    /// one key.
    ///
    /// # Errors
    /// [`Error::Shape`] when the assignment was made for another key; [`Error::Random`]; what the device says of memory for the
    /// quotient in host memory, which is page-locked where that can be had.
    pub fn new<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        assignment: &'a Assignment,
        options: &Options,
        devices: usize,
    ) -> Result<Self, Error> {
        assignment.fits(prover.key())?;
        let points = &prover.points;
        let place = Place::new(&prover.memory, prover.device, points.h.len())?;
        Ok(Self {
            assignment,
            policy: options.policy,
            blinding: options.blinding.map_or_else(Blinding::random, Ok)?,
            unverified: options.unverified,
            devices,
            least: SHORT,
            quotient: Mutex::new(Quotient::Open { given_up: false, place: Some(place) }),
            sums: Sums {
                h: Joint::new(points.h.len()),
                l: Joint::new(points.l.len()),
                a: Joint::new(points.a.len()),
                b1: Joint::new(points.b1.len()),
                b2: Joint::new(points.b2.len()),
            },
            ledgers: Mutex::default(),
        })
    }

    /// Sums in pieces of no less than `least` terms, in place of 2^18.
    #[must_use]
    pub fn in_pieces_of(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// One device's part: takes its turn, works as long as there is work, and returns when the proof is complete. To be called for
    /// each device, from a thread of its own. The one that `leads` computes the quotient; it should be the fastest, and of several
    /// that lead the first to ask does. Where none does, or the one that did has failed, another computes it.
    ///
    /// `stop` is asked before each turn and between pieces.
    ///
    /// # Errors
    /// [`Error::PlanRefused`] when a proof does not fit the device's memory, [`Error::Stopped`] when `stop` says so, and what
    /// the device says. Nothing is left on the device then, and what it had begun is done by the others, if there are any.
    pub fn work<D: Ntt + Msm, R: Reduction>(
        &self,
        prover: &Prover<'_, D, R>,
        worker: &mut Worker,
        leads: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Share>, Error> {
        self.assignment.fits(prover.key())?;
        let _present = Present::enter(&self.ledgers, prover.device().ledger());
        let mut shares = Vec::new();
        loop {
            going(stop, "its turn")?;
            match self.next(leads) {
                Next::Quotient => {
                    // Another may have been faster.
                    if let Some(claim) = self.claim() {
                        shares.push(self.lead(prover, worker, claim, stop)?);
                    }
                }
                Next::Sums => shares.push(self.follow(prover, worker, stop)?),
                Next::Wait => self.wait(prover.device(), worker.id(), leads, stop)?,
                Next::Leave => return Ok(shares),
            }
        }
    }

    /// Assembles the proof and, unless the options said otherwise, verifies it.
    ///
    /// # Errors
    /// [`Error::Unfinished`] when every device has failed; [`Error::NotVerified`]: the proof is not handed out.
    pub fn finish<D: Device, R: Reduction>(self, prover: &Prover<'_, D, R>) -> Result<Proof, Error> {
        let Sums { h, l, a, b1, b2 } = &self.sums;
        let in_g1 = |sum: &Joint<G1Affine>| sum.sum().ok_or(Error::Unfinished);
        let parts = Parts {
            h: in_g1(h)?,
            l: in_g1(l)?,
            a: in_g1(a)?,
            b1: in_g1(b1)?,
            b2: b2.sum().ok_or(Error::Unfinished)?,
            public: self.assignment.public().to_vec(),
        };
        if self.unverified {
            Ok(parts.finish_unverified(&prover.key, &self.blinding))
        } else {
            parts.finish(&prover.key, &prover.verifier, &self.blinding)
        }
    }

    fn next(&self, leads: bool) -> Next {
        if self.sums.are_complete() {
            return Next::Leave;
        }
        let sums = self.sums.others_wait();
        match &*lock(&self.quotient) {
            Quotient::Open { given_up, .. } if leads || *given_up || !sums => Next::Quotient,
            Quotient::Done(_) if self.sums.h.is_waiting() => Next::Sums,
            _ if sums => Next::Sums,
            _ => Next::Wait,
        }
    }

    /// Waits for the other devices; no turn is held.
    fn wait<D: Device>(
        &self,
        device: &D,
        worker: WorkerId,
        leads: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let start = device.now();
        device.block(&mut || stop() || !matches!(self.next(leads), Next::Wait));
        let end = device.now();
        if end > start {
            device.ledger().emit(Event::Wait { worker, cause: Cause::Sync, start, end });
        }
        Ok(device.ledger().healthy()?)
    }

    /// The quotient, if nobody else is at it.
    fn claim(&self) -> Option<Claim<'_>> {
        let mut quotient = lock(&self.quotient);
        let Quotient::Open { place, .. } = &mut *quotient else { return None };
        let place = place.take();
        *quotient = Quotient::Taken;
        Some(Claim { joint: self, place })
    }

    /// The scalars of H, once they are there.
    fn h(&self) -> Option<Values> {
        match &*lock(&self.quotient) {
            Quotient::Done(h) => Some(h.clone()),
            _ => None,
        }
    }

    fn plan<D: Ntt + Msm, R: Reduction>(
        &self,
        turn: &Turn<'_, D>,
        prover: &Prover<'_, D, R>,
        leads: bool,
    ) -> Result<Plan, Error> {
        asked(turn, "plan", || {
            let footprints = DeviceFootprints::new(prover.device(), prover.domain());
            let whole = prover.plan(turn, self.assignment, self.policy)?;
            whole.share(prover.shape(), &footprints, self.devices, self.least, leads)
        })
    }

    /// A turn that computes the quotient and goes on with sums.
    fn lead<D: Ntt + Msm, R: Reduction>(
        &self,
        prover: &Prover<'_, D, R>,
        worker: &mut Worker,
        mut claim: Claim<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Share, Error> {
        let copies = prover.copies(worker.id(), self.assignment, self.policy)?;
        let place = match claim.place.take() {
            Some(place) => place,
            None => Place::new(&prover.memory, prover.device, prover.points.h.len())?,
        };
        let turn = prover.device.turn(worker)?;
        let plan = self.plan(&turn, prover, true)?;
        let staged = stage_with(&turn, prover, self.assignment, plan.clone(), copies)?;
        going(stop, "the quotient")?;
        let H { mut a, in_flight, lanes, .. } = quotient(staged)?;
        let coming = place.download(&lanes.download, &mut a, &prover.rings)?;
        drop(a);
        let mut hands = Hands { joint: self, prover, plan: &plan, lanes: &lanes, last: None, terms: [0; 5] };
        // Something to do for the device until the scalars of H are on the host.
        hands.take()?;
        for upload in in_flight {
            upload.wait()?;
        }
        claim.done(coming.wait()?);
        let terms = hands.work(stop)?;
        drop(lanes);
        share(turn, &plan, terms, true)
    }

    /// A turn that computes sums.
    fn follow<D: Ntt + Msm, R: Reduction>(
        &self,
        prover: &Prover<'_, D, R>,
        worker: &mut Worker,
        stop: &dyn Fn() -> bool,
    ) -> Result<Share, Error> {
        let turn = prover.device.turn(worker)?;
        let plan = self.plan(&turn, prover, false)?;
        let lanes = asked(&turn, "open lanes", || Lanes::open(&turn))?;
        prover.resident.give_up(&turn, &plan);
        turn.promise(plan.peak());
        prover.resident.fetch(&lanes.upload, &prover.points, &plan)?;
        turn.compute()?;
        let hands = Hands { joint: self, prover, plan: &plan, lanes: &lanes, last: None, terms: [0; 5] };
        let terms = hands.work(stop)?;
        drop(lanes);
        share(turn, &plan, terms, false)
    }
}

/// Gives the turn back.
fn share<D: Device>(turn: Turn<'_, D>, plan: &Plan, terms: [usize; 5], led: bool) -> Result<Share, Error> {
    let peaks = turn.peaks();
    turn.release()?;
    let policy = led.then(|| plan.policy());
    Ok(Share { policy, reason: plan.reason().to_owned(), phases: plan.phases().to_vec(), peaks, terms })
}

/// A piece under way: waits for it and adds its sum. Dropped before that it gives the piece back.
type UnderWay<'w> = Box<dyn FnOnce() -> Result<(), Error> + 'w>;

/// A device at work on sums.
struct Hands<'w, D: Device, R: Reduction> {
    joint: &'w JointProof<'w>,
    prover: &'w Prover<'w, D, R>,
    plan: &'w Plan,
    lanes: &'w Lanes<'w, D>,
    last: Option<(Sum, UnderWay<'w>)>,
    terms: [usize; 5],
}

impl<'w, D: Ntt + Msm, R: Reduction> Hands<'w, D, R> {
    /// Takes pieces until there are none, or the quotient wants someone.
    fn work(mut self, stop: &dyn Fn() -> bool) -> Result<[usize; 5], Error> {
        loop {
            going(stop, "the next piece")?;
            let wanted = matches!(&*lock(&self.joint.quotient), Quotient::Open { given_up: true, .. });
            if wanted || !self.take()? {
                break;
            }
        }
        self.end_last()?;
        Ok(self.terms)
    }

    /// Enqueues the next piece of any sum, and then waits for the one before it. False when there is none.
    fn take(&mut self) -> Result<bool, Error> {
        // Scalars of H on the device are in the plan of H alone.
        if matches!(self.last, Some((Sum::H, _))) && self.joint.sums.others_wait() {
            self.end_last()?;
        }
        for sum in Sum::SHARED {
            if let Some((terms, next)) = self.next_of(sum)? {
                self.terms[sum as usize] += terms;
                self.end_last()?;
                self.last = Some((sum, next));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end_last(&mut self) -> Result<(), Error> {
        self.last.take().map_or(Ok(()), |(_, end)| end())
    }

    fn next_of(&self, which: Sum) -> Result<Option<(usize, UnderWay<'w>)>, Error> {
        let (sums, assignment, points) = (&self.joint.sums, self.joint.assignment, &self.prover.points);
        let in_g1 = |joint, points, scalars| {
            let kept = self.prover.resident.g1(which);
            self.next_in(which, joint, (kept.as_ref(), points), scalars, &self.prover.g1)
        };
        match which {
            Sum::H => self.next_of_h(),
            Sum::L => in_g1(&sums.l, &points.l, &assignment.l_scalars),
            Sum::A => in_g1(&sums.a, &points.a, &assignment.a_scalars),
            Sum::B1 => in_g1(&sums.b1, &points.b1, &assignment.b1_scalars),
            Sum::B2 => {
                let kept = self.prover.resident.g2();
                let query = (kept.as_ref(), &points.b2);
                self.next_in(which, &sums.b2, query, &assignment.b2_scalars, &self.prover.g2)
            }
        }
    }

    fn next_in<A: Affine>(
        &self,
        which: Sum,
        joint: &'w Joint<A>,
        (kept, points): (Option<&Resident<'w, D, A>>, &'w Points<A>),
        scalars: &Compact,
        slots: &Slots<A>,
    ) -> Result<Option<(usize, UnderWay<'w>)>, Error> {
        let Some(piece) = joint.take(self.plan.batch(which)) else { return Ok(None) };
        let terms = piece.terms();
        let bases = bases(kept, points).range(terms.clone())?;
        let len = terms.len();
        let deferred = sum(self.lanes, self.plan, which, bases, Home::Host(scalars, terms), slots)?;
        Ok(Some((len, Box::new(move || end(piece, deferred)))))
    }

    /// H, whose scalars come from the host as they are.
    fn next_of_h(&self) -> Result<Option<(usize, UnderWay<'w>)>, Error> {
        let Some(h) = self.joint.h() else { return Ok(None) };
        let Some(piece) = self.joint.sums.h.take(self.plan.batch(Sum::H)) else { return Ok(None) };
        let (lanes, prover, terms) = (self.lanes, self.prover, piece.terms());
        let len = terms.len();
        let kept = prover.resident.g1(Sum::H);
        let bases = bases(kept.as_ref(), &prover.points.h).range(terms.clone())?;
        lanes.turn().phase(Sum::H.name());
        let buf = lanes.upload.alloc("h", len)?;
        let (mut buf, upload) = h.upload_range(terms, &lanes.upload, buf, &prover.rings)?;
        let deferred = sum(lanes, self.plan, Sum::H, bases, Home::Device(&mut buf, 0..len), &prover.g1)?;
        Ok(Some((
            len,
            Box::new(move || {
                // The scalars of two pieces are there at a time: these go when the next ones have been enqueued.
                end(piece, deferred)?;
                drop(buf);
                upload.wait()
            }),
        )))
    }
}

fn end<D: Msm, A: Affine>(piece: Piece<'_, A>, deferred: Deferred<'_, D, A>) -> Result<(), Error> {
    piece.done(deferred.finish()?);
    Ok(())
}

/// The right and the duty to compute the quotient. Dropped before it is done it leaves that to the others.
struct Claim<'j> {
    joint: &'j JointProof<'j>,
    place: Option<Place>,
}

impl Claim<'_> {
    fn done(self, h: Values) {
        *lock(&self.joint.quotient) = Quotient::Done(h);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        {
            let mut quotient = lock(&self.joint.quotient);
            if matches!(*quotient, Quotient::Taken) {
                *quotient = Quotient::Open { given_up: true, place: self.place.take() };
            }
        }
        wake(&self.joint.ledgers);
    }
}

/// A device at work. When it leaves, for whatever reason, those who wait look again.
struct Present<'j> {
    ledgers: &'j Mutex<Vec<Ledger>>,
    own: Ledger,
}

impl<'j> Present<'j> {
    fn enter(ledgers: &'j Mutex<Vec<Ledger>>, own: &Ledger) -> Self {
        lock(ledgers).push(own.clone());
        Self { ledgers, own: own.clone() }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut ledgers = lock(self.ledgers);
        if let Some(at) = ledgers.iter().position(|ledger| *ledger == self.own) {
            ledgers.swap_remove(at);
        }
        drop(ledgers);
        wake(self.ledgers);
    }
}

/// Lets those who wait look again.
fn wake(ledgers: &Mutex<Vec<Ledger>>) {
    lock(ledgers).iter().for_each(Ledger::wake);
}

fn going(stop: &dyn Fn() -> bool, before: &'static str) -> Result<(), Error> {
    if stop() { Err(Error::Stopped { before }) } else { Ok(()) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for JointProof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JointProof")
            .field("policy", &self.policy)
            .field("devices", &self.devices)
            .field("complete", &self.sums.are_complete())
            .finish_non_exhaustive()
    }
}
