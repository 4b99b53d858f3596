//! The right to use a device, held by one worker at a time.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::ledger::{Answer, Request, Ticket};
use crate::{
    Buf, Bytes, Cause, Class, Device, Error, Event, Lease, Ledger, Nanos, Op, Refused, Span, Track, WorkerId,
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
    /// When it was granted, `None` until then.
    granted: Cell<Option<Nanos>>,
    phase: Cell<&'static str>,
    queues: RefCell<Vec<D::Queue>>,
    /// Set once the turn was given back.
    left: Cell<bool>,
}

/// What a turn had freed at one point of its work: see [`Turn::freed`].
#[must_use = "until it is passed on, turns that stage beside this one cannot have the memory"]
pub struct Freed<'t, 'd, D: Device> {
    turn: &'t Turn<'d, D>,
    marks: Vec<D::Mark>,
}

impl<D: Device> Freed<'_, '_, D> {
    /// Waits until the frees have executed, and lets turns that stage have the memory. It stays in the pool, which costs
    /// less than giving it back to the device.
    ///
    /// Call it when work that comes after the frees has been enqueued: then the device computes while the host waits.
    ///
    /// # Errors
    /// The first failure of the work before the frees.
    pub fn pass_on(self) -> Result<(), Error> {
        if self.marks.is_empty() {
            return Ok(());
        }
        let device = self.turn.device;
        let asked = device.now();
        let mut first = Ok(());
        for mark in &self.marks {
            first = first.and(device.synchronise(mark));
        }
        device.ledger().frees_passed(self.turn.ticket);
        self.turn.waited(Cause::Sync, asked, device.now());
        first
    }
}

