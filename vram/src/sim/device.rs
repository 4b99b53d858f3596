//! What a simulated card does: raw operations in virtual time.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::memory::OutOfMemory;
use super::{Sim, SimMark, SimQueue};
use crate::host::words_of;
use crate::work::{Cost, Cpu, Work};
use crate::{
    Bytes, Cause, Class, Device, Error, Event, HostBlock, Ledger, Nanos, Op, Reading, Span, Track, WorkerId,
};

/// When a piece of work runs.
struct Slot {
    track: Track,
    start: Nanos,
    end: Nanos,
    /// The copy that runs beside it, and its bytes.
    beside: Option<(Nanos, Nanos, Bytes)>,
    /// The host waits for it.
    blocks: bool,
}

impl Sim {
    fn failed(&self, op: Op, detail: String) -> Error {
        Error::Device { op, device: self.name.clone(), detail }
    }

    fn span(
        &self,
        track: Track,
        worker: WorkerId,
        name: Cow<'static, str>,
        at: (Nanos, Nanos),
        bytes: Bytes,
    ) {
        let (start, end) = at;
        self.ledger.emit(Event::Span(Span { track, worker, name, start, end, bytes }));
    }

    /// Finds the time for work that costs `cost` and is ready at `ready`.
    fn schedule(&self, track: Track, ready: Nanos, cost: &Cost) -> Result<Slot, Error> {
        let (now, card) = (self.baton.now(), self.card());
        let mut state = self.lock();
        let state = &mut *state;
        let one = card.link.copy_engines == 1;
        match cost {
            Cost::Upload { bytes, pinned } => {
                let (start, end) = state.upload.take(now, ready, card.copy(*bytes, true, *pinned));
                Ok(Slot { track: Track::Upload, start, end, beside: None, blocks: !pinned })
            }
            Cost::Download { bytes, pinned } => {
                let engine = if one { &mut state.upload } else { &mut state.download };
                let (start, end) = engine.take(now, ready, card.copy(*bytes, false, *pinned));
                Ok(Slot { track: Track::Download, start, end, beside: None, blocks: !pinned })
            }
            Cost::Time(time) => {
                let engine = match track {
                    Track::Upload => &mut state.upload,
                    Track::Download if one => &mut state.upload,
                    Track::Download => &mut state.download,
                    _ => &mut state.compute,
                };
                let (start, end) = engine.take(now, ready, *time);
                Ok(Slot { track, start, end, beside: None, blocks: false })
            }
            Cost::Kernels { units, streamed } => {
                let mut time = Nanos::ZERO;
                for units in units {
                    let kind = units.kind;
                    let cost = card.kernels.get(kind).ok_or_else(|| {
                        let detail = format!("the card has no cost for kernels of kind `{kind}`");
                        self.failed(Op::Launch, detail)
                    })?;
                    time = time + cost.of(units.count);
                }
                let (start, mut end) = state.compute.take(now, ready, time);
                let mut beside = None;
                if *streamed > Bytes::ZERO {
                    let copy = state.upload.take(now, start, card.copy(*streamed, true, true));
                    beside = Some((copy.0, copy.1, *streamed));
                    // The kernel takes its data as it comes, and ends with it.
                    let rest = copy.1.since(end);
                    if rest > Nanos::ZERO {
                        end = state.compute.take(now, end, rest).1;
                    }
                }
                Ok(Slot { track, start, end, beside, blocks: false })
            }
        }
    }
}

impl Device for Sim {
    type Block = HostBlock;
    type Queue = SimQueue;
    type Mark = SimMark;

