//! Copies within host memory.

use std::mem::MaybeUninit;
use std::sync::atomic::{Ordering, compiler_fence};

use rayon::prelude::*;

use crate::Place;

/// Up to this many bytes one thread is as fast as several: waking them costs more.
pub(crate) const PARALLEL: usize = 1 << 20;

/// What one thread copies at a time: small enough that all of them end at about the same moment, and that the next level of
/// cache holds it.
const PIECE: usize = 1 << 16;

/// Copies elements, on several threads where they are many: one thread is slower than the link of a card.
/// The slices have the same length; of two that do not, the common part is copied.
pub(crate) fn copy<T: Copy + Send + Sync + 'static, E: Place<T>>(from: &[T], to: &mut [E]) {
    let one = |from: &[T], to: &mut [E]| {
        let len = from.len().min(to.len());
        // SAFETY: both have `len` elements, which are laid out alike by the contract of `Place`; a slice that is borrowed alone
        // does not overlap another.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), len) }
    };
    if size_of_val(from) <= PARALLEL {
        return one(from, to);
    }
    let piece = (PIECE / size_of::<T>().max(1)).max(1);
    to.par_chunks_mut(piece).zip(from.par_chunks(piece)).for_each(|(to, from)| one(from, to));
}

/// Overwrites memory with zeros, on several threads where it is large.
pub(crate) fn wipe(memory: &mut [MaybeUninit<u8>]) {
    let zero = |piece: &mut [MaybeUninit<u8>]| piece.fill(MaybeUninit::new(0));
    if memory.len() <= PARALLEL {
        zero(memory);
    } else {
        memory.par_chunks_mut(PARALLEL).for_each(zero);
    }
    // Whoever frees the memory next does so after these writes.
    compiler_fence(Ordering::SeqCst);
}
