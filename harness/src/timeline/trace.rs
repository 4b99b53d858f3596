//! The timeline in the Chrome trace event format, which Perfetto and `chrome://tracing` open.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUMn5OOQtYMH4h6I0nSsKchNAySU>: complete events `X`, counters
//! `C`, instants `i`, names by metadata `M`. Times are microseconds since the first moment of the run. Events of one
//! thread must nest, so intervals that overlap get threads of their own.

use prestage_vram::{Bytes, Cause, Event, Nanos, Span, Track, WorkerId};
use serde_json::{Value, json};

use super::lanes::rows;
use super::{IdleCause, Report, Timeline};

/// The trace of a run on one device as JSON text.
#[must_use]
pub fn trace(report: &Report, timeline: &Timeline) -> String {
    trace_of(&[(report, timeline)])
}

/// The trace of a run on several devices with one clock: two processes for each, its lanes and its workers.
#[must_use]
pub fn trace_of(devices: &[(&Report, &Timeline)]) -> String {
    let mut out = Trace { first: Nanos::ZERO, events: Vec::new(), next: 1, device: 1, host: 2 };
    for (report, timeline) in devices {
        out.first = timeline.extent().0;
        let name = &report.key.device;
        let workers = if devices.len() > 1 { format!("workers of {name}") } else { "workers".to_owned() };
        out.meta("process_name", out.device, 0, &json!({ "name": format!("device {name}") }));
        out.meta("process_name", out.host, 0, &json!({ "name": workers }));
        out.add(timeline);
        out.device += 2;
        out.host += 2;
    }
    let names: Vec<_> = devices.iter().map(|(report, _)| report.key.device.as_str()).collect();
    let proofs: u64 = devices.iter().map(|(report, _)| report.verified.proofs()).sum();
    let key = devices.first().map(|(report, _)| &report.key);
    let text = json!({
        "displayTimeUnit": "ms",
        "traceEvents": out.events,
        "otherData": {
            "scenario": key.map(|key| &key.scenario),
            "device": names.join(","),
            "circuit": key.map(|key| &key.load.circuit),
            "commit": key.map(|key| &key.commit),
            "proofs": proofs,
        },
    });
    text.to_string()
}

/// An interval on a lane.
struct Bar {
    name: String,
    category: &'static str,
    start: Nanos,
    end: Nanos,
    args: Value,
}

impl Bar {
    fn of(span: &Span) -> Self {
        let mut args = json!({ "worker": span.worker.0 });
        if span.bytes > Bytes::ZERO {
            args["bytes"] = span.bytes.get().into();
        }
        let category = match span.track {
            Track::Compute => "compute",
            Track::Upload | Track::Download => "transfer",
            Track::Host => "host",
            Track::Memory => "memory",
            Track::Launch => "launch",
            _ => "turn",
        };
        Self { name: span.name.to_string(), category, start: span.start, end: span.end, args }
    }
}

/// The turns a worker held, or all else that it did.
fn bars_of(timeline: &Timeline, worker: WorkerId, held: bool) -> Vec<Bar> {
    let bars = timeline.events().iter().filter_map(|event| match event {
        Event::Span(span) if span.worker == worker => match span.track {
            Track::Held if held => Some(Bar::of(span)),
            Track::Host | Track::Memory if !held => Some(Bar::of(span)),
            _ => None,
        },
        Event::Wait { worker: w, cause, start, end } if *w == worker && !held => Some(Bar {
            name: format!("wait: {}", wait_name(*cause)),
            category: "wait",
            start: *start,
            end: *end,
            args: json!({ "worker": w.0 }),
        }),
        _ => None,
    });
    bars.collect()
}

/// The name of a wait.
pub(super) fn wait_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Alloc => "alloc",
        Cause::Transfer => "transfer",
        Cause::Sync => "sync",
        Cause::Turn => "turn",
        _ => "other",
    }
}

