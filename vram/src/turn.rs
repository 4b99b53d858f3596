//! The right to use a device, held by one worker at a time.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::ledger::{Request, Ticket};
use crate::{
    Buf, Bytes, Cause, Class, Device, Error, Event, Lease, Nanos, Op, Refused, Span, Track, WorkerId,
};

/// Someone who takes turns. One per thread that proves.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
}

impl Worker {
    /// The worker with this number.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self { id: WorkerId(id) }
    }

    /// Its name in events and messages.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }
}

/// The right to use a device. No memory can be allocated without it, and what is allocated for a proof cannot
/// outlive it.
///
/// A turn has two halves, staging and computing, with at most one worker in each when the ledger was opened with
/// `ahead`; otherwise a turn holds both. Dropping a turn, also by a panic, waits for its queues and lets the next
/// worker in; [`Turn::release`] does the same and returns late errors.
#[derive(Debug)]
pub struct Turn<'d, D: Device> {
    device: &'d D,
    worker: WorkerId,
    ticket: Ticket,
    granted: Cell<Nanos>,
    phase: Cell<&'static str>,
    queues: RefCell<Vec<D::Queue>>,
    /// Set once the turn was given back.
    left: Cell<bool>,
}

impl<'d, D: Device> Turn<'d, D> {
    pub(crate) fn take(device: &'d D, worker: &'d mut Worker) -> Result<Self, Error> {
        let ledger = device.ledger();
        ledger.healthy()?;
        let asked = device.now();
        // Owns the place in line from here on: leaving early, also by a panic, gives it up.
        let turn = Self {
            device,
            worker: worker.id,
            ticket: ledger.join(),
            granted: Cell::new(asked),
            phase: Cell::new("turn"),
            queues: RefCell::new(Vec::new()),
            left: Cell::new(false),
        };
        device.block(&mut || ledger.try_enter(turn.ticket, turn.worker));
        let granted = device.now();
        turn.waited(Cause::Turn, asked, granted);
        turn.granted.set(granted);
        ledger.healthy()?;
        ledger.refresh(device.reading()?);
        Ok(turn)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'d D {
        self.device
    }

    /// Who holds it.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The phase that leases and refusals name from here on.
    pub fn phase(&self, name: &'static str) {
        self.phase.set(name);
        self.device.ledger().begin_phase(self.ticket, name);
    }

    /// The highest number of bytes this turn held in each phase so far, resident memory left out.
    #[must_use]
    pub fn peaks(&self) -> Vec<(&'static str, Bytes)> {
        self.device.ledger().peaks(self.ticket)
    }

    /// What this turn's plan may hold at most from here on: turns that stage ahead leave that much.
    pub fn promise(&self, most: Bytes) {
        self.device.ledger().promise(self.ticket, most);
    }

    /// Moves on to the computing half: waits for the turn that computes now, then lets the next worker stage.
    ///
    /// # Errors
    /// [`Error::Poisoned`] on a device that failed for good.
    pub fn compute(&self) -> Result<(), Error> {
        let ledger = self.device.ledger();
        let asked = self.device.now();
        self.device.block(&mut || ledger.try_compute(self.ticket));
        self.waited(Cause::Turn, asked, self.device.now());
        ledger.healthy()
    }

    /// An ordered queue of this turn. It is waited for when the turn ends.
    ///
    /// # Errors
    /// [`Error::Device`] when none can be made.
    pub fn queue(&self, track: Track) -> Result<D::Queue, Error> {
        self.device.ledger().attempt(Op::Lane)?;
        let queue = self.device.queue(track, self.worker)?;
        self.queues.borrow_mut().push(queue.clone());
        Ok(queue)
    }

    /// Device memory for `len` elements of a proof, freed in the order of `queue`. It cannot outlive the turn.
    ///
    /// On refusal the device is synchronised, the pool trimmed and the request made once more.
    ///
    /// # Errors
    /// [`Error::Refused`] with need, free and holders; [`Error::TooLong`]; [`Error::Poisoned`].
    pub fn alloc<'t, T: Copy + Send + 'static>(
        &'t self,
        label: &'static str,
        len: usize,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        let request = self.request::<T>(label, len, class, false)?;
        self.place(&request, len, queue)
    }

    /// As [`Turn::alloc`], but waits in line while the memory is held by others.
    ///
    /// # Errors
    /// As [`Turn::alloc`]; a request that cannot fit even the empty device is refused at once.
    pub fn alloc_waiting<'t, T: Copy + Send + 'static>(
        &'t self,
        label: &'static str,
        len: usize,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        let request = self.request::<T>(label, len, class, false)?;
        let ledger = self.device.ledger();
        let asked = self.device.now();
        let place = Wanting { ledger, id: ledger.want() };
        let mut answer = None;
        self.device.block(&mut || {
            answer = ledger.try_lease_in_line(place.id, self.ticket, &request);
            answer.is_some()
        });
        drop(place);
        self.waited(Cause::Alloc, asked, self.device.now());
        match answer {
            Some(Ok(lease)) => self.fill(lease, &request, len, queue),
            Some(Err(refused)) => Err(self.refuse(refused)),
            None => Err(self.refuse(ledger.refusal(self.ticket, &request, None))),
        }
    }

