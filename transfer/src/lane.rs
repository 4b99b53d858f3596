//! An ordered queue of a turn's work, and the three that every stage uses.

use std::fmt;
use std::mem::MaybeUninit;

use prestage_vram::{Buf, Bytes, Cause, Class, Device, Track, Turn};

use crate::{Error, Mark};

/// An ordered queue of device work that belongs to a turn. A CUDA stream.
///
/// Work on one lane runs in the order in which it was enqueued; between lanes there is no order but what
/// [`Lane::wait`] and [`Buf::claim`] make.
pub struct Lane<'t, D: Device> {
    turn: &'t Turn<'t, D>,
    track: Track,
    queue: D::Queue,
}

impl<'t, D: Device> Lane<'t, D> {
    /// Opens a lane of the turn whose work is drawn on `track`. The turn waits for it when it ends.
    ///
    /// # Errors
    /// [`Error::Device`] when none can be made.
    pub fn open(turn: &'t Turn<'_, D>, track: Track) -> Result<Self, Error> {
        Ok(Self { turn, track, queue: turn.queue(track)? })
    }

    /// The turn.
    #[must_use]
    pub fn turn(&self) -> &'t Turn<'t, D> {
        self.turn
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'t D {
        self.turn.device()
    }

    /// Where its work is drawn.
    #[must_use]
    pub fn track(&self) -> Track {
        self.track
    }

    /// The device's own queue, to claim buffers for and to enqueue work on.
    #[must_use]
    pub fn queue(&self) -> &D::Queue {
        &self.queue
    }

    /// A mark after everything enqueued so far.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn record(&self) -> Result<Mark<'t, D>, Error> {
        Ok(self.mark(self.device().record(&self.queue)?))
    }

    /// What is enqueued from here on waits for `mark`; the host does not.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn wait(&self, mark: &Mark<'_, D>) -> Result<(), Error> {
        Ok(self.device().wait(&self.queue, mark.raw())?)
    }

    /// Blocks the caller until everything enqueued so far has ended. Recorded as [`Mark::wait`] is.
    ///
    /// # Errors
    /// [`Error::Device`] when some of that work failed.
    pub fn drain(&self) -> Result<(), Error> {
        let start = self.device().now();
        let outcome = self.device().drain(&self.queue);
        self.turn.waited(self.cause(), start, self.device().now());
        Ok(outcome?)
    }

    /// Stream-ordered device memory for `len` elements, at home on this lane. See [`Turn::alloc`].
    ///
    /// Allocate on the lane that uses the memory first: another one that claims it waits for all that this lane has
    /// enqueued by then.
    ///
    /// # Errors
    /// As [`Turn::alloc`].
    pub fn alloc<T: Copy + Send + 'static>(
        &self,
        label: &'static str,
        len: usize,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        Ok(self.turn.alloc(label, len, Class::default(), &self.queue)?)
    }

    /// As [`Lane::alloc`], for memory that does not grow with the elements it stands for. See [`Turn::alloc_charged`].
    ///
    /// # Errors
    /// As [`Turn::alloc`].
    pub fn alloc_charged<T: Copy + Send + 'static>(
        &self,
        label: &'static str,
        len: usize,
        charge: Bytes,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        Ok(self.turn.alloc_charged(label, len, charge, Class::default(), &self.queue)?)
    }

    pub(crate) fn mark(&self, raw: D::Mark) -> Mark<'t, D> {
        Mark { device: self.device(), worker: self.turn.worker(), cause: self.cause(), raw }
    }

    /// Why a host that waits for this lane stands still.
    fn cause(&self) -> Cause {
        match self.track {
            Track::Upload | Track::Download => Cause::Transfer,
            _ => Cause::Sync,
        }
    }
}

impl<D: Device> fmt::Debug for Lane<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("track", &self.track).field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// The three lanes of a proof: kernels, and one for each direction of the link.
pub struct Lanes<'t, D: Device> {
    /// For kernels.
    pub compute: Lane<'t, D>,
    /// For copies from host to device.
    pub upload: Lane<'t, D>,
    /// For copies from device to host.
    pub download: Lane<'t, D>,
}

impl<'t, D: Device> Lanes<'t, D> {
    /// Opens the three.
    ///
    /// # Errors
    /// [`Error::Device`] when one cannot be made.
    pub fn open(turn: &'t Turn<'_, D>) -> Result<Self, Error> {
        Ok(Self {
            compute: Lane::open(turn, Track::Compute)?,
            upload: Lane::open(turn, Track::Upload)?,
            download: Lane::open(turn, Track::Download)?,
        })
    }

    /// The turn.
    #[must_use]
    pub fn turn(&self) -> &'t Turn<'t, D> {
        self.compute.turn()
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'t D {
        self.compute.device()
    }
}

impl<D: Device> fmt::Debug for Lanes<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("compute", &self.compute)
            .field("upload", &self.upload)
            .field("download", &self.download)
            .finish_non_exhaustive()
    }
}
