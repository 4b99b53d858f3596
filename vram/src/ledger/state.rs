//! The numbers behind the lock, and the rule of admission on them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Class, Reading, WorkerId};
use crate::{Bytes, Holding, Level, Refused};

/// A place in the line for the turn. Turns are as old as their tickets are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(pub(super) u64);

/// A request for memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// What it is for.
    pub(crate) label: &'static str,
    /// How much, as it is accounted for.
    pub(crate) bytes: Bytes,
    /// How much memory of this process stands for it.
    pub(crate) real: Bytes,
    /// How it will be allocated.
    pub(crate) class: Class,
    /// In which phase.
    pub(crate) phase: &'static str,
    /// Whether it outlives the turn.
    pub(crate) resident: bool,
    /// Who asks.
    pub(crate) worker: WorkerId,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) holding: Holding,
    pub(super) ticket: Ticket,
}

#[derive(Debug, Default)]
pub(super) struct TurnState {
    pub(super) worker: WorkerId,
    /// Bytes that this turn holds, resident memory left out.
    pub(super) live: Bytes,
    /// What its plan may hold at most from here on.
    pub(super) promise: Bytes,
    /// Highest `live` per phase, in the order in which the phases began.
    pub(super) peaks: Vec<(&'static str, Bytes)>,
}

impl TurnState {
    pub(super) fn reach(&mut self, phase: &'static str) {
        let live = self.live;
        match self.peaks.iter_mut().find(|(p, _)| *p == phase) {
            Some((_, peak)) => *peak = (*peak).max(live),
            None => self.peaks.push((phase, live)),
        }
    }
}

/// The answer to a request that stands in line for memory.
pub(super) enum Verdict {
    /// It fits now.
    Grant,
    /// It fits once the pool has been trimmed.
    Trim,
    /// Older turns may free enough.
    Wait,
    /// Nothing that is waited for would make it fit.
    Refuse,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) reading: Reading,
    pub(super) margin: Bytes,
    pub(super) resident: Bytes,
    /// The part of `resident` that lives in the pool.
    pub(super) resident_pooled: Bytes,
    pub(super) direct: Bytes,
    pub(super) pooled: Bytes,
    pub(super) retained: Bytes,
    /// The part of `retained` whose frees may not have executed yet. Only the oldest turn has any: the frees of
    /// turns that stage ahead of their time and of resident memory are waited for (`Lease::settles`).
    pub(super) pending: Bytes,
    /// The part of `retained` that the oldest turn waits for now.
    pub(super) draining: Bytes,
    pub(super) peak: Bytes,
    pub(super) next: u64,
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Turns asked for and not yet granted, in order.
    pub(super) line: VecDeque<Ticket>,
    /// Requests for memory that wait: those of older turns first, then in order.
    pub(super) wanting: BTreeSet<(Ticket, u64)>,
    pub(super) turns: BTreeMap<Ticket, TurnState>,
    pub(super) staging: Option<Ticket>,
    pub(super) computing: Option<Ticket>,
    /// Who entered or trimmed last.
    pub(super) asked: WorkerId,
    pub(super) poisoned: Option<String>,
    /// Counts changes that someone may be waiting for.
    pub(super) generation: u64,
}

impl State {
    pub(super) fn level(&self) -> Level {
        let usable = self.reading.usable();
        Level {
            resident: self.resident,
            direct: self.direct,
            pooled: self.pooled,
            retained: self.retained,
            usable,
            budget: usable.saturating_sub(self.margin),
        }
    }

    /// The next number for a ticket, a lease or a place in line.
    pub(super) fn number(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        n
    }

    pub(super) fn is_oldest(&self, ticket: Ticket) -> bool {
        self.turns.keys().next() == Some(&ticket)
    }

    /// What the plans of older turns have yet to take. Younger turns are not counted: they came later and may not
    /// stand in the way of a plan that was made before they were there.
    fn owed(&self, ticket: Ticket) -> Bytes {
        self.turns.range(..ticket).map(|(_, turn)| turn.promise.saturating_sub(turn.live)).sum()
    }

    /// Retained memory whose frees have executed.
    fn settled(&self) -> Bytes {
        self.retained.saturating_sub(self.pending + self.draining)
    }

    /// What a request takes from the retained memory. Frees that have not executed yet serve the turn that made
    /// them only: it is ordered after them.
    pub(super) fn reuse(&self, ticket: Ticket, request: &Request) -> Bytes {
        match request.class {
            Class::Direct => Bytes::ZERO,
            Class::Pooled if self.is_oldest(ticket) => self.retained.min(request.bytes),
            Class::Pooled => self.settled().min(request.bytes),
        }
    }

    /// The rule of admission.
    pub(super) fn fits(&self, ticket: Ticket, request: &Request) -> bool {
        let level = self.level();
        let fresh = request.bytes.saturating_sub(self.reuse(ticket, request));
        level.used() + self.owed(ticket) + fresh <= level.budget
    }

