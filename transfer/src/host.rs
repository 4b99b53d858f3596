//! The CPU as a device that copies: one thread per lane stands for a copy engine.

use std::alloc::{Layout, alloc, dealloc};
use std::borrow::Cow;
use std::ptr::NonNull;

use prestage_vram::{Bytes, Device, Error, Host, HostBlock, HostQueue, Op};

use crate::device::page_size;
use crate::{HostRange, Pages, Registration, Transfer};

/// The CPU has nothing to lock memory for: pinning allocates whole pages, registering keeps the account. The rules
/// are those of a card all the same, so that what breaks them breaks here.
impl Transfer for Host {
    unsafe fn copy_in(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &HostBlock,
        at: usize,
    ) -> Result<(), Error> {
        let to = to.as_ptr::<u8>();
        let job = move || {
            let from = from;
            // SAFETY: both ranges are valid and apart by the caller's contract, which lasts until this job has run.
            unsafe { to.get().add(at).copy_from_nonoverlapping(from.at.as_ptr(), from.len) };
        };
        // SAFETY: as above; the caller has claimed the block for this queue.
        unsafe { self.submit(queue, Op::Copy, name, Bytes::of::<u8>(from.len), job) }
    }

    unsafe fn copy_out(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: &HostBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        let from = from.as_ptr::<u8>();
        let job = move || {
            let to = to;
            // SAFETY: both ranges are valid and apart by the caller's contract, which lasts until this job has run.
            unsafe { to.at.as_ptr().copy_from_nonoverlapping(from.get().add(at), to.len) };
        };
        // SAFETY: as above; the caller has claimed the block for this queue.
        unsafe { self.submit(queue, Op::Copy, name, Bytes::of::<u8>(to.len), job) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        self.ledger().attempt(Op::Register)?;
        let failed = |detail: &str| Error::Device {
            op: Op::Register,
            device: self.name().to_owned(),
            detail: detail.to_owned(),
        };
        let layout = len
            .to_usize()
            .filter(|len| *len > 0)
            .and_then(|len| Layout::from_size_align(len, page_size()).ok())
            .ok_or_else(|| failed("no such amount of memory"))?;
        // SAFETY: the layout is not empty.
        let at = NonNull::new(unsafe { alloc(layout) })
            .ok_or_else(|| failed("the operating system has no more memory"))?;
        // SAFETY: `alloc` gave the memory to this call alone; it is freed once, with its layout.
        Ok(unsafe { Pages::new(at, layout.size(), move |at| dealloc(at.as_ptr(), layout)) })
    }

    unsafe fn register(&self, _: NonNull<u8>, _: usize) -> Result<Registration, Error> {
        self.ledger().attempt(Op::Register)?;
        Ok(Registration::new(|| Ok(())))
    }
}
