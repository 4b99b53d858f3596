//! Host memory of a, b and c: page-locked where that can be had, ordinary where not.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::{Ntt, Outside};
use prestage_transfer::{
    Downloading, Lane, Part, Pinned, PinnedPool, Rings, Source as _, Transfer, Uploading,
};
use prestage_vram::{Buf, Bytes, Device};
use rayon::prelude::*;

use crate::Error;

/// Bytes of a polynomial, at full size, that the link is given at a time while another proof computes: 0.6 ms of PCIe 5.
const AHEAD: Bytes = Bytes::mib(32);
/// Bytes of a ring's slot at full size.
const SLOT: Bytes = Bytes::mib(4);
/// Elements per piece of parallel work.
const PIECE: usize = 1 << 10;

/// Host memory that an upload can read; clones share it.
#[derive(Clone)]
pub(super) enum Values {
    /// Page-locked: copies run at the speed of the link, beside everything else.
    Pinned(Arc<Pinned<Scalar>>),
    /// Ordinary memory.
    Plain(Arc<Vec<Scalar>>),
}

/// Memory for values that are not there yet.
pub(super) enum Place {
    Pinned(Pinned<MaybeUninit<Scalar>>),
    Plain(Vec<MaybeUninit<Scalar>>),
}

impl Place {
    pub(super) fn new<D: Transfer>(memory: &PinnedPool, device: &D, len: usize) -> Result<Self, Error> {
        match memory.uninit(device, len) {
            Ok(pinned) => Ok(Self::Pinned(pinned)),
            Err(e) if e.is_unpinnable() => Ok(Self::Plain(vec![MaybeUninit::uninit(); len])),
            Err(e) => Err(e.into()),
        }
    }

    fn as_mut(&mut self) -> &mut [MaybeUninit<Scalar>] {
        match self {
            Self::Pinned(place) => place,
            Self::Plain(place) => place,
        }
    }

    /// Enqueues the copy of as many elements from the beginning of `buf`. Memory that is not page-locked takes them before this
    /// returns.
    pub(super) fn download<'t, D: Transfer>(
        self,
        lane: &Lane<'t, D>,
        buf: &mut Buf<'_, D, Scalar>,
        rings: &Rings<Scalar>,
    ) -> Result<Coming<'t, D>, Error> {
        let mut place = match self {
            Self::Pinned(place) => {
                let all = 0..place.len();
                return Ok(Coming::Pinned(lane.download(buf, all, place)?));
            }
            Self::Plain(place) => place,
        };
        let all = 0..place.len();
        match rings.take(lane.device()) {
            Some(mut ring) => {
                ring.download(lane, buf, all, &mut place)?;
                rings.give_back(ring)?;
            }
            None => lane.scope(|scope| scope.download(buf, all, &mut place))?,
        }
        // SAFETY: the copy, which has ended well, has written every element.
        Ok(Coming::Here(unsafe { Self::Plain(place).assume_init() }))
    }

    /// # Safety
    /// Every element has been written.
    unsafe fn assume_init(self) -> Values {
        match self {
            // SAFETY: this function's contract.
            Self::Pinned(place) => Values::Pinned(Arc::new(unsafe { place.assume_init() })),
            Self::Plain(place) => {
                let mut place = std::mem::ManuallyDrop::new(place);
                let (at, len, capacity) = (place.as_mut_ptr().cast(), place.len(), place.capacity());
                // SAFETY: a vector's parts, taken apart once; `MaybeUninit<T>` has the layout of `T`, and all are written.
                Values::Plain(Arc::new(unsafe { Vec::from_raw_parts(at, len, capacity) }))
            }
        }
    }
}

impl Values {
    /// a, b and c over `len` rows, evaluated in one parallel pass: `row` gives those of one row.
    pub(super) fn evaluate<D: Transfer>(
        memory: &PinnedPool,
        device: &D,
        len: usize,
        row: impl Fn(usize) -> [Scalar; 3] + Sync,
    ) -> Result<[Self; 3], Error> {
        let place = || Place::new(memory, device, len);
        let (mut a, mut b, mut c) = (place()?, place()?, place()?);
        let [in_a, in_b, in_c] = [&mut a, &mut b, &mut c].map(|place| place.as_mut().par_chunks_mut(PIECE));
        in_a.zip(in_b).zip(in_c).enumerate().for_each(|(piece, ((a, b), c))| {
            let places = a.iter_mut().zip(b).zip(c);
            for (i, ((a, b), c)) in (piece * PIECE..).zip(places) {
                let values = row(i);
                a.write(values[0]);
                b.write(values[1]);
                c.write(values[2]);
            }
        });
        // SAFETY: the three have the same length, and the pass has written every row of each.
        Ok(unsafe { [a.assume_init(), b.assume_init(), c.assume_init()] })
    }

