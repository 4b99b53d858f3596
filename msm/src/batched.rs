//! Sums on a device, in batches whose results are collected one batch late.
//!
//! While the device works on batch i, the host waits for batch i − 1 and adds its result up; so the device always has
//! the next batch at hand, and the host never waits for the batch that it has just enqueued.
//!
//! ```text
//! compute   [ batch 0 ][ batch 1 ][ batch 2 ]
//! upload  [s0][s1]     [s2]                        scalars from the host, two slots, one batch ahead
//! download            [r]        [r]        [r]    results, two slots
//! host     enqueue 0, 1 · wait 0 · enqueue 2 · wait 1 · return        … finish: wait 2
//! ```

use crate::compact::{Layout, Pieces, WordsPart};
use crate::device::{Batch, BatchBases, BatchScalars, Msm, Queues};
use crate::points::{Bases, Home, Place, Query, Scalars};
use crate::{Affine, Error, Plan};
use group::Group;
use group::prime::PrimeCurveAffine;
use prestage_transfer::{Downloading, Lane, Lanes, Pinned, Source, Uploading};
use prestage_vram::{Buf, Bytes, Device, Freed};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// How a sum is cut into batches, and what that takes on the device.
///
/// ```
/// use blstrs::G1Affine;
/// use prestage_msm::{Batches, Place};
/// use prestage_vram::{Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let whole = Batches::new(&host, 100_000, 100_000);
/// let parts = Batches::new(&host, 100_000, 20_000);
/// assert_eq!((whole.count(), parts.count(), parts.range(4)), (1, 5, 80_000..100_000));
/// let bytes = |b: &Batches| b.footprint::<G1Affine, _>(&host, Place::Device);
/// assert!(bytes(&parts) < bytes(&whole));
/// # Ok::<(), prestage_vram::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    len: usize,
    /// Terms in a batch; the last one may be smaller.
    batch: usize,
    plan: Plan,
    /// Where the bases are.
    bases: Place,
}

impl Batches {
    /// `len` terms in nearly equal batches of at most `batch` (0 counts as 1), under the device's own plan.
    #[must_use]
    pub fn new<D: Msm>(device: &D, len: usize, batch: usize) -> Self {
        let count = len.div_ceil(batch.max(1));
        let batch = len.div_ceil(count.max(1));
        Self { len, batch, plan: device.plan(batch), bases: Place::Host }
    }

    /// The same for bases that stay on the device: no slots are needed for them.
    #[must_use]
    pub const fn resident(self) -> Self {
        Self { bases: Place::Device, ..self }
    }

    /// Terms in all.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Terms in the largest batch.
    #[must_use]
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// How many batches there are; none for a sum of nothing.
    #[must_use]
    pub const fn count(&self) -> usize {
        if self.batch == 0 { 0 } else { self.len.div_ceil(self.batch) }
    }

    /// The terms of a batch.
    #[must_use]
    pub fn range(&self, index: usize) -> Range<usize> {
        let start = self.len.min(index.saturating_mul(self.batch));
        start..self.len.min(start.saturating_add(self.batch))
    }

    /// The plan of each batch.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Device memory that [`batched`] holds at its peak, exactly: scratch, two slots for results, and where the
    /// scalars come from the host two slots for them, unless the device reads them there. Points and scalars that are on the
    /// device already are not counted.
    #[must_use]
    pub fn footprint<A: Affine, D: Msm>(&self, device: &D, scalars: Place) -> Bytes {
        if self.len == 0 {
            return Bytes::ZERO;
        }
        let streamed = Layout::slot(self.batch).saturating_mul(self.scalar_slots(device, scalars));
        let streamed = Bytes::of::<u64>(streamed) * device.scale();
        let results = device.partials::<A>().saturating_mul(self.slots());
        device.scratch_charge::<A>(&self.plan, self.bases) + Bytes::of::<A::Curve>(results) + streamed
    }

    /// Slots for results.
    fn slots(&self) -> usize {
        self.count().min(2)
    }

    /// Slots for scalars: for those that come from the host to a device that does not read them there.
    fn scalar_slots(&self, device: &impl Msm, scalars: Place) -> usize {
        if scalars == Place::Host && device.streams() { self.slots() } else { 0 }
    }
}

/// Pinned places on the host that results land in, two for a sum in flight. Clones share them.
///
/// Open it before the turn is taken: pinning is slow. A sum gives its places back when it is finished.
pub struct Slots<A: Affine>(Arc<Mutex<Vec<Slot<A>>>>);

type Slot<A> = Pinned<MaybeUninit<<A as PrimeCurveAffine>::Curve>>;

