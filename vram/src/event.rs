//! What a device tells the recorder: spans, waits with their cause, memory levels, refusals, trims.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{Bytes, Class, Nanos, Reading, Refused, WorkerId};

/// Where a span is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Track {
    /// A kernel on a compute lane.
    Compute,
    /// A copy from host to device (H2D).
    Upload,
    /// A copy from device to host (D2H).
    Download,
    /// Work of a worker's own thread: preparation, assembly.
    Host,
    /// A memory call of a worker: allocate, free, trim. It covers idle gaps of cause `alloc`.
    Memory,
    /// From handing work to an idle lane until it starts. It covers idle gaps of cause `launch`.
    Launch,
    /// A worker holds the turn, from grant to release.
    Held,
}

impl Track {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Upload => "upload",
            Self::Download => "download",
            Self::Host => "host",
            Self::Memory => "memory",
            Self::Launch => "launch",
            Self::Held => "held",
        }
    }
}

/// Why a worker stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// For memory to be freed or granted.
    Alloc,
    /// For a copy to end.
    Transfer,
    /// For device work to end.
    Sync,
    /// For its turn.
    Turn,
}

/// An interval of work, `start ≤ end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it is drawn.
    pub track: Track,
    /// Whose work it is.
    pub worker: WorkerId,
    /// What it is: `ntt a`, `msm h`, `upload b`.
    pub name: Cow<'static, str>,
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Bytes moved or asked for; zero where that means nothing.
    pub bytes: Bytes,
}

/// What a profiler's records say of work whose span was timed by events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The span as it was told.
    pub span: Span,
    /// When the first kernel, copy or fill of the work began.
    pub start: Nanos,
    /// When the last one ended.
    pub end: Nanos,
    /// How long they ran, added up.
    pub busy: Nanos,
    /// How many there were.
    pub records: u32,
}

/// Memory of the device at one moment, after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Memory that outlives turns: key points, tables.
    pub resident: Bytes,
    /// Live allocations of class `Direct`.
    pub direct: Bytes,
    /// Live allocations of class `Pooled`.
    pub pooled: Bytes,
    /// Freed to the pool and kept there: `Pooled` requests alone may reuse it.
    pub retained: Bytes,
    /// capacity − context − foreign.
    pub usable: Bytes,
    /// usable − margin, never below zero.
    pub budget: Bytes,
}

impl Level {
    /// All that the account holds: resident + direct + pooled + retained.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.resident + self.direct + self.pooled + self.retained
    }

    /// What may still be granted: budget − used, or zero.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.budget.saturating_sub(self.used())
    }
}

/// What a worker did to the account or its turn. A schedule can be written down from these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It was granted the turn.
    Enter,
    /// It moved on to the computing half of its turn.
    Compute,
    /// It gave the turn back.
    Leave,
    /// Memory was granted.
    Take {
        /// Number of the lease.
        lease: u64,
        /// What it is for.
        label: &'static str,
        /// Its size.
        bytes: Bytes,
        /// How it is allocated.
        class: Class,
        /// Whether it outlives the turn.
        resident: bool,
    },
    /// A lease was given back.
    Give {
        /// Its number.
        lease: u64,
        /// Whether the device had given the memory.
        backed: bool,
    },
    /// It noted what its turn had freed so far, to be waited for.
    Note,
    /// It let turns that stage beside its own have what it had noted.
    PassOn,
    /// It waited for its queues: what they freed is free.
    Drain,
    /// It trimmed the pool.
    Trim,
    /// The device said something new about its memory, at the last turn or trim.
    Read(Reading),
}

/// What the recorder keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Work was done.
    Span(Span),
    /// A worker stood still. Waits of no length are left out, but for the synchronisation that precedes a refusal or a
    /// retry: there each step is an event.
    Wait {
        /// Who waited.
        worker: WorkerId,
        /// For what.
        cause: Cause,
        /// From when.
        start: Nanos,
        /// Until when.
        end: Nanos,
    },
    /// The account changed.
    Level {
        /// When.
        at: Nanos,
        /// What changed: the label of the lease, or `synchronise`, `trim`, `reading`.
        label: Cow<'static, str>,
        /// The account after it.
        level: Level,
    },
    /// A worker changed the account or its turn. Where the level changed, [`Event::Level`] comes right after. Emitted while
    /// the account is locked, so that the order of these is the order of the changes, whatever the clock says.
    Change {
        /// When.
        at: Nanos,
        /// Who; of a reading the last who asked.
        worker: WorkerId,
        /// What.
        change: Change,
    },
    /// A request for memory was refused, after synchronising, trimming and one retry.
    Refusal {
        /// When.
        at: Nanos,
        /// Need, free and holders.
        refused: Arc<Refused>,
    },
    /// The device was synchronised for it and the pool trimmed.
    Trim {
        /// When.
        at: Nanos,
        /// Who asked.
        worker: WorkerId,
        /// Bytes that went back to the device, by the synchronisation and the trim together.
        freed: Bytes,
    },
}

/// Takes events from any thread, in any order of time: device intervals are known only afterwards.
pub trait Sink: Send + Sync {
    /// Keeps or drops one event. Must not block for long, panic, or call back into the device or its ledger: level
    /// events are handed over while the account is locked, so that their order is the order of the changes.
    fn emit(&self, event: Event);
}

/// Drops every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    fn emit(&self, _: Event) {}
}
