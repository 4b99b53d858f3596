//! Where the terms of a sum on a device come from.

use crate::{Compact, Error};
use blstrs::Scalar;
use prestage_transfer::{Shared, Transfer};
use prestage_vram::{Buf, Bytes, Device};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Memory is locked in pieces of this size.
const CHUNK: Bytes = Bytes::gib(1);

/// The bases of sums: a query of a proving key. Clones share the memory.
///
/// They lie in host memory; a device that cannot read it streams them.
#[derive(Clone, Debug)]
pub struct Points<A> {
    host: Arc<[A]>,
    /// Keeps that memory page-locked.
    lock: Option<Arc<Shared<A>>>,
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
        A: Send + Sync,
    {
        match Shared::lock(device, Arc::clone(&self.host), CHUNK) {
            Ok(lock) => Ok(Self { lock: Some(Arc::new(lock)), ..self }),
            Err(e) if e.is_unpinnable() => Ok(self),
            Err(e) => Err(e.into()),
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
        Self { host, lock: None }
    }
}

impl<A> From<Vec<A>> for Points<A> {
    fn from(points: Vec<A>) -> Self {
        Self { host: points.into(), lock: None }
    }
}

/// The scalars of one sum, where they are.
pub struct Scalars<'s, 'a, D: Device>(pub(crate) Home<'s, 'a, D>);

pub(crate) enum Home<'s, 'a, D: Device> {
    Device(&'s mut Buf<'a, D, Scalar>, Range<usize>),
    Host(Compact),
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
        if range.start <= range.end && range.end <= buf.len() {
            Ok(Self(Home::Device(buf, range)))
        } else {
            let (start, end, len) = (range.start, range.end, buf.len());
            Err(prestage_transfer::Error::Range { start, end, len }.into())
        }
    }

    /// Host memory, as a witness is. It is streamed to the device batch by batch, zeros and ones as bits, and let go when the
    /// last batch is there.
    #[must_use]
    pub fn host(compact: Compact) -> Self {
        Self(Home::Host(compact))
    }

    /// How many scalars there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Home::Device(_, range) => range.len(),
            Home::Host(compact) => compact.len(),
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
            Home::Host(_) => Place::Host,
        }
    }
}

impl<D: Device> fmt::Debug for Scalars<'_, '_, D> {
    /// Shows how many and where, never values: they are a witness.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scalars").field("place", &self.place()).field("len", &self.len()).finish()
    }
}

/// Which memory the scalars of a sum are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The device's: used where they are.
    Device,
    /// The host's: each batch is copied into a slot on the device.
    Host,
}