impl<A: Affine> Slots<A> {
    /// `count` places. When all are in use, more are pinned.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn open(device: &impl Msm, count: usize) -> Result<Self, Error> {
        let slots = (0..count).map(|_| Self::pin(device)).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Mutex::new(slots))))
    }

    /// Places not in use.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn take(&self, device: &impl Msm) -> Result<Slot<A>, Error> {
        let slot = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        slot.map_or_else(|| Self::pin(device), Ok)
    }

    fn give_back(&self, slot: Slot<A>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }

    fn pin(device: &impl Msm) -> Result<Slot<A>, Error> {
        Ok(Pinned::<A::Curve>::uninit(device, device.partials::<A>())?)
    }
}

impl<A: Affine> Clone for Slots<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Affine> fmt::Debug for Slots<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("group", &A::NAME).field("free", &self.free()).finish()
    }
}

/// A sum whose last batch is under way. It holds no device memory.
///
/// Dropping it waits for what is in flight.
#[must_use = "the sum is reached through `finish`"]
pub struct Deferred<'t, D: Msm, A: Affine> {
    device: &'t D,
    plan: Plan,
    /// Where its bases are.
    place: Place,
    /// Sum of the batches that were waited for.
    sum: A::Curve,
    /// The result of the last batch on its way.
    last: Option<Downloading<'t, D, MaybeUninit<A::Curve>>>,
    /// Scalars on their way, one batch in each device slot.
    uploads: [Vec<Uploading<'t, D, WordsPart>>; 2],
    /// The bases, which the work under way reads: they go after that has been waited for.
    _bases: Arc<dyn Send + Sync + 't>,
    slots: Slots<A>,
}

impl<D: Msm, A: Affine> Deferred<'_, D, A> {
    /// True when [`Deferred::finish`] will not block.
    ///
    /// # Errors
    /// [`Error::Device`] when the work failed.
    pub fn passed(&self) -> Result<bool, Error> {
        self.last.as_ref().map_or(Ok(true), |last| Ok(last.passed()?))
    }

    /// Waits for the last batch and gives the sum.
    ///
    /// # Errors
    /// [`Error::Device`] when work on a lane failed.
    pub fn finish(mut self) -> Result<A::Curve, Error> {
        self.collect()?;
        Ok(self.sum)
    }

    /// Waits for the batch in flight and adds its result.
    fn collect(&mut self) -> Result<(), Error> {
        if let Some(last) = self.last.take() {
            let slot = last.wait()?;
            // SAFETY: the batch wrote all partial sums, by the contract of `Msm`, and neither it nor the copy failed.
            let partials = unsafe { std::slice::from_raw_parts(slot.as_ptr().cast(), slot.len()) };
            self.sum += self.device.fold::<A>(&self.plan, self.place, partials);
            self.slots.give_back(slot);
        }
        Ok(())
    }
}

impl<D: Msm, A: Affine> fmt::Debug for Deferred<'_, D, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("group", &A::NAME).field("last", &self.last).finish_non_exhaustive()
    }
}

