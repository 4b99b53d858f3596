//! Owned host memory that a device can copy from and to without the host.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use prestage_vram::Bytes;
use rayon::prelude::*;

use crate::device::page_size;
use crate::memory::{PARALLEL, copy};
use crate::pool::{Block, Lent};
use crate::registered::Chunks;
use crate::{Error, Transfer};

/// Owned, page-locked host memory: a fixed number of initialised elements.
///
/// It counts, in whole pages, against the device's account of locked memory ([`prestage_vram::Locked`]). While a copy
/// uses it, the copy owns it: so it can be read and written whenever one has it.
pub struct Pinned<T> {
    at: NonNull<T>,
    len: usize,
    memory: Memory,
    locked: Bytes,
}

/// What holds the elements. Fields drop in order: memory goes before its place in the account.
enum Memory {
    /// No bytes, no memory.
    Empty,
    /// Allocated by the device.
    Pages { _block: Block },
    /// From a pool, to which it goes back.
    Lent { _lent: Lent },
    /// A vector's memory, registered where it lies. Unlocked before the vector goes.
    Vector { _chunks: Chunks, _vector: Box<dyn Send + Sync> },
}

// SAFETY: it owns its elements, as a vector does; the other fields are `Send`.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: a shared reference gives shared references to the elements only.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Copy + 'static> Pinned<T> {
    /// `len` elements that are not initialised yet.
    ///
    /// # Errors
    /// [`Error::Device`] when the budget of locked memory or the device refuses (see [`Error::is_unpinnable`]), or
    /// for a length that no memory holds.
    pub fn uninit(device: &impl Transfer, len: usize) -> Result<Pinned<MaybeUninit<T>>, Error> {
        let whole = whole_pages::<T>(len)?;
        if whole == Bytes::ZERO {
            return Ok(Pinned { at: NonNull::dangling(), len, memory: Memory::Empty, locked: Bytes::ZERO });
        }
        let block = Block::pin(device, whole)?;
        Ok(Pinned { at: block.as_ptr().cast(), len, memory: Memory::Pages { _block: block }, locked: whole })
    }

    /// `len` times `value`.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn filled(device: &impl Transfer, len: usize, value: T) -> Result<Self, Error>
    where
        T: Send + Sync,
    {
        Self::par_from_fn(device, len, |_| value)
    }

    /// What `element` returns for 0, 1 … `len` − 1.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn from_fn(
        device: &impl Transfer,
        len: usize,
        mut element: impl FnMut(usize) -> T,
    ) -> Result<Self, Error> {
        let mut pinned = Self::uninit(device, len)?;
        for (i, place) in pinned.iter_mut().enumerate() {
            place.write(element(i));
        }
        // SAFETY: every element was written.
        Ok(unsafe { pinned.assume_init() })
    }

    /// As [`Pinned::from_fn`], on all threads of the current pool where the memory is large.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn par_from_fn(
        device: &impl Transfer,
        len: usize,
        element: impl Fn(usize) -> T + Sync,
    ) -> Result<Self, Error>
    where
        T: Send,
    {
        Ok(Self::uninit(device, len)?.par_fill(element))
    }

    /// A copy of `elements`.
    ///
    /// # Errors
    /// As [`Pinned::uninit`].
    pub fn from_slice(device: &impl Transfer, elements: &[T]) -> Result<Self, Error>
    where
        T: Send + Sync,
    {
        Self::uninit(device, elements.len())?.copied(elements)
    }

    /// The elements of an iterator that knows how many it has.
    ///
    /// # Errors
    /// As [`Pinned::uninit`]; [`Error::Length`] when there were fewer than it said.
    pub fn from_iter<I>(device: &impl Transfer, elements: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = T>,
        I::IntoIter: ExactSizeIterator,
    {
        let elements = elements.into_iter();
        let mut pinned = Self::uninit(device, elements.len())?;
        let mut written = 0;
        for (place, element) in pinned.iter_mut().zip(elements) {
            place.write(element);
            written += 1;
        }
        if written != pinned.len() {
            return Err(Error::Length { from: written, to: pinned.len() });
        }
        // SAFETY: every element was written.
        Ok(unsafe { pinned.assume_init() })
    }

    /// Locks the memory of a vector where it lies, in chunks of `chunk`. Nothing is copied.
    ///
    /// # Errors
    /// The reason and the vector, as it was, when the memory cannot be locked: upload it as it is, or through a
    /// [`crate::Ring`].
    pub fn from_vec(device: &impl Transfer, vector: Vec<T>, chunk: Bytes) -> Result<Self, (Error, Vec<T>)>
    where
        T: Send + Sync,
    {
        let mut vector = vector;
        let len = vector.len();
        let at = NonNull::from(vector.as_mut_slice()).cast::<T>();
        // SAFETY: the memory stays mapped while the vector lives; it is kept beside the chunks and dropped after them,
        // and `Pinned` is not dropped while a copy uses it.
        match unsafe { Chunks::lock(device, at.cast(), size_of_val(vector.as_slice()), chunk) } {
            Ok(chunks) => {
                let locked = chunks.bytes();
                let memory = Memory::Vector { _chunks: chunks, _vector: Box::new(vector) };
                Ok(Self { at, len, memory, locked })
            }
            Err(error) => Err((error, vector)),
        }
    }
}