    pub(super) fn as_slice(&self) -> &[Scalar] {
        match self {
            Self::Pinned(values) => values,
            Self::Plain(values) => values,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(super) fn is_pinned(&self) -> bool {
        matches!(self, Self::Pinned(_))
    }

    /// A copy that may be written to.
    pub(super) fn copy<D: Transfer>(&self, memory: &PinnedPool, device: &D) -> Result<Scratch, Error> {
        match memory.uninit(device, self.len()) {
            Ok(place) => Ok(Scratch::Pinned(place.copied(self.as_slice())?)),
            Err(e) if e.is_unpinnable() => Ok(Scratch::Plain(self.as_slice().to_vec())),
            Err(e) => Err(e.into()),
        }
    }

    /// The same where a turn is held: in memory that is idle in the pool, or else not page-locked.
    pub(super) fn copy_in_turn(&self, memory: &PinnedPool) -> Result<Scratch, Error> {
        match memory.idle_uninit(self.len()) {
            Some(place) => Ok(Scratch::Pinned(place.copied(self.as_slice())?)),
            None => Ok(Scratch::Plain(self.as_slice().to_vec())),
        }
    }

    /// Enqueues the copy of all into `buf`, letting copies of a proof that computes meanwhile go first. Memory that is not
    /// page-locked goes through a ring, where one can be had.
    pub(super) fn upload<'t, D: Transfer>(
        &self,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
        rings: &Rings<Scalar>,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        self.upload_range(0..self.len(), lane, buf, rings)
    }

    /// The same of those numbered `range`.
    pub(super) fn upload_range<'t, D: Transfer>(
        &self,
        range: Range<usize>,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
        rings: &Rings<Scalar>,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        match self {
            Self::Pinned(values) => {
                let piece = elements(AHEAD, lane.device());
                let part = Part::new(Arc::clone(values), range)?;
                let (buf, upload) = lane.upload_beside(part, buf, piece, || lane.turn().is_beside())?;
                Ok((buf, InFlight::Pinned(upload)))
            }
            Self::Plain(values) => {
                Self::upload_plain(Part::new(Arc::clone(values), range)?, lane, buf, rings)
            }
        }
    }

    fn upload_plain<'t, D: Transfer>(
        values: Part<Arc<Vec<Scalar>>>,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
        rings: &Rings<Scalar>,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        if let Some(mut ring) = rings.take(lane.device()) {
            let buf = ring.upload(lane, values.elements(), buf)?;
            rings.give_back(ring)?;
            return Ok((buf, InFlight::Copied));
        }
        let (buf, upload) = lane.upload(values, buf)?;
        Ok((buf, InFlight::Plain(upload)))
    }
}

/// Elements of a polynomial that stand for so many bytes at full size.
fn elements(bytes: Bytes, device: &impl Device) -> usize {
    let elements = bytes.get() / Bytes::of::<Scalar>(1).get() / device.scale().max(1);
    usize::try_from(elements).unwrap_or(usize::MAX).max(1)
}

/// Rings for polynomials of `len` elements whose memory is not page-locked: three, or as many as can be pinned. Two are for a
/// proof that goes through the device in pieces, one for the proof that stages beside it.
pub(super) fn polynomial_rings(device: &impl Transfer, len: usize) -> Result<Rings<Scalar>, Error> {
    Ok(Rings::open(device, 3, 2, elements(SLOT, device).min(len).max(1), Scalar::ZERO)?)
}

/// An upload under way, which keeps its source. Dropping it waits.
pub(super) enum InFlight<'t, D: Device> {
    Pinned(Uploading<'t, D, Part<Arc<Pinned<Scalar>>>>),
    Plain(Uploading<'t, D, Part<Arc<Vec<Scalar>>>>),
    /// The source has been copied to a ring already.
    Copied,
}

impl<D: Device> InFlight<'_, D> {
    /// Waits until the copy has ended.
    pub(super) fn wait(self) -> Result<(), Error> {
        match self {
            Self::Pinned(upload) => upload.wait().map(drop)?,
            Self::Plain(upload) => upload.wait().map(drop)?,
            Self::Copied => {}
        }
        Ok(())
    }
}

/// Values on their way from the device.
pub(super) enum Coming<'t, D: Device> {
    Pinned(Downloading<'t, D, MaybeUninit<Scalar>>),
    /// They are there.
    Here(Values),
}

impl<D: Device> Coming<'_, D> {
    /// Waits until they are there.
    pub(super) fn wait(self) -> Result<Values, Error> {
        match self {
            Self::Pinned(coming) => {
                let place = coming.wait()?;
                // SAFETY: the copy, which has ended well, has written every element.
                Ok(Values::Pinned(Arc::new(unsafe { place.assume_init() })))
            }
            Self::Here(values) => Ok(values),
        }
    }
}

/// Host memory that a transform out of core uses up.
pub(super) enum Scratch {
    Pinned(Pinned<Scalar>),
    Plain(Vec<Scalar>),
}

impl Scratch {
    /// Calls `with` with the memory as it reaches the link: where it lies, or through rings.
    pub(super) fn outside<D: Ntt, T>(
        &mut self,
        device: &D,
        rings: &Rings<Scalar>,
        with: impl FnOnce(Outside<'_, '_, D>) -> Result<T, prestage_ntt::Error>,
    ) -> Result<T, Error> {
        let values = match self {
            Self::Pinned(values) => return Ok(with(Outside::locked(values))?),
            Self::Plain(values) => values,
        };
        let (up, down) = (rings.take(device), rings.take(device));
        let (Some(mut up), Some(mut down)) = (up, down) else {
            return Ok(with(Outside::locked(values))?);
        };
        let outcome = with(Outside::pageable(values, &mut up, &mut down))?;
        rings.give_back(up)?;
        rings.give_back(down)?;
        Ok(outcome)
    }
}
