//! A card as a device: raw operations through the driver.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, result, sys};

use super::call::{check, is_sticky, words};
use super::context::Context;
use super::cupti::Recording;
use super::memory::{Ballast, CudaBlock, Pool, allocate_direct, free_direct};
use super::module::Module;
use super::options::{CudaConfig, Which};
use super::probe::{Card, Uuid, attribute, start};
use super::queue::{CudaMark, CudaQueue};
use super::spans::Clock;
use crate::sync::lock;
use crate::{Bytes, Class, Device, Error, Ledger, Nanos, Op, Reading, Track, WorkerId};

/// What the parts of an open device share, and what outlives it: page-locked host memory, marks, modules.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) ledger: Ledger,
    pub(super) context: Arc<Context>,
    pub(super) clock: Clock,
}

impl Shared {
    /// What `op` failed with; an error that loses the context poisons the account.
    pub(super) fn failed(&self, op: Op, call: &'static str, error: DriverError) -> Error {
        let detail = format!("{} ({call})", words(error));
        match self.lost(error, &detail) {
            Some(poisoned) => poisoned,
            None => Error::Device { op, device: self.name.clone(), detail },
        }
    }

    /// What work failed with that was handed over earlier, `names` being what had not been seen to end.
    pub(super) fn late(&self, track: Track, call: &str, error: DriverError, names: &str) -> Error {
        let mut detail = format!("{} ({call} on the {} lane", words(error), track.name());
        if !names.is_empty() {
            detail = format!("{detail}, after: {names}");
        }
        detail.push(')');
        match self.lost(error, &detail) {
            Some(poisoned) => poisoned,
            None => Error::Lane { lane: track.name(), detail },
        }
    }

    fn lost(&self, error: DriverError, detail: &str) -> Option<Error> {
        if !is_sticky(error) {
            return None;
        }
        self.context.lose();
        self.ledger.poison(detail);
        self.ledger.healthy().err()
    }
}

/// What a card is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Its number in this process.
    pub ordinal: u32,
    /// What it is called.
    pub name: String,
    /// Which one it is.
    pub uuid: Uuid,
    /// Its compute capability: 9.0 for `sm_90`.
    pub compute: (u32, u32),
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// Shared memory that one block may have, in bytes.
    pub shared_bytes: u32,
    /// Bytes of its second-level cache.
    pub cache_bytes: u32,
}

/// An NVIDIA card.
///
/// Several may be open at once, also on one card: each has a pool, a ledger and queues of its own, and the memory of the
/// others is foreign to it. They share the card's primary context, and so a failure that loses it.
#[derive(Debug)]
pub struct Cuda {
    config: CudaConfig,
    info: Info,
    pool: Pool,
    /// Memory of class `Direct` that is live.
    direct: AtomicU64,
    /// Held while memory is allocated, freed directly or read, so that a reading is of one moment.
    memory: Mutex<()>,
    idle: Mutex<Vec<CudaQueue>>,
    pub(super) modules: Mutex<BTreeMap<String, Module>>,
    _ballast: Option<Ballast>,
    pub(super) shared: Arc<Shared>,
}

/// The memory of a card at one moment.
pub(super) struct Holdings {
    pub(super) free: Bytes,
    total: Bytes,
    /// What the pool and the direct allocations of this device hold.
    pub(super) mine: Bytes,
}

