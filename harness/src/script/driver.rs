//! Plays a script on an NVIDIA card whose driver alone says what fits: the account is asked for nothing and grants nothing.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prestage_vram::conformance::KERNELS;
use prestage_vram::cuda::{Cuda, CudaBlock, CudaConfig, CudaQueue, Grid};
use prestage_vram::{
    Bytes, Card, Class, Device, Error, Holding, LedgerConfig, Margin, Op, Refused, Work, WorkerId, host_work,
};

use super::plan::{Act, Plan};
use super::replay::{Player, Replay, Seats, Stage, run};
use super::seat::Seat;
use super::step::Lane;
use super::{OnRefusal, Script, ScriptError};
use crate::timeline::Recorder;

/// Bytes that a copy moves in a nanosecond: PCIe 5 ×16, pinned.
const LINK: u64 = 55;

impl Script {
    /// Replays the script on card 0 with ballast until its driver reports free what `like` has beside its context, and no more.
    /// Memory is asked of the driver alone. Kernels and copies are kernels that last as long as the script says, divided by
    /// `pace`, as is work of the host.
    ///
    /// Needs and refusals are those of [`Script::replay`]; what is free in a refusal is what the driver reports, and the
    /// peak is of what it granted.
    ///
    /// # Errors
    /// As [`Script::check`]; [`ScriptError::Device`] when the card cannot be opened or has less.
    pub fn replay_on_driver(&self, like: Card, pace: u64) -> Result<Replay, ScriptError> {
        let plan = Plan::of(self)?;
        let recorder = Arc::new(Recorder::new());
        let config = self.card.apply(like, &self.set, recorder.clone())?;
        let leave = config.card.capacity.saturating_sub(config.card.context);
        let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..config.ledger };
        let card = Cuda::open(CudaConfig { ballast: Some(leave), ledger, ..CudaConfig::default() })?;
        let driven = Driven {
            card: &card,
            on_refusal: plan.on_refusal,
            pace: pace.max(1),
            account: Mutex::new(Account { holds: Vec::new(), peak: Bytes::ZERO }),
        };
        let mut replay = run(&plan, &driven, &recorder)?;
        replay.peak = driven.account().peak;
        Ok(replay)
    }
}

/// What was granted so far.
struct Account {
    holds: Vec<Holding>,
    peak: Bytes,
}

/// A card that was opened for a script.
struct Driven<'c> {
    card: &'c Cuda,
    on_refusal: OnRefusal,
    pace: u64,
    account: Mutex<Account>,
}

impl Driven<'_> {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a script never freed, freed when it has ended.
struct Held<'c> {
    card: &'c Cuda,
    blocks: Vec<(CudaBlock, Class, CudaQueue)>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for (block, class, queue) in self.blocks.drain(..) {
            // SAFETY: allocated with this class; no work ever uses it.
            unsafe { self.card.free(block, class, &queue) };
        }
    }
}

impl<'c> Stage<'c> for Driven<'c> {
    type Device = Cuda;
    type Held = Held<'c>;

    fn device(&self) -> &'c Cuda {
        self.card
    }

    fn player<'t>(&self, id: WorkerId, seats: Seats<'t>) -> impl Player<Held = Held<'c>>
    where
        'c: 't,
    {
        OnCard { stage: self, seat: Seat::new(self.card, id, seats), memory: BTreeMap::new() }
    }
}

struct OnCard<'s, 'c, 't> {
    stage: &'s Driven<'c>,
    seat: Seat<'c, 't, Cuda>,
    memory: BTreeMap<&'static str, (CudaBlock, Class)>,
}

impl<'c: 't, 't> OnCard<'_, 'c, 't> {
    /// A kernel that lasts that long.
    fn spin(&mut self, lane: Lane, work: Work, ns: u64) -> Result<(), Error> {
        let (card, queue) = (self.stage.card, self.seat.lane(lane)?);
        // SAFETY: the image is whole PTX.
        let kernel = unsafe { card.module("checks", || Ok::<_, Error>(KERNELS.into())) }?.kernel("spin")?;
        let mut ns = ns / self.stage.pace;
        let mut args = [(&raw mut ns).cast::<c_void>()];
        // SAFETY: the kernel takes one 64-bit number and touches no memory.
        unsafe { card.enqueue(&queue, work, |stream| stream.launch(&kernel, Grid::line(1, 1), &mut args)) }
    }

