//! One engine of a simulated card: when it is busy.

use std::collections::BTreeMap;

use crate::Nanos;

/// The busy intervals of an engine. They do not touch or overlap.
///
/// Work takes what is free from the moment it is ready, in pieces where it has to, as copies of several queues share
/// one engine. So work that was handed over early and becomes ready late does not keep others out until then.
#[derive(Debug, Default)]
pub(super) struct Engine(BTreeMap<Nanos, Nanos>);

impl Engine {
    /// Takes `cost` of free time from `ready` on. Returns when the work starts and ends. Nothing will be asked for
    /// before `now` any more.
    pub(super) fn take(&mut self, now: Nanos, ready: Nanos, cost: Nanos) -> (Nanos, Nanos) {
        while let Some(first) = self.0.first_entry()
            && *first.get() <= now
        {
            first.remove();
        }
        if cost == Nanos::ZERO {
            return (ready, ready);
        }
        let mut at = match self.0.range(..=ready).next_back() {
            Some((_, end)) => ready.max(*end),
            None => ready,
        };
        let start = at;
        let mut left = cost;
        let mut taken = Vec::new();
        for (busy, until) in self.0.range(at..) {
            let piece = busy.since(at).min(left);
            if piece > Nanos::ZERO {
                taken.push((at, at + piece));
                left = left.since(piece);
            }
            if left == Nanos::ZERO {
                break;
            }
            at = *until;
        }
        if left > Nanos::ZERO {
            taken.push((at, at + left));
        }
        let end = taken.last().map_or(start, |(_, end)| *end);
        let start = taken.first().map_or(start, |(start, _)| *start);
        for (start, end) in taken {
            self.mark(start, end);
        }
        (start, end)
    }

    /// Makes a free interval busy and joins it with its neighbours.
    fn mark(&mut self, mut start: Nanos, mut end: Nanos) {
        if let Some((before, until)) = self.0.range(..start).next_back()
            && *until == start
        {
            start = *before;
        }
        if let Some(until) = self.0.remove(&end) {
            end = until;
        }
        self.0.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(engine: &mut Engine, ready: u64, cost: u64) -> (u64, u64) {
        let (start, end) = engine.take(Nanos::ZERO, Nanos::new(ready), Nanos::new(cost));
        (start.get(), end.get())
    }

    #[test]
    fn work_takes_what_is_free_in_pieces() {
        let mut engine = Engine::default();
        assert_eq!(take(&mut engine, 10, 5), (10, 15));
        assert_eq!(take(&mut engine, 0, 4), (0, 4), "what is ready late keeps nobody out before");
        assert_eq!(take(&mut engine, 2, 8), (4, 17), "4 to 10, then 15 to 17");
        assert_eq!(take(&mut engine, 3, 0), (3, 3));
        assert_eq!(take(&mut engine, 30, 2), (30, 32));
        assert_eq!(take(&mut engine, 0, 20), (17, 39), "17 to 30, then 32 to 39");
        assert_eq!(engine.0.into_iter().collect::<Vec<_>>(), [(Nanos::ZERO, Nanos::new(39))]);
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut engine = Engine::default();
        take(&mut engine, 0, 10);
        take(&mut engine, 20, 10);
        let later = engine.take(Nanos::new(15), Nanos::new(15), Nanos::new(10));
        assert_eq!((later.0.get(), later.1.get(), engine.0.len()), (15, 35, 1));
    }
}
