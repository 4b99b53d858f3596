//! Host memory of a, b and c: page-locked where that can be had, ordinary where not.

use std::mem::MaybeUninit;
use std::sync::Arc;

use blstrs::Scalar;
use prestage_transfer::{Lane, Pinned, Transfer, Uploading};
use prestage_vram::{Buf, Device};
use rayon::prelude::*;

use crate::Error;

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

    /// These elements: a page-locked copy, or themselves where none can be had.
    pub(super) fn from_vec<D: Transfer>(device: &D, elements: Vec<Scalar>) -> Result<Self, Error> {
        match Pinned::from_slice(device, &elements) {
            Ok(pinned) => Ok(Self::Pinned(Arc::new(pinned))),
            Err(e) if e.is_unpinnable() => Ok(Self::Plain(Arc::new(elements))),
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

    /// Enqueues the copy of all into `buf`.
    pub(super) fn upload<'t, D: Transfer>(
        &self,
        lane: &Lane<'t, D>,
        buf: Buf<'t, D, MaybeUninit<Scalar>>,
    ) -> Result<(Buf<'t, D, Scalar>, InFlight<'t, D>), Error> {
        Ok(match self {
            Self::Pinned(values) => {
                let (buf, upload) = lane.upload(Arc::clone(values), buf)?;
                (buf, InFlight::Pinned(upload))
            }
            Self::Plain(values) => {
                let (buf, upload) = lane.upload(Arc::clone(values), buf)?;
                (buf, InFlight::Plain(upload))
            }
        })
    }
}

/// An upload under way, which keeps its source. Dropping it waits.
pub(super) enum InFlight<'t, D: Device> {
    Pinned(Uploading<'t, D, Arc<Pinned<Scalar>>>),
    Plain(Uploading<'t, D, Arc<Vec<Scalar>>>),
}

impl<D: Device> InFlight<'_, D> {
    /// Waits until the copy has ended.
    pub(super) fn wait(self) -> Result<(), Error> {
        match self {
            Self::Pinned(upload) => upload.wait().map(drop)?,
            Self::Plain(upload) => upload.wait().map(drop)?,
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
    pub(super) fn as_mut_slice(&mut self) -> &mut [Scalar] {
        match self {
            Self::Pinned(values) => values,
            Self::Plain(values) => values,
        }
    }
}