/// Enqueues Σ scalars\[i\]·bases\[i\] in batches on the turn's lanes. Returns when all but the last batch have ended;
/// a sum of one batch returns at once, or when its bases are in the slots of their ring ([`Points::through`](crate::Points::through)).
///
/// `label` names the work in the record. Memory is [`Batches::footprint`], taken from the turn at the beginning and
/// freed, in the order of the lanes, before this returns. A device buffer of scalars may be dropped after that.
///
/// ```
/// use blstrs::{G1Affine, Scalar};
/// use group::prime::PrimeCurveAffine;
/// use prestage_msm::{Batches, Compact, Points, Scalars, Slots, batched};
/// use prestage_transfer::Lanes;
/// use prestage_vram::{Device, Host, HostConfig, Worker};
///
/// let host = Host::open(HostConfig::default())?;
/// let slots = Slots::<G1Affine>::open(&host, 2)?;
/// let bases = Points::from(vec![G1Affine::generator(); 1000]);
/// let witness: Vec<_> = (0..1000).map(Scalar::from).collect();
/// let batches = Batches::new(&host, bases.len(), 400);
/// let scalars = Compact::new(&host, &witness)?;
///
/// let mut worker = Worker::new(0);
/// let turn = host.turn(&mut worker)?;
/// let lanes = Lanes::open(&turn)?;
/// let sum = batched(&lanes, "l", &bases, Scalars::host(scalars), &batches, &slots)?;
/// assert_eq!(sum.finish()?, G1Affine::generator() * Scalar::from(999 * 1000 / 2));
/// # drop(lanes);
/// # turn.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Error::LengthMismatch`] unless there are as many scalars as bases, [`Error::LongerThanPlanned`] when `batches` is
/// for another number of them or for bases that are elsewhere; [`Error::Device`] when memory is refused or an operation fails. Nothing is left on the device then.
pub fn batched<'t, 'b, 'r: 't + 'b, D: Msm, A: Affine>(
    lanes: &Lanes<'t, D>,
    label: &str,
    bases: impl Into<Bases<'b, 'r, D, A>>,
    mut scalars: Scalars<'_, '_, D>,
    batches: &Batches,
    slots: &Slots<A>,
) -> Result<Deferred<'t, D, A>, Error> {
    let bases: Bases<'b, 'r, D, A> = bases.into();
    if bases.len() != scalars.len() {
        return Err(Error::LengthMismatch { bases: bases.len(), scalars: scalars.len() });
    }
    if bases.len() != batches.len() || bases.place() != batches.bases {
        return Err(Error::LongerThanPlanned { len: bases.len(), planned: batches.len() });
    }
    let mut deferred = Deferred {
        device: lanes.device(),
        plan: *batches.plan(),
        place: bases.place(),
        sum: A::Curve::identity(),
        last: None,
        uploads: Default::default(),
        _bases: bases.hold(),
        slots: slots.clone(),
    };
    if bases.is_empty() {
        return Ok(deferred);
    }
    // Dropped before `deferred`, which keeps the bases, when this fails.
    let mut fence = Fence(Some(&lanes.compute));
    if let Query::Device(resident) = bases.query {
        lanes
            .device()
            .wait(lanes.compute.queue(), resident.mark())
            .map_err(prestage_transfer::Error::from)?;
    }
    let mut memory = Memory::<D, A>::take(lanes, batches, scalars.place())?;
    let mut freed = Some(lanes.turn().freed()?);
    memory.send(lanes, &scalars, batches, 0, &mut deferred.uploads[0])?;
    for index in 0..batches.count() {
        let slot = slots.take(lanes.device())?;
        let result = memory.enqueue(lanes, label, bases, &mut scalars, batches, index, slot)?;
        // One batch ahead: its scalars are there when its turn comes, however busy the link is then. Behind the bases of this one,
        // which need not wait for the batch whose place these take.
        memory.send(lanes, &scalars, batches, index + 1, &mut deferred.uploads[(index + 1) % 2])?;
        // The device has work now, and what was freed before this sum is there when that begins.
        freed.take().map_or(Ok(()), Freed::pass_on)?;
        deferred.collect()?;
        deferred.last = Some(result);
    }
    fence.0 = None;
    Ok(deferred)
}

/// Waits for a lane when dropped, unless it has been taken off: bases on the device may not go while a batch may read them.
struct Fence<'l, 't, D: Device>(Option<&'l Lane<'t, D>>);

impl<D: Device> Drop for Fence<'_, '_, D> {
    fn drop(&mut self) {
        if let Some(lane) = self.0 {
            // What failed has ended as well; the turn reports it.
            let _ = lane.drain();
        }
    }
}

/// The terms of a batch among those of which the sum has a part that begins at `start`.
fn shifted(terms: Range<usize>, start: usize) -> Range<usize> {
    terms.start + start..terms.end + start
}

/// What a sum holds on the device while it is being enqueued.
struct Memory<'t, D: Msm, A: Affine> {
    carried: D::Carried,
    scratch: Buf<'t, D, MaybeUninit<u8>>,
    /// By parity of the batch.
    results: Vec<Buf<'t, D, MaybeUninit<A::Curve>>>,
    /// By parity of the batch; empty where the device reads the scalars where they are.
    scalars: Vec<Buf<'t, D, MaybeUninit<u64>>>,
    /// How the scalars lie in those slots.
    layouts: [Option<Layout>; 2],
}

impl<'t, D: Msm, A: Affine> Memory<'t, D, A> {
    /// The whole [`Batches::footprint`], so that a sum that begins cannot be refused in the middle.
    fn take(lanes: &Lanes<'t, D>, batches: &Batches, place: Place) -> Result<Self, Error> {
        let bytes = lanes.device().scratch::<A>(batches.plan(), batches.bases);
        let bytes =
            bytes.to_usize().ok_or(prestage_vram::Error::TooLong { elements: usize::MAX, size: 1 })?;
        let streamed = batches.scalar_slots(lanes.device(), place);
        Ok(Self {
            carried: D::Carried::default(),
            scratch: lanes.compute.alloc_charged(
                "msm scratch",
                bytes,
                lanes.device().scratch_charge::<A>(batches.plan(), batches.bases),
            )?,
            results: (0..batches.slots())
                .map(|_| {
                    let partials = lanes.device().partials::<A>();
                    lanes.compute.alloc_charged("msm result", partials, Bytes::of::<A::Curve>(partials))
                })
                .collect::<Result<_, _>>()?,
            scalars: (0..streamed)
                .map(|_| lanes.upload.alloc("msm scalars", Layout::slot(batches.batch())))
                .collect::<Result<_, _>>()?,
            layouts: [None; 2],
        })
    }