struct Trace {
    first: Nanos,
    events: Vec<Value>,
    next: u32,
    /// Process that shows the device's lanes and memory.
    device: u32,
    /// Process that shows the workers.
    host: u32,
}

impl Trace {
    /// All that happened on one device.
    fn add(&mut self, timeline: &Timeline) {
        self.idle(timeline);
        for (track, name) in [
            (Track::Compute, "compute"),
            (Track::Upload, "H2D"),
            (Track::Download, "D2H"),
            (Track::Launch, "launch"),
        ] {
            self.lane(self.device, name, timeline.on(track).map(Bar::of).collect());
        }
        for worker in timeline.workers() {
            self.lane(self.host, &format!("{worker} turn"), bars_of(timeline, worker, true));
            self.lane(self.host, &worker.to_string(), bars_of(timeline, worker, false));
        }
        self.moments(timeline);
    }

    fn us(at: Nanos) -> f64 {
        at.as_ms() * 1e3
    }

    fn meta(&mut self, what: &str, pid: u32, tid: u32, args: &Value) {
        self.events.push(json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": args }));
    }

    /// A named lane, over as many threads as it needs.
    fn lane(&mut self, pid: u32, name: &str, bars: Vec<Bar>) {
        let (row_of, count) = rows(bars.iter().map(|bar| (bar.start, bar.end)));
        let base = self.next;
        for tid in base.. {
            if usize::try_from(tid - base).map_or(true, |row| row >= count) {
                self.next = tid;
                break;
            }
            let label = if tid == base { name.to_owned() } else { format!("{name} {}", tid - base + 1) };
            self.meta("thread_name", pid, tid, &json!({ "name": label }));
            self.meta("thread_sort_index", pid, tid, &json!({ "sort_index": tid }));
        }
        for (bar, row) in bars.into_iter().zip(row_of) {
            let tid = base.saturating_add(u32::try_from(row).unwrap_or(u32::MAX));
            self.events.push(json!({
                "ph": "X", "name": bar.name, "cat": bar.category, "pid": pid, "tid": tid,
                "ts": Self::us(bar.start.since(self.first)), "dur": Self::us(bar.end.since(bar.start)),
                "args": bar.args,
            }));
        }
    }

    /// The idle time of the card as a lane of its own, named by cause.
    fn idle(&mut self, timeline: &Timeline) {
        let gaps = timeline.idle().gaps;
        let pieces = gaps.iter().flat_map(|gap| &gap.pieces).map(|piece| Bar {
            name: format!("idle: {}", IdleCause::name(piece.cause)),
            category: "idle",
            start: piece.start,
            end: piece.end,
            args: json!({}),
        });
        self.lane(self.device, "idle", pieces.collect());
    }

    /// Memory as counters, refusals and trims as instants.
    fn moments(&mut self, timeline: &Timeline) {
        for (at, level) in timeline.memory() {
            let ts = Self::us(at.since(self.first));
            self.events.push(json!({
                "ph": "C", "name": "memory", "pid": self.device, "tid": 0, "ts": ts,
                "args": {
                    "resident": level.resident.get(), "direct": level.direct.get(),
                    "pooled": level.pooled.get(), "retained": level.retained.get(),
                },
            }));
            self.events.push(json!({
                "ph": "C", "name": "limits", "pid": self.device, "tid": 0, "ts": ts,
                "args": { "usable": level.usable.get(), "usable - margin": level.budget.get() },
            }));
        }
        for event in timeline.events() {
            let (at, name, args) = match event {
                Event::Refusal { at, refused } => {
                    (at, "refusal", json!({ "message": refused.to_string(), "need": refused.need.get() }))
                }
                Event::Trim { at, worker, freed } => {
                    (at, "trim", json!({ "worker": worker.0, "freed": freed.get() }))
                }
                _ => continue,
            };
            self.events.push(json!({
                "ph": "i", "s": "p", "name": name, "cat": "memory", "pid": self.device, "tid": 0,
                "ts": Self::us(at.since(self.first)), "args": args,
            }));
        }
    }
}
