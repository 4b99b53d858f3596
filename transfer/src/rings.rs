//! Rings that wait for their next use.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, Ring, RingSlots, Transfer};

/// Slots of a device's rings, pinned once and kept from one use to the next. Clones share them.
///
/// Pinned early, since memory that others have not left cannot be pinned when it is needed, and nothing is pinned while a turn
/// is held.
///
/// ```
/// use prestage_transfer::Rings;
/// use prestage_vram::{Host, HostConfig};
///
/// let host = Host::open(HostConfig::default())?;
/// let rings = Rings::open(&host, 1, 2, 1000, 0u64)?;
/// let ring = rings.take(&host);
/// assert!(ring.is_some() && rings.take(&host).is_none());
/// ring.map_or(Ok(()), |ring| rings.give_back(ring))?;
/// assert!(rings.take(&host).is_some());
/// # Ok::<(), prestage_transfer::Error>(())
/// ```
pub struct Rings<T>(Arc<Mutex<Vec<RingSlots<T>>>>);

impl<T> Rings<T> {
    /// So many threads of a `rayon` pool fill slots about as fast as a kernel needs what is in them; fewer fall behind, and
    /// page-locking the memory is the better use of them (`docs/decisions/0010-rings-before-registration.md`).
    pub const THREADS: usize = 4;
}

impl<T: Copy + Send + Sync + 'static> Rings<T> {
    /// `count` rings as [`Ring::open_within`] makes them, or as many as can be pinned.
    ///
    /// # Errors
    /// As [`Ring::open`], but for memory that cannot be pinned.
    pub fn open(
        device: &impl Transfer,
        count: usize,
        slots: usize,
        slot: usize,
        fill: T,
    ) -> Result<Self, Error> {
        let rings = Self(Arc::default());
        for _ in 0..count {
            match Ring::open_within(device, slots, slot, fill) {
                Ok(ring) => rings.give_back(ring)?,
                Err(e) if e.is_unpinnable() => break,
                Err(e) => return Err(e),
            }
        }
        Ok(rings)
    }

    /// A ring for one user alone; `None` when all are in use. Nothing is pinned for it: a turn may be held.
    pub fn take<'d, D: Transfer>(&self, device: &'d D) -> Option<Ring<'d, D, T>> {
        let idle = self.lock().pop();
        idle.map(|slots| Ring::from_slots(device, slots))
    }

    /// Waits for the ring's last copies and keeps its slots.
    ///
    /// # Errors
    /// The first failure of those copies; the slots are not kept then.
    pub fn give_back<D: Transfer>(&self, ring: Ring<'_, D, T>) -> Result<(), Error> {
        let slots = ring.into_slots()?;
        self.lock().push(slots);
        Ok(())
    }

    /// Calls `with` with a ring, or with none where all are in use. The ring is kept whatever comes of it.
    ///
    /// # Errors
    /// What `with` returns; as [`Rings::give_back`].
    pub fn with<D: Transfer, R, X: From<Error>>(
        &self,
        device: &D,
        with: impl FnOnce(Option<&mut Ring<'_, D, T>>) -> Result<R, X>,
    ) -> Result<R, X> {
        let mut ring = self.take(device);
        let outcome = with(ring.as_mut());
        let kept = ring.map_or(Ok(()), |ring| self.give_back(ring));
        let value = outcome?;
        kept?;
        Ok(value)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RingSlots<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Rings<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Rings<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Rings").field("idle", &idle).finish()
    }
}
