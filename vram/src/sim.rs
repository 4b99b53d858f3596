//! A simulated card: computes for real at a small size, charges memory and virtual time at full size.
//!
//! One run gives results that verify *and* the ledger of a card that is not there. Work is done on the worker's own thread
//! when it is handed over; what it would have cost decides when it starts and ends. It starts at the latest of: the worker
//! handed it over, its queue is done with what came before, its engine is free. Copies and kernels have engines of their
//! own, so they overlap as they do on a card.
//!
//! Time is virtual. Workers that run in [`Sim::workers`] are real threads of which the earliest goes on, so the same inputs
//! give the same trace to the byte. When each of them waits for another, the device is [`crate::Error::Poisoned`] and
//! all waits end. Other threads can use the card as well: they share one clock, are not kept waiting for each other, and
//! so their traces depend on the machine.

mod baton;
mod card;
mod device;
mod engine;
mod memory;
mod queue;
mod unruled;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use card::{CallCost, Card, CardError, KernelCost, Link, MemoryCost, PRESETS};
pub use memory::{OutOfMemory, Usage};
pub use queue::{SimMark, SimQueue};
pub use unruled::{Unruled, Wanted};

use self::baton::Baton;
use self::engine::Engine;
use self::memory::Memory;
use crate::{Bytes, Error, Ledger, LedgerConfig, Margin, Nanos, Reading, WorkerId};

/// How a simulated card is opened.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The card.
    pub card: Card,
    /// How many elements of the full size one element in this process stands for; 0 counts as 1.
    pub scale: u64,
    /// Margin, pool threshold, sink, faults.
    pub ledger: LedgerConfig,
}

impl SimConfig {
    /// The card with its own margin and pool threshold, at scale 1.
    #[must_use]
    pub fn new(card: Card) -> Self {
        let margin = Margin::Fixed(card.margin);
        let ledger = LedgerConfig { margin, threshold: card.pool_threshold, ..LedgerConfig::default() };
        Self { card, scale: 1, ledger }
    }
}

#[derive(Debug)]
struct State {
    memory: Memory,
    compute: Engine,
    upload: Engine,
    download: Engine,
}

/// The clock of a [`Sim`], as the thread that asks sees it.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Baton>);

impl SimClock {
    /// The calling thread's time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.now()
    }

    /// Moves the calling thread's time on.
    pub fn elapse(&self, time: Nanos) {
        self.0.advance(self.0.now() + time);
    }
}

/// A simulated card.
///
/// ```
/// use prestage_vram::{Bytes, Card, Class, Device, Nanos, Sim, SimConfig, Track, Worker, host_work};
///
/// let card = Card::preset("rtx-5070-ti-16g")?;
/// let sim = Sim::open(SimConfig { scale: 1 << 10, ..SimConfig::new(card) })?;
/// let times = sim.workers(2, |id| {
///     let mut worker = Worker::new(id.0);
///     host_work(&sim, id, "prepare", || sim.elapse(Nanos::new(1_000_000_000)));
///     let turn = sim.turn(&mut worker)?;
///     let queue = turn.queue(Track::Compute)?;
///     // 4 MiB here stand for 4 GiB there.
///     let a = turn.alloc::<u64>("a", 1 << 19, Class::Pooled, &queue)?;
///     assert_eq!(a.charge(), Bytes::gib(4));
///     drop(a);
///     turn.release()?;
///     Ok::<Nanos, prestage_vram::Error>(sim.now())
/// });
/// for time in times {
///     assert!(time.expect("no worker panicked")? >= Nanos::new(1_000_000_000));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sim {
    name: String,
    config: SimConfig,
    ledger: Ledger,
    baton: Arc<Baton>,
    state: Mutex<State>,
}

impl Sim {
    /// Opens a simulated card at time zero.
    ///
    /// # Errors
    /// [`Error::MarginTooLarge`] when the margin is larger than the card.
    pub fn open(config: SimConfig) -> Result<Self, Error> {
        Self::with(config, Arc::new(Baton::default()), Bytes::ZERO)
    }

