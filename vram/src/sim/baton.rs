//! Virtual time: workers are real threads, but one runs at a time, the one that is earliest.
//!
//! Every worker has a seat. A worker that moves on in time passes the baton to whoever is now the earliest (ties by
//! number), so what a run does depends on costs alone, never on the machine's scheduler. A thread without a seat is a
//! visitor: it never waits for the baton, and all visitors share one clock.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::{Ledger, Nanos};

#[derive(Debug)]
enum Standing {
    /// Goes on as soon as it has the baton.
    Ready,
    /// Waits for the change of an account that comes after change number `seen`.
    Blocked { ledger: Ledger, seen: u64 },
    /// Waits for workers of its own.
    Away,
}

#[derive(Debug)]
struct Seat {
    now: Nanos,
    standing: Standing,
    /// Who waits for this one to end.
    parent: Option<u64>,
    /// Set where nobody could go on but by breaking its wait.
    stuck: bool,
}

#[derive(Debug, Default)]
struct State {
    seats: BTreeMap<u64, Seat>,
    threads: HashMap<ThreadId, u64>,
    holder: Option<u64>,
    next: u64,
    /// The time of all threads without a seat.
    visitors: Nanos,
}

/// The baton and everyone who may hold it.
#[derive(Debug, Default)]
pub(super) struct Baton {
    state: Mutex<State>,
    passed: Condvar,
}

/// Nobody can go on: every worker waits for another.
#[derive(Debug)]
pub(super) struct Deadlock;

impl State {
    fn mine(&self) -> Option<u64> {
        self.threads.get(&thread::current().id()).copied()
    }

    fn earliest(&self) -> Option<u64> {
        let ready = self.seats.iter().filter(|(_, seat)| matches!(seat.standing, Standing::Ready));
        ready.min_by_key(|(number, seat)| (seat.now, **number)).map(|(number, _)| *number)
    }

    /// Breaks the wait of the first worker, where all of them wait.
    fn break_one(&mut self) -> Option<u64> {
        let blocked = |seat: &Seat| matches!(seat.standing, Standing::Blocked { .. });
        let (number, seat) = self.seats.iter_mut().find(|(_, seat)| blocked(seat))?;
        seat.standing = Standing::Ready;
        seat.stuck = true;
        Some(*number)
    }

    /// Lets everyone go on whose account has changed, at the time of who changed it.
    fn wake(&mut self, at: Nanos) {
        for seat in self.seats.values_mut() {
            if matches!(&seat.standing, Standing::Blocked { ledger, seen } if ledger.changes() != *seen) {
                seat.standing = Standing::Ready;
                seat.now = seat.now.max(at);
            }
        }
    }
}

impl Baton {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes `n` seats at the calling thread's time. Nobody needs to have sat down for others to be kept waiting: the
    /// order of the seats does not depend on the order in which threads start. The caller itself, where it has a
    /// seat, is away from now on.
    pub(super) fn seats(&self, n: u32) -> Range<u64> {
        let mut state = self.lock();
        let mine = state.mine();
        let now = mine.and_then(|number| state.seats.get(&number)).map_or(state.visitors, |seat| seat.now);
        let first = state.next;
        state.next += u64::from(n);
        for number in first..state.next {
            let seat = Seat { now, standing: Standing::Ready, parent: mine, stuck: false };
            state.seats.insert(number, seat);
        }
        let numbers = first..state.next;
        state.wake(now);
        if n > 0
            && let Some(seat) = mine.and_then(|number| state.seats.get_mut(&number))
        {
            seat.standing = Standing::Away;
        }
        if mine.is_some() || state.holder.is_none() {
            state.holder = state.earliest();
            self.passed.notify_all();
        }
        numbers
    }

    /// Gives the calling thread a seat and waits for the baton.
    pub(super) fn sit(&self, number: u64) {
        let mut state = self.lock();
        state.threads.insert(thread::current().id(), number);
        drop(self.wait(state, number));
    }

    /// Ends the part of the calling thread, which has the baton, and passes it on. Returns its time.
    pub(super) fn leave(&self) -> Nanos {
        let mut state = self.lock();
        let Some(number) = state.threads.remove(&thread::current().id()) else { return state.visitors };
        self.vacate(&mut state, number)
    }

    /// Takes away a seat whose thread could not be started.
    pub(super) fn abandon(&self, number: u64) {
        self.vacate(&mut self.lock(), number);
    }

    fn vacate(&self, state: &mut State, number: u64) -> Nanos {
        let Some(Seat { now, parent, .. }) = state.seats.remove(&number) else { return Nanos::ZERO };
        state.wake(now);
        if let Some(number) = parent {
            let last = state.seats.values().all(|seat| seat.parent != parent);
            if let Some(seat) = state.seats.get_mut(&number) {
                seat.now = seat.now.max(now);
                if last {
                    seat.standing = Standing::Ready;
                }
            }
        }
        if state.holder == Some(number) || state.holder.is_none() {
            state.holder = state.earliest().or_else(|| state.break_one());
        }
        self.passed.notify_all();
        now
    }

    /// Waits for the baton after the caller's workers have ended, the last at `at`.
    pub(super) fn back(&self, at: Nanos) {
        let mut state = self.lock();
        let Some(number) = state.mine() else {
            state.visitors = state.visitors.max(at);
            return;
        };
        drop(self.wait(state, number));
    }

    /// Whether the calling thread has a seat.
    pub(super) fn seated(&self) -> bool {
        self.lock().mine().is_some()
    }

    /// The calling thread's time.
    pub(super) fn now(&self) -> Nanos {
        let state = self.lock();
        state.mine().and_then(|number| state.seats.get(&number)).map_or(state.visitors, |seat| seat.now)
    }

    /// Moves the calling thread's time to `to` (never back) and lets whoever is earlier go first.
    pub(super) fn advance(&self, to: Nanos) {
        let mut state = self.lock();
        let Some(number) = state.mine() else {
            state.visitors = state.visitors.max(to);
            return;
        };
        let Some(now) = state.seats.get(&number).map(|seat| seat.now) else { return };
        // Whatever the thread has changed, it changed before it moved on.
        state.wake(now);
        if let Some(seat) = state.seats.get_mut(&number) {
            seat.now = now.max(to);
        }
        drop(self.pass(state, number));
    }

    /// Waits until there has been a change of the account after change number `seen`.
    pub(super) fn block(&self, ledger: &Ledger, seen: u64) -> Result<(), Deadlock> {
        let mut state = self.lock();
        let Some(number) = state.mine() else { return Ok(()) };
        let Some(now) = state.seats.get(&number).map(|seat| seat.now) else { return Ok(()) };
        state.wake(now);
        if let Some(seat) = state.seats.get_mut(&number) {
            seat.standing = Standing::Blocked { ledger: ledger.clone(), seen };
        }
        // A visitor may have changed it meanwhile.
        state.wake(now);
        let mut state = self.pass(state, number);
        let stuck = state.seats.get_mut(&number).is_some_and(|seat| std::mem::take(&mut seat.stuck));
        if stuck { Err(Deadlock) } else { Ok(()) }
    }

    fn pass<'s>(&'s self, mut state: MutexGuard<'s, State>, number: u64) -> MutexGuard<'s, State> {
        let next = state.earliest().or_else(|| state.break_one());
        if next == Some(number) {
            return state;
        }
        state.holder = next;
        self.passed.notify_all();
        self.wait(state, number)
    }

    fn wait<'s>(&'s self, mut state: MutexGuard<'s, State>, number: u64) -> MutexGuard<'s, State> {
        while state.holder != Some(number) {
            state = self.passed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}
