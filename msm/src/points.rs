//! Where the terms of a sum on a device come from.

use crate::{Affine, Compact, Error};
use blstrs::Scalar;
use prestage_transfer::{Error as E, Lane, Pinned, Ring, Rings, Shared, Transfer};
use prestage_vram::{Buf, Bytes, Class, Device};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

/// Memory is locked in pieces of this size.
const CHUNK: Bytes = Bytes::gib(1);
/// Up to so many bytes of points are copied where they cannot be locked in place.
const FEW: usize = 1 << 20;

/// The bases of sums: a query of a proving key. Clones share the memory.
///
/// They lie in host memory; a device that cannot read it streams them, or keeps a copy ([`Resident`]). A card copies them at the
/// speed of its link where their memory is page-locked ([`Points::locked`]) or they go through a ring ([`Points::through`]), and
/// else through the driver's own slots, at a fraction of it.
#[derive(Clone, Debug)]
pub struct Points<A> {
    host: Arc<[A]>,
    lock: Option<Lock<A>>,
    rings: Option<PointRings>,
}

/// Rings that points of either group pass through on their way to a card. The host thread that enqueues a sum fills the slots.
pub type PointRings = Rings<MaybeUninit<u8>>;

/// A ring for points, if it can be pinned: four slots of 16 MiB at full size, or as long as `longest`, the bytes of the longest
/// query that goes through it. Open it before the turn is taken.
///
/// # Errors
/// [`Error::Device`] when pinning fails for another reason than that memory cannot be page-locked.
pub fn point_rings(device: &impl Transfer, longest: Bytes) -> Result<PointRings, Error> {
    let full = Bytes::mib(16).get() / device.scale().max(1);
    let slot = usize::try_from(full.min(longest.get())).unwrap_or(usize::MAX).max(1);
    Ok(Rings::open(device, 1, 4, slot, MaybeUninit::new(0))?)
}

/// Page-locked memory of points.
#[derive(Clone, Debug)]
enum Lock<A> {
    /// Where they lie.
    There(#[allow(dead_code)] Arc<Shared<A>>),
    /// A copy, of so few that they lie on pages with other memory that is locked already.
    Copy(Arc<Pinned<A>>),
}

impl<A> Points<A> {
    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.host.len()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.host.is_empty()
    }

    /// The same points, their memory page-locked where that can be had.
    ///
    /// # Errors
    /// [`Error::Device`] when locking fails for another reason than that it cannot be had.
    pub fn locked(self, device: &impl Transfer) -> Result<Self, Error>
    where
        A: Copy + Send + Sync + 'static,
    {
        let locked = match Shared::lock(device, Arc::clone(&self.host), CHUNK) {
            Err(E::Device(prestage_vram::Error::AlreadyLocked { .. })) if size_of_val(&*self.host) <= FEW => {
                Pinned::from_slice(device, &self.host).map(|copy| Lock::Copy(Arc::new(copy)))
            }
            locked => locked.map(|lock| Lock::There(Arc::new(lock))),
        };
        match locked {
            Ok(lock) => Ok(Self { lock: Some(lock), ..self }),
            Err(e) if e.is_unpinnable() => Ok(self),
            Err(e) => Err(e.into()),
        }
    }

    /// The same points, which go through `rings`, those of the device that computes, unless their memory is page-locked.
    #[must_use]
    pub fn through(self, rings: &PointRings) -> Self {
        Self { rings: Some(rings.clone()), ..self }
    }

    /// Calls `with` with a ring of `device` for these points, if they go through one and one is idle.
    pub(crate) fn with_ring<D: Transfer, R, X: From<E>>(
        &self,
        device: &D,
        with: impl FnOnce(Option<&mut Ring<'_, D, MaybeUninit<u8>>>) -> Result<R, X>,
    ) -> Result<R, X> {
        match &self.rings {
            Some(rings) if !self.is_locked() => rings.with(device, with),
            _ => with(None),
        }
    }

    /// The points where a device should copy them from: page-locked, if they are anywhere.
    pub(crate) fn memory(&self) -> &[A] {
        match &self.lock {
            Some(Lock::Copy(copy)) => copy,
            _ => &self.host,
        }
    }

    /// Whether their memory is page-locked.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// The points in host memory.
    #[must_use]
    pub fn host(&self) -> &Arc<[A]> {
        &self.host
    }
}

impl<A> From<Arc<[A]>> for Points<A> {
    fn from(host: Arc<[A]>) -> Self {
        Self { host, lock: None, rings: None }
    }
}

impl<A> From<Vec<A>> for Points<A> {
    fn from(points: Vec<A>) -> Self {
        Self { host: points.into(), lock: None, rings: None }
    }
}

/// Points as a ring takes them.
pub(crate) fn bytes<A: Copy>(points: &[A]) -> &[MaybeUninit<u8>] {
    // SAFETY: all of the memory that is borrowed, as bytes of which nothing is expected.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), size_of_val(points)) }
}

/// Bases that stay on the device, as resident memory, for any number of sums and turns. Clones share it; what is under way holds
/// one.
///
/// They are only read. They are freed when the last clone goes, by when no work reads them any more: [`crate::Deferred`] keeps one until
/// its work has ended.
pub struct Resident<'r, D: Device, A>(Arc<Copied<'r, D, A>>);

