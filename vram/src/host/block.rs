//! Host memory that stands for device memory.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use crate::Bytes;

/// A block of host memory that stands for device memory. It is freed through its [`crate::Buf`] only.
#[derive(Debug)]
pub struct HostBlock {
    at: NonNull<u8>,
    layout: Option<Layout>,
    charge: Bytes,
}

// SAFETY: the block is plain memory; who may touch it when is the business of the queue that a `Buf` is claimed for.
unsafe impl Send for HostBlock {}
// SAFETY: a shared reference gives the address only.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// A block of `len` bytes that are accounted for as `charge`.
    pub(crate) fn new(len: Bytes, charge: Bytes) -> Result<Self, &'static str> {
        let too_long = "more than this process can address";
        let len = len.to_usize().ok_or(too_long)?;
        if len == 0 {
            return Ok(Self { at: NonNull::<Aligned>::dangling().cast(), layout: None, charge });
        }
        let layout = Layout::from_size_align(len, align_of::<Aligned>()).map_err(|_| too_long)?;
        // SAFETY: the layout is not empty.
        let at = NonNull::new(unsafe { alloc(layout) }).ok_or("the operating system has no more memory")?;
        Ok(Self { at, layout: Some(layout), charge })
    }

    /// What it is accounted for.
    #[must_use]
    pub fn charge(&self) -> Bytes {
        self.charge
    }

    /// What `part` bytes of it stand for: themselves, or their share of the charge on a simulated card.
    #[must_use]
    pub fn full_size(&self, part: usize) -> Bytes {
        let Some(layout) = self.layout else { return Bytes::ZERO };
        let share = u128::from(self.charge.get()) * part as u128 / layout.size() as u128;
        Bytes::new(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// Where it begins, for jobs on a queue that has claimed it. Aligned to 64 bytes.
    #[must_use]
    pub fn as_ptr<T>(&self) -> HostPtr<T> {
        HostPtr(self.at.as_ptr().cast())
    }

    pub(crate) fn free(self) {
        if let Some(layout) = self.layout {
            // SAFETY: `at` was allocated with `layout` and is freed once, since this takes the block.
            unsafe { dealloc(self.at.as_ptr(), layout) };
        }
    }
}

/// A pointer into a [`HostBlock`] that a job may carry to its queue's thread.
#[derive(Debug)]
pub struct HostPtr<T>(*mut T);

impl<T> Clone for HostPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HostPtr<T> {}

// SAFETY: sending the address is harmless; each use is an `unsafe` call with its own contract.
unsafe impl<T: Send> Send for HostPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for HostPtr<T> {}

impl<T> HostPtr<T> {
    /// The address.
    #[must_use]
    pub fn get(self) -> *mut T {
        self.0
    }

    /// `len` elements from here.
    ///
    /// # Safety
    /// The elements are initialised and inside the block, and for as long as the slice lives the block is live and
    /// nobody writes to them.
    #[must_use]
    pub unsafe fn slice<'s>(self, len: usize) -> &'s [T] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.0, len) }
    }

    /// `len` elements from here, to be written.
    ///
    /// # Safety
    /// As [`HostPtr::slice`], and nobody else reads or writes them.
    #[must_use]
    pub unsafe fn slice_mut<'s>(self, len: usize) -> &'s mut [T] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.0, len) }
    }
}

/// What every block is aligned to: one cache line.
#[repr(align(64))]
struct Aligned;
