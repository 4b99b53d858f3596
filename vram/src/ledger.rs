//! The one account of device memory: who holds what, what is free, who may go next.
//!
//! Admission (all amounts in bytes): a request for `n` is granted iff
//! `resident + direct + pooled + retained + owed + n ≤ budget`, where a `Pooled` request may take what the pool
//! retains instead of new memory, and `owed` is what the plans of *older* running turns have yet to take
//! (see [`crate::Turn::promise`]).

mod config;
mod lease;
mod state;

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

pub use config::{Class, LedgerConfig, Margin, Reading, WorkerId};
pub use lease::Lease;
pub(crate) use state::{Request, Ticket};
use state::{State, TurnState, Verdict};

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock};
use crate::{Bytes, Change, Error, Event, Holding, Level, Locked, Nanos, Op, Refused};

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    /// As `State::generation`, to be read without the lock: a device's clock may be asked while it is held.
    changes: AtomicU64,
    locked: Locked,
    config: LedgerConfig,
    device: String,
    clock: Box<dyn Fn() -> Nanos + Send + Sync>,
}

/// The answer to a request that stands in line for memory.
pub(crate) enum Answer {
    /// Here it is.
    Granted(Lease),
    /// Trim the pool, then ask again.
    Trim,
    /// It will not fit.
    Refused(std::sync::Arc<Refused>),
    /// The device failed for good.
    Poisoned,
}

