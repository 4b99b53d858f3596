//! Where the time went: recorder, idle analysis, report, and the pictures and files made from them.
//!
//! A [`Recorder`] collects the events of a run; [`Recorder::take`] gives them as a [`Timeline`]; [`Timeline::idle`]
//! says when the card was idle and why; a [`Report`] adds what was proved and refuses to exist for proofs that do
//! not verify. [`svg`], [`png()`], [`page`], [`trace`] and [`csv`] are views of the two, and [`save`] writes them all; an [`index()`]
//! puts many runs side by side. [`svg_of`], [`png_of`] and [`story`] show several runs on one axis, and schedules that prove
//! nothing beside them; a [`Difference`] says what two reports differ in.

/// Writing to a `String` does not fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => { let _ = write!($out, $($arg)*); };
}

mod csv;
mod difference;
mod idle;
mod index;
mod kept;
mod lanes;
mod page;
mod part;
mod plot;
mod recorder;
mod records;
mod report;
mod save;
mod table;
mod trace;
mod verified;

pub use csv::csv;
pub use difference::{Difference, DifferenceTable};
pub use idle::{ByCause, Gap, Idle, IdleCause, LAUNCH_LIMIT, Piece};
pub use index::{Entry, index};
pub use page::{page, story};
pub use part::{Chapter, Part};
pub use plot::{png, png_of, schedule, svg, svg_of};
pub use recorder::{Recorder, Timeline};
pub use records::Agreement;
pub(crate) use report::per_minute;
pub use report::{Bin, Key, Load, LongGap, Phase, Plan, RefusalNote, Report, Sample, UNATTRIBUTED_PERMILLE};
pub use save::{Saved, save, save_devices, write_atomic};
pub use table::CauseTable;
pub use trace::{trace, trace_of};
pub use verified::{Times, Verified};
