//! What two reports of one load differ in.

use std::fmt;

use prestage_vram::{Bytes, Nanos};
use serde::Serialize;

use super::plot::scale::{percent, time};
use super::plot::words::rate;
use super::{IdleCause, Report};
use crate::Error;

/// Second minus first. Times in nanoseconds, memory in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Difference {
    pub wall_ns: i128,
    pub busy_ns: i128,
    pub held_ns: i128,
    pub idle_ns: std::collections::BTreeMap<&'static str, i128>,
    pub proofs_per_minute: f64,
    pub peak_bytes: i128,
    pub refusals: i128,
}

/// A row of a comparison: its name, its cause if it is idle time, both values and the difference, in words.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) cause: Option<IdleCause>,
    pub(super) left: String,
    pub(super) right: String,
    pub(super) change: String,
}

impl Difference {
    /// Of `right` against `left`.
    ///
    /// # Errors
    /// [`Error::Incomparable`] when their loads or numbers of proofs differ.
    pub fn new(left: &Report, right: &Report) -> Result<Self, Error> {
        left.comparable(right)?;
        let minus = |of: &dyn Fn(&Report) -> u64| i128::from(of(right)) - i128::from(of(left));
        let idle = |cause| minus(&|r| r.times.idle().get(cause).get());
        Ok(Self {
            wall_ns: minus(&|r| r.times.wall().get()),
            busy_ns: minus(&|r| r.times.busy().get()),
            held_ns: minus(&|r| r.times.held().get()),
            idle_ns: IdleCause::ALL.into_iter().map(|cause| (cause.name(), idle(cause))).collect(),
            proofs_per_minute: (1e3 * (right.proofs_per_minute - left.proofs_per_minute)).round() / 1e3,
            peak_bytes: minus(&|r| r.peak_bytes),
            refusals: minus(&|r| r.refusals.len() as u64),
        })
    }

    /// The comparison row by row. Causes without time in either are left out.
    pub(super) fn rows(&self, left: &Report, right: &Report) -> Vec<Row> {
        let share = |r: &Report, t: Nanos| format!("{}  {}", time(t), percent(r.times.percent(t)));
        let row = |name: &str, cause, of: &dyn Fn(&Report) -> String, change: String| Row {
            name: name.to_owned(),
            cause,
            left: of(left),
            right: of(right),
            change,
        };
        let mut rows = vec![
            row("wall", None, &|r| time(r.times.wall()), signed_time(self.wall_ns)),
            row("busy", None, &|r| share(r, r.times.busy()), signed_time(self.busy_ns)),
        ];
        for cause in IdleCause::ALL {
            if [left, right].iter().any(|r| r.times.idle().get(cause) > Nanos::ZERO) {
                let change = self.idle_ns.get(cause.name()).copied().unwrap_or_default();
                let of = |r: &Report| share(r, r.times.idle().get(cause));
                rows.push(row(&format!("idle: {}", cause.name()), Some(cause), &of, signed_time(change)));
            }
        }
        let rates = signed(self.proofs_per_minute < 0.0, self.proofs_per_minute == 0.0, || {
            rate(self.proofs_per_minute.abs())
        });
        rows.extend([
            row("held", None, &|r| share(r, r.times.held()), signed_time(self.held_ns)),
            row("proofs per minute", None, &|r| rate(r.proofs_per_minute), rates),
            row("peak memory", None, &|r| Bytes::new(r.peak_bytes).to_string(), {
                signed(self.peak_bytes < 0, self.peak_bytes == 0, || {
                    Bytes::new(size(self.peak_bytes)).to_string()
                })
            }),
            row("refusals", None, &|r| r.refusals.len().to_string(), {
                signed(self.refusals < 0, self.refusals == 0, || self.refusals.unsigned_abs().to_string())
            }),
        ]);
        rows
    }

    /// The comparison as lines of text, without a newline at the end; `left` and `right` are the reports it was made of.
    #[must_use]
    pub fn table<'a>(
        &'a self,
        left: (&'a str, &'a Report),
        right: (&'a str, &'a Report),
    ) -> DifferenceTable<'a> {
        DifferenceTable { difference: self, left, right }
    }
}

fn size(change: i128) -> u64 {
    u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX)
}

/// `+ 1.23 s`, `− 4.50 ms`, `equal`.
fn signed(negative: bool, zero: bool, amount: impl FnOnce() -> String) -> String {
    match (zero, negative) {
        (true, _) => "equal".to_owned(),
        (_, true) => format!("− {}", amount()),
        (_, false) => format!("+ {}", amount()),
    }
}

fn signed_time(change: i128) -> String {
    signed(change < 0, change == 0, || time(Nanos::new(size(change))))
}

/// See [`Difference::table`].
#[derive(Clone, Copy, Debug)]
pub struct DifferenceTable<'a> {
    difference: &'a Difference,
    left: (&'a str, &'a Report),
    right: (&'a str, &'a Report),
}

impl fmt::Display for DifferenceTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((a, left), (b, right)) = (self.left, self.right);
        write!(f, "{:<20}{a:>20}{b:>20}{:>16}", "", format!("{b} − {a}"))?;
        for row in self.difference.rows(left, right) {
            write!(f, "\n{:<20}{:>20}{:>20}{:>16}", row.name, row.left, row.right, row.change)?;
        }
        Ok(())
    }
}
