//! What every device must do, as tests that any device can be put through.
//!
//! Describe the device by a [`Subject`] and call [`conformance!`](crate::conformance!) in a test file: each check becomes a test
//! of its own. A check that fails panics and says what the contract asks for.

// These functions are tests: they end by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

#[cfg(feature = "cuda")]
mod cuda;
mod faults;
mod memory;
mod order;
mod turns;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "cuda")]
pub use cuda::{KERNELS, OnCuda};
pub use faults::{every_fault_leaves_nothing, poison_fails_fast};
pub use memory::{
    accounts_balance, classes_differ, margin_is_kept, reading_is_renewed, refusal_takes_its_path,
    resident_outlives_the_turn, what_never_fits_is_refused_at_once,
};
pub use order::{frees_follow_their_queue, marks_and_waits};
pub use turns::{a_panic_gives_the_turn_back, first_come_first_served, staging_ahead_leaves_what_is_owed};

use crate::{Bytes, Device, Event, LedgerConfig, Margin, Nanos, Sink};

/// A device to put through the checks.
pub trait Subject: Sync {
    /// The device.
    type Device: Device;

    /// A fresh device with `usable` bytes beside its context, nothing of which is in use by others.
    fn open(&self, usable: Bytes, config: LedgerConfig) -> Self::Device;

    /// Enqueues work that takes about `time` and touches no memory.
    fn busy(&self, device: &Self::Device, queue: &<Self::Device as Device>::Queue, time: Nanos);

    /// What to hold while a check runs, so that it has the device to itself.
    ///
    /// # Errors
    /// Why there is no such device here; the check is skipped then.
    fn ready(&self) -> Result<Box<dyn Any>, String> {
        Ok(Box::new(()))
    }
}

/// Runs a check, or says that it was skipped and why.
pub fn run<S: Subject>(subject: &S, name: &str, check: impl FnOnce(&S)) {
    match subject.ready() {
        Ok(_held) => check(subject),
        Err(why) => println!("{name} skipped: {why}"),
    }
}

/// Makes one test of each check for a [`Subject`](crate::conformance::Subject).
///
/// ```
/// use prestage_vram::conformance::Subject;
/// use prestage_vram::{Bytes, Device, Host, HostConfig, HostQueue, LedgerConfig, Nanos, Op};
///
/// struct OnHost;
///
/// impl Subject for OnHost {
///     type Device = Host;
///     fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Host {
///         Host::open(HostConfig { capacity: usable, ledger }).unwrap()
///     }
///     fn busy(&self, host: &Host, queue: &HostQueue, time: Nanos) {
///         let job = move || std::thread::sleep(std::time::Duration::from_nanos(time.get()));
///         // SAFETY: the job touches no memory.
///         unsafe { host.submit(queue, Op::Launch, "busy", Bytes::ZERO, job) }.unwrap();
///     }
/// }
///
/// prestage_vram::conformance!(OnHost);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:expr) => {
        $crate::conformance!(@each $subject,
            accounts_balance, classes_differ, margin_is_kept, reading_is_renewed, refusal_takes_its_path,
            resident_outlives_the_turn, what_never_fits_is_refused_at_once,
            frees_follow_their_queue, marks_and_waits,
            a_panic_gives_the_turn_back, first_come_first_served, staging_ahead_leaves_what_is_owed,
            every_fault_leaves_nothing, poison_fails_fast,
        );
    };
    (@each $subject:expr, $($check:ident),* $(,)?) => {
        $(#[test]
        fn $check() {
            $crate::conformance::run(&$subject, stringify!($check), $crate::conformance::$check);
        })*
    };
}

/// What the checks' devices may use.
const USABLE: Bytes = Bytes::mib(64);

/// Long enough that a busy machine does not take it for nothing.
const A_WHILE: Nanos = Nanos::new(100_000_000);

/// The number of `u64` in `mib` MiB.
const fn words(mib: usize) -> usize {
    mib << 17
}

/// Keeps every event.
#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

/// Margin 0, threshold 0, with a recorder.
fn recorded() -> (LedgerConfig, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    (LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), sink, ..LedgerConfig::default() }, recorder)
}

/// Margin 0, threshold 0, no events.
fn plain() -> LedgerConfig {
    LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() }
}

/// Nothing is held, and the next turn can use the whole device.
fn assert_like_new<D: Device>(device: &D) {
    let level = device.ledger().level();
    assert_eq!(level.used(), Bytes::ZERO, "nothing is held after the turn: {:?}", device.ledger().held());
    let mut worker = crate::Worker::new(99);
    let turn = device.turn(&mut worker).expect("the next turn is granted");
    let queue = turn.queue(crate::Track::Compute).expect("the next turn has a queue");
    let all = turn.alloc::<u64>("all", words(64), crate::Class::Direct, &queue);
    drop(all.expect("the next turn may take everything"));
    turn.release().expect("the next turn ends well");
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
}