/// The one account of a device's memory and of who may use it. Cheap to clone; all clones are the same account.
#[derive(Clone)]
pub struct Ledger(Arc<Inner>);

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("device", &self.0.device)
            .field("level", &self.level())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Ledger {
    /// True for clones of one account.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Ledger {
    /// Opens the account of the device called `device`.
    ///
    /// `clock` gives the time that events carry. It must not call back into the ledger.
    ///
    /// # Errors
    /// [`Error::MarginTooLarge`] when the margin is larger than the capacity.
    pub fn open(
        device: impl Into<String>,
        reading: Reading,
        config: LedgerConfig,
        clock: impl Fn() -> Nanos + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let margin = config.margin.bytes(reading.capacity);
        if margin > reading.capacity {
            return Err(Error::MarginTooLarge { margin, capacity: reading.capacity });
        }
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(State { reading, margin, ..State::default() }),
            changed: Condvar::new(),
            changes: AtomicU64::new(0),
            locked: match &config.beside {
                Some(other) => other.locked().clone(),
                None => Locked::new(config.pinned),
            },
            config,
            device: device.into(),
            clock: Box::new(clock),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    fn touch(&self, state: &mut State) {
        state.generation = state.generation.wrapping_add(1);
        self.0.changes.store(state.generation, Ordering::SeqCst);
        self.0.changed.notify_all();
    }

    /// How many changes there have been that someone may wait for. It takes no lock.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::SeqCst)
    }

    /// Lets everyone who waits in [`crate::Device::block`] ask again: what they wait for may have changed outside of the
    /// account.
    pub fn wake(&self) {
        self.touch(&mut self.lock());
    }

    fn show(&self, state: &State, label: impl Into<Cow<'static, str>>) {
        self.emit(Event::Level { at: self.now(), label: label.into(), level: state.level() });
    }

    fn tell(&self, worker: WorkerId, change: Change) {
        self.emit(Event::Change { at: self.now(), worker, change });
    }

    /// The same of the worker whose turn it is; nothing where it has none.
    fn tell_of(&self, state: &State, ticket: Ticket, change: Change) {
        if let Some(turn) = state.turns.get(&ticket) {
            self.tell(turn.worker, change);
        }
    }

    /// The time that events carry.
    #[must_use]
    pub fn now(&self) -> Nanos {
        (self.0.clock)()
    }

    /// Hands one event to the sink.
    pub fn emit(&self, event: Event) {
        self.0.config.sink.emit(event);
    }

    /// Fails when a fault is injected for `op`. Every raw operation of a device passes here first.
    ///
    /// # Errors
    /// [`Error::Device`] for an injected fault, [`Error::Poisoned`] on a device that failed for good.
    pub fn attempt(&self, op: Op) -> Result<(), Error> {
        self.healthy()?;
        match &self.0.config.faults {
            Some(fails) if fails(op) => {
                Err(Error::Device { op, device: self.0.device.clone(), detail: "injected fault".into() })
            }
            _ => Ok(()),
        }
    }

    /// Marks the device as failed for good and wakes whoever waits, to fail. The first reason is kept.
    pub fn poison(&self, detail: impl Into<String>) {
        let mut state = self.lock();
        state.poisoned.get_or_insert_with(|| detail.into());
        self.touch(&mut state);
    }

    /// Fails on a poisoned device.
    ///
    /// # Errors
    /// [`Error::Poisoned`] with the first reason.
    pub fn healthy(&self) -> Result<(), Error> {
        match &self.lock().poisoned {
            Some(detail) => Err(Error::Poisoned { device: self.0.device.clone(), detail: detail.clone() }),
            None => Ok(()),
        }
    }

    /// The account as it stands.
    #[must_use]
    pub fn level(&self) -> Level {
        self.lock().level()
    }

    /// The last reading of the device.
    #[must_use]
    pub fn reading(&self) -> Reading {
        self.lock().reading
    }

    /// What it was opened with.
    #[must_use]
    pub fn config(&self) -> &LedgerConfig {
        &self.0.config
    }

    /// The margin in bytes.
    #[must_use]
    pub fn margin(&self) -> Bytes {
        self.lock().margin
    }

    /// The highest [`Level::used`] since the account was opened.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.lock().peak
    }

    /// Every lease, oldest first.
    #[must_use]
    pub fn held(&self) -> Vec<Holding> {
        self.lock().entries.values().map(|e| e.holding.clone()).collect()
    }

    /// The account of page-locked host memory.
    #[must_use]
    pub fn locked(&self) -> &Locked {
        &self.0.locked
    }

    /// Whether a second worker may stage while the first computes.
    #[must_use]
    pub fn ahead(&self) -> bool {
        self.0.config.ahead
    }

    /// How many turns have been asked for and not been granted yet.
    #[must_use]
    pub fn in_line(&self) -> usize {
        self.lock().line.len()
    }

    /// Takes a new reading of the device into account.
    pub fn refresh(&self, reading: Reading) {
        let mut state = self.lock();
        if state.reading != reading {
            state.reading = reading;
            self.tell(state.asked, Change::Read(reading));
            self.show(&state, "reading");
            self.touch(&mut state);
        }
    }

    /// Blocks the calling thread until `ready` says so, or the device has failed for good. `ready` is asked again after
    /// every change of the account.
    pub fn wait_until(&self, ready: &mut dyn FnMut() -> bool) {
        loop {
            // Read before asking: a change after the question makes the two differ, so no wake-up is lost.
            let seen = self.lock().generation;
            if ready() || self.healthy().is_err() {
                return;
            }
            let mut state = self.lock();
            while state.generation == seen {
                state = self.0.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
    }

    // The pool: what has been freed, what is back with the device.

    /// The turn begins to wait for its queues: the frees it has made so far are among what it waits for.
    pub(crate) fn drain_begins(&self, ticket: Ticket) {
        let mut state = self.lock();
        self.tell_of(&state, ticket, Change::Note);
        if state.is_oldest(ticket) {
            let pending = std::mem::take(&mut state.pending);
            state.draining += pending;
        }
    }

    /// The turn has waited for its queues: what the pool holds past its threshold is back with the device.
    /// Returns the bytes that came back.
    pub(crate) fn drain_ends(&self, ticket: Ticket, worker: WorkerId) -> Bytes {
        let mut state = self.lock();
        self.tell(worker, Change::Drain);
        if state.is_oldest(ticket) {
            state.draining = Bytes::ZERO;
        }
        self.shrink(&mut state, self.0.config.threshold, "synchronise")
    }

    /// The turn has waited for its queues, and the pool keeps what was freed: turns that stage may have it now.
    pub(crate) fn frees_passed(&self, ticket: Ticket) {
        let mut state = self.lock();
        self.tell_of(&state, ticket, Change::PassOn);
        if state.is_oldest(ticket) {
            state.draining = Bytes::ZERO;
        }
        self.touch(&mut state);
    }

    /// Whether this turn has freed memory that others cannot have yet.
    pub(crate) fn has_pending(&self, ticket: Ticket) -> bool {
        let state = self.lock();
        state.is_oldest(ticket) && state.pending > Bytes::ZERO
    }

    /// Whether a turn other than this one computes.
    pub(crate) fn computes_beside(&self, ticket: Ticket) -> bool {
        self.lock().computing.is_some_and(|holder| holder != ticket)
    }

    /// The pool was trimmed: it retains only what is still to be freed. Returns the bytes that came back.
    pub(crate) fn trimmed(&self, worker: WorkerId) -> Bytes {
        let mut state = self.lock();
        state.asked = worker;
        self.tell(worker, Change::Trim);
        self.shrink(&mut state, Bytes::ZERO, "trim")
    }

    fn shrink(&self, state: &mut State, threshold: Bytes, label: &'static str) -> Bytes {
        let freed = state.shrink(threshold);
        if freed > Bytes::ZERO {
            self.show(state, label);
        }
        // Also where nothing came back: frees that have executed are there for other turns now.
        self.touch(state);
        freed
    }

    // The turn: a line, and two halves that at most one worker each is in.

    /// A ticket of its own for someone who takes memory without a turn, as replayed schedules may. It stands in no line.
    pub(crate) fn outside(&self) -> Ticket {
        Ticket(self.lock().number())
    }

    pub(crate) fn join(&self) -> Ticket {
        let mut state = self.lock();
        let ticket = Ticket(state.number());
        state.line.push_back(ticket);
        ticket
    }

    /// Grants the turn to the first in line when the device is free for it.
    pub(crate) fn try_enter(&self, ticket: Ticket, worker: WorkerId) -> bool {
        let mut state = self.lock();
        let free = state.staging.is_none() && (self.0.config.ahead || state.computing.is_none());
        if !free || state.poisoned.is_some() || state.line.front() != Some(&ticket) {
            return false;
        }
        state.line.pop_front();
        state.staging = Some(ticket);
        if !self.0.config.ahead {
            state.computing = Some(ticket);
        }
        state.turns.insert(ticket, TurnState { worker, ..TurnState::default() });
        state.asked = worker;
        self.tell(worker, Change::Enter);
        self.touch(&mut state);
        true
    }

    /// Moves a turn from the staging half to the computing half, when that is free.
    pub(crate) fn try_compute(&self, ticket: Ticket) -> bool {
        let mut state = self.lock();
        if state.computing.is_some_and(|holder| holder != ticket) {
            return false;
        }
        state.computing = Some(ticket);
        if state.staging == Some(ticket) && self.0.config.ahead {
            state.staging = None;
            if let Some(turn) = state.turns.get(&ticket) {
                self.tell(turn.worker, Change::Compute);
            }
            self.touch(&mut state);
        }
        true
    }

    /// Leaves the line or gives the turn back. Never blocks; safe to call twice.
    pub(crate) fn leave(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.line.retain(|t| *t != ticket);
        if state.staging == Some(ticket) {
            state.staging = None;
        }
        if state.computing == Some(ticket) {
            state.computing = None;
        }
        if state.is_oldest(ticket) {
            // Its queues were drained; memory that was leaked on purpose is in `entries`, not here.
            let pending = std::mem::take(&mut state.pending);
            state.draining += pending;
            state.draining = Bytes::ZERO;
        }
        if let Some(turn) = state.turns.remove(&ticket) {
            self.tell(turn.worker, Change::Leave);
        }
        self.touch(&mut state);
    }

    pub(crate) fn promise(&self, ticket: Ticket, most: Bytes) {
        let mut state = self.lock();
        if let Some(turn) = state.turns.get_mut(&ticket) {
            turn.promise = most;
        }
        self.touch(&mut state);
    }

    /// Begins a phase: peaks are kept per phase, starting from what is live now.
    pub(crate) fn begin_phase(&self, ticket: Ticket, phase: &'static str) {
        let mut state = self.lock();
        if let Some(turn) = state.turns.get_mut(&ticket) {
            turn.reach(phase);
        }
    }

    pub(crate) fn peaks(&self, ticket: Ticket) -> Vec<(&'static str, Bytes)> {
        self.lock().turns.get(&ticket).map(|t| t.peaks.clone()).unwrap_or_default()
    }

    // Leases.

    pub(crate) fn try_lease(
        &self,
        ticket: Ticket,
        request: &Request,
    ) -> Result<Lease, std::sync::Arc<Refused>> {
        let mut state = self.lock();
        if !state.fits(ticket, request) {
            return Err(state.refusal(ticket, request, None));
        }
        Ok(self.grant(&mut state, ticket, request))
    }

    /// Puts a request in line for memory.
    pub(crate) fn want(&self, ticket: Ticket) -> Place<'_> {
        let mut state = self.lock();
        let key = (ticket, state.number());
        state.wanting.insert(key);
        Place { ledger: self, key }
    }

    pub(crate) fn refusal(
        &self,
        ticket: Ticket,
        request: &Request,
        driver: Option<String>,
    ) -> std::sync::Arc<Refused> {
        self.lock().refusal(ticket, request, driver)
    }

    fn grant(&self, state: &mut State, ticket: Ticket, request: &Request) -> Lease {
        let lease = state.book(ticket, request);
        let Request { label, bytes, class, resident, .. } = *request;
        self.tell(request.worker, Change::Take { lease, label, bytes, class, resident });
        self.show(state, label);
        Lease::new(self, lease, ticket, request)
    }

    fn is_oldest(&self, ticket: Ticket) -> bool {
        self.lock().is_oldest(ticket)
    }

    fn release(&self, lease: u64, worker: WorkerId, backed: bool) {
        let mut state = self.lock();
        if let Some(label) = state.unbook(lease, backed) {
            self.tell(worker, Change::Give { lease, backed });
            self.show(&state, label);
            self.touch(&mut state);
        }
    }
}

/// A place in the line for memory, given up when dropped.
pub(crate) struct Place<'l> {
    ledger: &'l Ledger,
    key: (Ticket, u64),
}

impl Place<'_> {
    /// Asks for the memory. `None` while it is worth waiting for.
    pub(crate) fn ask(&self, request: &Request) -> Option<Answer> {
        let mut state = self.ledger.lock();
        if state.poisoned.is_some() {
            return Some(Answer::Poisoned);
        }
        match state.judge(self.key, request) {
            Verdict::Grant => Some(Answer::Granted(self.ledger.grant(&mut state, self.key.0, request))),
            Verdict::Trim => Some(Answer::Trim),
            Verdict::Wait => None,
            Verdict::Refuse => Some(Answer::Refused(state.refusal(self.key.0, request, None))),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.ledger.lock();
        state.wanting.remove(&self.key);
        self.ledger.touch(&mut state);
    }
}