struct Copied<'r, D: Device, A> {
    // Freed first: that waits for the copy, which reads the source.
    buf: Buf<'r, D, A>,
    /// Where the copy ends.
    arrived: D::Mark,
    _source: Points<A>,
}

impl<'r, D: Transfer, A: Affine> Resident<'r, D, A> {
    /// Enqueues the copy of `points` to `device`, which is the lane's, and returns: sums that are enqueued from now on wait for it.
    /// Memory that is not page-locked goes through the points' ring, or a device takes it, before this returns.
    ///
    /// # Errors
    /// [`Error::Device`] when the memory is refused or the copy cannot be enqueued.
    pub fn upload(
        points: &Points<A>,
        device: &'r D,
        lane: &Lane<'_, D>,
        label: &'static str,
    ) -> Result<Self, Error> {
        // Given back to the device at once when it goes: no pool keeps what may be tens of GiB.
        let mut buf = lane.turn().alloc_resident(device, label, points.len(), Class::Direct, lane.queue())?;
        let arrived = points.with_ring(device, |ring| {
            let Some(ring) = ring else {
                // SAFETY: the source is kept beside the buffer, whose end waits for the lane.
                return unsafe { lane.enqueue_in::<A, _>(points.memory(), &mut buf, 0) };
            };
            buf.claim(lane.queue())?;
            let worker = lane.turn().worker();
            // SAFETY: the whole of a block that was just claimed.
            unsafe { ring.stream(lane.queue(), worker, label, bytes(points.memory()), buf.block(), 0) }?;
            let arrived = lane.record()?;
            // SAFETY: the buffer was claimed for this lane, so all its uses come before this mark.
            unsafe { buf.ready_at(arrived.raw().clone()) };
            Ok::<_, E>(arrived)
        })?;
        // SAFETY: the copies just enqueued write every element.
        let buf = unsafe { buf.assume_init() };
        Ok(Self(Arc::new(Copied { buf, arrived: arrived.raw().clone(), _source: points.clone() })))
    }
}

impl<D: Device, A> Resident<'_, D, A> {
    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.buf.len()
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What they are accounted for.
    #[must_use]
    pub fn charge(&self) -> Bytes {
        self.0.buf.charge()
    }

    /// Whether nobody but the caller holds them, so that they are freed when this is dropped.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether they have arrived.
    ///
    /// # Errors
    /// [`Error::Device`] when the copy failed: they are of no use.
    pub fn arrived(&self) -> Result<bool, Error> {
        Ok(self.0.buf.device().passed(&self.0.arrived)?)
    }

    /// The device's own block, which holds them once [`Resident::mark`] has passed.
    pub(crate) fn block(&self) -> &D::Block {
        self.0.buf.block()
    }

    pub(crate) fn mark(&self) -> &D::Mark {
        &self.0.arrived
    }
}

impl<D: Device, A> Clone for Resident<'_, D, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Device, A> fmt::Debug for Resident<'_, D, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resident").field("len", &self.len()).field("charge", &self.charge()).finish()
    }
}

/// The bases of one sum, where they are: a query, or a range of it.
pub struct Bases<'b, 'r, D: Device, A> {
    pub(crate) query: Query<'b, 'r, D, A>,
    /// The first of them.
    pub(crate) start: usize,
    len: usize,
}