    fn name(&self) -> &str {
        &self.name
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn reading(&self) -> Result<Reading, Error> {
        let usage = self.usage();
        Ok(Reading { capacity: usage.capacity, context: usage.context, foreign: usage.foreign })
    }

    fn scale(&self) -> u64 {
        self.config.scale.max(1)
    }

    fn charge(&self, real: Bytes, stated: Option<Bytes>) -> Bytes {
        stated.unwrap_or(real * self.scale())
    }

    fn elapse(&self, time: Nanos) {
        self.spend(time);
    }

    fn queue(&self, track: Track, worker: WorkerId) -> Result<SimQueue, Error> {
        Ok(SimQueue::new(track, worker, self.now()))
    }

    fn retire(&self, _: SimQueue) {}

    unsafe fn allocate(
        &self,
        len: Bytes,
        charge: Bytes,
        class: Class,
        queue: &SimQueue,
    ) -> Result<HostBlock, Error> {
        self.ledger.attempt(Op::Allocate)?;
        let costs = self.card().memory;
        let now = self.now();
        let mut state = self.lock();
        let Some(taken) = state.memory.allocate(charge, class, now) else {
            let usage = state.memory.usage();
            let free = usage.free();
            if self.card().out_of_memory == OutOfMemory::Leak {
                state.memory.leak();
            }
            drop(state);
            let detail =
                format!("out of memory: {charge} asked for, {free} free, {} in the pool", usage.retained);
            if self.card().out_of_memory == OutOfMemory::Sticky {
                self.ledger.poison(detail.clone());
            }
            return Err(self.failed(Op::Allocate, detail));
        };
        drop(state);
        let block = HostBlock::new(len, charge).map_err(|detail| {
            self.lock().memory.release(charge, class, now);
            self.failed(Op::Allocate, detail.to_owned())
        })?;
        if class == Class::Pooled {
            let mut queue = queue.lock();
            queue.end = queue.end.max(taken.from);
        }
        self.spend(match class {
            Class::Direct => costs.allocate_direct.of(taken.fresh),
            Class::Pooled => costs.allocate_pooled.of(taken.fresh),
        });
        Ok(block)
    }

    unsafe fn free(&self, block: HostBlock, class: Class, queue: &SimQueue) {
        let charge = block.charge();
        block.free();
        let end = queue.end();
        match class {
            Class::Direct => {
                self.baton.advance(end);
                self.spend(self.card().memory.free_direct.of(charge));
                let now = self.now();
                self.lock().memory.release(charge, class, now);
            }
            Class::Pooled => self.lock().memory.release(charge, class, end),
        }
    }

    fn record(&self, queue: &SimQueue) -> Result<SimMark, Error> {
        self.ledger.attempt(Op::Mark)?;
        queue.healthy()?;
        Ok(SimMark { at: queue.end() })
    }

    fn wait(&self, queue: &SimQueue, mark: &SimMark) -> Result<(), Error> {
        self.ledger.attempt(Op::Mark)?;
        let mut queue = queue.lock();
        queue.end = queue.end.max(mark.at);
        Ok(())
    }

    fn passed(&self, mark: &SimMark) -> Result<bool, Error> {
        Ok(self.now() >= mark.at)
    }

    fn synchronise(&self, mark: &SimMark) -> Result<(), Error> {
        self.baton.advance(mark.at);
        Ok(())
    }

    fn drain(&self, queue: &SimQueue) -> Result<(), Error> {
        self.baton.advance(queue.end());
        let start = self.now();
        let back = self.lock().memory.synchronised(start);
        if back > Bytes::ZERO {
            self.spend(self.card().memory.trim.of(back));
            let worker = queue.lock().worker;
            self.span(Track::Memory, worker, "release from the pool".into(), (start, self.now()), back);
        }
        queue.healthy()
    }

    fn trim(&self) -> Result<(), Error> {
        self.ledger.healthy()?;
        let now = self.now();
        let back = self.lock().memory.trim(now);
        self.spend(self.card().memory.trim.of(back));
        Ok(())
    }

    fn block(&self, ready: &mut dyn FnMut() -> bool) {
        if !self.baton.seated() {
            return self.ledger.wait_until(ready);
        }
        loop {
            let seen = self.ledger.changes();
            if ready() || self.ledger.healthy().is_err() {
                return;
            }
            if self.baton.block(&self.ledger, seen).is_err() {
                self.ledger.poison("every worker waits for another");
            }
        }
    }
}

impl Cpu for Sim {
    unsafe fn perform(
        &self,
        queue: &SimQueue,
        work: Work,
        job: impl FnOnce() -> Cost + Send + 'static,
    ) -> Result<(), Error> {
        let Work { op, name, bytes } = work;
        self.ledger.attempt(op)?;
        let handed = self.now();
        let launch = Nanos::new(self.card().launch_ns);
        self.spend(launch);
        if queue.healthy().is_err() {
            // As on every device: what comes after failed work does not run, and the turn's end says so.
            return Ok(());
        }
        let cost = match catch_unwind(AssertUnwindSafe(job)) {
            Ok(cost) => cost,
            Err(panic) => {
                queue.lock().failure = Some(words_of(panic.as_ref()));
                return Ok(());
            }
        };
        let (worker, before) = {
            let queue = queue.lock();
            (queue.worker, queue.end)
        };
        let Slot { track, start, end, beside, blocks } =
            self.schedule(queue.track(), before.max(handed + launch), &cost)?;
        queue.lock().end = end;
        if before <= handed && launch > Nanos::ZERO {
            self.span(Track::Launch, worker, name.clone(), (handed, handed + launch), bytes);
        }
        if let Some((start, end, streamed)) = beside {
            self.span(Track::Upload, worker, format!("stream {name}").into(), (start, end), streamed);
        }
        self.span(track, worker, name, (start, end), bytes);
        if blocks {
            let from = self.now();
            self.baton.advance(end);
            if end > from {
                self.ledger.emit(Event::Wait { worker, cause: Cause::Transfer, start: from, end });
            }
        }
        Ok(())
    }
}
