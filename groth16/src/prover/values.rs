//! Host memory of a, b and c: page-locked where that can be had, ordinary where not.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::{Ntt, Outside};
use prestage_transfer::{Lane, Pinned, Ring, Transfer, Uploading};
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

impl Values {
    /// `len` elements, evaluated in parallel.
    pub(super) fn from_fn<D: Transfer>(
        device: &D,
        len: usize,
        element: impl Fn(usize) -> Scalar + Sync + Send,
    ) -> Result<Self, Error> {
        match Pinned::par_from_fn(device, len, &element) {
            Ok(pinned) => Ok(Self::Pinned(Arc::new(pinned))),
            Err(e) if e.is_unpinnable() => {
                let plain = (0..len).into_par_iter().with_min_len(PIECE).map(element).collect();
                Ok(Self::Plain(Arc::new(plain)))
            }
            Err(e) => Err(e.into()),
        }
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
    pub(super) fn copy<D: Transfer>(&self, device: &D) -> Result<Scratch, Error> {
        match Pinned::from_slice(device, self.as_slice()) {
            Ok(pinned) => Ok(Scratch::Pinned(pinned)),
            Err(e) if e.is_unpinnable() => Ok(Scratch::Plain(self.as_slice().to_vec())),
            Err(e) => Err(e.into()),
        }
    }

    /// Enqueues the copy of all into `buf`, letting copies of a proof that computes meanwhile go first. Memory that is not
    /// page-locked goes through a ring, where one can be had.
    pub(super) fn upload<'t, D: Transfer>(
        &self,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
        rings: &Rings,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        match self {
            Self::Pinned(values) => {
                let piece = elements(AHEAD, lane.device());
                let (buf, upload) =
                    lane.upload_beside(Arc::clone(values), buf, piece, || lane.turn().is_beside())?;
                Ok((buf, InFlight::Pinned(upload)))
            }
            Self::Plain(values) => Self::upload_plain(values, lane, buf, rings),
        }
    }

    fn upload_plain<'t, D: Transfer>(
        values: &Arc<Vec<Scalar>>,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
        rings: &Rings,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        if let Some(mut ring) = rings.take(lane.device())? {
            let buf = ring.upload(lane, values, buf)?;
            rings.give_back(ring)?;
            return Ok((buf, InFlight::Copied));
        }
        let (buf, upload) = lane.upload(Arc::clone(values), buf)?;
        Ok((buf, InFlight::Plain(upload)))
    }
}

/// Elements of a polynomial that stand for so many bytes at full size.
fn elements(bytes: Bytes, device: &impl Device) -> usize {
    let elements = bytes.get() / Bytes::of::<Scalar>(1).get() / device.scale().max(1);
    usize::try_from(elements).unwrap_or(usize::MAX).max(1)
}

/// Slots of a prover's rings, for memory that is not page-locked. Pinned early, since memory that others have not left cannot
/// be pinned when it is needed.
pub(super) struct Rings {
    /// Elements of a slot.
    slot: usize,
    idle: Mutex<Vec<Vec<Pinned<Scalar>>>>,
}

impl Rings {
    /// Slots of two rings, or of as many as can be pinned, for polynomials of `len` elements.
    pub(super) fn open(device: &impl Transfer, len: usize) -> Result<Self, Error> {
        let rings = Self { slot: elements(SLOT, device).min(len).max(1), idle: Mutex::default() };
        let both = [rings.take(device)?, rings.take(device)?];
        both.into_iter().flatten().try_for_each(|ring| rings.give_back(ring))?;
        Ok(rings)
    }

    /// A ring for one worker alone; `None` when no more can be pinned.
    pub(super) fn take<'d, D: Transfer>(&self, device: &'d D) -> Result<Option<Ring<'d, D, Scalar>>, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let ring = match idle {
            Some(slots) => Ring::from_slots(device, slots),
            None => Ring::open_within(device, 2, self.slot, Scalar::ZERO),
        };
        match ring {
            Ok(ring) => Ok(Some(ring)),
            Err(e) if e.is_unpinnable() => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits for the ring's last copies.
    pub(super) fn give_back<D: Transfer>(&self, ring: Ring<'_, D, Scalar>) -> Result<(), Error> {
        let slots = ring.into_slots()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(slots);
        Ok(())
    }
}

/// An upload under way, which keeps its source. Dropping it waits.
pub(super) enum InFlight<'t, D: Device> {
    Pinned(Uploading<'t, D, Arc<Pinned<Scalar>>>),
    Plain(Uploading<'t, D, Arc<Vec<Scalar>>>),
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
        rings: &Rings,
        with: impl FnOnce(Outside<'_, '_, D>) -> Result<T, prestage_ntt::Error>,
    ) -> Result<T, Error> {
        let values = match self {
            Self::Pinned(values) => return Ok(with(Outside::locked(values))?),
            Self::Plain(values) => values,
        };
        let (up, down) = (rings.take(device)?, rings.take(device)?);
        let (Some(mut up), Some(mut down)) = (up, down) else {
            return Ok(with(Outside::locked(values))?);
        };
        let outcome = with(Outside::pageable(values, &mut up, &mut down))?;
        rings.give_back(up)?;
        rings.give_back(down)?;
        Ok(outcome)
    }
}
