//! What a page or a picture shows: runs with their reports, and schedules that prove nothing.

use prestage_vram::Nanos;

use super::report::{Sample, refusals, samples};
use super::{RefusalNote, Report, Timeline};
use crate::Error;

/// One of several timelines on one axis of time.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A run whose proofs were all verified.
    Run {
        /// What it is called on the page.
        name: &'a str,
        /// What it came to.
        report: &'a Report,
        /// What happened.
        timeline: &'a Timeline,
    },
    /// A schedule that proves nothing, so that no time of it is reported: lanes, memory and refusals alone.
    Schedule {
        /// What it is called on the page.
        name: &'a str,
        /// What came of it, in a sentence.
        headline: &'a str,
        /// What it is.
        about: &'a str,
        /// What happened.
        timeline: &'a Timeline,
    },
}

/// Timelines that belong together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chapter<'a> {
    /// What they show; none where the title of the page says it.
    pub heading: Option<&'a str>,
    /// A sentence or two for who sees it first; may be empty.
    pub words: &'a str,
    /// The timelines, on one axis.
    pub parts: &'a [Part<'a>],
    /// The parts are the devices of one run: they share the work and are not to be compared.
    pub devices: bool,
}

impl<'a> Part<'a> {
    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        match self {
            Self::Run { name, .. } | Self::Schedule { name, .. } => name,
        }
    }

    pub(super) const fn timeline(&self) -> &'a Timeline {
        match self {
            Self::Run { timeline, .. } | Self::Schedule { timeline, .. } => timeline,
        }
    }

    pub(super) const fn report(&self) -> Option<&'a Report> {
        match self {
            Self::Run { report, .. } => Some(report),
            Self::Schedule { .. } => None,
        }
    }

    /// From its first to its last moment.
    pub(super) fn span(&self) -> Nanos {
        let (first, last) = self.timeline().extent();
        last.since(first)
    }

    /// What its memory did.
    pub(super) fn account(&self) -> (Vec<Sample>, Vec<RefusalNote>) {
        match self {
            Self::Run { report, .. } => (report.memory.clone(), report.refusals.clone()),
            Self::Schedule { timeline, .. } => {
                let first = timeline.extent().0;
                (samples(timeline, first), refusals(timeline, first))
            }
        }
    }
}

/// Whether the runs among the parts all measure the same. Devices of one run need not have done equally much.
///
/// # Errors
/// [`Error::Incomparable`] with what differs.
pub(super) fn comparable(chapter: &Chapter<'_>) -> Result<(), Error> {
    let mut reports = chapter.parts.iter().filter_map(Part::report);
    let Some(first) = reports.next().filter(|_| !chapter.devices) else { return Ok(()) };
    reports.try_for_each(|report| first.comparable(report))
}

/// The longest of them, in nanoseconds: the axis of all.
pub(super) fn longest(parts: &[Part<'_>]) -> u64 {
    parts.iter().map(|part| part.span().get()).max().unwrap_or(0)
}
