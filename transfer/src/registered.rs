//! Existing host memory, locked for as long as a closure runs.

use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use prestage_vram::{Bytes, LockedPages};

use crate::device::page_size;
use crate::{Error, Registration, Transfer};

/// Borrowed host memory that is page-locked for the device, or that would have been: see [`registered`].
#[derive(Debug)]
pub struct Registered<'h, T> {
    memory: &'h mut [T],
    locked: Bytes,
    refusal: Option<&'h Error>,
}

impl<'h, T> Registered<'h, T> {
    /// The bytes of host memory that are locked for it: whole pages, zero when that was refused.
    #[must_use]
    pub fn locked(&self) -> Bytes {
        self.locked
    }

    /// Why the memory could not be locked. It can be copied from all the same, more slowly.
    #[must_use]
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal
    }

    /// The elements, for as long as they are registered.
    #[must_use]
    pub fn into_slice(self) -> &'h mut [T] {
        self.memory
    }
}

impl<T> Deref for Registered<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.memory
    }
}

impl<T> DerefMut for Registered<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.memory
    }
}

/// Locks `memory` for the device in chunks of `chunk`, runs `f` with it and unlocks it again, also when `f` panics.
/// Call it outside the turn: locking costs up to 0.3 s per GiB.
///
/// The memory is unlocked by this function and not by a guard, which could be forgotten. It is borrowed alone, so
/// that no copy from it which began outside is still running when it is unlocked. Within `f`, copy from it in a
/// [`crate::Lane::scope`].
///
/// When the memory cannot be locked (no budget, a driver that refuses these pages, locked already), whatever was
/// locked of it is unlocked in reverse order and `f` runs all the same, with the reason in [`Registered::refusal`].
/// Read-only mappings cannot be registered, by type: stream them through a [`crate::Ring`].
///
/// # Errors
/// [`Error::Device`] when the memory could not be unlocked afterwards. It stays in the account then.
pub fn registered<T: Copy, D: Transfer, R>(
    device: &D,
    memory: &mut [T],
    chunk: Bytes,
    f: impl for<'r> FnOnce(Registered<'r, T>) -> R,
) -> Result<R, Error> {
    let len = size_of_val(memory);
    let at = NonNull::from(&mut *memory).cast();
    // SAFETY: the memory is borrowed alone until the chunks are gone, below or by a panic; copies from it can only
    // run in scopes inside `f`, which have ended.
    match unsafe { Chunks::lock(device, at, len, chunk) } {
        Ok(chunks) => {
            let value = f(Registered { memory, locked: chunks.bytes(), refusal: None });
            chunks.end()?;
            Ok(value)
        }
        Err(error) => Ok(f(Registered { memory, locked: Bytes::ZERO, refusal: Some(&error) })),
    }
}

/// Host memory that was locked chunk by chunk, unlocked in reverse.
#[derive(Debug)]
pub(crate) struct Chunks(Vec<(Registration, LockedPages)>);

impl Chunks {
    /// Locks `len` bytes in chunks of `chunk`, cut at page borders. All of them or none.
    ///
    /// # Safety
    /// The memory stays mapped until the chunks are gone; no copy that uses it is in flight then.
    pub(crate) unsafe fn lock<D: Transfer>(
        device: &D,
        at: NonNull<u8>,
        len: usize,
        chunk: Bytes,
    ) -> Result<Self, Error> {
        let start = at.addr().get();
        let mut chunks = Self(Vec::new());
        for pages in cuts(start, len, chunk) {
            // Only the bytes asked for are registered, but locking is by whole pages and they are counted.
            let exact = pages.start.max(start)..pages.end.min(start + len);
            let locked = Self::one(device, at, start, pages, exact);
            match locked {
                Ok(locked) => chunks.0.push(locked),
                Err(error) => {
                    // The first failure is the reason; what could not be unlocked stays in the account.
                    let _ = chunks.end();
                    return Err(error);
                }
            }
        }
        Ok(chunks)
    }

    fn one<D: Transfer>(
        device: &D,
        base: NonNull<u8>,
        start: usize,
        pages: Range<usize>,
        exact: Range<usize>,
    ) -> Result<(Registration, LockedPages), Error> {
        let mut reserved = device.ledger().locked().reserve(Bytes::of::<u8>(pages.len()))?;
        reserved.place(pages.start, exact.clone())?;
        // SAFETY: `exact` lies inside the memory that begins at `base`, which has the address `start`.
        let at = unsafe { base.add(exact.start - start) };
        // SAFETY: by the contract of `lock`.
        let registration = unsafe { device.register(at, exact.len()) }?;
        Ok((registration, reserved))
    }

    /// What is locked.
    pub(crate) fn bytes(&self) -> Bytes {
        self.0.iter().map(|(_, locked)| locked.bytes()).sum()
    }

    /// Unlocks the chunks in reverse, all of them, and returns the first failure.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.unlock()
    }

    fn unlock(&mut self) -> Result<(), Error> {
        let mut first = Ok(());
        while let Some((registration, locked)) = self.0.pop() {
            if let Err(error) = registration.end() {
                // Perhaps locked still: keep it in the account, so that nobody registers it again.
                std::mem::forget(locked);
                first = first.and(Err(error.into()));
            }
        }
        first
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let _ = self.unlock();
    }
}

/// The pages under `len` bytes at `start`, in pieces of `chunk` rounded up to pages; the last may be smaller.
fn cuts(start: usize, len: usize, chunk: Bytes) -> impl Iterator<Item = Range<usize>> {
    let page = page_size();
    let step = chunk.round_up(Bytes::of::<u8>(page)).to_usize().unwrap_or(usize::MAX).max(page);
    let end = if len == 0 { start } else { (start + len).next_multiple_of(page) };
    let mut at = if len == 0 { start } else { start - start % page };
    std::iter::from_fn(move || {
        let from = at;
        at = end.min(from.saturating_add(step));
        (from < end).then_some(from..at)
    })
}
