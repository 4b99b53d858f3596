//! When the card was idle, and why: every idle nanosecond gets exactly one cause.
//!
//! Idle is the complement of the union of compute spans over [`Timeline::extent`]. Each gap is cut wherever an event
//! begins or ends, and each piece takes the first [`IdleCause`] that a recorded event of its kind covers, in the
//! order of [`IdleCause::ALL`]. All of it in integer nanoseconds, so that busy + all causes = wall exactly.
//! One sweep over the sorted boundaries: n·log n for n events.

use prestage_vram::{Cause, Event, Nanos, Track};
use serde::{Deserialize, Serialize};

use super::Timeline;

/// Launches that take this long or longer explain nothing: something else was slow.
pub const LAUNCH_LIMIT: Nanos = Nanos::new(20_000);

/// Why the card was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IdleCause {
    /// A worker was in a memory call or waited for memory.
    Alloc,
    /// A copy was under way, or a worker waited for one.
    Transfer,
    /// A worker waited for device work to end.
    Sync,
    /// A worker computed on the host.
    Host,
    /// A worker waited for its turn, and nobody did anything of the above.
    Turn,
    /// Work was handed to an idle lane and had not started yet: a launch shorter than [`LAUNCH_LIMIT`].
    Launch,
    /// No recorded event explains it.
    Unattributed,
}

impl IdleCause {
    /// In the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Alloc, Self::Transfer, Self::Sync, Self::Host, Self::Turn, Self::Launch, Self::Unattributed];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::Transfer => "transfer",
            Self::Sync => "sync",
            Self::Host => "host",
            Self::Turn => "turn",
            Self::Launch => "launch",
            Self::Unattributed => "unattributed",
        }
    }

    /// What the device waited for, in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Alloc => "memory was allocated, freed or waited for",
            Self::Transfer => "data was on its way to or from the device",
            Self::Sync => "the host waited for results before handing over more work",
            Self::Host => "the host computed and nothing was queued for the device",
            Self::Turn => "the next worker waited for its turn",
            Self::Launch => "work was handed over and had not started yet",
            Self::Unattributed => "no recorded event explains it",
        }
    }
}

/// Nanoseconds per cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByCause {
    /// See [`IdleCause::Alloc`].
    pub alloc: u64,
    /// See [`IdleCause::Transfer`].
    pub transfer: u64,
    /// See [`IdleCause::Sync`].
    pub sync: u64,
    /// See [`IdleCause::Host`].
    pub host: u64,
    /// See [`IdleCause::Turn`].
    pub turn: u64,
    /// See [`IdleCause::Launch`].
    pub launch: u64,
    /// See [`IdleCause::Unattributed`].
    pub unattributed: u64,
}

impl ByCause {
    /// The time of one cause.
    #[must_use]
    pub const fn get(&self, cause: IdleCause) -> Nanos {
        Nanos::new(match cause {
            IdleCause::Alloc => self.alloc,
            IdleCause::Transfer => self.transfer,
            IdleCause::Sync => self.sync,
            IdleCause::Host => self.host,
            IdleCause::Turn => self.turn,
            IdleCause::Launch => self.launch,
            IdleCause::Unattributed => self.unattributed,
        })
    }

    pub(super) fn add(&mut self, cause: IdleCause, time: Nanos) {
        *match cause {
            IdleCause::Alloc => &mut self.alloc,
            IdleCause::Transfer => &mut self.transfer,
            IdleCause::Sync => &mut self.sync,
            IdleCause::Host => &mut self.host,
            IdleCause::Turn => &mut self.turn,
            IdleCause::Launch => &mut self.launch,
            IdleCause::Unattributed => &mut self.unattributed,
        } += time.get();
    }

    /// Each cause with its time, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = (IdleCause, Nanos)> + '_ {
        IdleCause::ALL.into_iter().map(|cause| (cause, self.get(cause)))
    }

    /// All causes together.
    #[must_use]
    pub fn total(&self) -> Nanos {
        self.iter().map(|(_, time)| time).sum()
    }

    /// The cause with the most time, the earlier one of equals; `None` where there is no time.
    #[must_use]
    pub fn main(&self) -> Option<IdleCause> {
        let some = self.iter().filter(|(_, time)| *time > Nanos::ZERO);
        some.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(cause, _)| cause)
    }
}

/// A part of a gap with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it began.
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Why the card was idle.
    pub cause: IdleCause,
}