    /// Device memory that outlives the turn: key points, tables. Counted apart, as resident.
    ///
    /// # Errors
    /// As [`Turn::alloc`].
    pub fn alloc_resident<T: Copy + Send + 'static>(
        &self,
        label: &'static str,
        len: usize,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'d, D, MaybeUninit<T>>, Error> {
        let request = self.request::<T>(label, len, class, true)?;
        self.place(&request, len, queue)
    }

    /// Waits for this turn's queues and trims the pool. Returns what came back to the device.
    ///
    /// # Errors
    /// [`Error::Lane`] when work on a queue failed.
    pub fn trim(&self) -> Result<Bytes, Error> {
        self.drain()?;
        self.trim_pool()
    }

    /// Waits until all work on this turn's queues has ended.
    ///
    /// # Errors
    /// The first failure of that work.
    pub fn drain(&self) -> Result<(), Error> {
        let asked = self.device.now();
        let mut first = Ok(());
        for queue in self.queues.borrow().iter() {
            let end = self.device.drain(queue);
            first = first.and(end);
        }
        self.waited(Cause::Sync, asked, self.device.now());
        first
    }

    /// Ends the turn: waits for its queues, surfaces late errors, lets the next worker in.
    ///
    /// # Errors
    /// The first failure of work on its queues.
    pub fn release(self) -> Result<(), Error> {
        self.finish()
    }

    /// Records that this worker stood still. Waits of no length are not recorded.
    pub fn waited(&self, cause: Cause, start: Nanos, end: Nanos) {
        if end > start {
            self.device.ledger().emit(Event::Wait { worker: self.worker, cause, start, end });
        }
    }

    fn finish(&self) -> Result<(), Error> {
        if self.left.replace(true) {
            return Ok(());
        }
        let late = self.drain();
        for queue in self.queues.borrow_mut().drain(..) {
            self.device.retire(queue);
        }
        self.device.ledger().synchronised();
        let span = Span {
            track: Track::Held,
            worker: self.worker,
            name: "turn".into(),
            start: self.granted.get(),
            end: self.device.now(),
            bytes: Bytes::ZERO,
        };
        self.device.ledger().emit(Event::Span(span));
        self.device.ledger().leave(self.ticket);
        late
    }

    fn request<T>(
        &self,
        label: &'static str,
        len: usize,
        class: Class,
        resident: bool,
    ) -> Result<Request, Error> {
        len.checked_mul(size_of::<T>())
            .filter(|n| isize::try_from(*n).is_ok())
            .ok_or(Error::TooLong { elements: len, size: size_of::<T>() })?;
        Ok(Request { label, bytes: Bytes::of::<T>(len), class, phase: self.phase.get(), resident })
    }

    fn place<'a, T: Copy + Send + 'static>(
        &self,
        request: &Request,
        len: usize,
        queue: &D::Queue,
    ) -> Result<Buf<'a, D, MaybeUninit<T>>, Error>
    where
        'd: 'a,
    {
        let ledger = self.device.ledger();
        ledger.healthy()?;
        let lease = match ledger.try_lease(self.ticket, request) {
            Ok(lease) => lease,
            Err(refused) if refused.never => return Err(self.refuse(refused)),
            Err(_) => {
                self.make_room()?;
                ledger.try_lease(self.ticket, request).map_err(|refused| self.refuse(refused))?
            }
        };
        self.fill(lease, request, len, queue)
    }

    /// Puts real memory under a granted lease; a device that refuses is synchronised, trimmed and asked once more.
    fn fill<'a, T: Copy + Send + 'static>(
        &self,
        lease: Lease,
        request: &Request,
        len: usize,
        queue: &D::Queue,
    ) -> Result<Buf<'a, D, MaybeUninit<T>>, Error>
    where
        'd: 'a,
    {
        let start = self.device.now();
        // SAFETY: `lease` covers the block and is kept beside it in the Buf.
        let mut block = unsafe { self.device.allocate(request.bytes, request.class, queue) };
        if let Err(Error::Device { op: Op::Allocate, .. }) = block {
            self.make_room()?;
            // SAFETY: as above.
            block = unsafe { self.device.allocate(request.bytes, request.class, queue) };
        }
        let end = self.device.now();
        if end > start {
            self.device.ledger().emit(Event::Span(Span {
                track: Track::Memory,
                worker: self.worker,
                name: format!("allocate {}", request.label).into(),
                start,
                end,
                bytes: request.bytes,
            }));
        }
        match block {
            Ok(block) => Ok(Buf::new(self.device, block, lease, len, queue.clone())),
            Err(Error::Device { op: Op::Allocate, detail, .. }) => {
                drop(lease);
                Err(self.refuse(self.device.ledger().refusal(self.ticket, request, Some(detail))))
            }
            Err(other) => Err(other),
        }
    }

    /// Synchronises, then trims: in this order, since a pool gives back only what has been freed in fact.
    fn make_room(&self) -> Result<(), Error> {
        self.drain()?;
        self.trim_pool().map(drop)
    }

    fn trim_pool(&self) -> Result<Bytes, Error> {
        self.device.trim()?;
        let freed = self.device.ledger().trimmed();
        self.device.ledger().emit(Event::Trim { at: self.device.now(), worker: self.worker, freed });
        self.device.ledger().refresh(self.device.reading()?);
        Ok(freed)
    }

    fn refuse(&self, refused: Arc<Refused>) -> Error {
        self.device.ledger().emit(Event::Refusal { at: self.device.now(), refused: Arc::clone(&refused) });
        Error::Refused(refused)
    }
}

impl<D: Device> Drop for Turn<'_, D> {
    fn drop(&mut self) {
        // Late errors have nowhere to go from here; `release` is the way to see them.
        let _ = self.finish();
    }
}

/// A place in the line for memory, given up when dropped.
struct Wanting<'l> {
    ledger: &'l crate::Ledger,
    id: u64,
}

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.ledger.unwant(self.id);
    }
}
