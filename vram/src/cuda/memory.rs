//! Device memory: blocks, the pool of this device alone, ballast.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};

use super::context::Context;
use super::spans::OwnStream;
use crate::Bytes;

/// What large allocations are rounded up to.
const GRAIN: u64 = 2 << 20;

/// A block of a card's memory. It is freed through its [`crate::Buf`] only.
#[derive(Debug)]
pub struct CudaBlock {
    pub(super) at: sys::CUdeviceptr,
    pub(super) len: usize,
}

impl CudaBlock {
    /// Where it begins on the device, aligned to 256 bytes: for the arguments of a kernel, never to be followed here. Claim
    /// the buffer for the kernel's queue first ([`crate::Buf::claim`]). Dangling when the block is empty.
    #[must_use]
    pub fn as_ptr<T>(&self) -> *mut T {
        usize::try_from(self.at).map_or(std::ptr::null_mut(), std::ptr::without_provenance_mut)
    }

    /// Its bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A stream-ordered pool that nobody else allocates from.
#[derive(Debug)]
pub(super) struct Pool {
    raw: sys::CUmemoryPool,
    context: Arc<Context>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool that keeps up to `threshold` past a synchronisation.
    pub(super) fn new(context: &Arc<Context>, threshold: Bytes) -> Result<Self, DriverError> {
        context.bind()?;
        // SAFETY: all fields are numbers, enumerations with a zero or pointers.
        let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = context.device();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointers are to live values.
        unsafe { sys::cuMemPoolCreate(&raw mut raw, &raw const properties) }.result()?;
        let pool = Self { raw, context: Arc::clone(context) };
        let mut threshold = threshold.get();
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is alive; the attribute is a 64-bit number.
        unsafe { sys::cuMemPoolSetAttribute(raw, attribute, (&raw mut threshold).cast::<c_void>()) }
            .result()?;
        Ok(pool)
    }

    /// Memory of at least one byte, in the order of `stream`.
    pub(super) fn allocate(
        &self,
        len: usize,
        stream: sys::CUstream,
    ) -> Result<sys::CUdeviceptr, DriverError> {
        self.context.bind()?;
        let mut at = 0;
        // SAFETY: pool and stream are alive; the pointer is to a live address.
        unsafe { sys::cuMemAllocFromPoolAsync(&raw mut at, len, self.raw, stream) }.result()?;
        Ok(at)
    }

    /// Takes and gives back a little: some drivers say that they have pools and refuse to use them.
    pub(super) fn try_out(&self, stream: &OwnStream) -> Result<(), DriverError> {
        let at = self.allocate(1, stream.raw())?;
        // SAFETY: just allocated, in the order of this stream.
        unsafe { result::free_async(at, stream.raw()) }?;
        stream.synchronise()?;
        self.trim()
    }

    pub(super) fn trim(&self) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the pool is alive.
        unsafe { sys::cuMemPoolTrimTo(self.raw, 0) }.result()
    }

    /// What it has of the device, in use or kept.
    pub(super) fn reserved(&self) -> Result<Bytes, DriverError> {
        self.attribute(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
    }

    /// What is in use of that.
    pub(super) fn used(&self) -> Result<Bytes, DriverError> {
        self.attribute(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
    }

    fn attribute(&self, which: sys::CUmemPool_attribute) -> Result<Bytes, DriverError> {
        self.context.bind()?;
        let mut value = 0u64;
        // SAFETY: the pool is alive; the attribute is a 64-bit number.
        unsafe { sys::cuMemPoolGetAttribute(self.raw, which, (&raw mut value).cast::<c_void>()) }.result()?;
        Ok(Bytes::new(value))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made by `new`, destroyed once. Memory that is still allocated keeps it alive in the driver.
            let _ = unsafe { sys::cuMemPoolDestroy(self.raw) };
        }
    }
}

/// Memory of `len` bytes at once. Not in the order of any stream.
pub(super) fn allocate_direct(context: &Context, len: usize) -> Result<sys::CUdeviceptr, DriverError> {
    context.bind()?;
    // SAFETY: the context is current.
    unsafe { result::malloc_sync(len) }
}

/// Gives back what [`allocate_direct`] gave.
///
/// # Safety
/// Nothing uses the memory any more.
pub(super) unsafe fn free_direct(context: &Context, at: sys::CUdeviceptr) -> Result<(), DriverError> {
    context.bind()?;
    // SAFETY: by the caller's contract.
    unsafe { result::free_sync(at) }
}

/// Memory that is held so that the driver has less of it to give.
#[derive(Debug)]
pub(super) struct Ballast {
    held: Vec<sys::CUdeviceptr>,
    context: Arc<Context>,
}

impl Ballast {
    /// Fills the card until no more than `leave` is free.
    pub(super) fn fill(context: &Arc<Context>, leave: Bytes) -> Result<Self, DriverError> {
        let mut ballast = Self { held: Vec::new(), context: Arc::clone(context) };
        let mut most = Bytes::MAX;
        loop {
            let (free, _) = context.info()?;
            let excess = free.saturating_sub(leave);
            let piece = excess.min(most).round_up(Bytes::new(GRAIN));
            if excess == Bytes::ZERO {
                return Ok(ballast);
            }
            if piece < Bytes::new(GRAIN) {
                return Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY));
            }
            match allocate_direct(context, piece.to_usize().unwrap_or(usize::MAX)) {
                Ok(at) => ballast.held.push(at),
                // Not in one piece: in smaller ones.
                Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                    most = Bytes::new(piece.get() / 2 / GRAIN * GRAIN);
                }
                Err(other) => return Err(other),
            }
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        for at in self.held.drain(..) {
            // SAFETY: nothing ever used it.
            let _ = unsafe { free_direct(&self.context, at) };
        }
    }
}
