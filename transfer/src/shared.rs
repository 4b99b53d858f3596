//! Shared host memory, page-locked where it lies.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use prestage_vram::Bytes;

use crate::registered::Chunks;
use crate::{Error, Source, Transfer};

/// Memory that others share and nobody writes to, page-locked for the device for as long as this lives: the points of a key,
/// which many proofs stream.
pub struct Shared<T> {
    // Unlocked before the memory may go.
    chunks: Chunks,
    memory: Arc<[T]>,
}

impl<T: Send + Sync> Shared<T> {
    /// Locks `memory` in chunks of `chunk`. Nothing is copied.
    ///
    /// # Errors
    /// [`Error::Device`] when the memory cannot be locked ([`Error::is_unpinnable`]): it can be copied from all the same, more
    /// slowly.
    pub fn lock(device: &impl Transfer, memory: Arc<[T]>, chunk: Bytes) -> Result<Self, Error> {
        let at = NonNull::from(&*memory).cast();
        // SAFETY: the memory stays where it is while it is kept beside the chunks, which go first; a copy holds this, as
        // `Source` demands, until it has ended.
        let chunks = unsafe { Chunks::lock(device, at, size_of_val(&*memory), chunk) }?;
        Ok(Self { chunks, memory })
    }

    /// The bytes of host memory that it keeps locked: whole pages.
    #[must_use]
    pub fn locked(&self) -> Bytes {
        self.chunks.bytes()
    }
}

// SAFETY: shared memory that nobody writes to, at a fixed address.
unsafe impl<T: Copy + 'static> Source<T> for Arc<Shared<T>> {
    fn elements(&self) -> &[T] {
        &self.memory
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, locked) = (self.memory.len(), self.chunks.bytes());
        f.debug_struct("Shared").field("len", &len).field("locked", &locked).finish()
    }
}
