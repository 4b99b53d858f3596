//! Host memory that can be moved into an upload.

use std::ops::Range;
use std::sync::Arc;

use crate::{Error, Pinned};

/// Owned host memory that a copy can read while it is held.
///
/// # Safety
/// [`Source::elements`] returns the same memory each time, also after the value was moved; as long as the value
/// exists, nobody writes to that memory and it stays allocated. `'static` keeps borrowed memory out: a borrow ends
/// with its scope even where the value that holds it was forgotten. Use [`crate::Lane::scope`] for that.
pub unsafe trait Source<T>: 'static {
    /// The elements.
    fn elements(&self) -> &[T];
}

// SAFETY: page-locked memory at a fixed address; writing takes `&mut`, which nobody has while the value is held.
unsafe impl<T: Copy + 'static> Source<T> for Pinned<T> {
    fn elements(&self) -> &[T] {
        self
    }
}

// SAFETY: as for the pinned memory itself; holding a clone keeps every other holder from `&mut`.
unsafe impl<T: Copy + 'static> Source<T> for Arc<Pinned<T>> {
    fn elements(&self) -> &[T] {
        self
    }
}

// SAFETY: the heap memory does not move with the vector, and nobody has `&mut` while it is held.
unsafe impl<T: Copy + 'static> Source<T> for Vec<T> {
    fn elements(&self) -> &[T] {
        self
    }
}

// SAFETY: as for a vector; holding a clone keeps every other holder from `&mut`.
unsafe impl<T: Copy + 'static> Source<T> for Arc<Vec<T>> {
    fn elements(&self) -> &[T] {
        self
    }
}

// SAFETY: as for a shared vector.
unsafe impl<T: Copy + 'static> Source<T> for Arc<[T]> {
    fn elements(&self) -> &[T] {
        self
    }
}

// SAFETY: nobody writes to what a `'static` reference shows.
unsafe impl<T: Copy + 'static> Source<T> for &'static [T] {
    fn elements(&self) -> &[T] {
        self
    }
}

/// Some elements of a source: what to upload when memory is shared and goes to the device in pieces.
#[derive(Clone, Debug)]
pub struct Part<S> {
    source: S,
    range: Range<usize>,
}

impl<S> Part<S> {
    /// Elements `range` of `source`.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end.
    pub fn new<T>(source: S, range: Range<usize>) -> Result<Self, Error>
    where
        S: Source<T>,
    {
        let len = source.elements().len();
        if range.start > range.end || range.end > len {
            return Err(Error::Range { start: range.start, end: range.end, len });
        }
        Ok(Self { source, range })
    }

    /// All of the source.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.source
    }
}

// SAFETY: a fixed part of memory that does not move and that nobody writes to.
unsafe impl<T: 'static, S: Source<T>> Source<T> for Part<S> {
    fn elements(&self) -> &[T] {
        self.source.elements().get(self.range.clone()).unwrap_or_default()
    }
}
