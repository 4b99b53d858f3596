//! The CPU as a device: real memory, and queues that are real threads.
//!
//! A queue runs its jobs in order on a thread of its own, so copies and computation overlap as they do on a card,
//! and a missing wait between two queues is a real race that tests can see. Spans are timed on that thread.

mod queue;

use std::alloc::{Layout, alloc, dealloc};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::time::Instant;

pub use queue::{HostMark, HostQueue};

use crate::sync::{Mutex, lock};
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
        let epoch = Instant::now();
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

/// A block of host memory that stands for device memory. It is freed through its [`crate::Buf`] only.
#[derive(Debug)]
pub struct HostBlock {
    at: NonNull<u8>,
    layout: Option<Layout>,
}

// SAFETY: the block is plain memory; who may touch it when is the business of the queue that a `Buf` is claimed for.
unsafe impl Send for HostBlock {}

impl HostBlock {
    /// Where it begins, for jobs on a queue that has claimed it. Aligned to 64 bytes.
    #[must_use]
    pub fn as_ptr<T>(&self) -> HostPtr<T> {
        HostPtr(self.at.as_ptr().cast())
    }

    fn free(self) {
        if let Some(layout) = self.layout {
            // SAFETY: `at` was allocated with `layout` and is freed once, since this takes the block.
            unsafe { dealloc(self.at.as_ptr(), layout) };
        }
    }
}

/// A pointer into a [`HostBlock`] that a job may carry to its queue's thread.
#[derive(Debug)]
pub struct HostPtr<T>(*mut T);

impl<T> Clone for HostPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for HostPtr<T> {}

// SAFETY: sending the address is harmless; each use is an `unsafe` call with its own contract.
unsafe impl<T: Send> Send for HostPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for HostPtr<T> {}

impl<T> HostPtr<T> {
    /// The address.
    #[must_use]
    pub fn get(self) -> *mut T {
        self.0
    }

    /// `len` elements from here.
    ///
    /// # Safety
    /// The elements are initialised and inside the block, and for as long as the slice lives the block is live and
    /// nobody writes to them.
    #[must_use]
    pub unsafe fn slice<'s>(self, len: usize) -> &'s [T] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.0, len) }
    }

    /// `len` elements from here, to be written.
    ///
    /// # Safety
    /// As [`HostPtr::slice`], and nobody else reads or writes them.
    #[must_use]
    pub unsafe fn slice_mut<'s>(self, len: usize) -> &'s mut [T] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.0, len) }
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

    unsafe fn allocate(&self, len: Bytes, _: Class, _: &HostQueue) -> Result<HostBlock, Error> {
        self.ledger.attempt(Op::Allocate)?;
        let failed = |detail: &str| Error::Device {
            op: Op::Allocate,
            device: self.name.clone(),
            detail: detail.into(),
        };
        let len = len.to_usize().ok_or_else(|| failed("more than this process can address"))?;
        if len == 0 {
            return Ok(HostBlock { at: NonNull::<Aligned>::dangling().cast(), layout: None });
        }
        let layout = Layout::from_size_align(len, align_of::<Aligned>())
            .map_err(|_| failed("more than this process can address"))?;
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc(layout) };
        match NonNull::new(at) {
            Some(at) => Ok(HostBlock { at, layout: Some(layout) }),
            None => Err(failed("the operating system has no more memory")),
        }
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

/// What every block is aligned to: one cache line.
#[repr(align(64))]
struct Aligned;

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
