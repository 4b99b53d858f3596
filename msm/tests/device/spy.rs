//! The CPU as a device that writes down what it is asked for: every batch, and every mark that the host waits for.

use prestage_msm::{Affine, Batch, Msm, Place, Plan, Queues};
use prestage_transfer::{HostRange, Pages, Registration, Transfer};
use prestage_vram::{
    Bytes, Class, Device, Error, Host, HostBlock, HostConfig, HostMark, HostQueue, Ledger, Reading, Track,
    WorkerId,
};
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Mutex;

/// What happened, in order. Batches and downloads are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Batch(usize),
    /// The host blocked until this download had ended.
    Waited(usize),
}

/// A mark, and how many copies out had been enqueued on its queue.
#[derive(Clone, Debug)]
pub(crate) struct SpyMark {
    mark: HostMark,
    downloads: usize,
    download: bool,
}

#[derive(Debug)]
pub(crate) struct Spy {
    host: Host,
    log: Mutex<(Vec<Step>, usize, usize)>,
}

impl Spy {
    pub(crate) fn open() -> Self {
        Self { host: Host::open(HostConfig::default()).unwrap(), log: Mutex::default() }
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.log.lock().unwrap().0.clone()
    }
}

impl Device for Spy {
    type Block = HostBlock;
    type Queue = HostQueue;
    type Mark = SpyMark;

    fn name(&self) -> &str {
        "spy"
    }

    fn ledger(&self) -> &Ledger {
        self.host.ledger()
    }

    fn reading(&self) -> Result<Reading, Error> {
        self.host.reading()
    }

    fn queue(&self, track: Track, worker: WorkerId) -> Result<HostQueue, Error> {
        self.host.queue(track, worker)
    }

    fn retire(&self, queue: HostQueue) {
        self.host.retire(queue);
    }

    unsafe fn allocate(
        &self,
        len: Bytes,
        charge: Bytes,
        class: Class,
        queue: &HostQueue,
    ) -> Result<HostBlock, Error> {
        // SAFETY: the same contract.
        unsafe { self.host.allocate(len, charge, class, queue) }
    }

    unsafe fn free(&self, block: HostBlock, class: Class, queue: &HostQueue) {
        // SAFETY: the same contract.
        unsafe { self.host.free(block, class, queue) }
    }

    fn record(&self, queue: &HostQueue) -> Result<SpyMark, Error> {
        let mark = self.host.record(queue)?;
        let downloads = self.log.lock().unwrap().2;
        Ok(SpyMark { mark, downloads, download: queue.track() == Track::Download })
    }

    fn wait(&self, queue: &HostQueue, mark: &SpyMark) -> Result<(), Error> {
        self.host.wait(queue, &mark.mark)
    }

    fn passed(&self, mark: &SpyMark) -> Result<bool, Error> {
        self.host.passed(&mark.mark)
    }

    fn synchronise(&self, mark: &SpyMark) -> Result<(), Error> {
        if mark.download {
            self.log.lock().unwrap().0.push(Step::Waited(mark.downloads - 1));
        }
        self.host.synchronise(&mark.mark)
    }

    fn drain(&self, queue: &HostQueue) -> Result<(), Error> {
        self.host.drain(queue)
    }

    fn trim(&self) -> Result<(), Error> {
        self.host.trim()
    }
}

impl Transfer for Spy {
    unsafe fn copy_in(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &HostBlock,
        at: usize,
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { self.host.copy_in(queue, name, from, to, at) }
    }

    unsafe fn copy_out(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: &HostBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        self.log.lock().unwrap().2 += 1;
        // SAFETY: the same contract.
        unsafe { self.host.copy_out(queue, name, from, at, to) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        self.host.pin(len)
    }

    unsafe fn register(&self, at: NonNull<u8>, len: usize) -> Result<Registration, Error> {
        // SAFETY: the same contract.
        unsafe { self.host.register(at, len) }
    }
}

// SAFETY: the host's own work.
unsafe impl Msm for Spy {
    type Carried = ();

    fn plan(&self, len: usize) -> Plan {
        self.host.plan(len)
    }

    fn scratch<A: Affine>(&self, plan: &Plan, bases: Place) -> Bytes {
        self.host.scratch::<A>(plan, bases)
    }

    unsafe fn enqueue<A: Affine>(
        &self,
        queues: Queues<'_, HostQueue>,
        batch: Batch<'_, A, HostBlock>,
        carried: &mut (),
    ) -> Result<(), Error> {
        let mut log = self.log.lock().unwrap();
        let index = log.1;
        log.0.push(Step::Batch(index));
        log.1 += 1;
        drop(log);
        // SAFETY: the same contract.
        unsafe { self.host.enqueue(queues, batch, carried) }
    }
}
