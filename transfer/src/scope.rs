//! Copies of borrowed memory, all of which have ended when their scope has.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use prestage_vram::{Buf, Device};

use crate::copy::Fence;
use crate::{Error, Lane, Place, Transfer};

/// Enqueues copies of borrowed memory; see [`Lane::scope`].
pub struct Scope<'scope, 'env: 'scope, 't, D: Device> {
    lane: &'env Lane<'t, D>,
    used: Cell<bool>,
    /// Invariant in both, as in [`std::thread::Scope`]: `'scope` may neither grow nor shrink.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'t, D: Transfer> Lane<'t, D> {
    /// Runs `f`, which may enqueue copies of memory that it borrows, and returns when all of them have ended, also
    /// when `f` panics. So there is no guard that could be forgotten, and the borrow checker keeps borrowed sources
    /// as they are for the whole of the scope:
    ///
    /// ```compile_fail,E0506
    /// # use prestage_transfer::{Error, Lane};
    /// # use prestage_vram::{Device, Host, HostConfig, Track, Worker};
    /// # let host = Host::open(HostConfig::default()).unwrap();
    /// # let mut worker = Worker::new(0);
    /// # let turn = host.turn(&mut worker).unwrap();
    /// # let lane = Lane::open(&turn, Track::Upload).unwrap();
    /// let mut source = vec![1u64; 1024];
    /// lane.scope(|s| {
    ///     let buf = s.upload(&source, lane.alloc("a", 1024)?)?;
    ///     source[0] = 2; // the copy may be reading it
    ///     Ok::<_, Error>(buf)
    /// });
    /// ```
    ///
    /// # Errors
    /// What `f` returns; else [`Error::Device`] when a copy failed.
    pub fn scope<'env, R, E>(
        &'env self,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, 't, D>) -> Result<R, E>,
    ) -> Result<R, E>
    where
        E: From<Error>,
    {
        // Dropped by a panic of `f` as well.
        let mut fence = Fence { lane: self, armed: true };
        let scope = Scope { lane: self, used: Cell::new(false), scope: PhantomData, env: PhantomData };
        let outcome = f(&scope);
        let ended = if scope.used.get() { self.drain() } else { Ok(()) };
        fence.armed = false;
        let value = outcome?;
        ended?;
        Ok(value)
    }
}

impl<'scope, 'env, 't, D: Transfer> Scope<'scope, 'env, 't, D> {
    /// The lane.
    #[must_use]
    pub fn lane(&self) -> &'env Lane<'t, D> {
        self.lane
    }

    /// Enqueues the copy of all of `source` into all of `buf` and returns at once. See [`Lane::upload`].
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ; [`Error::Device`].
    pub fn upload<'a, T: Copy + Send + Sync + 'static>(
        &'scope self,
        source: &'scope [T],
        mut buf: Buf<'a, D, MaybeUninit<T>>,
    ) -> Result<Buf<'a, D, T>, Error> {
        if source.len() != buf.len() {
            return Err(Error::Length { from: source.len(), to: buf.len() });
        }
        self.upload_at(source, &mut buf, 0)?;
        // SAFETY: the copy just enqueued writes every element, and `buf` is ready after it.
        Ok(unsafe { buf.assume_init() })
    }

    /// As [`Scope::upload`], but into the part of `buf` that begins at element `offset`.
    ///
    /// # Errors
    /// [`Error::Range`] when the source reaches past the end; [`Error::Device`].
    pub fn upload_at<T: Copy + Send + Sync + 'static, E: Place<T>>(
        &'scope self,
        source: &'scope [T],
        buf: &mut Buf<'_, D, E>,
        offset: usize,
    ) -> Result<(), Error> {
        self.used.set(true);
        // SAFETY: `source` is borrowed for 'scope, which ends after `Lane::scope` has drained the lane.
        unsafe { self.lane.enqueue_in(source, buf, offset) }.map(drop)
    }

    /// Enqueues the copy of elements `range` of `buf` into all of `into`, which can be read after the scope.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end, [`Error::Length`] when `into` is not as long as it;
    /// [`Error::Device`].
    pub fn download<T: Copy + Send + Sync + 'static, E: Place<T>>(
        &'scope self,
        buf: &mut Buf<'_, D, T>,
        range: Range<usize>,
        into: &'scope mut [E],
    ) -> Result<(), Error> {
        if into.len() != range.len() {
            return Err(Error::Length { from: range.len(), to: into.len() });
        }
        self.used.set(true);
        // SAFETY: `into` is borrowed for 'scope, which ends after `Lane::scope` has drained the lane.
        unsafe { self.lane.enqueue_out(buf, range.start, into) }.map(drop)
    }
}

impl<D: Device> fmt::Debug for Scope<'_, '_, '_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("lane", &self.lane).finish_non_exhaustive()
    }
}
