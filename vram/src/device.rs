//! What a device must do, in raw operations. Everything typed is built on these.

use std::fmt::Debug;

use crate::{Bytes, Class, Error, Ledger, Nanos, Reading, Track, Turn, Worker, WorkerId};

/// Something with memory and ordered queues of work: [`crate::Host`], a simulated card, an NVIDIA card.
///
/// Implementors give raw operations and a [`Ledger`]; users call [`Device::turn`] and work through the [`Turn`].
/// Every raw operation that can fail first asks [`Ledger::attempt`], so that faults can be injected on any device and a
/// poisoned one fails fast. [`mod@crate::conformance`] states the contract as tests that every device must pass.
///
/// What a device promises:
///
/// - **Order.** Work on one queue runs in the order in which it was enqueued. Two queues know nothing of each other but
///   what [`Device::wait`] says.
/// - **Failure travels.** Work that comes after failed work, on its queue or behind a mark of it, does not run: it could
///   read memory that was never written. Frees and marks still happen, so nothing leaks and nobody waits for ever. Once
///   [`Device::drain`] has reported the failure the queue is not reused.
/// - **Ending always works.** `free`, `drain` and `retire` succeed on a failed or poisoned device.
/// - **No hidden memory.** Whatever a device keeps for itself is in [`Reading::context`].
pub trait Device: Send + Sync + Sized + 'static {
    /// A raw block of device memory. Dropping it without [`Device::free`] leaks it.
    type Block: Send + Sync + Debug;
    /// A raw ordered queue of work; clones are the same queue.
    type Queue: Clone + PartialEq + Send + Sync + Debug;
    /// A point in a queue.
    type Mark: Clone + Send + Sync + Debug;

    /// The device's name: `host`, `cuda:0`.
    fn name(&self) -> &str;

    /// The account of this device's memory.
    fn ledger(&self) -> &Ledger;

    /// What the device says about its memory now.
    ///
    /// # Errors
    /// [`Error::Device`] when it cannot be asked.
    fn reading(&self) -> Result<Reading, Error>;

    /// Time since the device was opened, as the calling worker sees it.
    fn now(&self) -> Nanos {
        self.ledger().now()
    }

    /// How many elements of the full size one element in this process stands for: 1, but for a simulated card.
    fn scale(&self) -> u64 {
        1
    }

    /// What an allocation of `real` bytes is accounted for. A caller that knows better than [`Device::scale`] what it
    /// would take at full size (scratch, tables) says so in `stated`; only simulated cards listen.
    fn charge(&self, real: Bytes, stated: Option<Bytes>) -> Bytes {
        let _ = stated;
        real
    }

    /// Says that the calling worker's own work, done just now, would take `time` at full size. Nothing on a real device,
    /// where it has taken what it took.
    fn elapse(&self, time: Nanos) {
        let _ = time;
    }

    /// An ordered queue whose work is drawn on `track` for `worker`; an idle one is reused.
    ///
    /// # Errors
    /// [`Error::Device`] when none can be made.
    fn queue(&self, track: Track, worker: WorkerId) -> Result<Self::Queue, Error>;

    /// Takes back a queue that [`Device::queue`] gave, to give it out again unless its work failed. All work on it has
    /// ended. Buffers whose home it was may still name it.
    fn retire(&self, queue: Self::Queue);

    /// Allocates `len` bytes, in the order of `queue` where the class is `Pooled`. They are accounted for as `charge`, which
    /// is what [`Device::charge`] said.
    ///
    /// # Safety
    /// A lease for `charge` must be held for as long as the block lives. The contents are not initialised.
    ///
    /// # Errors
    /// [`Error::Device`] when the device refuses.
    unsafe fn allocate(
        &self,
        len: Bytes,
        charge: Bytes,
        class: Class,
        queue: &Self::Queue,
    ) -> Result<Self::Block, Error>;

    /// Frees a block after all work enqueued on `queue` so far. For class `Direct` it blocks until that has happened; for
    /// `Pooled` it only enqueues.
    ///
    /// # Safety
    /// The block came from [`Device::allocate`] of this device with the same class; work on other queues that
    /// uses it has ended or is waited for by `queue`.
    unsafe fn free(&self, block: Self::Block, class: Class, queue: &Self::Queue);

    /// A mark at the end of what is enqueued now.
    ///
    /// # Errors
    /// [`Error::Device`]; [`Error::Lane`] when work on the queue is known to have failed.
    fn record(&self, queue: &Self::Queue) -> Result<Self::Mark, Error>;

    /// Makes `queue` wait for `mark`; the host does not wait.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn wait(&self, queue: &Self::Queue, mark: &Self::Mark) -> Result<(), Error>;

    /// True when all work before the mark has ended.
    ///
    /// # Errors
    /// [`Error::Lane`] when that work failed.
    fn passed(&self, mark: &Self::Mark) -> Result<bool, Error>;

    /// Blocks the caller until all work before the mark has ended.
    ///
    /// # Errors
    /// [`Error::Lane`] when that work failed.
    fn synchronise(&self, mark: &Self::Mark) -> Result<(), Error>;

    /// Blocks the caller until all work on the queue has ended, frees included. Unlike [`Device::record`] it has no way to fail before
    /// that, so that a turn can always be ended safely.
    ///
    /// # Errors
    /// [`Error::Lane`] when that work failed.
    fn drain(&self, queue: &Self::Queue) -> Result<(), Error>;

    /// Gives what the pool retains back to the device. Callers synchronise first: a pool gives back only what has
    /// been freed in fact.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn trim(&self) -> Result<(), Error>;

    /// Blocks the calling thread until `ready` says so, or the device has failed for good. `ready` is asked again after every
    /// change of the ledger.
    fn block(&self, ready: &mut dyn FnMut() -> bool) {
        self.ledger().wait_until(ready);
    }

    /// Waits in line for the turn and takes it. First come, first served; the wait is recorded.
    ///
    /// Borrowing the worker mutably is what keeps one worker from taking two turns:
    ///
    /// ```compile_fail,E0499
    /// # use prestage_vram::{Device, Host, HostConfig, Worker};
    /// let host = Host::open(HostConfig::default()).unwrap();
    /// let mut worker = Worker::new(0);
    /// let first = host.turn(&mut worker).unwrap();
    /// let second = host.turn(&mut worker).unwrap();
    /// drop(first);
    /// ```
    ///
    /// # Errors
    /// [`Error::Poisoned`] on a device that failed for good, [`Error::Device`] when its memory cannot be read.
    fn turn<'d>(&'d self, worker: &'d mut Worker) -> Result<Turn<'d, Self>, Error> {
        Turn::take(self, worker)
    }
}