/// A maximal interval in which nothing computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its parts in order, each of some length, neighbours of different causes, without holes. Never empty.
    pub pieces: Vec<Piece>,
}

impl Gap {
    /// When the card fell idle.
    #[must_use]
    pub fn start(&self) -> Nanos {
        self.pieces.first().map_or(Nanos::ZERO, |piece| piece.start)
    }

    /// When it computed again.
    #[must_use]
    pub fn end(&self) -> Nanos {
        self.pieces.last().map_or(Nanos::ZERO, |piece| piece.end)
    }

    /// How long that was.
    #[must_use]
    pub fn len(&self) -> Nanos {
        self.end().since(self.start())
    }

    /// Always false: a gap has a length.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Its time by cause.
    #[must_use]
    pub fn by_cause(&self) -> ByCause {
        let mut by = ByCause::default();
        for piece in &self.pieces {
            by.add(piece.cause, piece.end.since(piece.start));
        }
        by
    }
}

/// The idle analysis of one timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The earliest moment of the run.
    pub first: Nanos,
    /// The latest moment of the run.
    pub last: Nanos,
    /// Time in which at least one compute span was running.
    pub busy: Nanos,
    /// Time in which somebody held the turn.
    pub held: Nanos,
    /// Idle time by cause.
    pub by_cause: ByCause,
    /// Every gap, in order of time.
    pub gaps: Vec<Gap>,
}

impl Idle {
    /// last − first = busy + all causes.
    #[must_use]
    pub fn wall(&self) -> Nanos {
        self.last.since(self.first)
    }
}

/// Slots of the sweep: the causes that an event can cover come first, in the order of [`IdleCause::ALL`].
const COMPUTE: usize = 6;
const HELD: usize = 7;

/// What an event covers, from when to when.
fn cover(event: &Event) -> Option<(usize, Nanos, Nanos)> {
    match event {
        Event::Span(span) => {
            let slot = match span.track {
                Track::Memory => 0,
                Track::Upload | Track::Download => 1,
                Track::Host => 3,
                Track::Launch if span.end.since(span.start) < LAUNCH_LIMIT => 5,
                Track::Compute => COMPUTE,
                Track::Held => HELD,
                _ => return None,
            };
            Some((slot, span.start, span.end))
        }
        Event::Wait { cause, start, end, .. } => {
            let slot = match cause {
                Cause::Alloc => 0,
                Cause::Transfer => 1,
                Cause::Sync => 2,
                Cause::Turn => 4,
                _ => return None,
            };
            Some((slot, *start, *end))
        }
        _ => None,
    }
}

impl Timeline {
    /// When the card was idle, and why.
    #[must_use]
    pub fn idle(&self) -> Idle {
        let (first, last) = self.extent();
        let mut idle = Idle { first, last, ..Idle::default() };
        let mut edges: Vec<(Nanos, usize, bool)> = Vec::with_capacity(2 * self.events().len());
        for (slot, start, end) in self.events().iter().filter_map(cover) {
            edges.push((start, slot, true));
            edges.push((end, slot, false));
        }
        // The last edge closes whatever no event covers.
        edges.push((last, HELD, true));
        edges.sort_unstable_by_key(|(at, _, _)| *at);
        let mut open = [0i64; 8];
        let mut from = first;
        for (at, slot, opens) in edges {
            if at > from {
                idle.step(from, at, &open);
                from = at;
            }
            open[slot] += if opens { 1 } else { -1 };
        }
        idle
    }
}

impl Idle {
    /// Accounts for `[from, to)`, in which the number of open events per slot does not change.
    fn step(&mut self, from: Nanos, to: Nanos, open: &[i64; 8]) {
        let time = to.since(from);
        if open[HELD] > 0 {
            self.held = self.held + time;
        }
        if open[COMPUTE] > 0 {
            self.busy = self.busy + time;
            return;
        }
        let covered = open[..COMPUTE].iter().position(|n| *n > 0);
        let cause = covered.map_or(IdleCause::Unattributed, |slot| IdleCause::ALL[slot]);
        self.by_cause.add(cause, time);
        match self.gaps.last_mut().filter(|gap| gap.end() == from) {
            Some(gap) => match gap.pieces.last_mut().filter(|piece| piece.cause == cause) {
                Some(piece) => piece.end = to,
                None => gap.pieces.push(Piece { start: from, end: to, cause }),
            },
            None => self.gaps.push(Gap { pieces: vec![Piece { start: from, end: to, cause }] }),
        }
    }
}
