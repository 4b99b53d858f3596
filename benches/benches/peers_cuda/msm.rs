//! Sums in one group: everything on the card, from page-locked host memory, from ordinary host memory.

use std::mem::MaybeUninit;
use std::sync::Arc;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::{Group, GroupEncoding};
use prestage_benches::sppark::Peer;
use prestage_benches::{Error, Progression, scalars};
use prestage_kernels::card;
use prestage_kernels::msm::{Curve, Form, Ones, Plan};
use prestage_kernels::ntt::Fr;
use prestage_msm::{Affine, Batches, Points, Scalars, Slots, batched, point_rings};
use prestage_transfer::{Lanes, Pinned};
use prestage_vram::cuda::Cuda;
use prestage_vram::{Buf, Bytes, Device as _, Work, Worker};

use crate::Outcome;
use crate::compare::{Lab, ring, wall};

/// Up to this size blst computes the sum too.
const BLST: u32 = 16;

/// A group that blst has sums in.
pub(crate) trait Blst: Peer {
    /// Σ scalars\[i\]·points\[i\] by blst on the CPU.
    fn blst(points: &[Self], scalars: &[Scalar]) -> Self::Curve;
}

impl Blst for G1Affine {
    fn blst(points: &[Self], scalars: &[Scalar]) -> G1Projective {
        G1Projective::multi_exp(&points.iter().map(G1Projective::from).collect::<Vec<_>>(), scalars)
    }
}

impl Blst for G2Affine {
    fn blst(points: &[Self], scalars: &[Scalar]) -> G2Projective {
        G2Projective::multi_exp(&points.iter().map(G2Projective::from).collect::<Vec<_>>(), scalars)
    }
}

/// The terms of a sum, and what it must be.
struct Terms<A: Affine> {
    bases: Points<A>,
    scalars: Arc<Vec<Scalar>>,
    sum: A::Curve,
}

/// All sums of 2^`log` terms.
pub(crate) fn sums<A: Blst>(lab: &mut Lab<'_>, log: u32)
where
    A::Curve: Group<Scalar = Scalar> + GroupEncoding,
{
    let op = |place: &str| format!("msm_{}_{place}", A::NAME.to_lowercase());
    let Some(terms) = lab.within(&op("terms"), log, |_| terms::<A>(log)) else { return };
    lab.within(&op("resident"), log, |lab| resident(lab, &op("resident"), log, &terms));
    if !lab.resident_only {
        lab.within(&op("pinned"), log, |lab| from_host(lab, &op("pinned"), log, &terms, true));
        lab.within(&op("pageable"), log, |lab| from_host(lab, &op("pageable"), log, &terms, false));
    }
}

fn terms<A: Blst>(log: u32) -> Outcome<Terms<A>>
where
    A::Curve: Group<Scalar = Scalar> + GroupEncoding,
{
    let n = 1usize << log;
    let mut bases = Progression::<A>::new(n, 0);
    let scalars = Arc::new(scalars(n, 1));
    let sum = bases.sum(&scalars);
    if log <= BLST {
        expect(A::NAME, log, "blst", &A::blst(&bases.points, &scalars), &sum)?;
    }
    Ok(Terms { bases: Points::from(std::mem::take(&mut bases.points)), scalars, sum })
}

fn expect<P: PartialEq>(group: &str, log: u32, who: &str, got: &P, expected: &P) -> Outcome<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::Wrong(format!("{who}, a sum of 2^{log} terms in {group}")))
}

/// Both must give what the logarithms say.
fn check<A: Affine>(log: u32, expected: &A::Curve) -> impl Fn(&A::Curve, &A::Curve) -> Outcome<()> {
    move |ours, peer| {
        expect(A::NAME, log, "prestage", ours, expected)?;
        expect(A::NAME, log, "sppark", peer, expected)
    }
}

/// Bases, scalars and the memory of both sides are on the card: the same bases and scalars for both.
fn resident<A: Peer>(lab: &mut Lab<'_>, op: &str, log: u32, terms: &Terms<A>) -> Outcome<()> {
    let (card, peer, n) = (lab.card, lab.peer, terms.bases.len());
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker)?;
    {
        let lanes = Lanes::open(&turn)?;
        let place = lanes.upload.alloc("bases", n)?;
        let mut bases = ring(card, A::identity())?.upload(&lanes.upload, terms.bases.host(), place)?;
        let place = lanes.upload.alloc("scalars", n)?;
        let mut scalars = ring(card, Scalar::default())?.upload(&lanes.upload, &terms.scalars, place)?;
        bases.claim(lanes.compute.queue())?;
        scalars.claim(lanes.compute.queue())?;
        let (bases, scalars) =
            (bases.block().as_ptr::<A>().cast_const(), scalars.block().as_ptr::<Scalar>().cast_const());

        let mut ours = Resident::<A>::new(&lanes, n)?;
        let mut theirs = peer.sums::<A>(n)?;
        lanes.compute.drain()?;
        lab.compare(
            op,
            log,
            || wall(|| ours.sum(&lanes, bases, scalars)),
            // SAFETY: 2^log bases and scalars in the card's memory, which are only read, by nobody else meanwhile.
            || wall(|| unsafe { theirs.sum(bases, scalars) }),
            check::<A>(log, &terms.sum),
        )?;
    }
    turn.release()?;
    peer.trim()
}

