//! The CPU as a device: real memory, and queues that are real threads.
//!
//! A queue runs its jobs in order on a thread of its own, so copies and computation overlap as they do on a card,
//! and a missing wait between two queues is a real race that tests can see. Spans are timed on that thread.

mod block;
mod queue;

use std::borrow::Cow;

pub use block::{HostBlock, HostPtr};
pub(crate) use queue::words_of;
pub use queue::{HostMark, HostQueue};

use crate::sync::{Mutex, lock};
use crate::work::{Cost, Cpu, Work};
use crate::{Bytes, Class, Device, Error, Ledger, LedgerConfig, Nanos, Op, Reading, Track, WorkerId};

/// How the CPU is opened as a device.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Memory that the device stands for; more than that is refused.
    pub capacity: Bytes,
    /// Margin, pool threshold, sink, faults.
    pub ledger: LedgerConfig,
}

impl Default for HostConfig {
    /// 64 GiB, the default ledger. The capacity is an account, not an allocation: memory is taken as it is asked for.
    fn default() -> Self {
        Self { capacity: Bytes::gib(64), ledger: LedgerConfig::default() }
    }
}

/// The CPU as a device.
#[derive(Debug)]
pub struct Host {
    name: String,
    ledger: Ledger,
    capacity: Bytes,
    idle: Mutex<Vec<HostQueue>>,
}

impl Host {
    /// Opens the CPU as a device.
    ///
    /// # Errors
    /// [`Error::MarginTooLarge`] when the margin is larger than the capacity.
    pub fn open(config: HostConfig) -> Result<Self, Error> {
        let epoch = config.ledger.epoch();
        let reading = Reading { capacity: config.capacity, ..Reading::default() };
        let ledger = Ledger::open("host", reading, config.ledger, move || Nanos::from(epoch.elapsed()))?;
        Ok(Self { name: "host".into(), ledger, capacity: config.capacity, idle: Mutex::new(Vec::new()) })
    }

    /// Enqueues a job. It is recorded as a span called `name` of `bytes` on the queue's track.
    ///
    /// # Safety
    /// Memory that the job touches through raw pointers must stay valid until the job has run, and no other queue
    /// may touch it at the same time: claim each [`crate::Buf`] for this queue first ([`crate::Buf::claim`]) and
    /// take the pointers after that.
    ///
    /// # Errors
    /// [`Error::Device`] for an injected fault of kind `op`; [`Error::Poisoned`]. A job that panics fails its queue: later
    /// jobs there, and on queues that wait for it, are skipped, and the turn's release says so.
    pub unsafe fn submit(
        &self,
        queue: &HostQueue,
        op: Op,
        name: impl Into<Cow<'static, str>>,
        bytes: Bytes,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        self.ledger.attempt(op)?;
        queue.push(
            Some((name.into(), bytes)),
            Box::new(move || {
                job();
                Ok(())
            }),
        );
        Ok(())
    }
}

impl Device for Host {
    type Block = HostBlock;
    type Queue = HostQueue;
    type Mark = HostMark;

    fn name(&self) -> &str {
        &self.name
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn reading(&self) -> Result<Reading, Error> {
        Ok(Reading { capacity: self.capacity, ..Reading::default() })
    }

    fn queue(&self, track: Track, worker: WorkerId) -> Result<HostQueue, Error> {
        let reused = {
            let mut idle = lock(&self.idle);
            idle.iter().position(|q| q.track() == track).map(|i| idle.swap_remove(i))
        };
        match reused {
            Some(queue) => {
                queue.assign(worker);
                Ok(queue)
            }
            None => HostQueue::start(track, worker, self.ledger.clone()),
        }
    }

    fn retire(&self, queue: HostQueue) {
        if !queue.failed() {
            lock(&self.idle).push(queue);
        }
    }

    unsafe fn allocate(
        &self,
        len: Bytes,
        charge: Bytes,
        _: Class,
        _: &HostQueue,
    ) -> Result<HostBlock, Error> {
        self.ledger.attempt(Op::Allocate)?;
        HostBlock::new(len, charge).map_err(|detail| Error::Device {
            op: Op::Allocate,
            device: self.name.clone(),
            detail: detail.into(),
        })
    }

    unsafe fn free(&self, block: HostBlock, class: Class, queue: &HostQueue) {
        queue.push(
            None,
            Box::new(move || {
                block.free();
                Ok(())
            }),
        );
        if class == Class::Direct {
            // A synchronous free waits for the device. Failed work is reported when the turn is released.
            let _ = self.drain(queue);
        }
    }

    fn record(&self, queue: &HostQueue) -> Result<HostMark, Error> {
        self.ledger.attempt(Op::Mark)?;
        let mark = queue.mark();
        mark.failure().map(|()| mark)
    }

    fn wait(&self, queue: &HostQueue, mark: &HostMark) -> Result<(), Error> {
        self.ledger.attempt(Op::Mark)?;
        let mark = mark.clone();
        queue.push(None, Box::new(move || mark.follow()));
        Ok(())
    }

    fn passed(&self, mark: &HostMark) -> Result<bool, Error> {
        mark.failure()?;
        Ok(mark.passed())
    }

    fn synchronise(&self, mark: &HostMark) -> Result<(), Error> {
        mark.block();
        mark.failure()
    }

    fn drain(&self, queue: &HostQueue) -> Result<(), Error> {
        // Memory can be dropped inside a job, where the device is borrowed for ever: what came before that job has
        // ended, and the free itself comes right after it.
        if queue.is_current() {
            return Ok(());
        }
        self.synchronise(&queue.mark())
    }

    fn trim(&self) -> Result<(), Error> {
        self.ledger.healthy()
    }
}

impl Cpu for Host {
    unsafe fn perform(
        &self,
        queue: &HostQueue,
        work: Work,
        job: impl FnOnce() -> Cost + Send + 'static,
    ) -> Result<(), Error> {
        let Work { op, name, bytes } = work;
        // SAFETY: the same contract. What the work would cost elsewhere is of no interest here.
        unsafe { self.submit(queue, op, name, bytes, move || drop(job())) }
    }
}

/// Runs a closure on the calling thread as host work of `worker`, recorded as a span.
pub fn host_work<D: Device, R>(
    device: &D,
    worker: WorkerId,
    name: impl Into<Cow<'static, str>>,
    work: impl FnOnce() -> R,
) -> R {
    let start = device.now();
    let result = work();
    device.ledger().emit(crate::Event::Span(crate::Span {
        track: Track::Host,
        worker,
        name: name.into(),
        start,
        end: device.now(),
        bytes: Bytes::ZERO,
    }));
    result
}
