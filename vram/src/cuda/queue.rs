//! Ordered queues of a card, and points in them: streams and events.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::{DriverError, sys};

use super::context::Event;
use super::device::Shared;
use super::spans::{OwnStream, Spans};
use crate::sync::lock;
use crate::{Error, Op, Track, WorkerId};

/// An ordered queue of a [`super::Cuda`], a stream; clones are the same queue.
#[derive(Clone)]
pub struct CudaQueue(Arc<Inner>);

struct Inner {
    stream: OwnStream,
    track: Track,
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) worker: WorkerId,
    pub(super) spans: Spans,
    failed: bool,
}

impl CudaQueue {
    pub(super) fn new(shared: &Arc<Shared>, track: Track, worker: WorkerId) -> Result<Self, Error> {
        let stream =
            OwnStream::new(&shared.context).map_err(|e| shared.failed(Op::Lane, "cuStreamCreate", e))?;
        let state = Mutex::new(State { worker, ..State::default() });
        Ok(Self(Arc::new(Inner { stream, track, shared: Arc::clone(shared), state })))
    }

    /// Where its spans are drawn.
    #[must_use]
    pub fn track(&self) -> Track {
        self.0.track
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.0.stream.raw()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    pub(super) fn failed(&self) -> bool {
        self.lock().failed
    }

    /// A mark at the end of what is enqueued now.
    pub(super) fn mark(&self) -> Result<CudaMark, DriverError> {
        let event = self.0.shared.context.event(false)?;
        event.record(self.raw())?;
        Ok(CudaMark { event: Arc::new(event), queue: self.clone() })
    }

    /// Blocks until all work has ended, and tells of it.
    pub(super) fn drain(&self) -> Result<(), Error> {
        let shared = &self.0.shared;
        let ended = self.0.stream.synchronise();
        let ended = ended.map_err(|error| self.late("cuStreamSynchronize", error));
        if ended.is_ok() {
            self.lock().spans.tell(self.0.track, &shared.clock, &shared.ledger);
        }
        ended
    }

    /// The failure of work that was handed over earlier.
    pub(super) fn late(&self, call: &'static str, error: DriverError) -> Error {
        let mut state = self.lock();
        let names = state.spans.names();
        state.failed = true;
        state.spans.clear();
        drop(state);
        self.0.shared.late(self.0.track, call, error, &names)
    }
}

impl PartialEq for CudaQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for CudaQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaQueue").field("track", &self.0.track).finish_non_exhaustive()
    }
}

/// A point in a [`CudaQueue`], an event.
#[derive(Clone, Debug)]
pub struct CudaMark {
    event: Arc<Event>,
    queue: CudaQueue,
}

impl CudaMark {
    pub(super) fn hold(&self, queue: &CudaQueue) -> Result<(), DriverError> {
        self.event.hold(queue.raw())
    }

    pub(super) fn passed(&self) -> Result<bool, Error> {
        self.event.passed().map_err(|error| self.queue.late("cuEventQuery", error))
    }

    pub(super) fn synchronise(&self) -> Result<(), Error> {
        self.event.synchronise().map_err(|error| self.queue.late("cuEventSynchronize", error))
    }
}
