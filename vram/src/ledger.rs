//! The one account of device memory: who holds what, what is free, who may go next.
//!
//! Admission (all amounts in bytes): a request for `n` is granted iff
//! `resident + direct + pooled + retained + owed + n ≤ budget`, where a `Pooled` request may take what the pool
//! retains instead of new memory, and `owed` is what the plans of *other* running turns have yet to take
//! (see [`crate::Turn::promise`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::sync::{Condvar, Mutex, MutexGuard, lock};
use crate::{Bytes, Error, Event, Holding, Level, Nanos, NoSink, Op, Refused, Sink};

/// How an allocation is made, and so who may reuse it once it is freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A synchronous allocation (`cuMemAlloc`): freeing it gives the memory back to the device at once.
    Direct,
    /// A stream-ordered allocation (`cuMemAllocAsync`): freeing it gives the memory back to the pool, which may
    /// retain it; only `Pooled` requests can reuse that.
    #[default]
    Pooled,
}

/// Memory kept free on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Margin {
    /// That many bytes.
    Fixed(Bytes),
    /// That many thousandths of the capacity.
    Permille(u16),
}

impl Default for Margin {
    /// 512 MiB.
    fn default() -> Self {
        Self::Fixed(Bytes::mib(512))
    }
}

impl Margin {
    /// The margin of a device with `capacity`.
    #[must_use]
    pub fn bytes(self, capacity: Bytes) -> Bytes {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Permille(n) => {
                let wide = u128::from(capacity.get()) * u128::from(n) / 1000;
                Bytes::new(u64::try_from(wide).unwrap_or(u64::MAX))
            }
        }
    }
}

impl std::str::FromStr for Margin {
    type Err = crate::ParseBytesError;

    /// `512MiB` or `50permille`.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s.trim().strip_suffix("permille") {
            Some(n) => {
                n.trim().parse().map(Self::Permille).map_err(|_| crate::bytes::ParseBytesError(s.to_owned()))
            }
            None => s.parse().map(Self::Fixed),
        }
    }
}

/// What a device says about its memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// All memory of the device.
    pub capacity: Bytes,
    /// What the driver keeps for this process: context, kernels, stacks.
    pub context: Bytes,
    /// What other processes hold.
    pub foreign: Bytes,
}

impl Reading {
    /// capacity − context − foreign, never below zero.
    #[must_use]
    pub fn usable(&self) -> Bytes {
        self.capacity.saturating_sub(self.context).saturating_sub(self.foreign)
    }
}

/// How a ledger is opened.
#[derive(Clone)]
pub struct LedgerConfig {
    /// Memory kept free.
    pub margin: Margin,
    /// Bytes that the pool may retain past a synchronisation (its release threshold).
    pub threshold: Bytes,
    /// True when a second worker may stage while the first computes.
    pub ahead: bool,
    /// Where events go.
    pub sink: Arc<dyn Sink>,
    /// Asked before each operation of that kind; true makes it fail. For fault-injection tests.
    pub faults: Option<Arc<dyn Fn(Op) -> bool + Send + Sync>>,
}

impl Default for LedgerConfig {
    /// Margin 512 MiB, threshold 0, no staging ahead, events dropped, no faults.
    fn default() -> Self {
        Self {
            margin: Margin::default(),
            threshold: Bytes::ZERO,
            ahead: false,
            sink: Arc::new(NoSink),
            faults: None,
        }
    }
}

impl fmt::Debug for LedgerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerConfig")
            .field("margin", &self.margin)
            .field("threshold", &self.threshold)
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}

/// Names a worker in events and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}

/// A place in the line for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// A request for memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// What it is for.
    pub(crate) label: &'static str,
    /// How much.
    pub(crate) bytes: Bytes,
    /// How it will be allocated.
    pub(crate) class: Class,
    /// In which phase.
    pub(crate) phase: &'static str,
    /// Whether it outlives the turn.
    pub(crate) resident: bool,
}

#[derive(Debug)]
struct Entry {
    holding: Holding,
    ticket: Ticket,
}

#[derive(Debug, Default)]
struct TurnState {
    worker: WorkerId,
    /// Bytes that this turn holds, resident memory left out.
    live: Bytes,
    /// What its plan may hold at most from here on.
    promise: Bytes,
    /// Highest `live` per phase, in the order in which the phases began.
    peaks: Vec<(&'static str, Bytes)>,
}

impl TurnState {
    fn reach(&mut self, phase: &'static str) {
        let live = self.live;
        match self.peaks.iter_mut().find(|(p, _)| *p == phase) {
            Some((_, peak)) => *peak = (*peak).max(live),
            None => self.peaks.push((phase, live)),
        }
    }
}

#[derive(Debug)]
struct State {
    reading: Reading,
    margin: Bytes,
    resident: Bytes,
    direct: Bytes,
    pooled: Bytes,
    retained: Bytes,
    peak: Bytes,
    next: u64,
    entries: BTreeMap<u64, Entry>,
    /// Turns asked for and not yet granted, in order.
    line: VecDeque<Ticket>,
    /// Requests for memory that wait, in order.
    wanting: VecDeque<u64>,
    turns: BTreeMap<Ticket, TurnState>,
    staging: Option<Ticket>,
    computing: Option<Ticket>,
    poisoned: Option<String>,
    /// Counts changes that someone may be waiting for.
    generation: u64,
}

impl State {
    fn level(&self) -> Level {
        let usable = self.reading.usable();
        Level {
            resident: self.resident,
            direct: self.direct,
            pooled: self.pooled,
            retained: self.retained,
            usable,
            budget: usable.saturating_sub(self.margin),
        }
    }