    /// Enqueues the upload of a batch's scalars, if there is such a batch and the device does not read them where they are.
    fn send(
        &mut self,
        lanes: &Lanes<'t, D>,
        scalars: &Scalars<'_, '_, D>,
        batches: &Batches,
        index: usize,
        uploads: &mut Vec<Uploading<'t, D, WordsPart>>,
    ) -> Result<(), Error> {
        let (Home::Host(compact, all), true) = (&scalars.0, index < batches.count()) else { return Ok(()) };
        let Some(buf) = self.scalars.get_mut(index % 2) else { return Ok(()) };
        let Pieces { layout, others, ones, integers } =
            compact.pieces(&shifted(batches.range(index), all.start), batches.batch());
        // Those of two batches before, which ran to its end or is the next to.
        uploads.clear();
        for (piece, at) in [(others, 0), (ones, layout.width()), (integers, layout.integers())] {
            if !piece.elements().is_empty() {
                uploads.push(lanes.upload.upload_at(piece, buf, at)?);
            }
        }
        self.layouts[index % 2] = Some(layout);
        Ok(())
    }

    /// Enqueues one batch, and the download of its result after it.
    #[allow(clippy::too_many_arguments)]
    fn enqueue(
        &mut self,
        lanes: &Lanes<'t, D>,
        label: &str,
        bases: Bases<'_, '_, D, A>,
        scalars: &mut Scalars<'_, '_, D>,
        batches: &Batches,
        index: usize,
        slot: Pinned<MaybeUninit<A::Curve>>,
    ) -> Result<Downloading<'t, D, MaybeUninit<A::Curve>>, Error> {
        let queue = lanes.compute.queue();
        let (parity, terms) = (index % 2, batches.range(index));
        let mut sent = self.scalars.get_mut(parity);
        let scalars = match (&mut scalars.0, &mut sent, self.layouts[parity]) {
            (Home::Device(buf, range), ..) => {
                buf.claim(queue)?;
                BatchScalars::Plain { block: buf.block(), at: range.start + terms.start }
            }
            (Home::Host(..), Some(buf), Some(layout)) => {
                buf.claim(queue)?;
                BatchScalars::Compact { block: buf.block(), layout }
            }
            (Home::Host(compact, all), None, _) => {
                BatchScalars::Host { compact, at: all.start + terms.start }
            }
            // `send` comes first.
            (Home::Host(..), ..) => return Err(Error::LengthMismatch { bases: terms.len(), scalars: 0 }),
        };
        let result = &mut self.results[parity];
        self.scratch.claim(queue)?;
        result.claim(queue)?;
        let batch = Batch {
            name: format!("msm {label} {}/{}", index + 1, batches.count()),
            plan: batches.plan(),
            bases: match bases.query {
                Query::Host(points) => BatchBases::Host(points),
                Query::Device(resident) => BatchBases::Device(resident.block()),
            },
            terms: shifted(terms, bases.start),
            scalars,
            scratch: self.scratch.block(),
            result: result.block(),
        };
        let worker = lanes.turn().worker();
        let queues = Queues { compute: queue, upload: lanes.upload.queue(), worker };
        // SAFETY: all three blocks were just claimed for this queue, and whoever uses them next claims them first;
        // `take` gave them their sizes; the scalars were uploaded, or belong to a buffer of initialised elements
        // that holds the range; the lane waits for bases on the device. The deferred sum keeps the bases until it has
        // waited for the batch, and a sum that fails waits for the lane before.
        unsafe { lanes.device().enqueue(queues, batch, &mut self.carried) }?;
        if let Some(buf) = sent {
            let mark = lanes.compute.record()?;
            // SAFETY: recorded after the only use on this lane. The next upload into this slot waits for this
            // batch alone, not for the one that will be running then.
            unsafe { buf.ready_at(mark.raw().clone()) };
        }
        let all = 0..result.len();
        Ok(lanes.download.download(result, all, slot)?)
    }
}
