//! Copies and page-locked memory on devices whose memory is host memory.

use std::alloc::{Layout, alloc, dealloc};
use std::borrow::Cow;
use std::ptr::NonNull;

use prestage_vram::{Bytes, Cost, Cpu, Error, HostBlock, Op, Work};

use crate::device::page_size;
use crate::{HostRange, Pages};

/// [`crate::Transfer::copy_in`].
///
/// # Safety
/// As there.
pub(crate) unsafe fn copy_in<D: Cpu>(
    device: &D,
    queue: &D::Queue,
    name: Cow<'static, str>,
    from: HostRange,
    to: &HostBlock,
    at: usize,
) -> Result<(), Error> {
    let bytes = to.full_size(from.len);
    let to = to.as_ptr::<u8>();
    let job = move || {
        let from = from;
        // SAFETY: both ranges are valid and apart by the caller's contract, which lasts until this job has run.
        unsafe { to.get().add(at).copy_from_nonoverlapping(from.at.as_ptr(), from.len) };
        Cost::Upload { bytes, pinned: from.locked }
    };
    // SAFETY: as above; the caller has claimed the block for this queue.
    unsafe { device.perform(queue, Work::copy(name, bytes), job) }
}

/// [`crate::Transfer::copy_out`].
///
/// # Safety
/// As there.
pub(crate) unsafe fn copy_out<D: Cpu>(
    device: &D,
    queue: &D::Queue,
    name: Cow<'static, str>,
    from: &HostBlock,
    at: usize,
    to: HostRange,
) -> Result<(), Error> {
    let bytes = from.full_size(to.len);
    let from = from.as_ptr::<u8>();
    let job = move || {
        let to = to;
        // SAFETY: both ranges are valid and apart by the caller's contract, which lasts until this job has run.
        unsafe { to.at.as_ptr().copy_from_nonoverlapping(from.get().add(at), to.len) };
        Cost::Download { bytes, pinned: to.locked }
    };
    // SAFETY: as above; the caller has claimed the block for this queue.
    unsafe { device.perform(queue, Work::copy(name, bytes), job) }
}

/// Whole pages of ordinary memory; `freed` is told when they have gone.
pub(crate) fn pages<D: Cpu>(
    device: &D,
    len: Bytes,
    freed: impl FnOnce() + Send + Sync + 'static,
) -> Result<Pages, Error> {
    device.ledger().attempt(Op::Register)?;
    let failed = |detail: &str| Error::Device {
        op: Op::Register,
        device: device.name().to_owned(),
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
    let free = move |at: NonNull<u8>| {
        // SAFETY: `at` was allocated with `layout` and is freed once.
        unsafe { dealloc(at.as_ptr(), layout) };
        freed();
    };
    // SAFETY: `alloc` gave the memory to this call alone; it is freed once, with its layout.
    Ok(unsafe { Pages::new(at, layout.size(), free) })
}
