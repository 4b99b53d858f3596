//! The memory of a simulated card as its driver sees it: two classes, and a pool that may keep what it was given back.

use crate::{Bytes, Class, Nanos};

/// What a card does when it is out of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutOfMemory {
    /// The request fails and nothing else changes.
    #[default]
    Clean,
    /// The request fails, and what was free is lost until the card is opened again.
    Leak,
    /// The request fails, and so does every later operation until the card is opened again.
    Sticky,
}

/// The driver's view of a simulated card's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All memory.
    pub capacity: Bytes,
    /// What the driver keeps for this process.
    pub context: Bytes,
    /// What other processes hold, and what was lost.
    pub foreign: Bytes,
    /// Live allocations of class `Direct`.
    pub direct: Bytes,
    /// Live allocations of class `Pooled`.
    pub pooled: Bytes,
    /// Freed to the pool and kept there.
    pub retained: Bytes,
}

impl Usage {
    /// What a direct allocation may take.
    #[must_use]
    pub fn free(&self) -> Bytes {
        let used = self.context + self.foreign + self.direct + self.pooled + self.retained;
        self.capacity.saturating_sub(used)
    }
}

/// How an allocation went.
pub(super) struct Taken {
    /// Memory that is new to the pool or to a direct allocation.
    pub(super) fresh: Bytes,
    /// From when on all of it may be used: the pool may give what is freed only then.
    pub(super) from: Nanos,
}

/// Physical memory.
#[derive(Debug)]
pub(super) struct Memory {
    usage: Usage,
    /// What the pool keeps past a synchronisation.
    threshold: Bytes,
    /// Frees whose time has not come: part of `retained`, to be used in their order only. Sorted by time.
    pending: Vec<(Nanos, Bytes)>,
    /// The part of `foreign` that was lost here.
    lost: Bytes,
}

impl Memory {
    pub(super) fn new(capacity: Bytes, context: Bytes, threshold: Bytes) -> Self {
        let usage = Usage { capacity, context, ..Usage::default() };
        Self { usage, threshold, pending: Vec::new(), lost: Bytes::ZERO }
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Other processes hold `bytes` now.
    pub(super) fn set_foreign(&mut self, bytes: Bytes) {
        self.usage.foreign = bytes + self.lost;
    }

    /// What other processes hold.
    pub(super) fn foreign(&self) -> Bytes {
        self.usage.foreign.saturating_sub(self.lost)
    }

    /// Loses what is free.
    pub(super) fn leak(&mut self) {
        let free = self.usage.free();
        self.lost += free;
        self.usage.foreign += free;
    }

    /// Takes `n` bytes, or nothing when they are not there. The pool reuses what it retains; a direct request cannot.
    pub(super) fn allocate(&mut self, n: Bytes, class: Class, now: Nanos) -> Option<Taken> {
        let reuse = if class == Class::Pooled { self.usage.retained.min(n) } else { Bytes::ZERO };
        let fresh = n.saturating_sub(reuse);
        if fresh > self.usage.free() {
            return None;
        }
        match class {
            Class::Direct => self.usage.direct += n,
            Class::Pooled => self.usage.pooled += n,
        }
        let mut early = self.settled(now).min(reuse);
        let mut from = now;
        while early < reuse && !self.pending.is_empty() {
            let (at, bytes) = self.pending.remove(0);
            let used = bytes.min(reuse.saturating_sub(early));
            early += used;
            from = from.max(at);
            if used < bytes {
                self.pending.insert(0, (at, bytes.saturating_sub(used)));
            }
        }
        self.usage.retained = self.usage.retained.saturating_sub(reuse);
        Some(Taken { fresh, from })
    }

    /// Frees `n` bytes at a time that may lie ahead.
    pub(super) fn release(&mut self, n: Bytes, class: Class, at: Nanos) {
        match class {
            Class::Direct => self.usage.direct = self.usage.direct.saturating_sub(n),
            Class::Pooled => {
                self.usage.pooled = self.usage.pooled.saturating_sub(n);
                self.usage.retained += n;
                let place = self.pending.partition_point(|(other, _)| *other <= at);
                self.pending.insert(place, (at, n));
            }
        }
    }

    /// A synchronisation: the pool keeps no more than its threshold, live memory included. Returns what it gave back.
    pub(super) fn synchronised(&mut self, now: Nanos) -> Bytes {
        self.shrink(self.threshold.saturating_sub(self.usage.pooled), now)
    }

    /// Gives back what the pool retains, but for what has not been freed in fact. Returns how much.
    pub(super) fn trim(&mut self, now: Nanos) -> Bytes {
        self.shrink(Bytes::ZERO, now)
    }

    fn shrink(&mut self, keep: Bytes, now: Nanos) -> Bytes {
        let settled = self.settled(now);
        let excess = self.usage.retained.saturating_sub(keep);
        let back = settled.min(excess);
        self.usage.retained = self.usage.retained.saturating_sub(back);
        back
    }

    /// Retained memory that has been freed by now.
    fn settled(&mut self, now: Nanos) -> Bytes {
        self.pending.retain(|(at, _)| *at > now);
        let pending = self.pending.iter().map(|(_, bytes)| *bytes).sum();
        self.usage.retained.saturating_sub(pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::new(100);
    const LATER: Nanos = Nanos::new(200);

    /// Row C4 at the level of the driver: memory freed to the pool is not there for a direct request.
    #[test]
    fn c4_a_pool_that_keeps_starves_direct_requests() {
        let mut m = Memory::new(Bytes::gib(16), Bytes::mib(1536), Bytes::MAX);
        assert!(m.allocate(Bytes::gib(4), Class::Direct, NOW).is_some());
        assert!(m.allocate(Bytes::mib(4659), Class::Pooled, NOW).is_some());
        m.release(Bytes::mib(4659), Class::Pooled, NOW);
        assert_eq!(m.synchronised(NOW), Bytes::ZERO, "it keeps what it holds");
        assert_eq!(m.usage().free(), Bytes::mib(14848 - 4096 - 4659));
        assert!(m.allocate(Bytes::gib(8), Class::Direct, NOW).is_none());
        let again = m.allocate(Bytes::mib(4659), Class::Pooled, NOW).expect("the pool reuses it");
        assert_eq!(again.fresh, Bytes::ZERO);
        m.release(Bytes::mib(4659), Class::Pooled, NOW);
        assert_eq!(m.trim(NOW), Bytes::mib(4659));
        assert!(m.allocate(Bytes::gib(8), Class::Direct, NOW).is_some());
    }

    #[test]
    fn frees_take_effect_in_their_time() {
        let mut m = Memory::new(Bytes::mib(10), Bytes::ZERO, Bytes::ZERO);
        assert!(m.allocate(Bytes::mib(8), Class::Pooled, NOW).is_some());
        m.release(Bytes::mib(8), Class::Pooled, LATER);
        assert_eq!((m.trim(NOW), m.synchronised(NOW)), (Bytes::ZERO, Bytes::ZERO));
        assert!(m.allocate(Bytes::mib(4), Class::Direct, NOW).is_none());
        let reused = m.allocate(Bytes::mib(3), Class::Pooled, NOW).unwrap();
        assert_eq!((reused.fresh, reused.from), (Bytes::ZERO, LATER), "in the order of the free");
        assert_eq!(m.synchronised(LATER), Bytes::mib(5));
        m.set_foreign(Bytes::mib(2));
        assert_eq!(m.usage().free(), Bytes::mib(5));
        m.leak();
        m.set_foreign(Bytes::mib(1));
        assert_eq!((m.usage().free(), m.foreign()), (Bytes::mib(1), Bytes::mib(1)));
    }
}
