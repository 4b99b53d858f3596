//! Work on a card: launches, fills and copies, handed over as one span.

use std::ffi::c_void;
use std::marker::PhantomData;

use cudarc::driver::{DriverError, sys};

use super::cupti::{Recording, Region};
use super::device::{Cuda, Shared};
use super::module::Kernel;
use super::queue::CudaQueue;
use super::spans::Pending;
use crate::{Error, Op, Work};

/// Spans of a queue that may wait to be told of; above that many, those that have ended are.
const MANY: usize = 1024;

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks in each direction.
    pub blocks: (u32, u32, u32),
    /// Threads of a block in each direction.
    pub threads: (u32, u32, u32),
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl Grid {
    /// `blocks` blocks of `threads` threads, no shared memory.
    #[must_use]
    pub const fn line(blocks: u32, threads: u32) -> Self {
        Self { blocks: (blocks, 1, 1), threads: (threads, 1, 1), shared_bytes: 0 }
    }
}

/// A queue while work is handed over to it, in [`Cuda::enqueue`]. Nothing here waits for the device.
#[derive(Debug)]
pub struct Stream<'s> {
    raw: sys::CUstream,
    shared: &'s Shared,
    op: Op,
    /// Belongs to the thread whose context it is.
    thread: PhantomData<*const ()>,
}

impl Stream<'_> {
    fn done(&self, call: &'static str, status: sys::CUresult) -> Result<(), Error> {
        status.result().map_err(|error| self.shared.failed(self.op, call, error))
    }

    /// The driver's own handle, a `CUstream`, for calls that are not here. It does not outlive the closure.
    #[must_use]
    pub fn as_raw(&self) -> *mut c_void {
        self.raw.cast()
    }

    /// Launches a kernel. `args` has a pointer to each of its arguments, in order; they are read before this returns.
    ///
    /// # Errors
    /// [`Error::Device`] when the driver refuses the shape; [`Error::Poisoned`]. Nothing was enqueued then.
    pub fn launch(&self, kernel: &Kernel, grid: Grid, args: &mut [*mut c_void]) -> Result<(), Error> {
        let Grid { blocks, threads, shared_bytes } = grid;
        // SAFETY: by the contract of `Cuda::enqueue`, under which alone there is a stream.
        let status = unsafe {
            sys::cuLaunchKernel(
                kernel.raw(),
                blocks.0,
                blocks.1,
                blocks.2,
                threads.0,
                threads.1,
                threads.2,
                shared_bytes,
                self.raw,
                args.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.done("cuLaunchKernel", status)
    }

    /// Writes `value` to `len` bytes of device memory at `at`.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn fill(&self, at: *mut u8, value: u8, len: usize) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: by the contract of `Cuda::enqueue`.
        let status = unsafe { sys::cuMemsetD8Async(address(at), value, len, self.raw) };
        self.done("cuMemsetD8Async", status)
    }

    /// Copies `len` bytes of device memory.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn copy(&self, from: *const u8, to: *mut u8, len: usize) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: by the contract of `Cuda::enqueue`.
        let status =
            unsafe { sys::cuMemcpyDtoDAsync_v2(address(to), address(from.cast_mut()), len, self.raw) };
        self.done("cuMemcpyDtoDAsync", status)
    }

    /// Copies `len` bytes from host memory to device memory. The host's may be page-locked in several pieces, one behind the
    /// other: the driver takes no copy that spans two of them, and gets one for each.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn upload(&self, from: *const u8, to: *mut u8, len: usize) -> Result<(), Error> {
        self.pieces(from, len).try_for_each(|(at, len)| {
            let (from, to) = (from.wrapping_add(at), address(to.wrapping_add(at)));
            // SAFETY: by the contract of `Cuda::enqueue`.
            let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.cast(), len, self.raw) };
            self.done("cuMemcpyHtoDAsync", status)
        })
    }

    /// Copies `len` bytes from device memory to host memory, as [`Stream::upload`] does the other way.
    ///
    /// # Errors
    /// As [`Stream::launch`].
    pub fn download(&self, from: *const u8, to: *mut u8, len: usize) -> Result<(), Error> {
        self.pieces(to, len).try_for_each(|(at, len)| {
            let (from, to) = (address(from.cast_mut().wrapping_add(at)), to.wrapping_add(at));
            // SAFETY: by the contract of `Cuda::enqueue`.
            let status = unsafe { sys::cuMemcpyDtoHAsync_v2(to.cast(), from, len, self.raw) };
            self.done("cuMemcpyDtoHAsync", status)
        })
    }

    /// Host memory cut where page-locked memory begins or ends: where each piece begins, from `at` on, and its bytes.
    fn pieces(&self, at: *const u8, len: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let start = at.addr();
        let pieces = self.shared.ledger.locked().pieces(start..start.saturating_add(len));
        pieces.into_iter().map(move |(piece, _)| (piece.start - start, piece.len()))
    }
}

fn address(at: *mut u8) -> sys::CUdeviceptr {
    at.addr() as sys::CUdeviceptr
}

impl Cuda {
    /// Hands work over to `queue` in a closure, and records it as one span on the queue's track: from the first piece that the
    /// closure enqueues to the last, timed by the device, told when the queue is drained.
    ///
    /// Returns when all of it is enqueued. The card's context is current for the calling thread meanwhile. The closure must not
    /// use `queue` in any other way than through its stream.
    ///
    /// # Safety
    /// All that the closure enqueues on the stream: kernels get the arguments that they have, of the right types; device
    /// memory lies inside blocks that are claimed for this queue, with the pointers taken after that, and is initialised where
    /// it is read; host memory stays as it is, and untouched where it is written, until the work has ended. Kernels
    /// belong to this device, and their module is there until they have ended.
    ///
    /// # Errors
    /// What the closure returns: some of its work may be enqueued then. [`Error::Device`] when nothing was enqueued, also for
    /// an injected fault of the work's kind; [`Error::Poisoned`].
    pub unsafe fn enqueue<R, E: From<Error>>(
        &self,
        queue: &CudaQueue,
        work: Work,
        enqueue: impl FnOnce(&Stream<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let Work { op, name, bytes } = work;
        let shared = &self.shared;
        shared.ledger.attempt(op)?;
        let failed = |call| move |error: DriverError| shared.failed(op, call, error);
        shared.context.bind().map_err(failed("cuCtxSetCurrent"))?;
        let mut state = queue.lock();
        if state.spans.len() >= MANY {
            state.spans.tell(queue.track(), &shared.clock, &shared.ledger);
        }
        let epoch = shared.clock.epoch();
        let start = shared.context.event(true).map_err(failed("cuEventCreate"))?;
        let end = shared.context.event(true).map_err(failed("cuEventCreate"))?;
        let (handed, idle) = (shared.clock.now(), state.spans.idle());
        start.record(queue.raw()).map_err(failed("cuEventRecord"))?;
        let region = shared.clock.recording().and_then(Recording::enter);
        let value = enqueue(&Stream { raw: queue.raw(), shared, op, thread: PhantomData })?;
        let work = region.as_ref().map(Region::work);
        drop(region);
        // The work is on its way whatever becomes of its span: what is wrong here shows when the queue is drained.
        if end.record(queue.raw()).is_ok() {
            let worker = state.worker;
            state.spans.push(Pending { name, bytes, worker, start, end, handed, idle, epoch, work });
        }
        Ok(value)
    }
}
