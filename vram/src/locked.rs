//! The account of page-locked host memory: how many bytes are locked for a device, and which addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::sync::{Arc, Mutex, MutexGuard, lock};
use crate::{Bytes, Error};

#[derive(Debug, Default)]
struct State {
    bytes: Bytes,
    peak: Bytes,
    /// Locked pages by where they begin. They never overlap.
    ranges: BTreeMap<usize, Pages>,
}

#[derive(Debug)]
struct Pages {
    end: usize,
    /// The bytes on them that the device was told of.
    exact: Range<usize>,
}

struct Inner {
    budget: Bytes,
    state: Mutex<State>,
}

/// The account of host memory that is page-locked for one device, pinned and registered alike.
///
/// It counts what is locked in fact, whole pages, not what was asked for. Cheap to clone; all clones are the same
/// account. Kept in the [`crate::Ledger`] of the device.
#[derive(Clone)]
pub struct Locked(Arc<Inner>);

impl Locked {
    /// An account that grants at most `budget`.
    #[must_use]
    pub fn new(budget: Bytes) -> Self {
        Self(Arc::new(Inner { budget, state: Mutex::new(State::default()) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// What may be locked at most.
    #[must_use]
    pub fn budget(&self) -> Bytes {
        self.0.budget
    }

    /// What is locked now.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.lock().bytes
    }

    /// The most that was ever locked.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.lock().peak
    }

    /// What may still be locked.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.0.budget.saturating_sub(self.bytes())
    }

    /// Grants `bytes`, already rounded up to pages by the caller, before any address is known.
    ///
    /// # Errors
    /// [`Error::PinnedBudget`] when the budget does not hold that much more.
    pub fn reserve(&self, bytes: Bytes) -> Result<LockedPages, Error> {
        let mut state = self.lock();
        let free = self.0.budget.saturating_sub(state.bytes);
        if bytes > free {
            return Err(Error::PinnedBudget { need: bytes, free, budget: self.0.budget });
        }
        state.bytes += bytes;
        state.peak = state.peak.max(state.bytes);
        Ok(LockedPages { account: self.clone(), bytes, at: None })
    }

    /// Cuts a range of addresses where locked memory begins or ends, in order; `true` marks the locked pieces.
    /// A driver takes no copy that spans two of them.
    #[must_use]
    pub fn pieces(&self, range: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let state = self.lock();
        let mut pieces = Vec::new();
        let mut at = range.start;
        // The last locked range that begins at or before the start may reach into it.
        let first = state.ranges.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
        for Pages { exact: Range { start, end }, .. } in state.ranges.range(first..).map(|(_, pages)| pages) {
            let (start, end) = (*start, *end);
            if start >= range.end {
                break;
            }
            if end <= at {
                continue;
            }
            if at < start {
                pieces.push((at..start, false));
                at = start;
            }
            let stop = end.min(range.end);
            pieces.push((at..stop, true));
            at = stop;
        }
        if at < range.end {
            pieces.push((at..range.end, false));
        }
        pieces
    }
}

impl fmt::Debug for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked")
            .field("bytes", &self.bytes())
            .field("budget", &self.budget())
            .finish_non_exhaustive()
    }
}

/// A granted number of locked bytes, given back when dropped. Forgetting it keeps the pages counted, which is what
/// pages that could not be unlocked need.
#[derive(Debug)]
pub struct LockedPages {
    account: Locked,
    bytes: Bytes,
    at: Option<usize>,
}

impl LockedPages {
    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Says where the pages begin, and which bytes on them the device was told of: copies of those are cut from
    /// their neighbours by [`Locked::pieces`].
    ///
    /// # Errors
    /// [`Error::AlreadyLocked`] when some of them are locked already, wherever the other range begins or ends.
    pub fn place(&mut self, start: usize, exact: Range<usize>) -> Result<(), Error> {
        let end = start.saturating_add(self.bytes.to_usize().unwrap_or(usize::MAX));
        if end == start {
            return Ok(());
        }
        let mut state = self.account.lock();
        // Ranges do not overlap each other, so only the last one that begins before `end` can reach into this one.
        if let Some((&other, &Pages { end: other_end, .. })) = state.ranges.range(..end).next_back()
            && other_end > start
        {
            return Err(Error::AlreadyLocked { asked: start..end, locked: other..other_end });
        }
        state.ranges.insert(start, Pages { end, exact });
        self.at = Some(start);
        Ok(())
    }
}

impl Drop for LockedPages {
    fn drop(&mut self) {
        let mut state = self.account.lock();
        state.bytes = state.bytes.saturating_sub(self.bytes);
        if let Some(at) = self.at {
            state.ranges.remove(&at);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pages(account: &Locked, start: usize, len: usize) -> Result<LockedPages, Error> {
        let mut pages = account.reserve(Bytes::of::<u8>(len))?;
        pages.place(start, start..start + len)?;
        Ok(pages)
    }

    #[test]
    fn finds_every_overlap_and_gives_back() {
        let account = Locked::new(Bytes::MAX);
        let held = pages(&account, 100, 50).unwrap();
        for (start, len) in [(100, 50), (100, 10), (140, 10), (90, 11), (149, 9), (0, 1000), (120, 5)] {
            assert!(matches!(pages(&account, start, len), Err(Error::AlreadyLocked { .. })), "{start} {len}");
        }
        let before = pages(&account, 50, 50).unwrap();
        let after = pages(&account, 150, 1).unwrap();
        assert_eq!(account.bytes(), Bytes::new(101));
        drop((held, before, after));
        assert_eq!((account.bytes(), account.peak()), (Bytes::ZERO, Bytes::new(1050)));
        assert!(pages(&account, 100, 50).is_ok());
    }

    #[test]
    fn cuts_at_every_border() {
        let account = Locked::new(Bytes::MAX);
        let _a = pages(&account, 10, 10).unwrap();
        let _b = pages(&account, 20, 10).unwrap();
        let _c = pages(&account, 40, 10).unwrap();
        assert_eq!(
            account.pieces(5..60),
            [
                (5..10, false),
                (10..20, true),
                (20..30, true),
                (30..40, false),
                (40..50, true),
                (50..60, false)
            ],
        );
        assert_eq!(account.pieces(12..18), [(12..18, true)]);
        assert_eq!(account.pieces(30..40), [(30..40, false)]);
        assert_eq!(account.pieces(15..25), [(15..20, true), (20..25, true)]);
        assert!(account.pieces(7..7).is_empty());
    }

    #[test]
    fn the_budget_is_kept() {
        let account = Locked::new(Bytes::new(100));
        let held = account.reserve(Bytes::new(60)).unwrap();
        let Err(Error::PinnedBudget { need, free, budget }) = account.reserve(Bytes::new(41)) else {
            panic!("granted more than the budget");
        };
        assert_eq!((need.get(), free.get(), budget.get()), (41, 40, 100));
        drop(held);
        assert!(account.reserve(Bytes::new(100)).is_ok());
    }
}
