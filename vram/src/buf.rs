//! Device memory that owns its lease.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::{Bytes, Class, Device, Error, Event, Lease, Span, Track};

/// Device memory for `len` elements of `T`. It owns its lease: dropping it frees the memory in the order of its
/// home queue and gives the bytes back.
///
/// `'a` is the turn for a proof's buffers, the open device for resident ones. The *home* queue is the one that last
/// used the buffer; [`Buf::claim`] hands it to another queue, which then waits for the work before. So whoever
/// enqueues work claims first, and no two queues touch a buffer at once. A buffer forgotten with [`std::mem::forget`]
/// stays in the account, as it stays on the device.
pub struct Buf<'a, D: Device, T> {
    device: &'a D,
    /// `None` only while it is being taken apart.
    parts: Option<Parts<D>>,
    len: usize,
    element: PhantomData<T>,
}

struct Parts<D: Device> {
    block: D::Block,
    lease: Lease,
    home: D::Queue,
    /// Where the last use ends, when that is earlier than the end of the home queue.
    ready: Option<D::Mark>,
}

impl<'a, D: Device, T> Buf<'a, D, MaybeUninit<T>> {
    pub(crate) fn new(device: &'a D, block: D::Block, lease: Lease, len: usize, home: D::Queue) -> Self {
        Self { device, parts: Some(Parts { block, lease, home, ready: None }), len, element: PhantomData }
    }

    /// The same memory as initialised elements.
    ///
    /// # Safety
    /// Work enqueued on the home queue so far writes a valid `T` to every element.
    #[must_use]
    pub unsafe fn assume_init(mut self) -> Buf<'a, D, T> {
        Buf { device: self.device, parts: self.parts.take(), len: self.len, element: PhantomData }
    }
}

impl<'a, D: Device, T> Buf<'a, D, T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes::of::<T>(self.len)
    }

    /// What it is accounted for: its size, or that at full size on a simulated card.
    #[must_use]
    pub fn charge(&self) -> Bytes {
        self.parts.as_ref().map_or(Bytes::ZERO, |p| p.lease.bytes())
    }

    /// What it is for, as its lease says.
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.parts.as_ref().map_or("", |p| p.lease.label())
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.parts.as_ref().map_or_else(Class::default, |p| p.lease.class())
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'a D {
        self.device
    }

    /// The raw block, for a device's own code.
    #[must_use]
    #[allow(clippy::missing_panics_doc, clippy::expect_used)] // `parts` is `None` only inside destructors.
    pub fn block(&self) -> &D::Block {
        &self.parts.as_ref().expect("a live buffer has its parts").block
    }

    /// Hands the buffer to `queue`: work enqueued there from now on comes after all earlier uses.
    ///
    /// # Errors
    /// [`Error::Device`] when the wait cannot be enqueued, [`Error::Lane`] when work on the home queue has failed and the
    /// contents cannot be relied on; the buffer then stays where it was, and can be dropped as ever.
    pub fn claim(&mut self, queue: &D::Queue) -> Result<(), Error> {
        let Some(parts) = self.parts.as_mut() else { return Ok(()) };
        if parts.home == *queue {
            // More work is about to follow on the home queue: the earlier mark no longer covers every use.
            parts.ready = None;
            return Ok(());
        }
        let mark = match &parts.ready {
            Some(mark) => mark.clone(),
            None => self.device.record(&parts.home)?,
        };
        self.device.wait(queue, &mark)?;
        parts.home = queue.clone();
        parts.ready = None;
        Ok(())
    }

    /// Says that all uses of the buffer so far end at `mark` of its home queue, so that another queue that claims
    /// it waits for no more than that. [`Buf::claim`] by the home queue withdraws it. Freeing is ordered after all of
    /// the home queue either way.
    ///
    /// # Safety
    /// `mark` was recorded on the home queue after the last use of the buffer that was enqueued there, and whoever
    /// enqueues more claims first.
    pub unsafe fn ready_at(&mut self, mark: D::Mark) {
        if let Some(parts) = self.parts.as_mut() {
            parts.ready = Some(mark);
        }
    }

    /// The same memory, its contents no longer counted as initialised.
    #[must_use]
    pub fn into_uninit(mut self) -> Buf<'a, D, MaybeUninit<T>> {
        Buf { device: self.device, parts: self.parts.take(), len: self.len, element: PhantomData }
    }
}

impl<D: Device, T> Drop for Buf<'_, D, T> {
    fn drop(&mut self) {
        if let Some(Parts { block, lease, home, .. }) = self.parts.take() {
            let start = self.device.now();
            // SAFETY: the block came from `allocate` with this class, and `claim` ordered every use before the end
            // of the home queue.
            unsafe { self.device.free(block, lease.class(), &home) };
            if lease.settles() {
                // Failed work is reported when its turn is released.
                let _ = self.device.drain(&home);
            }
            let end = self.device.now();
            if (lease.settles() || lease.class() == Class::Direct) && end > start {
                self.device.ledger().emit(Event::Span(Span {
                    track: Track::Memory,
                    worker: lease.worker(),
                    name: format!("free {}", lease.label()).into(),
                    start,
                    end,
                    bytes: lease.bytes(),
                }));
            }
            drop(lease);
        }
    }
}

impl<D: Device, T> fmt::Debug for Buf<'_, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buf").field("len", &self.len).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
