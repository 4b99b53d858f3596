//! Pageable memory, or memory that is never there as a whole, streamed through a few pinned slots.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::NonNull;

use prestage_vram::{Buf, Bytes, Cause, WorkerId, host_work};

use crate::mark::block;
use crate::memory::copy;
use crate::{Error, HostRange, Lane, Mark, Pinned, Place, Transfer};

/// A ring of two or more pinned slots: while one is copied, the next is filled or emptied by the host.
///
/// A ring belongs to a device, not to a turn, so that it can be kept for the next proof. It serves one lane and one
/// direction at a time; use one ring for each. The slots hold elements of one type, so that producers always see
/// initialised memory. A slot is written to when it is used first, so that a ring that is only kept at hand costs no memory
/// where pages come with the first write, as on the CPU.
///
/// A slot is touched again only after the copy that used it last has passed. That is kept in the ring itself:
/// forgetting the ring leaks its slots.
pub struct Ring<'d, D: Transfer, T> {
    device: &'d D,
    slots: Vec<Slot<D, T>>,
    /// Elements in one slot.
    slot: usize,
    fill: T,
    next: usize,
}

/// The slots of a ring that is put away ([`Ring::into_slots`]).
pub struct RingSlots<T> {
    memory: Vec<Memory<T>>,
    slot: usize,
    fill: T,
}

struct Slot<D: Transfer, T> {
    memory: Memory<T>,
    /// Where the last copy that uses it ends, until someone has waited for that.
    busy: Option<D::Mark>,
}

struct Memory<T> {
    pinned: Pinned<MaybeUninit<T>>,
    /// Whether all of it has been written to.
    filled: bool,
}

impl<T: Copy> Memory<T> {
    /// The elements, which are `fill` at first.
    fn elements(&mut self, fill: T) -> &mut [T] {
        if !self.filled {
            self.pinned.fill(MaybeUninit::new(fill));
            self.filled = true;
        }
        let (at, len) = (self.pinned.as_mut_ptr().cast(), self.pinned.len());
        // SAFETY: all elements have been written, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(at, len) }
    }
}

impl<D: Transfer, T> Slot<D, T> {
    /// Waits until no copy uses the slot.
    fn settle(&mut self, device: &D, worker: WorkerId) -> Result<(), Error> {
        match self.busy.take() {
            Some(mark) => block(device, worker, Cause::Transfer, &mark),
            None => Ok(()),
        }
    }
}

