//! An ordered queue of a simulated card.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, Nanos, Track, WorkerId};

#[derive(Debug)]
pub(super) struct State {
    pub(super) worker: WorkerId,
    /// When all that was enqueued has ended.
    pub(super) end: Nanos,
    /// The first failure. Work is done when it is handed over, so it is known at once.
    pub(super) failure: Option<String>,
}

/// An ordered queue of a [`super::Sim`]; clones are the same queue.
#[derive(Clone)]
pub struct SimQueue {
    track: Track,
    state: Arc<Mutex<State>>,
}

impl SimQueue {
    pub(super) fn new(track: Track, worker: WorkerId, now: Nanos) -> Self {
        Self { track, state: Arc::new(Mutex::new(State { worker, end: now, failure: None })) }
    }

    /// Where its kernels are drawn. Copies are drawn in their direction.
    #[must_use]
    pub fn track(&self) -> Track {
        self.track
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn end(&self) -> Nanos {
        self.lock().end
    }

    /// Fails when work on the queue has failed.
    pub(super) fn healthy(&self) -> Result<(), Error> {
        match &self.lock().failure {
            Some(detail) => Err(Error::Lane { lane: self.track.name(), detail: detail.clone() }),
            None => Ok(()),
        }
    }
}

impl PartialEq for SimQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }
}

impl fmt::Debug for SimQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimQueue").field("track", &self.track).field("end", &self.end()).finish()
    }
}

/// A point in a [`SimQueue`]. Nothing before it has failed: there is no mark on a queue that is known to have.
#[derive(Clone, Copy, Debug)]
pub struct SimMark {
    /// When all work before it has ended.
    pub(super) at: Nanos,
}