    /// Opens another card on the clock of this one: its workers, and those of this card, take turns in one virtual time. They share
    /// the account of page-locked host memory too.
    ///
    /// # Errors
    /// As [`Sim::open`].
    pub fn open_beside(&self, mut config: SimConfig) -> Result<Self, Error> {
        config.ledger.beside = Some(self.ledger.clone());
        Self::with(config, Arc::clone(&self.baton), Bytes::ZERO)
    }

    fn with(config: SimConfig, baton: Arc<Baton>, foreign: Bytes) -> Result<Self, Error> {
        let SimConfig { card, ledger, .. } = &config;
        let name = format!("sim:{}", card.name);
        let mut memory = Memory::new(card.capacity, card.context, ledger.threshold);
        memory.set_foreign(foreign);
        let clock = Arc::clone(&baton);
        let reading = Reading { capacity: card.capacity, context: card.context, foreign };
        let ledger = Ledger::open(name.clone(), reading, ledger.clone(), move || clock.now())?;
        let state = State {
            memory,
            compute: Engine::default(),
            upload: Engine::default(),
            download: Engine::default(),
        };
        Ok(Self { name, config, ledger, baton, state: Mutex::new(state) })
    }

    /// Opens the same card again, after it has failed for good, with empty memory and an account of its own. Time goes on
    /// from where the caller is, by what a context costs.
    ///
    /// # Errors
    /// As [`Sim::open`].
    pub fn reopen(&self) -> Result<Self, Error> {
        let foreign = self.lock().memory.foreign();
        let again = Self::with(self.config.clone(), Arc::clone(&self.baton), foreign)?;
        self.spend(Nanos::new(self.card().context_ns));
        Ok(again)
    }

    /// The card.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.config.card
    }

    /// The memory as the driver sees it. The account in [`crate::Device::ledger`] is what has been granted; this is what
    /// is there.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.lock().memory.usage()
    }

    /// Other processes hold `bytes` of the card from now on. The account learns of it at the next turn.
    pub fn set_foreign(&self, bytes: Bytes) {
        self.lock().memory.set_foreign(bytes);
    }

    /// Runs `n` workers, numbered from 0, as threads in virtual time and returns what they return, in order. All start at
    /// the caller's time, which goes on when the last has ended.
    ///
    /// The worker with the least virtual time goes on, ties by number; it hands over when its time moves on or when it waits
    /// on the device. So it must not wait for another worker in any other way: neither for a lock that is held across calls
    /// of the device, nor for a channel.
    ///
    /// A worker that panics gives back its turn as ever, and the others go on. Its payload is in its place.
    pub fn workers<R: Send>(
        &self,
        n: u32,
        work: impl Fn(WorkerId) -> R + Sync,
    ) -> Vec<std::thread::Result<R>> {
        let (baton, work) = (&*self.baton, &work);
        let seats = baton.seats(n);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n)
                .zip(seats)
                .map(|(id, seat)| {
                    let run = move || {
                        baton.sit(seat);
                        let result = catch_unwind(AssertUnwindSafe(|| work(WorkerId(id))));
                        (result, baton.leave())
                    };
                    let thread =
                        std::thread::Builder::new().name(format!("worker {id}")).spawn_scoped(scope, run);
                    thread.inspect_err(|_| baton.abandon(seat))
                })
                .collect();
            let mut last = Nanos::ZERO;
            let results = threads
                .into_iter()
                .map(|thread| {
                    let (result, end) = thread.map_err(|error| Box::new(error) as _)?.join()?;
                    last = last.max(end);
                    result
                })
                .collect();
            baton.back(last);
            results
        })
    }

    /// The card's clock, for what outlives a borrow of the card.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        SimClock(Arc::clone(&self.baton))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the caller's time on by `time`.
    fn spend(&self, time: Nanos) {
        self.baton.advance(self.baton.now() + time);
    }
}