impl<'d, D: Transfer, T: Copy + Send + Sync + 'static> Ring<'d, D, T> {
    /// A ring of `slots` slots of `slot` elements, which hold `fill` at first. Needs no turn.
    ///
    /// On a card, pieces of 16 MiB reach the speed of the link; four slots keep it busy while several threads copy.
    ///
    /// # Errors
    /// [`Error::Ring`] for fewer than two slots or empty ones; as [`Pinned::uninit`].
    pub fn open(device: &'d D, slots: usize, slot: usize, fill: T) -> Result<Self, Error> {
        if slots < 2 || slot == 0 {
            return Err(Error::Ring { slots, slot: Bytes::of::<T>(slot) });
        }
        let slots = (0..slots)
            .map(|_| {
                let memory = Memory { pinned: Pinned::uninit(device, slot)?, filled: false };
                Ok(Slot { memory, busy: None })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { device, slots, slot, fill, next: 0 })
    }

    /// The largest ring that what is left of the budget of pinned memory allows, up to `slots` slots of `slot`
    /// elements: smaller slots first, then fewer. It asks the device once: a device that refuses would refuse again.
    ///
    /// # Errors
    /// As [`Ring::open`], also when not even two slots of one page fit.
    pub fn open_within(device: &'d D, slots: usize, slot: usize, fill: T) -> Result<Self, Error> {
        let free = device.ledger().locked().free().to_usize().unwrap_or(usize::MAX);
        let page = crate::page_size();
        let slots = slots.min((free / page).max(2));
        let share = free / slots.max(1);
        let fits = (share - share % page).max(page) / size_of::<T>().max(1);
        Self::open(device, slots, slot.min(fits.max(1)), fill)
    }

    /// Over the slots of a ring of the same device that was put away.
    #[must_use]
    pub fn from_slots(device: &'d D, slots: RingSlots<T>) -> Self {
        let RingSlots { memory, slot, fill } = slots;
        let slots = memory.into_iter().map(|memory| Slot { memory, busy: None }).collect();
        Self { device, slots, slot, fill, next: 0 }
    }

    /// The slots, once the last copies from and to them have ended.
    ///
    /// # Errors
    /// The first failure of those copies.
    pub fn into_slots(mut self) -> Result<RingSlots<T>, Error> {
        for slot in &mut self.slots {
            if let Some(mark) = slot.busy.take() {
                self.device.synchronise(&mark)?;
            }
        }
        let memory = std::mem::take(&mut self.slots).into_iter().map(|slot| slot.memory).collect();
        Ok(RingSlots { memory, slot: self.slot, fill: self.fill })
    }

    /// Elements in one slot: the size of a piece.
    #[must_use]
    pub fn piece(&self) -> usize {
        self.slot
    }

    /// The bytes of host memory that it keeps locked.
    #[must_use]
    pub fn locked(&self) -> Bytes {
        self.slots.iter().map(|s| s.memory.pinned.locked()).sum()
    }

    /// Copies all of `from` into all of `buf`. The host is busy until the last piece is in its slot; the copies of
    /// the last slots are still running then, but no longer from `from`.
    ///
    /// # Errors
    /// [`Error::Length`] when the lengths differ; [`Error::Device`].
    pub fn upload<'a>(
        &mut self,
        lane: &Lane<'_, D>,
        from: &[T],
        buf: Buf<'a, D, MaybeUninit<T>>,
    ) -> Result<Buf<'a, D, T>, Error> {
        if from.len() != buf.len() {
            return Err(Error::Length { from: from.len(), to: buf.len() });
        }
        self.produce(lane, buf, |range, slot| {
            copy(&from[range], slot);
            Ok(())
        })
    }

    /// Copies all of `from` into `buf` from element `offset` on, as [`Ring::upload`] does. Returns the mark after the
    /// last piece.
    ///
    /// # Errors
    /// [`Error::Range`] when `from` reaches past the end; [`Error::Device`].
    pub fn upload_at<'t, E: Place<T>>(
        &mut self,
        lane: &Lane<'t, D>,
        from: &[T],
        buf: &mut Buf<'_, D, E>,
        offset: usize,
    ) -> Result<Mark<'t, D>, Error> {
        self.produce_at(lane, buf, offset..offset.saturating_add(from.len()), |range, slot| {
            copy(&from[range.start - offset..range.end - offset], slot);
            Ok(())
        })
    }

    /// Fills all of `buf` with what `piece` writes. It is called for one range of elements after the other and must
    /// write each element of the slice, which holds something older.
    ///
    /// # Errors
    /// The first failure of `piece`; [`Error::Device`].
    pub fn produce<'a, X: From<Error>>(
        &mut self,
        lane: &Lane<'_, D>,
        mut buf: Buf<'a, D, MaybeUninit<T>>,
        piece: impl FnMut(Range<usize>, &mut [T]) -> Result<(), X>,
    ) -> Result<Buf<'a, D, T>, X> {
        let all = 0..buf.len();
        self.produce_at(lane, &mut buf, all, piece)?;
        // SAFETY: the pieces cover every element, slots are always initialised, and `buf` is ready after the last.
        Ok(unsafe { buf.assume_init() })
    }

    /// Fills elements `range` of `buf` as [`Ring::produce`] does. Returns the mark after the last piece.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end; the first failure of `piece`; [`Error::Device`].
    pub fn produce_at<'t, E: Place<T>, X: From<Error>>(
        &mut self,
        lane: &Lane<'t, D>,
        buf: &mut Buf<'_, D, E>,
        range: Range<usize>,
        mut piece: impl FnMut(Range<usize>, &mut [T]) -> Result<(), X>,
    ) -> Result<Mark<'t, D>, X> {
        within(&range, buf.len())?;
        let (worker, fill) = (lane.turn().worker(), self.fill);
        for range in pieces(range, self.slot) {
            let slot = self.turn_to(worker)?;
            let memory = &mut slot.memory.elements(fill)[..range.len()];
            host_work(lane.device(), worker, format!("fill {}", buf.label()), || {
                piece(range.clone(), memory)
            })?;
            // SAFETY: the slot is not touched before `busy` has passed, and not freed: see `settle` and `drop`.
            let mark = unsafe { lane.enqueue_in(memory, buf, range.start) }?;
            slot.busy = Some(mark.raw().clone());
        }
        Ok(lane.record()?)
    }

    /// Copies `from` into `to`, `at` bytes from its beginning, as [`Ring::upload_at`] does into a buffer: for a device's own
    /// work, which has a queue and a part of a block. Copies are recorded as `stream` and the label.
    ///
    /// # Safety
    /// The destination lies inside the block, and `queue` has claimed it.
    ///
    /// # Errors
    /// [`Error::Device`]; what was enqueued has ended then, or this holds on to its slot.
    pub unsafe fn stream(
        &mut self,
        queue: &D::Queue,
        worker: WorkerId,
        label: &str,
        from: &[T],
        to: &D::Block,
        at: usize,
    ) -> Result<(), Error> {
        let (device, fill) = (self.device, self.fill);
        for range in pieces(0..from.len(), self.slot) {
            let slot = self.turn_to(worker)?;
            let memory = &mut slot.memory.elements(fill)[..range.len()];
            host_work(device, worker, format!("fill {label}"), || copy(&from[range.clone()], memory));
            let len = size_of_val(memory);
            let host = HostRange { at: NonNull::from(memory).cast(), len, locked: true };
            let at = at + range.start * size_of::<T>();
            // SAFETY: inside the block and claimed, by this function's contract; the slot is not touched before `busy` has
            // passed, and not freed: see `settle` and `drop`.
            unsafe { device.copy_in(queue, format!("stream {label}").into(), host, to, at) }?;
            let mark = device.record(queue);
            if mark.is_err() {
                // Nothing tells of its end but that of the queue.
                let _ = device.drain(queue);
            }
            slot.busy = Some(mark?);
        }
        Ok(())
    }

    /// Copies elements `range` of `buf` into `into` and returns when they are there.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end, [`Error::Length`] when `into` is not as long as it;
    /// [`Error::Device`].
    pub fn download<E: Place<T>>(
        &mut self,
        lane: &Lane<'_, D>,
        buf: &mut Buf<'_, D, T>,
        range: Range<usize>,
        into: &mut [E],
    ) -> Result<(), Error> {
        if into.len() != range.len() {
            return Err(Error::Length { from: range.len(), to: into.len() });
        }
        let start = range.start;
        self.consume(lane, buf, range, |range, slot| {
            copy(slot, &mut into[range.start - start..range.end - start]);
            Ok(())
        })
    }

    /// Hands elements `range` of `buf` to `piece`, one range after the other, while the next ones are being copied.
    /// Returns when all have been handed over.
    ///
    /// # Errors
    /// [`Error::Range`] when the range reaches past the end; the first failure of `piece`; [`Error::Device`].
    pub fn consume<X: From<Error>>(
        &mut self,
        lane: &Lane<'_, D>,
        buf: &mut Buf<'_, D, T>,
        range: Range<usize>,
        mut piece: impl FnMut(Range<usize>, &[T]) -> Result<(), X>,
    ) -> Result<(), X> {
        within(&range, buf.len())?;
        let (worker, fill) = (lane.turn().worker(), self.fill);
        let ahead = self.slots.len();
        let mut asked = pieces(range.clone(), self.slot);
        let first = self.next;
        for range in asked.by_ref().take(ahead) {
            self.fetch(lane, buf, &range)?;
        }
        for (i, range) in pieces(range, self.slot).enumerate() {
            let at = (first + i) % ahead;
            let slot = &mut self.slots[at];
            slot.settle(lane.device(), worker)?;
            let memory = &slot.memory.elements(fill)[..range.len()];
            host_work(lane.device(), worker, format!("empty {}", buf.label()), || piece(range, memory))?;
            if let Some(range) = asked.next() {
                self.fetch(lane, buf, &range)?;
            }
        }
        Ok(())
    }

    /// Enqueues the copy of elements `range` of `buf` into the next slot.
    fn fetch(
        &mut self,
        lane: &Lane<'_, D>,
        buf: &mut Buf<'_, D, T>,
        range: &Range<usize>,
    ) -> Result<(), Error> {
        let fill = self.fill;
        let slot = self.turn_to(lane.turn().worker())?;
        let memory = &mut slot.memory.elements(fill)[..range.len()];
        // SAFETY: the slot is not touched before `busy` has passed, and not freed: see `settle` and `drop`.
        let mark = unsafe { lane.enqueue_out(buf, range.start, memory) }?;
        slot.busy = Some(mark.raw().clone());
        Ok(())
    }

    /// The next slot, once no copy uses it.
    fn turn_to(&mut self, worker: WorkerId) -> Result<&mut Slot<D, T>, Error> {
        let at = self.next;
        self.next = (at + 1) % self.slots.len();
        let slot = &mut self.slots[at];
        slot.settle(self.device, worker)?;
        Ok(slot)
    }
}

impl<D: Transfer, T> Drop for Ring<'_, D, T> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            if let Some(mark) = slot.busy.take() {
                // A copy that failed has ended as well; the turn reports it.
                let _ = self.device.synchronise(&mark);
            }
        }
    }
}

impl<D: Transfer, T> fmt::Debug for Ring<'_, D, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("slots", &self.slots.len())
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for RingSlots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RingSlots")
            .field("slots", &self.memory.len())
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

fn within(range: &Range<usize>, len: usize) -> Result<(), Error> {
    if range.start <= range.end && range.end <= len {
        return Ok(());
    }
    Err(Error::Range { start: range.start, end: range.end, len })
}

/// `range` in pieces of `len`; the last may be smaller.
fn pieces(range: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(len).map(move |start| start..end.min(start.saturating_add(len)))
}
