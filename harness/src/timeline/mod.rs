//! Where the time went: recorder, idle analysis, report, and the pictures and files made from them.
//!
//! A [`Recorder`] collects the events of a run; [`Recorder::take`] gives them as a [`Timeline`]; [`Timeline::idle`]
//! says when the card was idle and why; a [`Report`] adds what was proved and refuses to exist for proofs that do
//! not verify. [`svg`], [`png()`], [`page`], [`trace`] and [`csv`] are views of the two, and [`save`] writes them all; an [`index()`]
//! puts many runs side by side.

/// Writing to a `String` does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); };
}

mod csv;
mod idle;
mod index;
mod lanes;
mod page;
mod plot;
mod recorder;
mod report;
mod save;
mod table;
mod trace;
mod verified;

pub use csv::csv;
pub use idle::{ByCause, Gap, Idle, IdleCause, LAUNCH_LIMIT, Piece};
pub use index::{Entry, index};
pub use page::page;
pub use plot::{png, schedule, svg};
pub use recorder::{Recorder, Timeline};
pub use report::{Bin, Key, Load, LongGap, Phase, Plan, RefusalNote, Report, Sample, UNATTRIBUTED_PERMILLE};
pub use save::{Saved, save, write_atomic};
pub use table::CauseTable;
pub use trace::trace;
pub use verified::{Times, Verified};