impl<D: Device> std::fmt::Debug for Freed<'_, '_, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Freed").field("worker", &self.turn.worker).field("marks", &self.marks.len()).finish()
    }
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
            granted: Cell::new(None),
            phase: Cell::new("turn"),
            queues: RefCell::new(Vec::new()),
            left: Cell::new(false),
        };
        let mut entered = false;
        device.block(&mut || {
            entered = ledger.try_enter(turn.ticket, turn.worker);
            entered || ledger.healthy().is_err()
        });
        let now = device.now();
        turn.waited(Cause::Turn, asked, now);
        turn.granted.set(entered.then_some(now));
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

    /// What this turn's plan may hold at most from here on: turns that stage beside it leave that much, so that an
    /// allocation within the promise is never refused because of them.
    ///
    /// Promise before [`Turn::compute`] lets the next turn stage, and lower the promise as the plan goes on. A promise
    /// is no lease: memory that was granted to others before stays theirs.
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
        self.device.block(&mut || ledger.try_compute(self.ticket) || ledger.healthy().is_err());
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
        let request = self.request::<T>(label, len, class, false, None)?;
        let (block, lease) = self.place(&request, queue)?;
        Ok(Buf::new(self.device, block, lease, len, queue.clone()))
    }

    /// As [`Turn::alloc`], for memory that does not grow with the elements it stands for: a simulated card accounts for it
    /// as `charge`, what it takes at full size. Real devices account for what it is.
    ///
    /// # Errors
    /// As [`Turn::alloc`].
    pub fn alloc_charged<'t, T: Copy + Send + 'static>(
        &'t self,
        label: &'static str,
        len: usize,
        charge: Bytes,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        let request = self.request::<T>(label, len, class, false, Some(charge))?;
        let (block, lease) = self.place(&request, queue)?;
        Ok(Buf::new(self.device, block, lease, len, queue.clone()))
    }

    /// As [`Turn::alloc`], but waits in line while older turns hold the memory: those that compute while this one
    /// stages. Their requests go first, then first come, first served.
    ///
    /// # Errors
    /// As [`Turn::alloc`]. What would not fit even if all older turns freed everything is refused at once.
    pub fn alloc_waiting<'t, T: Copy + Send + 'static>(
        &'t self,
        label: &'static str,
        len: usize,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'t, D, MaybeUninit<T>>, Error> {
        let request = self.request::<T>(label, len, class, false, None)?;
        let ledger = self.device.ledger();
        let place = ledger.want(self.ticket);
        let lease = loop {
            let asked = self.device.now();
            let mut answer = None;
            self.device.block(&mut || {
                answer = place.ask(&request);
                answer.is_some()
            });
            self.waited(Cause::Alloc, asked, self.device.now());
            match answer {
                Some(Answer::Granted(lease)) => break lease,
                Some(Answer::Trim) => self.make_room()?,
                Some(Answer::Refused(refused)) => return Err(self.refuse(refused)),
                // A device that ends the wait without an answer has failed.
                Some(Answer::Poisoned) | None => {
                    ledger.healthy()?;
                    return Err(self.refuse(ledger.refusal(self.ticket, &request, None)));
                }
            }
        };
        drop(place);
        let (block, lease) = self.fill(lease, &request, queue)?;
        Ok(Buf::new(self.device, block, lease, len, queue.clone()))
    }

    /// Device memory that outlives the turn: key points, tables. Counted apart, as resident. Dropping it waits for
    /// its home queue.
    ///
    /// `device` is the turn's device: its borrow is what the buffer lives in, since that of the turn ends with the
    /// worker's.
    ///
    /// # Errors
    /// As [`Turn::alloc`]; [`Error::OtherDevice`].
    pub fn alloc_resident<'r, T: Copy + Send + 'static>(
        &self,
        device: &'r D,
        label: &'static str,
        len: usize,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'r, D, MaybeUninit<T>>, Error> {
        self.reside(device, self.request::<T>(label, len, class, true, None)?, len, queue)
    }

    /// As [`Turn::alloc_resident`], accounted for as [`Turn::alloc_charged`] is.
    ///
    /// # Errors
    /// As [`Turn::alloc_resident`].
    pub fn alloc_resident_charged<'r, T: Copy + Send + 'static>(
        &self,
        device: &'r D,
        label: &'static str,
        len: usize,
        charge: Bytes,
        class: Class,
        queue: &D::Queue,
    ) -> Result<Buf<'r, D, MaybeUninit<T>>, Error> {
        self.reside(device, self.request::<T>(label, len, class, true, Some(charge))?, len, queue)
    }

    fn reside<'r, T>(
        &self,
        device: &'r D,
        request: Request,
        len: usize,
        queue: &D::Queue,
    ) -> Result<Buf<'r, D, MaybeUninit<T>>, Error> {
        if device.ledger() != self.device.ledger() {
            let (turn, device) = (self.device.name().to_owned(), device.name().to_owned());
            return Err(Error::OtherDevice { turn, device });
        }
        let (block, lease) = self.place(&request, queue)?;
        Ok(Buf::new(device, block, lease, len, queue.clone()))
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Waits for this turn's queues and trims the pool, in this order, since a pool gives back only what has been
    /// freed in fact. Returns what came back to the device.
    ///
    /// # Errors
    /// [`Error::Lane`] when work on a queue failed.
    pub fn trim(&self) -> Result<Bytes, Error> {
        let (synchronised, late) = self.settle(Cause::Sync);
        late?;
        self.trim_pool(synchronised)
    }

    /// Waits until all work on this turn's queues has ended.
    ///
    /// # Errors
    /// The first failure of that work.
    pub fn drain(&self) -> Result<(), Error> {
        self.settle(Cause::Sync).1
    }

    /// Notes what this turn has freed so far, to be passed on to turns that stage beside it once the frees have executed.
    /// Does not block.
    ///
    /// # Errors
    /// As [`Device::record`].
    pub fn freed(&self) -> Result<Freed<'_, 'd, D>, Error> {
        let ledger = self.device.ledger();
        let marks = if ledger.ahead() && ledger.has_pending(self.ticket) {
            self.queues.borrow().iter().map(|queue| self.device.record(queue)).collect::<Result<_, _>>()?
        } else {
            Vec::new()
        };
        if !marks.is_empty() {
            ledger.drain_begins(self.ticket);
        }
        Ok(Freed { turn: self, marks })
    }

    /// Whether another turn computes now, so that what this one does runs beside it.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.device.ledger().computes_beside(self.ticket)
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
        // Leaves even when a device or a sink panics on the way.
        let leaving = Leave { ledger: self.device.ledger(), ticket: self.ticket };
        let late = self.settle(Cause::Sync).1;
        for queue in self.queues.borrow_mut().drain(..) {
            self.device.retire(queue);
        }
        if let Some(start) = self.granted.get() {
            self.device.ledger().emit(Event::Span(Span {
                track: Track::Held,
                worker: self.worker,
                name: "turn".into(),
                start,
                end: self.device.now(),
                bytes: Bytes::ZERO,
            }));
        }
        drop(leaving);
        late
    }

    /// Waits for the queues. Returns what the pool gave back by itself, and the first failure of their work.
    fn settle(&self, cause: Cause) -> (Bytes, Result<(), Error>) {
        let ledger = self.device.ledger();
        let asked = self.device.now();
        let mut first = Ok(());
        ledger.drain_begins(self.ticket);
        for queue in self.queues.borrow().iter() {
            let end = self.device.drain(queue);
            first = first.and(end);
        }
        let freed = ledger.drain_ends(self.ticket, self.worker);
        let (worker, start, end) = (self.worker, asked, self.device.now());
        // On the way to a refusal each step is an event, however short.
        if end > start || cause == Cause::Alloc {
            ledger.emit(Event::Wait { worker, cause, start, end });
        }
        (freed, first)
    }

    fn request<T>(
        &self,
        label: &'static str,
        len: usize,
        class: Class,
        resident: bool,
        stated: Option<Bytes>,
    ) -> Result<Request, Error> {
        len.checked_mul(size_of::<T>())
            .filter(|n| isize::try_from(*n).is_ok())
            .ok_or(Error::TooLong { elements: len, size: size_of::<T>() })?;
        let real = Bytes::of::<T>(len);
        let bytes = self.device.charge(real, stated);
        let (phase, worker) = (self.phase.get(), self.worker);
        Ok(Request { label, bytes, real, class, phase, resident, worker })
    }

    fn place(&self, request: &Request, queue: &D::Queue) -> Result<(D::Block, Lease), Error> {
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
        self.fill(lease, request, queue)
    }

    /// Puts real memory under a granted lease; a device that refuses is synchronised, trimmed and asked once more.
    fn fill(&self, lease: Lease, request: &Request, queue: &D::Queue) -> Result<(D::Block, Lease), Error> {
        let mut block = self.allocate(request, queue);
        if let Err(Error::Device { op: Op::Allocate, .. }) = block {
            self.make_room()?;
            block = self.allocate(request, queue);
        }
        match block {
            Ok(block) => Ok((block, lease.backed())),
            Err(Error::Device { op: Op::Allocate, detail, .. }) => {
                drop(lease);
                Err(self.refuse(self.device.ledger().refusal(self.ticket, request, Some(detail))))
            }
            Err(other) => Err(other),
        }
    }

    fn allocate(&self, request: &Request, queue: &D::Queue) -> Result<D::Block, Error> {
        let start = self.device.now();
        // SAFETY: the caller holds a lease for the block and keeps it beside the block, in the `Buf`.
        let block = unsafe { self.device.allocate(request.real, request.bytes, request.class, queue) };
        self.memory_call(format!("allocate {}", request.label), start, request.bytes);
        block
    }

    fn memory_call(&self, name: impl Into<Cow<'static, str>>, start: Nanos, bytes: Bytes) {
        let end = self.device.now();
        if end > start {
            let (track, worker, name) = (Track::Memory, self.worker, name.into());
            self.device.ledger().emit(Event::Span(Span { track, worker, name, start, end, bytes }));
        }
    }

    /// Synchronises, then trims. Both count as waiting for memory.
    fn make_room(&self) -> Result<(), Error> {
        let (synchronised, late) = self.settle(Cause::Alloc);
        late?;
        self.trim_pool(synchronised).map(drop)
    }

    fn trim_pool(&self, synchronised: Bytes) -> Result<Bytes, Error> {
        let ledger = self.device.ledger();
        let start = self.device.now();
        self.device.trim()?;
        let freed = synchronised + ledger.trimmed(self.worker);
        self.memory_call("trim", start, freed);
        ledger.emit(Event::Trim { at: self.device.now(), worker: self.worker, freed });
        ledger.refresh(self.device.reading()?);
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

/// Gives the turn back when dropped.
struct Leave<'l> {
    ledger: &'l Ledger,
    ticket: Ticket,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.ledger.leave(self.ticket);
    }
}