    /// What the plans of turns other than `ticket` have yet to take.
    fn owed(&self, ticket: Ticket) -> Bytes {
        self.turns.iter().filter(|(t, _)| **t != ticket).map(|(_, s)| s.promise.saturating_sub(s.live)).sum()
    }

    /// New memory that a request takes from the device.
    fn fresh(&self, request: &Request) -> Bytes {
        match request.class {
            Class::Pooled => request.bytes.saturating_sub(self.retained),
            Class::Direct => request.bytes,
        }
    }

    fn fits(&self, ticket: Ticket, request: &Request) -> bool {
        let level = self.level();
        level.used() + self.owed(ticket) + self.fresh(request) <= level.budget
    }

    fn never_fits(&self, request: &Request) -> bool {
        let empty = Reading { foreign: Bytes::ZERO, ..self.reading }.usable().saturating_sub(self.margin);
        request.bytes > empty
    }

    fn refusal(&self, ticket: Ticket, request: &Request, driver: Option<String>) -> Arc<Refused> {
        let level = self.level();
        Arc::new(Refused {
            label: request.label,
            need: request.bytes,
            free: level.free().saturating_sub(self.owed(ticket)),
            margin: self.margin,
            retained: self.retained,
            budget: level.budget,
            worker: self.turns.get(&ticket).map(|t| t.worker).unwrap_or_default(),
            phase: request.phase,
            never: self.never_fits(request),
            held: self.entries.values().map(|e| e.holding.clone()).collect(),
            driver,
        })
    }
}

struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    config: LedgerConfig,
    device: String,
    clock: Box<dyn Fn() -> Nanos + Send + Sync>,
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

impl Ledger {
    /// Opens the account of the device called `device`.
    ///
    /// `clock` gives the time that events carry.
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
        let state = State {
            reading,
            margin,
            resident: Bytes::ZERO,
            direct: Bytes::ZERO,
            pooled: Bytes::ZERO,
            retained: Bytes::ZERO,
            peak: Bytes::ZERO,
            next: 0,
            entries: BTreeMap::new(),
            line: VecDeque::new(),
            wanting: VecDeque::new(),
            turns: BTreeMap::new(),
            staging: None,
            computing: None,
            poisoned: None,
            generation: 0,
        };
        Ok(Self(Arc::new(Inner {
            state: Mutex::new(state),
            changed: Condvar::new(),
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
        self.0.changed.notify_all();
    }

    fn show(&self, state: &State, label: impl Into<Cow<'static, str>>) {
        self.emit(Event::Level { at: self.now(), label: label.into(), level: state.level() });
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

    /// Marks the device as failed for good. The first reason is kept.
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

    /// Takes a new reading of the device into account.
    pub fn refresh(&self, reading: Reading) {
        let mut state = self.lock();
        if state.reading != reading {
            state.reading = reading;
            self.show(&state, "reading");
            self.touch(&mut state);
        }
    }

    /// The device has synchronised: what the pool holds past its threshold is back with the device.
    /// Returns the bytes that came back.
    pub fn synchronised(&self) -> Bytes {
        self.shrink(self.0.config.threshold)
    }

    /// The pool was trimmed: it retains nothing. Returns the bytes that came back.
    pub fn trimmed(&self) -> Bytes {
        self.shrink(Bytes::ZERO)
    }

    fn shrink(&self, threshold: Bytes) -> Bytes {
        let mut state = self.lock();
        let keep = threshold.saturating_sub(state.pooled).min(state.retained);
        let freed = state.retained.saturating_sub(keep);
        if freed > Bytes::ZERO {
            state.retained = keep;
            self.show(&state, "trim");
            self.touch(&mut state);
        }
        freed
    }

    /// Blocks the calling thread until `ready` says so. `ready` is asked again after every change of the account.
    pub fn wait_until(&self, ready: &mut dyn FnMut() -> bool) {
        loop {
            let seen = self.lock().generation;
            if ready() {
                return;
            }
            let mut state = self.lock();
            while state.generation == seen {
                state = self.0.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
        }
    }

    // The turn: a line, and two halves that at most one worker each is in.

    pub(crate) fn join(&self) -> Ticket {
        let mut state = self.lock();
        let ticket = Ticket(state.next);
        state.next += 1;
        state.line.push_back(ticket);
        ticket
    }

    /// Grants the turn to the first in line when the device is free for it.
    pub(crate) fn try_enter(&self, ticket: Ticket, worker: WorkerId) -> bool {
        let mut state = self.lock();
        let free = state.staging.is_none() && (self.0.config.ahead || state.computing.is_none());
        if !free || state.line.front() != Some(&ticket) {
            return false;
        }
        state.line.pop_front();
        state.staging = Some(ticket);
        if state.computing.is_none() && !self.0.config.ahead {
            state.computing = Some(ticket);
        }
        state.turns.insert(ticket, TurnState { worker, ..TurnState::default() });
        self.touch(&mut state);
        true
    }

    /// Moves a turn from the staging half to the computing half, when that is free.
    pub(crate) fn try_compute(&self, ticket: Ticket) -> bool {
        let mut state = self.lock();
        match state.computing {
            Some(holder) if holder != ticket => return false,
            Some(_) => {}
            None => state.computing = Some(ticket),
        }
        if state.staging == Some(ticket) && self.0.config.ahead {
            state.staging = None;
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
        state.turns.remove(&ticket);
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

    pub(crate) fn try_lease(&self, ticket: Ticket, request: &Request) -> Result<Lease, Arc<Refused>> {
        let mut state = self.lock();
        if !state.fits(ticket, request) {
            return Err(state.refusal(ticket, request, None));
        }
        Ok(self.grant(&mut state, ticket, request))
    }

    /// Puts a request in line for memory.
    pub(crate) fn want(&self) -> u64 {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.wanting.push_back(id);
        id
    }

    /// Takes a request out of the line for memory.
    pub(crate) fn unwant(&self, id: u64) {
        let mut state = self.lock();
        state.wanting.retain(|w| *w != id);
        self.touch(&mut state);
    }

    /// Grants the first request in line; later ones wait for it. `Some(Err)` when it cannot fit any more.
    pub(crate) fn try_lease_in_line(
        &self,
        id: u64,
        ticket: Ticket,
        request: &Request,
    ) -> Option<Result<Lease, Arc<Refused>>> {
        let mut state = self.lock();
        if state.poisoned.is_some() || state.never_fits(request) {
            return Some(Err(state.refusal(ticket, request, state.poisoned.clone())));
        }
        if state.wanting.front() != Some(&id) || !state.fits(ticket, request) {
            return None;
        }
        Some(Ok(self.grant(&mut state, ticket, request)))
    }

    pub(crate) fn refusal(&self, ticket: Ticket, request: &Request, driver: Option<String>) -> Arc<Refused> {
        self.lock().refusal(ticket, request, driver)
    }

    fn grant(&self, state: &mut State, ticket: Ticket, request: &Request) -> Lease {
        let id = state.next;
        state.next += 1;
        if request.class == Class::Pooled {
            state.retained = state.retained.saturating_sub(request.bytes);
        }
        let worker = state.turns.get(&ticket).map(|t| t.worker);
        if request.resident {
            state.resident += request.bytes;
        } else {
            match request.class {
                Class::Direct => state.direct += request.bytes,
                Class::Pooled => state.pooled += request.bytes,
            }
            if let Some(turn) = state.turns.get_mut(&ticket) {
                turn.live += request.bytes;
                turn.reach(request.phase);
            }
        }
        state.peak = state.peak.max(state.level().used());
        let holding = Holding {
            label: request.label,
            bytes: request.bytes,
            worker: if request.resident { None } else { worker },
            phase: request.phase,
            class: request.class,
        };
        state.entries.insert(id, Entry { holding, ticket });
        self.show(state, request.label);
        Lease { id, bytes: request.bytes, class: request.class, ledger: self.clone() }
    }

    fn release(&self, id: u64) {
        let mut state = self.lock();
        let Some(Entry { holding, ticket }) = state.entries.remove(&id) else { return };
        let bytes = holding.bytes;
        if holding.worker.is_none() {
            state.resident = state.resident.saturating_sub(bytes);
        } else {
            match holding.class {
                Class::Direct => state.direct = state.direct.saturating_sub(bytes),
                Class::Pooled => state.pooled = state.pooled.saturating_sub(bytes),
            }
            if let Some(turn) = state.turns.get_mut(&ticket) {
                turn.live = turn.live.saturating_sub(bytes);
            }
        }
        if holding.class == Class::Pooled {
            state.retained += bytes;
        }
        self.show(&state, holding.label);
        self.touch(&mut state);
    }
}

/// A granted number of bytes, given back when dropped. It cannot be split, grown or given back twice.
pub struct Lease {
    id: u64,
    bytes: Bytes,
    class: Class,
    ledger: Ledger,
}

impl Lease {
    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("bytes", &self.bytes)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ledger.release(self.id);
    }
}
