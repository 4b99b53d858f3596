//! An ordered queue of jobs on a thread of its own.

use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use crate::{Bytes, Error, Event, Ledger, Nanos, Op, Span, Track, WorkerId};

struct Job {
    span: Option<(Cow<'static, str>, Bytes)>,
    worker: WorkerId,
    /// When it was handed over, where the queue was idle then.
    handed: Option<Nanos>,
    run: Run,
}

/// What a job does; its error is the failure of the queue.
type Run = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// Work that went wrong: which job of the queue, and its words.
#[derive(Clone)]
struct Failure {
    at: u64,
    detail: String,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    worker: WorkerId,
    submitted: u64,
    completed: u64,
    /// The first failure. What was enqueued before it is good.
    failure: Option<Failure>,
    running: bool,
    closed: bool,
}

struct Inner {
    track: Track,
    ledger: Ledger,
    state: Mutex<State>,
    changed: Condvar,
    /// The thread that runs the jobs.
    thread: OnceLock<ThreadId>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the thread when the last handle is gone; jobs that were handed over still run.
struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

/// An ordered queue of jobs of the [`crate::Host`]; clones are the same queue.
#[derive(Clone)]
pub struct HostQueue(Arc<Handle>);

impl HostQueue {
    pub(super) fn start(track: Track, worker: WorkerId, ledger: Ledger) -> Result<Self, Error> {
        let inner = Arc::new(Inner {
            track,
            ledger,
            state: Mutex::new(State { worker, ..State::default() }),
            changed: Condvar::new(),
            thread: OnceLock::new(),
        });
        let shared = Arc::clone(&inner);
        std::thread::Builder::new()
            .name(format!("{track:?}").to_lowercase())
            .spawn(move || serve(&shared))
            .map_err(|e| Error::Device { op: Op::Lane, device: "host".into(), detail: e.to_string() })?;
        Ok(Self(Arc::new(Handle(inner))))
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.0.0
    }

    /// Where its spans are drawn.
    #[must_use]
    pub fn track(&self) -> Track {
        self.inner().track
    }

    pub(super) fn assign(&self, worker: WorkerId) {
        self.inner().lock().worker = worker;
    }

    pub(super) fn push(&self, span: Option<(Cow<'static, str>, Bytes)>, run: Run) {
        let inner = self.inner();
        let mut state = inner.lock();
        let worker = state.worker;
        let idle = !state.running && state.jobs.is_empty();
        let handed = (idle && span.is_some()).then(|| inner.ledger.now());
        state.submitted += 1;
        state.jobs.push_back(Job { span, worker, handed, run });
        drop(state);
        inner.changed.notify_all();
    }

    pub(super) fn mark(&self) -> HostMark {
        HostMark { inner: Arc::clone(self.inner()), at: self.inner().lock().submitted }
    }

    /// True on the thread that runs this queue's jobs. A job that waited for its own queue would wait for ever.
    pub(super) fn is_current(&self) -> bool {
        self.inner().thread.get() == Some(&std::thread::current().id())
    }

    pub(super) fn failed(&self) -> bool {
        self.inner().lock().failure.is_some()
    }
}

impl PartialEq for HostQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for HostQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostQueue").field("track", &self.track()).finish_non_exhaustive()
    }
}

/// A point in a [`HostQueue`].
#[derive(Clone)]
pub struct HostMark {
    inner: Arc<Inner>,
    at: u64,
}

impl HostMark {
    pub(super) fn passed(&self) -> bool {
        self.inner.lock().completed >= self.at
    }

    pub(super) fn block(&self) {
        let mut state = self.inner.lock();
        while state.completed < self.at {
            state = self.inner.wait(state);
        }
    }

    /// Fails when work before the mark is known to have failed.
    pub(super) fn failure(&self) -> Result<(), Error> {
        match &self.inner.lock().failure {
            Some(failure) if failure.at <= self.at => {
                Err(Error::Lane { lane: self.inner.track.name(), detail: failure.detail.clone() })
            }
            _ => Ok(()),
        }
    }

    /// What a waiting queue does: blocks until the mark has passed, and fails as the work before it did.
    pub(super) fn follow(&self) -> Result<(), String> {
        self.block();
        self.failure().map_err(|error| error.to_string())
    }
}

impl fmt::Debug for HostMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostMark")
            .field("track", &self.inner.track)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

/// Runs jobs in order until the queue is closed and empty. After a failure the later jobs still run if they only free or
/// wait, so that nothing leaks and nobody waits for ever; work is skipped.
fn serve(inner: &Inner) {
    let _ = inner.thread.set(std::thread::current().id());
    loop {
        let mut state = inner.lock();
        let job = loop {
            if let Some(job) = state.jobs.pop_front() {
                break job;
            }
            if state.closed {
                return;
            }
            state = inner.wait(state);
        };
        let failed = state.failure.is_some();
        state.running = true;
        drop(state);
        // Nothing that a job or its destructors do may end this thread: someone waits for the count below.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(inner, job, failed)))
            .unwrap_or_else(|panic| Err(words_of(panic.as_ref())));
        let mut state = inner.lock();
        state.running = false;
        state.completed += 1;
        if let Err(detail) = outcome {
            let at = state.completed;
            state.failure.get_or_insert(Failure { at, detail });
        }
        drop(state);
        inner.changed.notify_all();
    }
}

fn run(inner: &Inner, job: Job, failed: bool) -> Result<(), String> {
    let Job { span, worker, handed, run } = job;
    let Some((name, bytes)) = span else { return run() };
    if failed {
        return Ok(());
    }
    let ledger = &inner.ledger;
    let start = ledger.now();
    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(words_of(panic.as_ref())));
    let span = Span { track: inner.track, worker, name, start, end: ledger.now(), bytes };
    if let Some(handed) = handed {
        let (track, end) = (Track::Launch, span.start);
        ledger.emit(Event::Span(Span { track, start: handed, end, ..span.clone() }));
    }
    ledger.emit(Event::Span(span));
    outcome
}

pub(crate) fn words_of(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a job panicked".to_owned())
}
