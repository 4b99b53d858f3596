//! An NVIDIA card as a device that copies: its copy engines move locked memory by themselves.

use std::borrow::Cow;
use std::ptr::NonNull;

use prestage_vram::cuda::{Cuda, CudaBlock, CudaQueue};
use prestage_vram::{Bytes, Error, Work};

use crate::{HostRange, Pages, Registration, Transfer, page_size};

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
