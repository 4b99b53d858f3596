//! Copies within host memory.

use rayon::prelude::*;

/// Up to this many bytes one thread is as fast as several: waking them costs more.
pub(crate) const PARALLEL: usize = 1 << 20;

/// Copies elements, on several threads where they are many: one thread is slower than the link of a card.
/// The slices have the same length; of two that do not, the common part is copied.
pub(crate) fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    let chunk = (PARALLEL / size_of::<T>().max(1)).max(1);
    if from.len() <= chunk {
        let len = from.len().min(to.len());
        to[..len].copy_from_slice(&from[..len]);
        return;
    }
    to.par_chunks_mut(chunk).zip(from.par_chunks(chunk)).for_each(|(to, from)| copy(from, to));
}
