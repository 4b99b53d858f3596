//! Host memory that a card can copy to and from by itself.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::{DriverError, sys};

use super::device::{Cuda, Shared};
use crate::{Bytes, Error, Op};

/// Page-locked host memory of the driver, freed when dropped. It may outlive the device. The contents are not initialised;
/// the memory is cached as any other: fast to read and write.
///
/// Freeing it waits for all work of the card: keep slots for results, and drop them when nothing runs.
#[derive(Debug)]
pub struct HostPages {
    /// As the driver gave it.
    raw: *mut c_void,
    at: NonNull<u8>,
    len: usize,
    shared: Arc<Shared>,
}

// SAFETY: plain memory that this owns; the driver frees on any thread.
unsafe impl Send for HostPages {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for HostPages {}

impl HostPages {
    /// Where it begins, aligned as was asked.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.at
    }

    /// Its bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // Never empty.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        if self.shared.context.bind().is_ok() {
            // A lost context keeps it until it is reset.
            // SAFETY: allocated by the driver, freed once.
            let _ = unsafe { sys::cuMemFreeHost(self.raw) };
        }
    }
}

/// Existing host memory that is page-locked for the card, unlocked when dropped.
#[derive(Debug)]
pub struct HostLock {
    at: *mut c_void,
    shared: Option<Arc<Shared>>,
}

// SAFETY: an address that only the driver is told of; it unlocks on any thread.
unsafe impl Send for HostLock {}
// SAFETY: as above.
unsafe impl Sync for HostLock {}

impl HostLock {
    /// Unlocks the memory.
    ///
    /// # Errors
    /// [`Error::Device`]; the memory may still be locked then.
    pub fn end(mut self) -> Result<(), Error> {
        self.unlock()
    }

    fn unlock(&mut self) -> Result<(), Error> {
        let Some(shared) = self.shared.take() else { return Ok(()) };
        let ended = shared.context.bind().and_then(|()| {
            // SAFETY: locked by `Cuda::lock`, unlocked once.
            unsafe { sys::cuMemHostUnregister(self.at) }.result()
        });
        ended.map_err(|error| shared.failed(Op::Register, "cuMemHostUnregister", error))
    }
}

impl Drop for HostLock {
    fn drop(&mut self) {
        // Nowhere to report it from here; `end` is the way to see it.
        let _ = self.unlock();
    }
}

impl Cuda {
    /// Page-locked host memory of `len` bytes, aligned to `align`, a power of two. The account of locked memory is the
    /// caller's business.
    ///
    /// # Errors
    /// [`Error::Device`] when the driver refuses, or for no bytes at all; [`Error::Poisoned`].
    pub fn pin(&self, len: Bytes, align: usize) -> Result<HostPages, Error> {
        self.shared.ledger.attempt(Op::Register)?;
        let failed = |error| self.shared.failed(Op::Register, "cuMemHostAlloc", error);
        let invalid = DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE);
        let len =
            len.to_usize().filter(|&n| n > 0 && align.is_power_of_two()).ok_or_else(|| failed(invalid))?;
        self.shared.context.bind().map_err(failed)?;
        // The driver promises no alignment, and gives that of a page. Where it does not, a little more is asked for.
        for extra in [0, align] {
            let mut raw = std::ptr::null_mut();
            let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
            // SAFETY: the pointer is to a live address.
            unsafe { sys::cuMemHostAlloc(&raw mut raw, len.saturating_add(extra), flags) }
                .result()
                .map_err(failed)?;
            let skip = raw.cast::<u8>().align_offset(align);
            // SAFETY: at most `extra` bytes into the allocation, or not used.
            if let Some(at) = NonNull::new(raw.cast::<u8>().wrapping_add(skip))
                && skip <= extra
            {
                return Ok(HostPages { raw, at, len, shared: Arc::clone(&self.shared) });
            }
            // SAFETY: allocated above, in no one's hands.
            let _ = unsafe { sys::cuMemFreeHost(raw) };
        }
        Err(failed(invalid))
    }

    /// Locks existing host memory for the card: `len` bytes, and so the pages that they lie on. The account of locked memory
    /// is the caller's business.
    ///
    /// # Safety
    /// The memory stays mapped until the lock ends; no copy that uses it is in flight when it does.
    ///
    /// # Errors
    /// [`Error::Device`] when the operating system or the driver refuses; [`Error::Poisoned`]. Nothing is locked then.
    pub unsafe fn lock(&self, at: NonNull<u8>, len: usize) -> Result<HostLock, Error> {
        self.shared.ledger.attempt(Op::Register)?;
        let at = at.as_ptr().cast();
        let locked = self.shared.context.bind().and_then(|()| {
            // SAFETY: mapped for as long as it is locked, by the caller's contract.
            unsafe { sys::cuMemHostRegister_v2(at, len, sys::CU_MEMHOSTREGISTER_PORTABLE) }.result()
        });
        locked.map_err(|error| self.shared.failed(Op::Register, "cuMemHostRegister", error))?;
        Ok(HostLock { at, shared: Some(Arc::clone(&self.shared)) })
    }
}
