//! A point in a lane that others can wait for.

use std::fmt;

use prestage_vram::{Cause, Device, Event, WorkerId};

use crate::Error;

/// A point in a [`crate::Lane`]: everything enqueued before it. A CUDA event.
///
/// [`crate::Lane::wait`] makes another lane wait for it without the host; [`Mark::wait`] blocks the host.
pub struct Mark<'t, D: Device> {
    pub(crate) device: &'t D,
    pub(crate) worker: WorkerId,
    pub(crate) cause: Cause,
    pub(crate) raw: D::Mark,
}

impl<D: Device> Clone for Mark<'_, D> {
    fn clone(&self) -> Self {
        Self { device: self.device, worker: self.worker, cause: self.cause, raw: self.raw.clone() }
    }
}

impl<D: Device> fmt::Debug for Mark<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mark").field("raw", &self.raw).finish_non_exhaustive()
    }
}

impl<D: Device> Mark<'_, D> {
    /// True when all work before it has ended.
    ///
    /// # Errors
    /// [`Error::Device`] when that work failed.
    pub fn passed(&self) -> Result<bool, Error> {
        Ok(self.device.passed(&self.raw)?)
    }

    /// Blocks the caller until all work before it has ended. The wait is recorded, for a transfer on a copy lane and
    /// for a synchronisation on a compute lane.
    ///
    /// # Errors
    /// [`Error::Device`] when that work failed. It has ended then as well.
    pub fn wait(&self) -> Result<(), Error> {
        block(self.device, self.worker, self.cause, &self.raw)
    }

    /// The device's own mark.
    #[must_use]
    pub fn raw(&self) -> &D::Mark {
        &self.raw
    }
}

/// Blocks the caller until `mark` has passed, and records how long that took.
pub(crate) fn block<D: Device>(
    device: &D,
    worker: WorkerId,
    cause: Cause,
    mark: &D::Mark,
) -> Result<(), Error> {
    let start = device.now();
    let outcome = device.synchronise(mark);
    let end = device.now();
    if end > start {
        device.ledger().emit(Event::Wait { worker, cause, start, end });
    }
    Ok(outcome?)
}
