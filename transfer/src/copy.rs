//! Uploads and downloads that own their host memory while it is in flight.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;

use prestage_vram::{Buf, Device};

use crate::{Error, HostRange, Lane, Mark, Pinned, Source, Transfer};

/// The element type of a buffer into which elements of type `T` may be written: `T` itself, or `MaybeUninit<T>`.
///
/// # Safety
/// Same size and layout as `T`, and every `T` is a valid value of it.
pub unsafe trait Place<T>: Copy + Send + 'static {}

// SAFETY: the same type.
unsafe impl<T: Copy + Send + 'static> Place<T> for T {}
// SAFETY: `MaybeUninit<T>` has the layout of `T` and takes any bytes.
unsafe impl<T: Copy + Send + 'static> Place<T> for MaybeUninit<T> {}

/// A source on its way to the device. It comes back from [`Uploading::wait`].
///
/// Dropping it waits for the copy; forgetting it leaks the source. Neither frees memory that a copy still reads.
#[must_use = "dropping it waits for the copy: keep it until the copied data has been used"]
pub struct Uploading<'t, D: Device, S> {
    /// `None` once it was handed back.
    source: Option<S>,
    mark: Mark<'t, D>,
}

impl<'t, D: Device, S> Uploading<'t, D, S> {
    /// The mark right after the copy.
    #[must_use]
    pub fn mark(&self) -> &Mark<'t, D> {
        &self.mark
    }

    /// True when the copy has ended.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn passed(&self) -> Result<bool, Error> {
        self.mark.passed()
    }

    /// Blocks the caller until the copy has ended and gives the source back.
    ///
    /// # Errors
    /// [`Error::Device`] when the copy or work before it failed; the source is dropped then.
    pub fn wait(mut self) -> Result<S, Error> {
        self.mark.wait()?;
        match self.source.take() {
            Some(source) => Ok(source),
            // Only this function takes the source, and it takes `self`.
            None => unreachable!("an upload in flight has its source"),
        }
    }
}

impl<D: Device, S> Drop for Uploading<'_, D, S> {
    fn drop(&mut self) {
        if self.source.is_some() {
            // A copy that failed has ended as well; the turn reports it.
            let _ = self.mark.wait();
        }
    }
}

impl<D: Device, S> fmt::Debug for Uploading<'_, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploading").field("mark", &self.mark).finish_non_exhaustive()
    }
}

/// Pinned memory that a copy from the device is being written to. What it holds can be reached only through
/// [`Downloading::wait`].
///
/// Dropping it waits for the copy; forgetting it leaks the memory.
#[must_use = "the data is reached through `wait`"]
pub struct Downloading<'t, D: Device, T>(Uploading<'t, D, Pinned<T>>);

impl<'t, D: Device, T> Downloading<'t, D, T> {
    /// The mark right after the copy.
    #[must_use]
    pub fn mark(&self) -> &Mark<'t, D> {
        self.0.mark()
    }

    /// True when the copy has ended.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn passed(&self) -> Result<bool, Error> {
        self.0.passed()
    }

    /// Blocks the caller until the copy has ended and gives the data.
    ///
    /// # Errors
    /// [`Error::Device`] when the copy or work before it failed.
    pub fn wait(self) -> Result<Pinned<T>, Error> {
        self.0.wait()
    }
}

impl<D: Device, T> fmt::Debug for Downloading<'_, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloading").field("mark", self.mark()).finish_non_exhaustive()
    }
}

