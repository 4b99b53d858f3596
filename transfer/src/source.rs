//! Host memory that can be moved into an upload.

use std::sync::Arc;

use crate::Pinned;

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
