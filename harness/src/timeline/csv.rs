//! The timeline as comma-separated values (RFC 4180): one line per event, and one per idle piece.

use prestage_vram::{Bytes, Event, Nanos};

use super::Timeline;
use super::trace::wait_name;

const HEADER: [&str; 14] = [
    "kind", "what", "worker", "name", "start_ns", "end_ns", "bytes", "resident", "direct", "pooled",
    "retained", "usable", "budget", "message",
];

/// The timeline as CSV. Columns that mean nothing for a line are empty; times count from the first moment of the run.
#[must_use]
pub fn csv(timeline: &Timeline) -> String {
    let (first, _) = timeline.extent();
    let at = |t: Nanos| t.since(first).get().to_string();
    let amount = |b: Bytes| b.get().to_string();
    let mut table = Table::new();
    for event in timeline.events() {
        match event {
            Event::Span(span) => table.line(&[
                ("kind", "span".into()),
                ("what", span.track.name().into()),
                ("worker", span.worker.0.to_string()),
                ("name", span.name.to_string()),
                ("start_ns", at(span.start)),
                ("end_ns", at(span.end)),
                ("bytes", amount(span.bytes)),
            ]),
            Event::Wait { worker, cause, start, end } => table.line(&[
                ("kind", "wait".into()),
                ("what", wait_name(*cause).into()),
                ("worker", worker.0.to_string()),
                ("start_ns", at(*start)),
                ("end_ns", at(*end)),
            ]),
            Event::Level { at: when, label, level } => table.line(&[
                ("kind", "level".into()),
                ("name", label.to_string()),
                ("start_ns", at(*when)),
                ("resident", amount(level.resident)),
                ("direct", amount(level.direct)),
                ("pooled", amount(level.pooled)),
                ("retained", amount(level.retained)),
                ("usable", amount(level.usable)),
                ("budget", amount(level.budget)),
            ]),
            Event::Refusal { at: when, refused } => table.line(&[
                ("kind", "refusal".into()),
                ("what", refused.phase.into()),
                ("worker", refused.worker.0.to_string()),
                ("name", refused.label.into()),
                ("start_ns", at(*when)),
                ("bytes", amount(refused.need)),
                ("message", refused.to_string()),
            ]),
            Event::Trim { at: when, worker, freed } => table.line(&[
                ("kind", "trim".into()),
                ("worker", worker.0.to_string()),
                ("start_ns", at(*when)),
                ("bytes", amount(*freed)),
            ]),
            _ => {}
        }
    }
    for piece in timeline.idle().gaps.iter().flat_map(|gap| &gap.pieces) {
        table.line(&[
            ("kind", "idle".into()),
            ("what", piece.cause.name().into()),
            ("start_ns", at(piece.start)),
            ("end_ns", at(piece.end)),
        ]);
    }
    table.text
}

struct Table {
    text: String,
}

impl Table {
    fn new() -> Self {
        Self { text: HEADER.join(",") + "\r\n" }
    }

    fn line(&mut self, cells: &[(&str, String)]) {
        let of = |column: &str| {
            cells.iter().find(|(name, _)| *name == column).map_or_else(String::new, |(_, v)| quoted(v))
        };
        let line: Vec<String> = HEADER.iter().copied().map(of).collect();
        self.text += &line.join(",");
        self.text += "\r\n";
    }
}

/// A cell, quoted where it must be.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