impl<'t, D: Transfer> Lane<'t, D> {
    /// Enqueues the copy of all of `source` into all of `buf` and returns at once.
    ///
    /// The buffer counts as initialised from here on: another lane that claims it waits for this copy, and for
    /// nothing that this lane is given later. The source stays untouchable until then, in the second value.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ; [`Error::Device`]. Source and buffer are dropped then, after
    /// whatever was enqueued: share the source through an `Arc` to keep it.
    #[allow(clippy::type_complexity)] // A pair is what it is.
    pub fn upload<'a, T, S>(
        &self,
        source: S,
        mut buf: Buf<'a, D, MaybeUninit<T>>,
    ) -> Result<(Buf<'a, D, T>, Uploading<'t, D, S>), Error>
    where
        T: Copy + Send + Sync + 'static,
        S: Source<T>,
    {
        let from = source.elements().len();
        if from != buf.len() {
            return Err(Error::Length { from, to: buf.len() });
        }
        let uploading = self.upload_at(source, &mut buf, 0)?;
        // SAFETY: the copy just enqueued writes every element, and `buf` is ready after it.
        Ok((unsafe { buf.assume_init() }, uploading))
    }

    /// As [`Lane::upload`], leaving the link to others as long as `others` says that there are any: in pieces of `piece`
    /// elements (0 counts as 1), of which two are under way at a time, so that copies of another turn get in between. Waits
    /// on the host for all but the last two then; once `others` says no, the rest is enqueued at once.
    ///
    /// # Errors
    /// As [`Lane::upload`].
    #[allow(clippy::type_complexity)] // A pair is what it is.
    pub fn upload_beside<'a, T, S>(
        &self,
        source: S,
        mut buf: Buf<'a, D, MaybeUninit<T>>,
        piece: usize,
        others: impl Fn() -> bool,
    ) -> Result<(Buf<'a, D, T>, Uploading<'t, D, S>), Error>
    where
        T: Copy + Send + Sync + 'static,
        S: Source<T>,
    {
        let len = source.elements().len();
        if len != buf.len() {
            return Err(Error::Length { from: len, to: buf.len() });
        }
        // Holds the source from the first piece on; what has been enqueued last ends last.
        let mut uploading = Uploading { source: Some(source), mark: self.record()? };
        let mut start = 0;
        while start < len {
            let yields = others();
            let end = if yields { len.min(start.saturating_add(piece.max(1))) } else { len };
            let from = uploading.source.as_ref().map(Source::elements).unwrap_or_default();
            // SAFETY: the in-flight value holds the source until the copies have ended, also on failure; by the contract of
            // `Source` nobody writes to its memory and it stays where it is for that long.
            let mark = unsafe { self.enqueue_in(from.get(start..end).unwrap_or_default(), &mut buf, start) }?;
            let before = std::mem::replace(&mut uploading.mark, mark);
            if yields && end < len {
                before.wait()?;
            }
            start = end;
        }
        // SAFETY: the copies just enqueued write every element, and `buf` is ready after the last.
        Ok((unsafe { buf.assume_init() }, uploading))
    }

    /// As [`Lane::upload`], but into the part of `buf` that begins at element `offset`.
    ///
    /// # Errors
    /// [`Error::Range`] when the source reaches past the end; [`Error::Device`].
    pub fn upload_at<T, E, S>(
        &self,
        source: S,
        buf: &mut Buf<'_, D, E>,
        offset: usize,
    ) -> Result<Uploading<'t, D, S>, Error>
    where
        T: Copy + Send + Sync + 'static,
        E: Place<T>,
        S: Source<T>,
    {
        // SAFETY: `source` is held until the copy has ended, here on failure, by the in-flight value on success; by
        // the contract of `Source` nobody writes to its memory and it stays where it is for that long.
        let mark = unsafe { self.enqueue_in(source.elements(), buf, offset) }?;
        Ok(Uploading { source: Some(source), mark })
    }

    /// Enqueues the copy of elements `range` of `buf` into all of `into` and returns at once.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end, [`Error::Length`] when `into` is not as long as it;
    /// [`Error::Device`].
    pub fn download<T, E>(
        &self,
        buf: &mut Buf<'_, D, T>,
        range: Range<usize>,
        mut into: Pinned<E>,
    ) -> Result<Downloading<'t, D, E>, Error>
    where
        T: Copy + Send + Sync + 'static,
        E: Place<T>,
    {
        if into.len() != range.len() {
            return Err(Error::Length { from: range.len(), to: into.len() });
        }
        // SAFETY: `into` is held until the copy has ended, here on failure, by the in-flight value on success, and
        // nobody else has it. It does not move with its owner.
        let mark = unsafe { self.enqueue_out(buf, range.start, &mut into) }?;
        Ok(Downloading(Uploading { source: Some(into), mark }))
    }

    /// Enqueues the copy of `from` into `buf` from element `offset` on, cut where locked memory begins or ends.
    /// Nothing is in flight when it fails.
    ///
    /// # Safety
    /// Until the returned mark has passed, or this has failed, `from` stays where it is and nobody writes to it.
    ///
    /// # Errors
    /// [`Error::Range`] when `from` reaches past the end; [`Error::Device`].
    pub unsafe fn enqueue_in<T, E: Place<T>>(
        &self,
        from: &[T],
        buf: &mut Buf<'_, D, E>,
        offset: usize,
    ) -> Result<Mark<'t, D>, Error> {
        within(offset, from.len(), buf.len())?;
        buf.claim(self.queue())?;
        let mut fence = Fence { lane: self, armed: false };
        let base = NonNull::from(from).cast::<u8>();
        for (at, host) in self.pieces(base, size_of_val(from)) {
            let name = format!("upload {}", buf.label()).into();
            let to = offset * size_of::<T>() + at;
            fence.around(|| {
                // SAFETY: readable and left alone by this function's contract; inside the block, as checked; claimed.
                unsafe { self.device().copy_in(self.queue(), name, host, buf.block(), to) }
            })?;
        }
        self.seal(fence, buf)
    }

    /// As [`Lane::enqueue_in`], in the other direction.
    ///
    /// # Safety
    /// Until the returned mark has passed, or this has failed, `into` stays where it is and nobody touches it.
    ///
    /// # Errors
    /// [`Error::Range`] when `into` is longer than what there is; [`Error::Device`].
    pub unsafe fn enqueue_out<T: Copy, E: Place<T>>(
        &self,
        buf: &mut Buf<'_, D, T>,
        offset: usize,
        into: &mut [E],
    ) -> Result<Mark<'t, D>, Error> {
        within(offset, into.len(), buf.len())?;
        buf.claim(self.queue())?;
        let mut fence = Fence { lane: self, armed: false };
        let len = size_of_val(into);
        let base = NonNull::from(into).cast::<u8>();
        for (at, host) in self.pieces(base, len) {
            let name = format!("download {}", buf.label()).into();
            let from = offset * size_of::<T>() + at;
            fence.around(|| {
                // SAFETY: writable and left alone by this function's contract; inside the block, as checked; the
                // elements of a `Buf<T>` are initialised by what comes before; claimed.
                unsafe { self.device().copy_out(self.queue(), name, buf.block(), from, host) }
            })?;
        }
        self.seal(fence, buf)
    }

    /// Host memory in pieces that are locked or not, each with its distance from the beginning.
    fn pieces(&self, base: NonNull<u8>, len: usize) -> impl Iterator<Item = (usize, HostRange)> + use<'t, D> {
        let start = base.addr().get();
        let pieces = self.device().ledger().locked().pieces(start..start.saturating_add(len));
        pieces.into_iter().map(move |(piece, locked)| {
            let at = piece.start - start;
            // SAFETY: `at` is less than `len`, the bytes of one allocation.
            (at, HostRange { at: unsafe { base.add(at) }, len: piece.len(), locked })
        })
    }

    /// Ends an enqueued copy with a mark, at which the buffer is ready.
    fn seal<E>(&self, mut fence: Fence<'_, 't, D>, buf: &mut Buf<'_, D, E>) -> Result<Mark<'t, D>, Error> {
        let mark = self.record()?;
        fence.armed = false;
        // SAFETY: the buffer was claimed for this lane, so all its uses come before this mark.
        unsafe { buf.ready_at(mark.raw().clone()) };
        Ok(mark)
    }
}

/// Checks that `len` elements from `offset` on lie inside a buffer of `of`.
fn within(offset: usize, len: usize, of: usize) -> Result<(), Error> {
    match offset.checked_add(len) {
        Some(end) if end <= of => Ok(()),
        end => Err(Error::Range { start: offset, end: end.unwrap_or(usize::MAX), len: of }),
    }
}

/// Waits for the lane when dropped armed: host memory must not be let go while a copy that was enqueued may run.
pub(crate) struct Fence<'l, 't, D: Device> {
    pub(crate) lane: &'l Lane<'t, D>,
    pub(crate) armed: bool,
}

impl<D: Device> Fence<'_, '_, D> {
    /// Runs something that enqueues a copy or fails without.
    fn around<R, E>(&mut self, enqueue: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let earlier = std::mem::replace(&mut self.armed, true);
        let outcome = enqueue();
        self.armed = earlier || outcome.is_ok();
        outcome
    }
}

impl<D: Device> Drop for Fence<'_, '_, D> {
    fn drop(&mut self) {
        if self.armed {
            // Ended, if by failing; the turn reports it.
            let _ = self.lane.drain();
        }
    }
}
