//! Runs made up by hand, with known times: a 16 GiB card, two workers, ten partitions.

use std::borrow::Cow;
use std::sync::Arc;

use prestage_harness::timeline::{Key, Load, Report, Timeline, Verified};
use prestage_vram::{Bytes, Cause, Event, Level, Nanos, Refused, Span, Track, WorkerId};

pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn span(
    track: Track,
    worker: u32,
    name: impl Into<Cow<'static, str>>,
    start: u64,
    end: u64,
) -> Event {
    let (start, end, worker) = (Nanos::new(start), Nanos::new(end), WorkerId(worker));
    Event::Span(Span { track, worker, name: name.into(), start, end, bytes: Bytes::ZERO })
}

pub(crate) fn wait(worker: u32, cause: Cause, start: u64, end: u64) -> Event {
    Event::Wait { worker: WorkerId(worker), cause, start: Nanos::new(start), end: Nanos::new(end) }
}

pub(crate) fn level(at: u64, level: Level) -> Event {
    Event::Level { at: Nanos::new(at), label: "test".into(), level }
}

pub(crate) fn refusal(at: u64) -> Event {
    let refused = Refused {
        label: "bc",
        need: Bytes::gib(8),
        free: Bytes::mib(6093),
        margin: Bytes::mib(512),
        retained: Bytes::mib(4659),
        budget: Bytes::mib(14_255),
        empty: Bytes::mib(14_255),
        worker: WorkerId(1),
        phase: "stage <&>",
        never: false,
        held: Vec::new(),
        driver: None,
    };
    Event::Refusal { at: Nanos::new(at), refused: Arc::new(refused) }
}

pub(crate) fn key(scenario: &str) -> Key {
    Key {
        scenario: scenario.into(),
        device: "sim:rtx-5070-ti-16g".into(),
        load: Load { circuit: "porep-32g".into(), constraints: 130_278_869, partitions: 10 },
        commit: "b2269e2".into(),
    }
}

pub(crate) fn verified(proofs: u64) -> Verified {
    Verified::check(0..proofs, |_| true).unwrap()
}

pub(crate) fn report(events: Vec<Event>) -> (Report, Timeline) {
    let timeline = Timeline::new(events);
    (Report::new(key("test"), verified(1), &timeline), timeline)
}

/// A schedule that is laid down step by step, in milliseconds.
struct Board {
    events: Vec<Event>,
    level: Level,
}

impl Board {
    fn span(&mut self, track: Track, worker: u32, name: &'static str, start: u64, ms: u64) -> u64 {
        self.events.push(span(track, worker, name, start * MS, (start + ms) * MS));
        start + ms
    }

    fn memory(&mut self, at: u64, change: impl FnOnce(&mut Level)) {
        change(&mut self.level);
        self.events.push(level(at * MS, self.level));
    }
}

/// Ten partitions by two workers. Staged: a, b and c are uploaded together and each is awaited alone. Unstaged: each
/// upload at the moment of use.
pub(crate) fn porep(staged: bool) -> Vec<Event> {
    let (usable, budget) = (Bytes::mib(14_767), Bytes::mib(14_255));
    let level = Level { usable, budget, resident: Bytes::mib(256), ..Level::default() };
    let mut board = Board { events: Vec::new(), level };
    board.memory(0, |_| {});
    let mut ready = [0, 0];
    let mut free = 0;
    for partition in 0..10 {
        let worker = partition % 2;
        let at = &mut ready[worker as usize];
        let mut t = board.span(Track::Host, worker, "synthesise", *at, 1300);
        if free > t {
            board.events.push(wait(worker, Cause::Turn, t * MS, free * MS));
            t = free;
        }
        let granted = t;
        t = board.span(Track::Memory, worker, "allocate a", t, 3);
        board.memory(t, |l| l.direct = Bytes::gib(4));
        if partition == 5 {
            board.events.push(refusal(t * MS));
            t = board.span(Track::Memory, worker, "trim", t, 45);
            board.memory(t, |l| l.retained = Bytes::ZERO);
        }
        t = board.span(Track::Memory, worker, "allocate bc", t, 4);
        board.memory(t, |l| l.direct = Bytes::gib(12));
        let mut up = t;
        let mut done = t;
        for (upload, ntt) in [("upload a", "ntt a"), ("upload b", "ntt b"), ("upload c", "ntt c")] {
            up = board.span(Track::Upload, worker, upload, if staged { up } else { up.max(done) }, 160);
            if up > done {
                board.events.push(wait(worker, Cause::Transfer, done * MS, up * MS));
            }
            done = board.span(Track::Compute, worker, ntt, up.max(done), 210);
        }
        t = board.span(Track::Compute, worker, "quotient", done, 60);
        board.memory(t, |l| l.direct = Bytes::gib(4));
        t = board.span(Track::Compute, worker, "ntt h", t, 140);
        board.memory(t, |l| l.pooled = Bytes::mib(4659));
        for batch in 0..4 {
            t = board.span(Track::Compute, worker, "msm h", t, 190);
            board.span(Track::Download, worker, "sums", t, 4);
            if !staged || batch == 3 {
                board.events.push(wait(worker, Cause::Sync, t * MS, (t + 22) * MS));
                t += 22;
            }
        }
        board.memory(t, |l| l.direct = Bytes::ZERO);
        for (name, ms) in [("msm l", 160), ("msm a", 190), ("msm b1", 90), ("msm b2", 240)] {
            board.events.push(span(Track::Launch, worker, name, t * MS, t * MS + 12_000));
            let start = t * MS + 12_000;
            board.events.push(span(Track::Compute, worker, name, start, (t + ms) * MS));
            t += ms;
        }
        board.memory(t, |l| (l.pooled, l.retained) = (Bytes::ZERO, Bytes::mib(4659)));
        board.events.push(wait(worker, Cause::Sync, t * MS, (t + 8) * MS));
        t += 8;
        board.memory(t, |l| l.retained = if partition == 4 { Bytes::mib(4659) } else { Bytes::ZERO });
        board.span(Track::Held, worker, "turn", granted, t - granted);
        free = t;
        *at = board.span(Track::Host, worker, "assemble", t, 700);
    }
    board.events
}

/// The report and the timeline of [`porep`].
pub(crate) fn porep_report(staged: bool) -> (Report, Timeline) {
    let timeline = Timeline::new(porep(staged));
    let name = if staged { "porep staged" } else { "porep unstaged" };
    let mut report = Report::new(key(name), verified(10), &timeline);
    report.parameter("workers", 2).parameter("margin", "512 MiB");
    for _ in 0..10 {
        let (policy, reason) =
            if staged { ("Full", "12.03 GiB fit a budget of 13.92 GiB") } else { ("None", "asked for") };
        report.plan(policy, reason);
    }
    report.phase("stage", Bytes::gib(12), Bytes::gib(12)).phase("h", Bytes::mib(8755), Bytes::mib(8755));
    (report, timeline)
}
