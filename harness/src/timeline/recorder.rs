//! Collects events while a run is under way, and keeps them sorted afterwards.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use prestage_vram::{Event, Level, Nanos, Sink, Span, Track, WorkerId};

/// Keeps every event in memory. One push under a lock per event: tens of nanoseconds, against device work of
/// microseconds and more. [`Timeline::overhead`] says what it came to.
#[derive(Debug, Default)]
pub struct Recorder {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Event>,
    /// The account at the end of the timeline that was taken last.
    level: Option<Level>,
}

impl Recorder {
    /// A recorder with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything since the last call, as a timeline; the recorder goes on empty. What the device held before its
    /// first event carries over.
    #[must_use]
    pub fn take(&self) -> Timeline {
        let mut kept = self.lock();
        let events = std::mem::take(&mut kept.events);
        let mut timeline = Timeline::new(events);
        timeline.before = kept.level;
        kept.level = timeline.memory().last().map(|(_, level)| *level);
        drop(kept);
        timeline.overhead = Nanos::new(cost_of_one().saturating_mul(timeline.events.len() as u64));
        timeline
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Pushing cannot leave the list half-changed, so a panic elsewhere does not spoil it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        // Who did what to the account is for scripts; pictures need the levels alone.
        if !matches!(event, Event::Change { .. }) {
            self.lock().events.push(event);
        }
    }
}

/// What keeping one event costs on this machine, in nanoseconds: the mean over a batch, growth of the list included.
fn cost_of_one() -> u64 {
    const BATCH: u64 = 1024;
    let scratch = Recorder::new();
    let start = Instant::now();
    for at in 0..BATCH {
        let (worker, freed) = (WorkerId(0), prestage_vram::Bytes::ZERO);
        scratch.emit(Event::Trim { at: Nanos::new(at), worker, freed });
    }
    Nanos::from(start.elapsed()).get().div_ceil(BATCH)
}

/// The events of one run in order of time; events of the same moment in the order in which they were emitted.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    events: Vec<Event>,
    before: Option<Level>,
    /// An earlier beginning than that of the first event.
    from: Option<Nanos>,
    overhead: Nanos,
}

/// When an event began.
pub(super) fn began(event: &Event) -> Nanos {
    match event {
        Event::Span(span) => span.start,
        Event::Wait { start, .. } => *start,
        Event::Level { at, .. } | Event::Refusal { at, .. } | Event::Trim { at, .. } => *at,
        _ => Nanos::ZERO,
    }
}

impl Timeline {
    /// Sorts the events. An interval that ends before it begins is a fault of a clock and counts as empty.
    #[must_use]
    pub fn new(events: Vec<Event>) -> Self {
        let mut timeline = Self::default();
        timeline.replace(events);
        timeline
    }

    /// The same run by other events.
    pub(super) fn replace(&mut self, mut events: Vec<Event>) {
        for event in &mut events {
            match event {
                Event::Span(span) => span.end = span.end.max(span.start),
                Event::Wait { start, end, .. } => *end = (*end).max(*start),
                _ => {}
            }
        }
        events.sort_by_key(began);
        self.events = events;
    }

    /// The same timeline as one that began at `first`, if that is earlier than it did: so that timelines of devices with one
    /// clock have one beginning. One in which nothing has a length stays empty.
    #[must_use]
    pub fn from(self, first: Nanos) -> Self {
        Self { from: Some(first), ..self }
    }

    /// All events, sorted.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What recording these events cost, all threads together: their number times the cost of keeping one.
    #[must_use]
    pub fn overhead(&self) -> Nanos {
        self.overhead
    }

    /// All spans, by their start.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.events.iter().filter_map(|event| match event {
            Event::Span(span) => Some(span),
            _ => None,
        })
    }

    /// The spans of one track, by their start.
    pub fn on(&self, track: Track) -> impl Iterator<Item = &Span> {
        self.spans().filter(move |span| span.track == track)
    }

    /// `[first, last]`: from the earliest start to the latest end of any span or wait, host work before and after
    /// the device's included. Memory levels, refusals and trims are moments inside the run and do not extend it.
    /// `(0, 0)` where nothing has a length.
    #[must_use]
    pub fn extent(&self) -> (Nanos, Nanos) {
        let mut extent: Option<(Nanos, Nanos)> = None;
        for event in &self.events {
            let (start, end) = match event {
                Event::Span(span) => (span.start, span.end),
                Event::Wait { start, end, .. } => (*start, *end),
                _ => continue,
            };
            let (first, last) = extent.get_or_insert((start, end));
            (*first, *last) = ((*first).min(start), (*last).max(end));
        }
        let (first, last) = extent.unwrap_or_default();
        let from = self.from.filter(|_| first != last);
        (from.map_or(first, |from| from.min(first)), last)
    }

    /// What happened from `from` to `to`: spans and waits are cut there, for a look at the steady state alone.
    #[must_use]
    pub fn between(&self, from: Nanos, to: Nanos) -> Self {
        let inside = |start: Nanos, end: Nanos| start < to && end > from;
        let cut = |event: &Event| match event {
            Event::Span(span) if inside(span.start, span.end) => {
                Some(Event::Span(Span { start: span.start.max(from), end: span.end.min(to), ..span.clone() }))
            }
            Event::Wait { worker, cause, start, end } if inside(*start, *end) => {
                let (start, end) = ((*start).max(from), (*end).min(to));
                Some(Event::Wait { worker: *worker, cause: *cause, start, end })
            }
            Event::Span(_) | Event::Wait { .. } => None,
            other => (from..to).contains(&began(other)).then(|| other.clone()),
        };
        let level = self.memory().into_iter().take_while(|(at, _)| *at < from).last().map(|(_, level)| level);
        Self { before: level, ..Self::new(self.events.iter().filter_map(cut).collect()) }
    }

    /// The workers that did host work, waited or held the turn.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerId> {
        let workers: BTreeSet<WorkerId> = self
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Span(span) => Some(span.worker),
                Event::Wait { worker, .. } => Some(*worker),
                _ => None,
            })
            .collect();
        workers.into_iter().collect()
    }

    /// The account after each change, the state before the first event included where it is known.
    #[must_use]
    pub fn memory(&self) -> Vec<(Nanos, Level)> {
        let before = self.before.map(|level| (self.extent().0, level));
        let changes = self.events.iter().filter_map(|event| match event {
            Event::Level { at, level, .. } => Some((*at, *level)),
            _ => None,
        });
        before.into_iter().chain(changes).collect()
    }
}