/// Where a whole query is.
pub(crate) enum Query<'b, 'r, D: Device, A> {
    /// In host memory: a device that cannot read it streams them.
    Host(&'b Points<A>),
    /// On the device.
    Device(&'b Resident<'r, D, A>),
}

impl<'b, D: Device, A> From<&'b Points<A>> for Bases<'b, '_, D, A> {
    fn from(points: &'b Points<A>) -> Self {
        Self { query: Query::Host(points), start: 0, len: points.len() }
    }
}

impl<'b, 'r, D: Device, A> From<&'b Resident<'r, D, A>> for Bases<'b, 'r, D, A> {
    fn from(resident: &'b Resident<'r, D, A>) -> Self {
        Self { query: Query::Device(resident), start: 0, len: resident.len() }
    }
}

impl<D: Device, A> Clone for Bases<'_, '_, D, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device, A> Copy for Bases<'_, '_, D, A> {}

impl<D: Device, A> Clone for Query<'_, '_, D, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device, A> Copy for Query<'_, '_, D, A> {}

impl<'r, D: Device, A: Affine> Bases<'_, 'r, D, A> {
    /// Those numbered `range` among these alone. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Device`] when the range reaches past the end.
    pub fn range(self, range: Range<usize>) -> Result<Self, Error> {
        let Range { start, end } = within(range, self.len)?;
        Ok(Self { start: self.start + start, len: end - start, ..self })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they are.
    #[must_use]
    pub fn place(&self) -> Place {
        match self.query {
            Query::Host(_) => Place::Host,
            Query::Device(_) => Place::Device,
        }
    }

    /// What keeps them where they are.
    pub(crate) fn hold(&self) -> Arc<dyn Send + Sync + 'r> {
        match self.query {
            Query::Host(points) => Arc::new(points.clone()),
            Query::Device(resident) => Arc::new(resident.clone()),
        }
    }
}

impl<D: Device, A: Affine> fmt::Debug for Bases<'_, '_, D, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bases")
            .field("place", &self.place())
            .field("start", &self.start)
            .field("len", &self.len)
            .finish()
    }
}

/// The scalars of one sum, where they are.
pub struct Scalars<'s, 'a, D: Device>(pub(crate) Home<'s, 'a, D>);

pub(crate) enum Home<'s, 'a, D: Device> {
    Device(&'s mut Buf<'a, D, Scalar>, Range<usize>),
    Host(Compact, Range<usize>),
}

impl<'s, 'a, D: Device> Scalars<'s, 'a, D> {
    /// All of a device buffer, as the coefficients of H are. It is not copied.
    #[must_use]
    pub fn device(buf: &'s mut Buf<'a, D, Scalar>) -> Self {
        let all = 0..buf.len();
        Self(Home::Device(buf, all))
    }

    /// A part of a device buffer.
    ///
    /// # Errors
    /// [`Error::Device`] when the range reaches past the end.
    pub fn device_range(buf: &'s mut Buf<'a, D, Scalar>, range: Range<usize>) -> Result<Self, Error> {
        let range = within(range, buf.len())?;
        Ok(Self(Home::Device(buf, range)))
    }

    /// Host memory, as a witness is. It is streamed to the device batch by batch, zeros and ones as bits, and let go when the
    /// last batch is there. A device that does not stream reads it where it lies, and lets it go batch by batch.
    #[must_use]
    pub fn host(compact: Compact) -> Self {
        let all = 0..compact.len();
        Self(Home::Host(compact, all))
    }

    /// A part of it.
    ///
    /// # Errors
    /// [`Error::Device`] when the range reaches past the end.
    pub fn host_range(compact: Compact, range: Range<usize>) -> Result<Self, Error> {
        let range = within(range, compact.len())?;
        Ok(Self(Home::Host(compact, range)))
    }

    /// How many scalars there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Home::Device(_, range) | Home::Host(_, range) => range.len(),
        }
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where they are.
    #[must_use]
    pub fn place(&self) -> Place {
        match &self.0 {
            Home::Device(..) => Place::Device,
            Home::Host(..) => Place::Host,
        }
    }
}

/// The range, if it lies within `len` elements.
fn within(range: Range<usize>, len: usize) -> Result<Range<usize>, Error> {
    if range.start <= range.end && range.end <= len {
        Ok(range)
    } else {
        let Range { start, end } = range;
        Err(prestage_transfer::Error::Range { start, end, len }.into())
    }
}

impl<D: Device> fmt::Debug for Scalars<'_, '_, D> {
    /// Shows how many and where, never values: they are a witness.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scalars").field("place", &self.place()).field("len", &self.len()).finish()
    }
}

/// Which memory the scalars or the bases of a sum are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The device's: used where they are.
    Device,
    /// The host's: they pass through slots on the device.
    Host,
}
