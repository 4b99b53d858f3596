//! An NVIDIA card as a device that copies: its copy engines move locked memory by themselves.

use std::borrow::Cow;
use std::ptr::NonNull;

use memmap2::MmapMut;
use prestage_vram::cuda::{Cuda, CudaBlock, CudaQueue};
use prestage_vram::{Bytes, Device as _, Error, Op, Work};
use rayon::prelude::*;

use crate::{HostRange, Pages, Registration, Transfer, page_size};

/// From this size on memory is mapped and locked, not taken from the driver.
const MAPPED: Bytes = Bytes::mib(64);
/// What a thread touches at a time: a large page, so that one thread gets it.
const PIECE: usize = 2 << 20;

/// Memory of the operating system that all threads of the current `rayon` pool touch, and that is locked then. The driver touches
/// what it allocates page by page on one thread: seven times as slow.
fn map(card: &Cuda, len: Bytes) -> Result<Pages, Error> {
    let failed = |error: std::io::Error| Error::Device {
        op: Op::Register,
        device: card.name().to_owned(),
        detail: format!("mapping {len} of host memory: {error}"),
    };
    let mut memory = MmapMut::map_anon(len.to_usize().unwrap_or(usize::MAX)).map_err(failed)?;
    // Where large pages cannot be had, small ones do.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory.par_chunks_mut(PIECE).for_each(|piece| {
        for byte in piece.iter_mut().step_by(page_size()) {
            // SAFETY: a byte that is borrowed alone. The write is not left out, though it is what is there.
            unsafe { std::ptr::write_volatile(byte, 0) }
        }
    });
    let (at, len) = (NonNull::from(&mut *memory).cast(), memory.len());
    // SAFETY: mapped until `memory` is dropped, which is after the lock; copies own what they use.
    let lock = unsafe { card.lock(at, len) }?;
    // SAFETY: the map's memory, which goes when this is freed.
    Ok(unsafe { Pages::new(at, len, move |_| drop((lock, memory))) })
}

/// Memory that is not locked is copied as well, through the driver's own slots: at a fraction of the speed, and the host waits
/// for all but the last of them.
impl Transfer for Cuda {
    unsafe fn copy_in(
        &self,
        queue: &CudaQueue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &CudaBlock,
        at: usize,
    ) -> Result<(), Error> {
        let to = to.as_ptr::<u8>().wrapping_add(at);
        let work = Work::copy(name, Bytes::of::<u8>(from.len));
        // SAFETY: the range inside the block, which is claimed, and the host's memory until the copy has ended, by the
        // caller's contract.
        unsafe { self.enqueue(queue, work, |stream| stream.upload(from.at.as_ptr(), to, from.len)) }
    }

    unsafe fn copy_out(
        &self,
        queue: &CudaQueue,
        name: Cow<'static, str>,
        from: &CudaBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        let from = from.as_ptr::<u8>().wrapping_add(at);
        let work = Work::copy(name, Bytes::of::<u8>(to.len));
        // SAFETY: as in `copy_in`.
        unsafe { self.enqueue(queue, work, |stream| stream.download(from, to.at.as_ptr(), to.len)) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        if len >= MAPPED {
            return map(self, len);
        }
        let pages = self.pin(len, page_size())?;
        let (at, len) = (pages.as_ptr(), pages.len());
        // SAFETY: the memory of `pages`, which goes when this is freed.
        Ok(unsafe { Pages::new(at, len, move |_| drop(pages)) })
    }

    unsafe fn register(&self, at: NonNull<u8>, len: usize) -> Result<Registration, Error> {
        // SAFETY: the same contract.
        let lock = unsafe { self.lock(at, len) }?;
        Ok(Registration::new(move || lock.end()))
    }
}