impl Cuda {
    /// Opens a card.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`]; [`Error::Driver`] when the card cannot be used; [`Error::Lost`] when a
    /// context on it failed earlier in this process; [`Error::NoCupti`] where records are wanted;
    /// [`Error::MarginTooLarge`].
    pub fn open(config: CudaConfig) -> Result<Self, Error> {
        use sys::CUdevice_attribute as A;
        let opened = config.ledger.epoch();
        let (ordinal, card) = find(config.which)?;
        let device = card.device;
        let info = Info {
            ordinal,
            name: card.name,
            uuid: card.uuid,
            compute: card.compute,
            multiprocessors: attribute(device, A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_bytes: attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            cache_bytes: attribute(device, A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        };
        let name = format!("cuda:{ordinal}");
        // Before there is a context: of what is made before it, CUPTI may know nothing.
        let recording = config.records.then(|| Recording::start(opened)).transpose()?;
        let context = Context::of(device, &name)?;
        let clock = check("cuEventRecord", Clock::start(opened, &context, recording))?;
        let pool = check("cuMemPoolCreate", Pool::new(&context, config.ledger.threshold))?;
        check("cuMemAllocFromPoolAsync", pool.try_out(clock.stream()))?;
        let ballast = config.ballast.map(|leave| check("cuMemAlloc", Ballast::fill(&context, leave)));
        let ballast = ballast.transpose()?;
        let holdings = check("cuMemGetInfo", holdings(&context, &pool, &AtomicU64::new(0)))?;
        let reading = reading(&config, &context, &holdings);
        // The instant alone: whoever keeps the account must not keep the context.
        let time = move || Nanos::from(opened.elapsed());
        let ledger = Ledger::open(name.clone(), reading, config.ledger.clone(), time)?;
        Ok(Self {
            config,
            info,
            pool,
            direct: AtomicU64::new(0),
            memory: Mutex::new(()),
            idle: Mutex::default(),
            modules: Mutex::default(),
            _ballast: ballast,
            shared: Arc::new(Shared { name, ledger, context, clock }),
        })
    }

    /// Closes the device and opens the same card again in the same way, with empty memory and an account of its own: after it
    /// was poisoned.
    ///
    /// A context that failed is given up and reset for the whole process. Not every driver makes another one then: those seen
    /// so far do not, and the process has to be started again. Nothing of the card or of other processes is harmed.
    ///
    /// # Errors
    /// As [`Cuda::open`]: [`Error::Lost`] also while something else uses a context that failed, such as page-locked memory, a
    /// mark or another open device.
    pub fn reopen(self) -> Result<Self, Error> {
        let config = self.config.clone();
        drop(self);
        Self::open(config)
    }

    /// What the card is.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// What it was opened with.
    #[must_use]
    pub fn config(&self) -> &CudaConfig {
        &self.config
    }

    /// What the driver reports as free of the card, whatever cap or ledger say.
    ///
    /// # Errors
    /// [`Error::Driver`] when it cannot be asked.
    pub fn free_memory(&self) -> Result<Bytes, Error> {
        check("cuMemGetInfo", self.holdings()).map(|holdings| holdings.free)
    }

    /// What the pool holds of the card, and how much of that is in use.
    ///
    /// # Errors
    /// [`Error::Driver`] when it cannot be asked.
    pub fn pool(&self) -> Result<(Bytes, Bytes), Error> {
        let sizes = self.pool.reserved().and_then(|reserved| Ok((reserved, self.pool.used()?)));
        check("cuMemPoolGetAttribute", sizes)
    }

    pub(super) fn holdings(&self) -> Result<Holdings, DriverError> {
        let _one = lock(&self.memory);
        holdings(&self.shared.context, &self.pool, &self.direct)
    }

    fn failed(&self, op: Op, call: &'static str) -> impl Fn(DriverError) -> Error {
        move |error| self.shared.failed(op, call, error)
    }
}

/// Which card `which` is.
fn find(which: Which) -> Result<(u32, Card), Error> {
    let (_, count) = start()?;
    let missing = || Error::NoDevice { asked: which.to_string(), found: count };
    match which {
        Which::Ordinal(ordinal) if ordinal < count => Ok((ordinal, Card::find(ordinal)?)),
        Which::Ordinal(_) => Err(missing()),
        Which::Uuid(uuid) => {
            for ordinal in 0..count {
                let card = Card::find(ordinal)?;
                if card.uuid == uuid {
                    return Ok((ordinal, card));
                }
            }
            Err(missing())
        }
    }
}

fn holdings(context: &Context, pool: &Pool, direct: &AtomicU64) -> Result<Holdings, DriverError> {
    let mut reserved = pool.reserved()?;
    let mut tries = 3;
    loop {
        let (free, total) = context.info()?;
        let again = pool.reserved()?;
        tries -= 1;
        // The pool gives memory back whenever someone synchronises.
        if again == reserved || tries == 0 {
            let mine = again + Bytes::new(direct.load(Ordering::SeqCst));
            return Ok(Holdings { free, total, mine });
        }
        reserved = again;
    }
}

/// What others hold is what is neither free nor the context's nor this device's. On a capped card it is what they take of the
/// part that is left.
fn reading(config: &CudaConfig, context: &Context, holdings: &Holdings) -> Reading {
    let Holdings { free, total, mine } = *holdings;
    let (capacity, context) = match config.cap {
        Some(cap) => (cap.total, cap.context.unwrap_or_else(|| context.bytes())),
        None => (total, context.bytes()),
    };
    Reading { capacity, context, foreign: capacity - context - (free + mine) }
}

impl Device for Cuda {
    type Block = CudaBlock;
    type Queue = CudaQueue;
    type Mark = CudaMark;

    fn name(&self) -> &str {
        &self.shared.name
    }

    fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    fn reading(&self) -> Result<Reading, Error> {
        let holdings = self.holdings().map_err(self.failed(Op::Allocate, "cuMemGetInfo"))?;
        Ok(reading(&self.config, &self.shared.context, &holdings))
    }

    fn queue(&self, track: Track, worker: WorkerId) -> Result<CudaQueue, Error> {
        let reused = {
            let mut idle = lock(&self.idle);
            idle.iter().position(|q| q.track() == track).map(|i| idle.swap_remove(i))
        };
        match reused {
            Some(queue) => {
                queue.lock().worker = worker;
                Ok(queue)
            }
            None => CudaQueue::new(&self.shared, track, worker),
        }
    }

    fn retire(&self, queue: CudaQueue) {
        if !queue.failed() {
            lock(&self.idle).push(queue);
        }
    }

    unsafe fn allocate(
        &self,
        len: Bytes,
        _: Bytes,
        class: Class,
        queue: &CudaQueue,
    ) -> Result<CudaBlock, Error> {
        self.shared.ledger.attempt(Op::Allocate)?;
        let Some(len) = len.to_usize() else {
            return Err(self.failed(Op::Allocate, "cuMemAlloc")(DriverError(
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            )));
        };
        if len == 0 {
            return Ok(CudaBlock { at: 0, len });
        }
        let _one = lock(&self.memory);
        let at = match class {
            Class::Pooled => self
                .pool
                .allocate(len, queue.raw())
                .map_err(self.failed(Op::Allocate, "cuMemAllocFromPoolAsync"))?,
            Class::Direct => {
                let at = allocate_direct(&self.shared.context, len)
                    .map_err(self.failed(Op::Allocate, "cuMemAlloc"))?;
                self.direct.fetch_add(len as u64, Ordering::SeqCst);
                at
            }
        };
        Ok(CudaBlock { at, len })
    }

    unsafe fn free(&self, block: CudaBlock, class: Class, queue: &CudaQueue) {
        if block.is_empty() {
            return;
        }
        let context = &self.shared.context;
        match class {
            Class::Pooled => {
                let freed = context.bind().and_then(|()| {
                    // SAFETY: allocated from the pool; its uses are ordered before the end of the queue, by the caller's
                    // contract.
                    unsafe { result::free_async(block.at, queue.raw()) }
                });
                // What cannot be freed is lost with its context, and that is found out when the queue is drained.
                let _ = freed.map_err(self.failed(Op::Allocate, "cuMemFreeAsync"));
            }
            Class::Direct => {
                // `cuMemFree` may wait for the device, and may not. Failed work is reported when the turn is released.
                let _ = queue.drain();
                let _one = lock(&self.memory);
                // SAFETY: allocated directly; its uses have ended.
                let freed = unsafe { free_direct(context, block.at) };
                let _ = freed.map_err(self.failed(Op::Allocate, "cuMemFree"));
                self.direct.fetch_sub(block.len as u64, Ordering::SeqCst);
            }
        }
    }

    fn record(&self, queue: &CudaQueue) -> Result<CudaMark, Error> {
        self.shared.ledger.attempt(Op::Mark)?;
        queue.mark().map_err(self.failed(Op::Mark, "cuEventRecord"))
    }

    fn wait(&self, queue: &CudaQueue, mark: &CudaMark) -> Result<(), Error> {
        self.shared.ledger.attempt(Op::Mark)?;
        mark.hold(queue).map_err(self.failed(Op::Mark, "cuStreamWaitEvent"))
    }

    fn passed(&self, mark: &CudaMark) -> Result<bool, Error> {
        mark.passed()
    }

    fn synchronise(&self, mark: &CudaMark) -> Result<(), Error> {
        mark.synchronise()
    }

    fn drain(&self, queue: &CudaQueue) -> Result<(), Error> {
        queue.drain()
    }

    fn trim(&self) -> Result<(), Error> {
        self.shared.ledger.healthy()?;
        let _one = lock(&self.memory);
        self.pool.trim().map_err(self.failed(Op::Allocate, "cuMemPoolTrimTo"))
    }

    fn now(&self) -> Nanos {
        self.shared.clock.now()
    }
}