impl<T> Pinned<T> {
    /// The bytes of host memory that it keeps locked: whole pages.
    #[must_use]
    pub fn locked(&self) -> Bytes {
        self.locked
    }
}

impl<T: Copy> Pinned<MaybeUninit<T>> {
    /// Writes what `element` returns for 0, 1 …, on all threads of the current `rayon` pool where the memory is large.
    #[must_use]
    pub fn par_fill(mut self, element: impl Fn(usize) -> T + Sync) -> Pinned<T>
    where
        T: Send,
    {
        let write = |(i, place): (usize, &mut MaybeUninit<T>)| _ = place.write(element(i));
        if size_of_val(&*self) <= PARALLEL {
            self.iter_mut().enumerate().for_each(write);
        } else {
            self.par_iter_mut().with_min_len(1024).enumerate().for_each(write);
        }
        // SAFETY: every element was written.
        unsafe { self.assume_init() }
    }

    /// Writes a copy of `elements`.
    ///
    /// # Errors
    /// [`Error::Length`] when there are not as many.
    pub fn copied(mut self, elements: &[T]) -> Result<Pinned<T>, Error>
    where
        T: Send + Sync + 'static,
    {
        if elements.len() != self.len() {
            return Err(Error::Length { from: elements.len(), to: self.len() });
        }
        copy(elements, &mut self);
        // SAFETY: every element was written.
        Ok(unsafe { self.assume_init() })
    }
}

impl<T> Pinned<MaybeUninit<T>> {
    /// `len` elements at `at`, which is `lent`'s memory.
    pub(crate) fn lent(at: NonNull<T>, len: usize, locked: Bytes, lent: Lent) -> Self {
        Self { at: at.cast(), len, memory: Memory::Lent { _lent: lent }, locked }
    }

    /// The same memory as initialised elements.
    ///
    /// # Safety
    /// Every element has been written.
    #[must_use]
    pub unsafe fn assume_init(self) -> Pinned<T> {
        Pinned { at: self.at.cast(), len: self.len, memory: self.memory, locked: self.locked }
    }
}

/// The whole pages that `len` elements take.
pub(crate) fn whole_pages<T>(len: usize) -> Result<Bytes, Error> {
    const { assert!(align_of::<T>() <= 4096, "no more than a page's alignment") };
    let too_long = prestage_vram::Error::TooLong { elements: len, size: size_of::<T>() };
    let bytes =
        len.checked_mul(size_of::<T>()).filter(|n| *n <= isize::MAX.unsigned_abs()).ok_or(too_long)?;
    Ok(Bytes::of::<u8>(bytes).round_up(Bytes::of::<u8>(page_size())))
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements that this owns.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` initialised elements that this owns, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("len", &self.len).field("locked", &self.locked).finish_non_exhaustive()
    }
}
