//! The locks of this crate: std's, or those of a model checker when one runs (`--cfg loom`, `--cfg shuttle`).

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks, ignoring poison: the account stays usable when a worker panics while it holds the turn.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