    fn alloc(&mut self, label: &'static str, bytes: Bytes, class: Class) -> Result<(), Error> {
        let (card, queue) = (self.stage.card, self.seat.lane(Lane::Compute)?);
        // SAFETY: no lease is held, on purpose: the account is asked by nobody, and so grants nothing that is not there.
        let ask = || unsafe { card.allocate(bytes, bytes, class, &queue) };
        let mut answer = ask();
        if answer.is_err() && matches!(self.stage.on_refusal, OnRefusal::Sync | OnRefusal::Trim) {
            self.settle()?;
            if self.stage.on_refusal == OnRefusal::Trim {
                card.trim()?;
            }
            answer = ask();
        }
        let phase = if self.seat.turn.is_some() { "turn" } else { "no turn" };
        match answer {
            Ok(block) => {
                self.memory.insert(label, (block, class));
                let mut account = self.stage.account();
                account.holds.push(Holding { label, bytes, worker: Some(self.seat.id), phase, class });
                let held = account.holds.iter().map(|hold| hold.bytes).sum();
                account.peak = account.peak.max(held);
                Ok(())
            }
            Err(Error::Device { op: Op::Allocate, detail, .. }) => {
                let (free, (reserved, used)) = (card.free_memory()?, card.pool()?);
                Err(Error::Refused(Arc::new(Refused {
                    label,
                    need: bytes,
                    free,
                    margin: Bytes::ZERO,
                    retained: reserved.saturating_sub(used),
                    budget: card.ledger().level().budget,
                    empty: card.ledger().level().budget,
                    worker: self.seat.id,
                    phase,
                    never: false,
                    held: self.stage.account().holds.clone(),
                    driver: Some(detail),
                })))
            }
            Err(other) => Err(other),
        }
    }

    /// Takes a block out of the books.
    fn let_go(&mut self, label: &'static str) -> Option<(CudaBlock, Class)> {
        let block = self.memory.remove(label)?;
        let mut account = self.stage.account();
        if let Some(at) =
            account.holds.iter().position(|h| h.label == label && h.worker == Some(self.seat.id))
        {
            account.holds.remove(at);
        }
        Some(block)
    }

    fn free(&mut self, label: &'static str, lane: Lane) -> Result<(), Error> {
        let queue = self.seat.lane(lane)?;
        // What could not be allocated is not there to be freed.
        if let Some((block, class)) = self.let_go(label) {
            // SAFETY: allocated with this class; no work ever uses it.
            unsafe { self.stage.card.free(block, class, &queue) };
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        self.seat.lanes().into_iter().try_for_each(|queue| self.stage.card.drain(queue))
    }
}

impl<'c: 't, 't> Player for OnCard<'_, 'c, 't> {
    type Held = Held<'c>;

    fn unwind(&mut self) {
        for label in self.memory.keys().copied().collect::<Vec<_>>() {
            // A lane that cannot be had leaves the block to the end of the process, as in a program that unwinds.
            let _ = self.free(label, Lane::Compute);
        }
    }

    fn end(mut self) -> Held<'c> {
        drop(self.seat.turn.take());
        let card = self.stage.card;
        let labels: Vec<_> = self.memory.keys().copied().collect();
        let mut blocks = Vec::new();
        for label in labels {
            if let (Ok(queue), Some((block, class))) = (self.seat.lane(Lane::Compute), self.let_go(label)) {
                blocks.push((block, class, queue));
            }
        }
        Held { card, blocks }
    }

    fn act(&mut self, act: &Act) -> Result<(), Error> {
        let card = self.stage.card;
        if let Act::Host { label, ns } = act {
            let time = std::time::Duration::from_nanos(ns / self.stage.pace);
            host_work(card, self.seat.id, *label, || std::thread::sleep(time));
            return Ok(());
        }
        card.ledger().healthy()?;
        match *act {
            Act::Register { bytes } => self.seat.lock(bytes)?,
            Act::Alloc { label, bytes, class, .. } => self.alloc(label, bytes, class)?,
            Act::Copy { label, bytes, lane, .. } => {
                self.spin(lane, Work::copy(label, bytes), bytes.get() / LINK)?;
            }
            Act::Kernel { label, ns, lane } => self.spin(lane, Work::launch(label, Bytes::ZERO), ns)?,
            Act::Sync => self.settle()?,
            Act::Trim => card.trim()?,
            Act::Free { label, lane } => self.free(label, lane)?,
            // Leases and other processes are nothing that a driver can be told of.
            _ => self.seat.act(act)?,
        }
        Ok(())
    }
}
