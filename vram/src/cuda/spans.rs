//! When work ran: pairs of events around it, resolved once it has ended, against an epoch that both clocks know.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cudarc::driver::{DriverError, result, sys};

use super::context::{Context, Event};
use super::cupti::Recording;
use crate::sync::lock;
use crate::{Bytes, Ledger, Nanos, Span, Track, WorkerId};

/// How old an epoch may be: the driver tells times as 32-bit floats of milliseconds, exact to 0.5 µs for eight seconds.
const OLD: Nanos = Nanos::new(8_000_000_000);

/// How well the two clocks must be known to agree, in nanoseconds. A card that is busy may answer late.
const CLOSE: u64 = 100_000;

/// A moment on the device's clock and on the host's.
#[derive(Debug)]
pub(super) struct Epoch {
    event: Event,
    at: Nanos,
}

/// The clock of an open device: the host's, and the epoch that ties the device's to it.
#[derive(Debug)]
pub(super) struct Clock {
    opened: Instant,
    context: Arc<Context>,
    /// For the events of epochs: no work is ever before them.
    stream: OwnStream,
    epoch: Mutex<Arc<Epoch>>,
    recording: Option<Recording>,
}

impl Clock {
    pub(super) fn start(
        opened: Instant,
        context: &Arc<Context>,
        recording: Option<Recording>,
    ) -> Result<Self, DriverError> {
        let stream = OwnStream::new(context)?;
        let (epoch, _) = tie(opened, context, stream.raw())?;
        let epoch = Mutex::new(Arc::new(epoch));
        Ok(Self { opened, context: Arc::clone(context), stream, epoch, recording })
    }

    /// The records of CUPTI, where they are made.
    pub(super) fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// A stream that no work is on.
    pub(super) fn stream(&self) -> &OwnStream {
        &self.stream
    }

    /// The host's time since the device was opened.
    pub(super) fn now(&self) -> Nanos {
        Nanos::from(self.opened.elapsed())
    }

    /// The epoch for work that is handed over now.
    pub(super) fn epoch(&self) -> Arc<Epoch> {
        let mut epoch = lock(&self.epoch);
        if self.now().since(epoch.at) > OLD
            && let Ok((newer, width)) = tie(self.opened, &self.context, self.stream.raw())
            && width <= CLOSE
        {
            *epoch = Arc::new(newer);
        }
        Arc::clone(&epoch)
    }
}

/// Brackets events by readings of the host's clock and keeps the one that is known best, and how well.
fn tie(opened: Instant, context: &Arc<Context>, stream: sys::CUstream) -> Result<(Epoch, u64), DriverError> {
    let mut best: Option<(Epoch, u64)> = None;
    for _ in 0..5 {
        let event = context.event(true)?;
        let before = Nanos::from(opened.elapsed());
        event.record(stream)?;
        while !event.passed()? {
            std::hint::spin_loop();
        }
        let width = Nanos::from(opened.elapsed()).since(before).get();
        if best.as_ref().is_none_or(|(_, known)| width < *known) {
            best = Some((Epoch { event, at: before + Nanos::new(width / 2) }, width));
        }
    }
    best.ok_or(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY))
}

/// Work between two events of one queue.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) name: Cow<'static, str>,
    pub(super) bytes: Bytes,
    pub(super) worker: WorkerId,
    pub(super) start: Event,
    pub(super) end: Event,
    /// When it was handed over.
    pub(super) handed: Nanos,
    /// Whether nothing was before it then.
    pub(super) idle: bool,
    pub(super) epoch: Arc<Epoch>,
    /// Its number in the records.
    pub(super) work: Option<u64>,
}

impl Pending {
    /// From when to when it ran. It cannot have run before it was handed over, nor after someone saw that it had ended.
    fn times(&self, now: Nanos) -> Result<(Nanos, Nanos), DriverError> {
        let start = self.epoch.at + Nanos::new(self.start.since(&self.epoch.event)?);
        let length = Nanos::new(self.end.since(&self.start)?);
        let start = start.max(self.handed).min(now);
        Ok((start, (start + length).min(now)))
    }
}

/// The work of one queue that has not been told of yet, in order.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pending: VecDeque<Pending>,
    /// When the last one that was told of ended.
    end: Nanos,
}

impl Spans {
    /// Whether all of it has ended.
    pub(super) fn idle(&self) -> bool {
        self.pending.back().is_none_or(|last| last.end.passed().unwrap_or(false))
    }

    pub(super) fn push(&mut self, work: Pending) {
        self.pending.push_back(work);
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// The names of the first few, for saying what failed.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.pending.iter().take(4).map(|work| &*work.name).collect();
        names.join(", ")
    }

    /// Forgets all of it: its times cannot be known.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Tells of all that has ended.
    pub(super) fn tell(&mut self, track: Track, clock: &Clock, ledger: &Ledger) {
        while let Some(work) = self.pending.front() {
            if !work.end.passed().unwrap_or(false) {
                return;
            }
            let times = work.times(clock.now());
            let Some(Pending { name, bytes, worker, handed, idle, work, .. }) = self.pending.pop_front()
            else {
                return;
            };
            let Ok((start, end)) = times else { continue };
            let start = start.max(self.end);
            let end = end.max(start);
            self.end = end;
            let span = Span { track, worker, name, start, end, bytes };
            if let (Some(recording), Some(work)) = (clock.recording(), work) {
                recording.tell(work, &span);
            }
            if idle && start > handed {
                let launch = Span { track: Track::Launch, start: handed, end: start, ..span.clone() };
                ledger.emit(crate::Event::Span(launch));
            }
            ledger.emit(crate::Event::Span(span));
        }
    }
}

/// A stream that waits for no other, destroyed when dropped; work on it still runs.
#[derive(Debug)]
pub(super) struct OwnStream {
    raw: sys::CUstream,
    context: Arc<Context>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for OwnStream {}
// SAFETY: as above.
unsafe impl Sync for OwnStream {}

impl OwnStream {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, DriverError> {
        context.bind()?;
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Self { raw, context: Arc::clone(context) })
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Blocks until all work on it has ended.
    pub(super) fn synchronise(&self) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamSynchronize(self.raw) }.result()
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made by `new`, destroyed once.
            let _ = unsafe { result::stream::destroy(self.raw) };
        }
    }
}