/// The launches of a sum whose bases are on the card, in one chunk.
struct Resident<'t, A: Affine> {
    plan: Plan,
    n: u64,
    scratch: Buf<'t, Cuda, MaybeUninit<u8>>,
    results: Buf<'t, Cuda, MaybeUninit<u8>>,
    sums: Buf<'t, Cuda, MaybeUninit<A::Curve>>,
    slot: Option<Pinned<MaybeUninit<A::Curve>>>,
}

impl<'t, A: Affine> Resident<'t, A> {
    fn new(lanes: &Lanes<'t, Cuda>, n: usize) -> Outcome<Self> {
        let curve = if A::NAME == "G1" { Curve::G1 } else { Curve::G2 };
        let plan = Plan::new(curve, n as u64);
        let length = |n: u64| {
            usize::try_from(n).map_err(|_| prestage_vram::Error::TooLong { elements: usize::MAX, size: 1 })
        };
        let points = length(plan.results())?;
        let queue = &lanes.compute;
        let mut resident = Self {
            plan,
            n: n as u64,
            scratch: queue.alloc("scratch", length(plan.scratch_bytes())?)?,
            results: queue.alloc("results", length(plan.results() * curve.xyzz_bytes())?)?,
            sums: queue.alloc("sums", points)?,
            slot: Some(Pinned::<A::Curve>::uninit(lanes.device(), points)?),
        };
        resident.scratch.claim(queue.queue())?;
        resident.results.claim(queue.queue())?;
        Ok(resident)
    }

    /// From the first launch to the point on the host.
    fn sum(&mut self, lanes: &Lanes<'t, Cuda>, bases: *const A, scalars: *const Scalar) -> Outcome<A::Curve> {
        let Some(slot) = self.slot.take() else {
            return Err(Error::Wrong("a sum that failed before".into()));
        };
        self.sums.claim(lanes.compute.queue())?;
        let (scratch, results) = (self.scratch.block().as_ptr::<u8>(), self.results.block().as_ptr::<u8>());
        let scalars = scalars.cast::<Fr>();
        let mut launches = self.plan.launches(
            Ones::Apart,
            Form::Montgomery,
            scalars,
            bases.cast(),
            self.n,
            scratch,
            results,
        );
        launches.push(self.plan.to_jacobian(results, self.sums.block().as_ptr()));
        let work = Work::launch("msm", Bytes::of::<A>(self.sums.len()));
        // SAFETY: the blocks are claimed for the queue and of the sizes that the plan says; bases and scalars are on the card, as
        // many as the plan is for.
        unsafe { card::enqueue(lanes.device(), lanes.compute.queue(), work, &launches) }?;
        let all = 0..self.sums.len();
        let slot = lanes.download.download(&mut self.sums, all, slot)?.wait()?;
        // SAFETY: the launches wrote all of the results, and they have been copied.
        let points: &[A::Curve] = unsafe { std::slice::from_raw_parts(slot.as_ptr().cast(), slot.len()) };
        let (double, add) = (|p: A::Curve| p.double(), |p: A::Curve, q: A::Curve| p + q);
        let sum = self.plan.fold(points, A::Curve::identity(), double, add);
        self.slot = Some(slot);
        Ok(sum)
    }
}

/// Bases and scalars in host memory, the same for both: locked, or not, when ours go through rings.
fn from_host<A: Peer>(lab: &mut Lab<'_>, op: &str, log: u32, terms: &Terms<A>, locked: bool) -> Outcome<()> {
    let (card, peer, n) = (lab.card, lab.peer, terms.bases.len());
    let _locked = if locked {
        Some((peer.lock(&terms.bases.host()[..])?, peer.lock(&terms.scalars[..])?))
    } else {
        None
    };
    let batches = Batches::new(card, n, n);
    let slots = Slots::<A>::open(card, 2)?;
    let mut ring = ring(card, Scalar::default())?;
    // `peer.lock` is not known to our account of locked memory.
    let rings = point_rings(card, Bytes::of::<A>(n))?;
    let bases = if locked { terms.bases.clone() } else { terms.bases.clone().through(&rings) };
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker)?;
    {
        let lanes = Lanes::open(&turn)?;
        let mut ours = || {
            let place = lanes.upload.alloc("scalars", n)?;
            let (mut scalars, up) = if locked {
                let (scalars, up) = lanes.upload.upload(Arc::clone(&terms.scalars), place)?;
                (scalars, Some(up))
            } else {
                (ring.upload(&lanes.upload, &terms.scalars, place)?, None)
            };
            let scalars = Scalars::device(&mut scalars);
            let sum = batched(&lanes, "sum", &bases, scalars, &batches, &slots)?.finish()?;
            drop(up);
            Ok(sum)
        };
        lab.compare(
            op,
            log,
            || wall(&mut ours),
            || wall(|| peer.msm(terms.bases.host(), &terms.scalars)),
            check::<A>(log, &terms.sum),
        )?;
    }
    turn.release()?;
    peer.trim()
}
