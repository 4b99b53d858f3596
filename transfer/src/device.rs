//! The raw operations that a device implements so that everything typed can be built on them.

use std::borrow::Cow;
use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;

use prestage_vram::{Bytes, Device, Error};

/// Host memory at one end of a raw copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// Where it begins.
    pub at: NonNull<u8>,
    /// Its bytes, at least one.
    pub len: usize,
    /// True when all of it is page-locked for the device, false when none of it is.
    pub locked: bool,
}

// SAFETY: an address and a length; whoever follows the address does so under a contract of its own.
unsafe impl Send for HostRange {}

/// A device that copies to and from host memory, asynchronously, in the order of a queue.
///
/// Every operation asks [`prestage_vram::Ledger::attempt`] first. A copy is recorded as a span of its bytes on the
/// track of its queue, timed by the device: never by a host clock around the call.
pub trait Transfer: Device {
    /// Whether device memory is behind a link. Where it is not, work reads host memory where it lies, and nothing is gained by
    /// copies of it that stay on the device.
    fn streams(&self) -> bool {
        true
    }

    /// Enqueues a copy from host memory into `to`, `at` bytes from its beginning. Returns at once where the memory
    /// is locked; a device may take longer over pageable memory.
    ///
    /// # Safety
    /// Until the copy has ended, which no earlier than a mark recorded after it tells, `from` is readable and nobody
    /// writes to it. The destination lies inside the block, and `queue` has claimed it.
    ///
    /// # Errors
    /// [`Error::Device`] when nothing was enqueued; [`Error::Poisoned`].
    unsafe fn copy_in(
        &self,
        queue: &Self::Queue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &Self::Block,
        at: usize,
    ) -> Result<(), Error>;

    /// Enqueues a copy from `from`, `at` bytes from its beginning, into host memory.
    ///
    /// # Safety
    /// Until the copy has ended, `to` is writable and nobody else touches it. The source lies inside the block, is
    /// initialised by what `queue` ran before, and `queue` has claimed it.
    ///
    /// # Errors
    /// [`Error::Device`] when nothing was enqueued; [`Error::Poisoned`].
    unsafe fn copy_out(
        &self,
        queue: &Self::Queue,
        name: Cow<'static, str>,
        from: &Self::Block,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error>;

    /// Allocates page-locked host memory: `len` bytes, a multiple of [`page_size`], aligned to a page. The contents
    /// are not initialised. The account of locked memory is the caller's business.
    ///
    /// # Errors
    /// [`Error::Device`] when the operating system or the driver refuses.
    fn pin(&self, len: Bytes) -> Result<Pages, Error>;

    /// Locks existing host memory, `len` bytes and so the pages that they lie on. The account of locked memory is
    /// the caller's business.
    ///
    /// # Safety
    /// The memory stays mapped until the registration ends; no copy that uses it is in flight when it does.
    ///
    /// # Errors
    /// [`Error::Device`] when the operating system or the driver refuses; nothing is locked then.
    unsafe fn register(&self, at: NonNull<u8>, len: usize) -> Result<Registration, Error>;
}

/// Page-locked host memory as [`Transfer::pin`] gives it, freed when dropped. It keeps alive whatever the device
/// needs to free it.
pub struct Pages {
    at: NonNull<u8>,
    len: usize,
    free: Option<Box<dyn FnOnce(NonNull<u8>) + Send + Sync>>,
}

// SAFETY: plain memory that this owns; `free` may be called on any thread.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for Pages {}

impl Pages {
    /// Memory of `len` bytes at `at`, given back by `free`.
    ///
    /// # Safety
    /// The memory is valid for reads and writes, and this value's alone, until `free` is called.
    pub unsafe fn new(
        at: NonNull<u8>,
        len: usize,
        free: impl FnOnce(NonNull<u8>) + Send + Sync + 'static,
    ) -> Self {
        Self { at, len, free: Some(Box::new(free)) }
    }

    /// Where it begins.
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

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(free) = self.free.take() {
            free(self.at);
        }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("at", &self.at).field("len", &self.len).finish_non_exhaustive()
    }
}

/// Existing host memory that [`Transfer::register`] locked; unlocked when dropped.
pub struct Registration {
    unlock: Option<Box<dyn FnOnce() -> Result<(), Error> + Send + Sync>>,
}

impl Registration {
    /// A registration that `unlock` ends.
    pub fn new(unlock: impl FnOnce() -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Self { unlock: Some(Box::new(unlock)) }
    }

    /// Unlocks the memory.
    ///
    /// # Errors
    /// [`Error::Device`]; the memory may still be locked then.
    pub fn end(mut self) -> Result<(), Error> {
        self.unlock.take().map_or(Ok(()), |unlock| unlock())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(unlock) = self.unlock.take() {
            // Nowhere to report it from here; `end` is the way to see it.
            let _ = unlock();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

/// The size of a page of this machine in bytes, a power of two.
#[must_use]
pub fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        #[cfg(unix)]
        // SAFETY: no preconditions.
        let asked = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        #[cfg(not(unix))]
        let asked = 0i64;
        usize::try_from(asked).ok().filter(|n| n.is_power_of_two()).unwrap_or(4096)
    })
}
