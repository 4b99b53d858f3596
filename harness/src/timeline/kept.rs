//! A report with the events behind it, in one file: what the picture is drawn from again.

use std::fmt::Write;

use prestage_vram::{Bytes, Cause, Event, Nanos, Span, Track, WorkerId};
use serde::{Deserialize, Serialize};

use super::trace::wait_name;
use super::{Report, Timeline};
use crate::Error;

const TRACKS: [Track; 7] =
    [Track::Compute, Track::Upload, Track::Download, Track::Host, Track::Memory, Track::Launch, Track::Held];

const CAUSES: [Cause; 4] = [Cause::Alloc, Cause::Transfer, Cause::Sync, Cause::Turn];

/// A span or a wait. Times count from the first moment of the run.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// The track of a span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    track: Option<String>,
    /// What a wait was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<String>,
    worker: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    start_ns: u64,
    end_ns: u64,
    #[serde(default, skip_serializing_if = "none")]
    bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn none(bytes: &u64) -> bool {
    *bytes == 0
}

#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    report: Report,
    timeline: Vec<Line>,
}

impl Report {
    /// The report as JSON, and the spans and waits that it was made from: [`Report::with_timeline`] reads both. Other
    /// programs find the fields of [`Report::to_json`], and `timeline` with an event a line.
    ///
    /// # Errors
    /// None in practice, as [`Report::to_json`].
    pub fn to_json_with(&self, timeline: &Timeline) -> Result<String, Error> {
        let first = timeline.extent().0;
        let report = self.to_json()?;
        let mut text = report.trim_end().trim_end_matches('}').trim_end().to_owned();
        text += ",\n  \"timeline\": [";
        let mut comma = "";
        for line in timeline.events().iter().filter_map(|event| line(event, first)) {
            let _ = write!(text, "{comma}\n    {}", serde_json::to_string(&line)?);
            comma = ",";
        }
        text += "\n  ]\n}\n";
        Ok(text)
    }

    /// Reads what [`Report::to_json_with`] wrote. The timeline has the spans and waits; what the memory did is in the
    /// report.
    ///
    /// # Errors
    /// As [`Report::from_json`]; [`Error::Tampered`] when the report does not say what its events say.
    pub fn with_timeline(text: &str) -> Result<(Self, Timeline), Error> {
        let Kept { report, timeline } = serde_json::from_str(text)?;
        let events = timeline.into_iter().map(event).collect::<Option<Vec<_>>>();
        let events = events.ok_or(Error::Tampered { what: "a line of its timeline" })?;
        // A device among others may have begun with nothing.
        let timeline = Timeline::new(events).from(Nanos::ZERO);
        report.follows_from(&timeline)?;
        Ok((report, timeline))
    }
}

fn line(event: &Event, first: Nanos) -> Option<Line> {
    let at = |t: Nanos| t.since(first).get();
    match event {
        Event::Span(span) => Some(Line {
            track: Some(span.track.name().to_owned()),
            wait: None,
            worker: span.worker.0,
            name: span.name.to_string(),
            start_ns: at(span.start),
            end_ns: at(span.end),
            bytes: span.bytes.get(),
        }),
        Event::Wait { worker, cause, start, end } => Some(Line {
            track: None,
            wait: Some(wait_name(*cause).to_owned()),
            worker: worker.0,
            name: String::new(),
            start_ns: at(*start),
            end_ns: at(*end),
            bytes: 0,
        }),
        _ => None,
    }
}

fn event(line: Line) -> Option<Event> {
    let (worker, start, end) = (WorkerId(line.worker), Nanos::new(line.start_ns), Nanos::new(line.end_ns));
    if end < start {
        return None;
    }
    match (line.track, line.wait) {
        (Some(track), None) => {
            let track = TRACKS.into_iter().find(|t| t.name() == track)?;
            let (name, bytes) = (line.name.into(), Bytes::new(line.bytes));
            Some(Event::Span(Span { track, worker, name, start, end, bytes }))
        }
        (None, Some(cause)) => {
            let cause = CAUSES.into_iter().find(|c| wait_name(*c) == cause)?;
            Some(Event::Wait { worker, cause, start, end })
        }
        _ => None,
    }
}
