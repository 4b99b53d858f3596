//! The cause table as plain text, for a terminal.

use std::fmt;

use prestage_vram::Nanos;

use super::Report;
use super::plot::scale::{percent, time};

/// The wall by cause, one line each; made by [`Report::table`].
#[derive(Clone, Copy, Debug)]
pub struct CauseTable<'a>(&'a Report);

impl Report {
    /// The wall by cause as lines of text, without a newline at the end. Causes without time are left out.
    #[must_use]
    pub fn table(&self) -> CauseTable<'_> {
        CauseTable(self)
    }
}

impl fmt::Display for CauseTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.0.times;
        let line = |name: &str, t: Nanos, meaning: &str| {
            format!("{name:<13}{:>9}{:>10}   {meaning}", time(t), percent(times.percent(t)))
                .trim_end()
                .to_owned()
        };
        let mut lines = vec![line("busy", times.busy(), "a kernel ran")];
        let causes = times.idle().iter().filter(|(_, t)| *t > Nanos::ZERO);
        lines.extend(causes.map(|(cause, t)| line(cause.name(), t, cause.meaning())));
        lines.push(line("wall", times.wall(), ""));
        lines.push(line("held", times.held(), "someone had the turn"));
        f.write_str(&lines.join("\n"))
    }
}