    /// What the device grants when nobody holds anything.
    fn empty(&self) -> Bytes {
        Reading { foreign: Bytes::ZERO, ..self.reading }.usable().saturating_sub(self.margin)
    }

    fn never_fits(&self, request: &Request) -> bool {
        request.bytes > self.empty()
    }

    /// What to do with a request that stands in line.
    ///
    /// A turn waits for older turns only, never for itself, a younger one or another process, so no circle of waits
    /// can form and the oldest turn never waits.
    pub(super) fn judge(&self, place: (Ticket, u64), request: &Request) -> Verdict {
        let ticket = place.0;
        let level = self.level();
        let older: Bytes = self.turns.range(..ticket).map(|(_, turn)| turn.live).sum();
        let stays = level.used().saturating_sub(level.retained).saturating_sub(older);
        if stays + request.bytes > level.budget {
            Verdict::Refuse
        } else if self.wanting.first() != Some(&place) {
            Verdict::Wait
        } else if self.fits(ticket, request) {
            Verdict::Grant
        } else {
            let trimmable = if self.is_oldest(ticket) { self.retained } else { self.settled() };
            let trimmed = level.used().saturating_sub(trimmable) + self.owed(ticket) + request.bytes;
            if trimmed <= level.budget && trimmable > Bytes::ZERO { Verdict::Trim } else { Verdict::Wait }
        }
    }

    pub(super) fn refusal(&self, ticket: Ticket, request: &Request, driver: Option<String>) -> Arc<Refused> {
        let level = self.level();
        Arc::new(Refused {
            label: request.label,
            need: request.bytes,
            free: level.free().saturating_sub(self.owed(ticket)),
            margin: self.margin,
            retained: self.retained,
            budget: level.budget,
            empty: self.empty(),
            worker: request.worker,
            phase: request.phase,
            never: self.never_fits(request),
            held: self.entries.values().map(|e| e.holding.clone()).collect(),
            driver,
        })
    }

    /// Books a granted request and returns the number of its lease.
    pub(super) fn book(&mut self, ticket: Ticket, request: &Request) -> u64 {
        self.retained = self.retained.saturating_sub(self.reuse(ticket, request));
        let excess = (self.pending + self.draining).saturating_sub(self.retained);
        self.pending = self.pending.saturating_sub(excess.saturating_sub(self.draining));
        self.draining = self.draining.saturating_sub(excess);

        if request.resident {
            self.resident += request.bytes;
            if request.class == Class::Pooled {
                self.resident_pooled += request.bytes;
            }
        } else {
            match request.class {
                Class::Direct => self.direct += request.bytes,
                Class::Pooled => self.pooled += request.bytes,
            }
            if let Some(turn) = self.turns.get_mut(&ticket) {
                turn.live += request.bytes;
                turn.reach(request.phase);
            }
        }
        self.peak = self.peak.max(self.level().used());
        let holding = Holding {
            label: request.label,
            bytes: request.bytes,
            worker: (!request.resident).then_some(request.worker),
            phase: request.phase,
            class: request.class,
        };
        let id = self.number();
        self.entries.insert(id, Entry { holding, ticket });
        id
    }

    /// Takes a lease out of the books. `None` when it is not there. Only memory that the device has given
    /// (`backed`) can be retained.
    pub(super) fn unbook(&mut self, id: u64, backed: bool) -> Option<&'static str> {
        let Entry { holding, ticket } = self.entries.remove(&id)?;
        let bytes = holding.bytes;
        let pooled = holding.class == Class::Pooled;
        if holding.worker.is_none() {
            self.resident = self.resident.saturating_sub(bytes);
            if pooled {
                self.resident_pooled = self.resident_pooled.saturating_sub(bytes);
            }
        } else {
            match holding.class {
                Class::Direct => self.direct = self.direct.saturating_sub(bytes),
                Class::Pooled => self.pooled = self.pooled.saturating_sub(bytes),
            }
            if let Some(turn) = self.turns.get_mut(&ticket) {
                turn.live = turn.live.saturating_sub(bytes);
            }
            if pooled && backed && self.is_oldest(ticket) {
                self.pending += bytes;
            }
        }
        if pooled && backed {
            self.retained += bytes;
        }
        Some(holding.label)
    }

    /// Lowers what the pool retains until pool and retained memory are within `threshold`; frees that have not
    /// executed stay. Returns what came back.
    pub(super) fn shrink(&mut self, threshold: Bytes) -> Bytes {
        let kept = threshold.saturating_sub(self.pooled + self.resident_pooled);
        let keep = kept.max(self.pending + self.draining).min(self.retained);
        let freed = self.retained.saturating_sub(keep);
        self.retained = keep;
        freed
    }
}
