//! The lanes: compute, copies, and one per worker; idle time shaded by cause through all of them.

use prestage_vram::{Bytes, Cause, Event, Nanos, Span, Track, WorkerId};

use super::axis::{Axis, LANES, RIGHT};
use super::font::Fonts;
use super::palette::{self, BLACK, DISC, DISC_TEXT, HELD, Ink, LANE, MUTED, PLATE, TEXT, WORK};
use super::scale::time;
use super::scene::{Scene, Type};
use crate::timeline::lanes::rows;
use crate::timeline::trace::wait_name;
use crate::timeline::{IdleCause, LongGap, Timeline};

/// Bars narrower than this are drawn together with their neighbours of the same colour.
const NARROW: f64 = 0.6;
/// What a bar is drawn wide at least, so that a short copy or a short call beside minutes of work is seen at all. Not
/// on the compute lane: there, width is the message.
const SEEN: f64 = 1.2;

#[derive(Clone, Debug)]
struct Bar {
    start: Nanos,
    end: Nanos,
    name: String,
    ink: Ink,
    /// Waits are outlined, work is filled.
    wait: bool,
    tip: String,
}

struct Lane {
    name: String,
    bars: Vec<Bar>,
    /// When this worker holds the turn.
    held: Vec<(Nanos, Nanos)>,
    row_height: f64,
    /// Least width of a bar.
    least: f64,
}

/// Gives each kind of work a tone, in order of first use: by the first word of its name.
struct Tones(Vec<String>);

impl Tones {
    fn of(&mut self, name: &str) -> Ink {
        let kind = name.split_whitespace().next().unwrap_or_default();
        let at = self.0.iter().position(|k| k == kind).unwrap_or_else(|| {
            self.0.push(kind.to_owned());
            self.0.len() - 1
        });
        WORK[at % WORK.len()]
    }
}

fn bar(span: &Span, ink: Ink) -> Bar {
    let length = span.end.since(span.start);
    let mut tip = format!("{} · {} · {}", span.name, span.worker, time(length));
    if span.bytes > Bytes::ZERO {
        tip += &format!(" · {}", span.bytes);
    }
    Bar { start: span.start, end: span.end, name: span.name.to_string(), ink, wait: false, tip }
}

/// The cause of idle time that a wait would explain.
fn idle_cause(cause: Cause) -> IdleCause {
    match cause {
        Cause::Alloc => IdleCause::Alloc,
        Cause::Transfer => IdleCause::Transfer,
        Cause::Sync => IdleCause::Sync,
        Cause::Turn => IdleCause::Turn,
        _ => IdleCause::Unattributed,
    }
}

/// The kernels and copies of one worker, by their start.
struct Own<'t> {
    spans: Vec<&'t Span>,
    longest: Nanos,
}

impl<'t> Own<'t> {
    fn of(timeline: &'t Timeline, worker: WorkerId) -> Self {
        let on_device = |span: &&Span| matches!(span.track, Track::Compute | Track::Upload | Track::Download);
        let spans: Vec<&Span> = timeline.spans().filter(|s| s.worker == worker).filter(on_device).collect();
        let longest = spans.iter().map(|s| s.end.since(s.start)).max().unwrap_or_default();
        Self { spans, longest }
    }

    /// Those that run at some time in an interval: binary search, then as many as can reach into it.
    fn during(&self, start: Nanos, end: Nanos) -> impl Iterator<Item = &&'t Span> {
        let before = self.spans.partition_point(|s| s.start + self.longest <= start);
        let after = self.spans.partition_point(|s| s.start < end).max(before);
        self.spans.get(before..after).unwrap_or_default().iter().filter(move |s| s.end > start)
    }
}

/// What a worker waits for, as it is drawn: the recorded cause, but while its own kernels run and its own copies do not,
/// it is results that it waits for, however they come back. Idle time has the recorded cause: no kernel runs then.
fn wait_bars(own: &Own<'_>, worker: WorkerId, cause: Cause, (start, end): (Nanos, Nanos)) -> Vec<Bar> {
    let bar = |start: Nanos, end: Nanos, computes: bool| {
        let (what, ink) = match computes {
            true => ("compute", WORK[0]),
            false => (wait_name(cause), palette::of(idle_cause(cause))),
        };
        let tip = format!("{worker} waits: {what} · {}", time(end.since(start)));
        Bar { start, end, name: format!("wait: {what}"), ink, wait: true, tip }
    };
    if !matches!(cause, Cause::Transfer | Cause::Sync) {
        return vec![bar(start, end, false)];
    }
    let mut edges: Vec<(Nanos, bool, bool)> = Vec::new();
    for span in own.during(start, end) {
        let computes = span.track == Track::Compute;
        edges.push((span.start.max(start), computes, true));
        edges.push((span.end.min(end), computes, false));
    }
    edges.push((end, true, false));
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let (mut kernels, mut copies, mut from) = (0_i64, 0_i64, start);
    let results = |kernels, copies| kernels > 0 && (copies == 0 || cause == Cause::Sync);
    let mut bars: Vec<Bar> = Vec::new();
    for (at, computes, opens) in edges {
        if at > from {
            let next = bar(from, at, results(kernels, copies));
            match bars.last_mut().filter(|last| last.name == next.name) {
                Some(last) => *last = bar(last.start, at, results(kernels, copies)),
                None => bars.push(next),
            }
            from = at;
        }
        *(if computes { &mut kernels } else { &mut copies }) += if opens { 1 } else { -1 };
    }
    bars
}

fn worker_lane(timeline: &Timeline, worker: WorkerId) -> Lane {
    let (mut bars, mut held) = (Vec::new(), Vec::new());
    let own = Own::of(timeline, worker);
    for event in timeline.events() {
        match event {
            Event::Span(span) if span.worker == worker => match span.track {
                Track::Host => bars.push(bar(span, palette::of(IdleCause::Host))),
                Track::Memory => bars.push(bar(span, palette::of(IdleCause::Alloc))),
                Track::Held => held.push((span.start, span.end)),
                _ => {}
            },
            Event::Wait { worker: w, cause, start, end } if *w == worker => {
                bars.extend(wait_bars(&own, worker, *cause, (*start, *end)));
            }
            _ => {}
        }
    }
    Lane { name: worker.to_string(), bars, held, row_height: 20.0, least: SEEN }
}

fn lanes(timeline: &Timeline) -> Vec<Lane> {
    let mut tones = Tones(Vec::new());
    let compute = timeline.on(Track::Compute).map(|s| bar(s, tones.of(&s.name))).collect();
    let copy = palette::of(IdleCause::Transfer);
    let copies = |track| timeline.on(track).map(|s| bar(s, copy)).collect();
    let device = |name: &str, bars, row_height, least| Lane {
        name: name.into(),
        bars,
        held: Vec::new(),
        row_height,
        least,
    };
    let mut lanes = vec![
        device("compute", compute, 34.0, 0.3),
        device("H2D", copies(Track::Upload), 20.0, SEEN),
        device("D2H", copies(Track::Download), 20.0, SEEN),
    ];
    lanes.extend(timeline.workers().into_iter().map(|worker| worker_lane(timeline, worker)));
    lanes
}

/// Draws the lanes from `top` and returns where they end.
pub(super) fn draw(
    scene: &mut Scene,
    longest: &[LongGap],
    timeline: &Timeline,
    axis: Axis,
    fonts: &Fonts,
    top: f64,
) -> f64 {
    const STRIP: f64 = 5.0;
    const APART: f64 = 7.0;
    let lanes = lanes(timeline);
    let packed: Vec<(Vec<usize>, usize)> =
        lanes.iter().map(|lane| rows(lane.bars.iter().map(|b| (b.start, b.end)))).collect();
    #[allow(clippy::cast_precision_loss)]
    let height = |lane: &Lane, count: usize| {
        lane.row_height * count.max(1) as f64 + if lane.held.is_empty() { 0.0 } else { STRIP }
    };
    let heights: Vec<f64> = lanes.iter().zip(&packed).map(|(lane, (_, n))| height(lane, *n)).collect();
    #[allow(clippy::cast_precision_loss)]
    let bottom = top + heights.iter().sum::<f64>() + APART * lanes.len() as f64;

    let mut y = top;
    for h in &heights {
        scene.rect(LANES, y, RIGHT - LANES, *h, LANE);
        y += h + APART;
    }
    let idle = timeline.idle();
    let pieces = merged(
        idle.gaps
            .iter()
            .flat_map(|gap| &gap.pieces)
            .filter(|p| axis.shows(p.start, p.end))
            .map(|p| (axis.x(p.start), axis.x(p.end), p.cause)),
    );
    for (left, right, cause) in &pieces {
        scene.rect(*left, top, right - left, bottom - top - APART, palette::of(*cause).alpha(0.14));
    }
    axis.grid(scene, top, bottom);
    // Idle time on the compute lane itself.
    for (left, right, cause) in &pieces {
        let ink = palette::of(*cause);
        let h = heights.first().copied().unwrap_or(0.0);
        let tip = format!("idle: {} · {}", cause.name(), cause.meaning());
        scene.striped(*left, top, right - left, h, ink, &tip);
        plate(scene, fonts, cause.name(), (*left, *right), top + h / 2.0);
    }
    let mut y = top;
    for ((lane, (row_of, _)), h) in lanes.iter().zip(&packed).zip(&heights) {
        let (name, row) = (lane.name.as_str(), lane.row_height);
        scene.text(LANES - 12.0, y + (h / 2.0 + 4.5), name, Type::new(12.5, TEXT).right());
        draw_bars(scene, axis, fonts, lane, row_of, y, row);
        for (start, end) in lane.held.iter().filter(|(start, end)| axis.shows(*start, *end)) {
            let (left, right) = (axis.x(*start), axis.x(*end));
            scene.rect(left, y + h - STRIP + 1.0, right - left, STRIP - 1.0, HELD);
            scene.tip(format!("{} holds the turn · {}", lane.name, time(end.since(*start))));
        }
        y += h + APART;
    }
    numbers(scene, longest, axis, top);
    bottom
}

/// What the colours of the lanes mean: kinds of device work, host work, waits, turns.
pub(super) fn legend(scene: &mut Scene, timeline: &Timeline, fonts: &Fonts, base: f64) -> f64 {
    const SIZE: f64 = 12.0;
    /// More kinds than this would fill the line.
    const KINDS: usize = 8;
    let mut x = LANES;
    let mut tones = Tones(Vec::new());
    timeline.on(Track::Compute).for_each(|span| {
        tones.of(&span.name);
    });
    let text = |scene: &mut Scene, x: &mut f64, text: &str, after: f64| {
        scene.text(*x, base, text, Type::new(SIZE, TEXT));
        *x += fonts.width(text, SIZE, false) + after;
    };
    let block = |scene: &mut Scene, x: &mut f64, ink: Ink| {
        scene.rect(*x, base - 10.0, 14.0, 12.0, ink);
        *x += 20.0;
    };
    if !tones.0.is_empty() {
        text(scene, &mut x, "device work:", 12.0);
    }
    for (i, kind) in tones.0.iter().enumerate().take(KINDS) {
        block(scene, &mut x, WORK[i % WORK.len()]);
        text(scene, &mut x, kind, 18.0);
    }
    x += 14.0;
    block(scene, &mut x, palette::of(IdleCause::Transfer));
    text(scene, &mut x, "copy (H2D in, D2H out)", 18.0);
    block(scene, &mut x, palette::of(IdleCause::Host));
    text(scene, &mut x, "host work", 18.0);
    block(scene, &mut x, palette::of(IdleCause::Alloc));
    text(scene, &mut x, "memory call", 18.0);
    scene.rect(x, base - 5.5, 22.0, 3.0, palette::of(IdleCause::Turn));
    scene.rect(x, base - 10.0, 1.5, 12.0, palette::of(IdleCause::Turn));
    scene.rect(x + 20.5, base - 10.0, 1.5, 12.0, palette::of(IdleCause::Turn));
    x += 28.0;
    text(scene, &mut x, "wait, in the colour of what it is for", 18.0);
    scene.rect(x, base - 6.0, 22.0, 4.0, HELD);
    x += 28.0;
    text(scene, &mut x, "holds the turn", 0.0);
    base
}

/// A word on a light plate in the middle of a stretch, where it fits.
fn plate(scene: &mut Scene, fonts: &Fonts, text: &str, (left, right): (f64, f64), middle: f64) {
    let w = fonts.width(text, 11.0, false);
    if !text.is_empty() && w + 14.0 <= right - left {
        let x = (left + right) / 2.0;
        scene.rect(x - w / 2.0 - 4.0, middle - 8.0, w + 8.0, 16.0, PLATE);
        scene.text(x, middle + 4.0, text, Type::new(11.0, BLACK).middle());
    }
}

/// Joins neighbours that are too narrow to see, if they have the same cause.
fn merged(pieces: impl Iterator<Item = (f64, f64, IdleCause)>) -> Vec<(f64, f64, IdleCause)> {
    let mut out: Vec<(f64, f64, IdleCause)> = Vec::new();
    for (left, right, cause) in pieces {
        match out.last_mut() {
            Some(last) if last.2 == cause && right - left < NARROW && left - last.1 < NARROW / 4.0 => {
                last.1 = right;
            }
            _ => out.push((left, right, cause)),
        }
    }
    out
}

/// Left, right, colour and number of bars too narrow to see alone.
type Run = (f64, f64, Ink, usize);

fn draw_bars(
    scene: &mut Scene,
    axis: Axis,
    fonts: &Fonts,
    lane: &Lane,
    row_of: &[usize],
    top: f64,
    row: f64,
) {
    let mut last: Vec<Option<Run>> = Vec::new();
    #[allow(clippy::cast_precision_loss)]
    let y_of = |r: usize| top + row * r as f64 + 1.5;
    let h = row - 3.0;
    let least = lane.least;
    let flush = |scene: &mut Scene, r: usize, run: Option<Run>| {
        if let Some((left, right, ink, count)) = run {
            scene.rect(left, y_of(r), (right - left).max(least), h, ink);
            scene.tip(format!("{count} short {}", if count == 1 { "span" } else { "spans" }));
        }
    };
    let shown = lane.bars.iter().zip(row_of.iter().copied()).filter(|(b, _)| axis.shows(b.start, b.end));
    for (bar, r) in shown {
        let (left, right) = (axis.x(bar.start), axis.x(bar.end));
        last.resize(last.len().max(r + 1), None);
        if right - left < NARROW && !bar.wait {
            match &mut last[r] {
                Some((_, end, ink, count)) if *ink == bar.ink && left - *end < NARROW => {
                    *end = right;
                    *count += 1;
                }
                run => {
                    flush(scene, r, run.take());
                    *run = Some((left, right, bar.ink, 1));
                }
            }
            continue;
        }
        flush(scene, r, last[r].take());
        draw_bar(scene, fonts, bar, (left, right.max(left + least)), y_of(r), h);
    }
    for (r, run) in last.into_iter().enumerate() {
        flush(scene, r, run);
    }
}

fn draw_bar(scene: &mut Scene, fonts: &Fonts, bar: &Bar, (left, right): (f64, f64), y: f64, h: f64) {
    let w = right - left;
    let size = if h > 24.0 { 12.0 } else { 11.0 };
    let base = y + h / 2.0 + size * 0.36;
    let with_time = format!("{}  {}", bar.name, time(bar.end.since(bar.start)));
    let fits = |text: &str| fonts.width(text, size, false) + 8.0 <= w;
    let label = [with_time.as_str(), bar.name.as_str()].into_iter().find(|text| fits(text)).unwrap_or("");
    if bar.wait {
        // A wait is a thin line between two posts: time that passes without work.
        scene.rect(left, y + h / 2.0 - 1.5, w, 3.0, bar.ink);
        if w > 3.0 {
            scene.rect(left, y + 2.0, 1.5, h - 4.0, bar.ink);
            scene.rect(right - 1.5, y + 2.0, 1.5, h - 4.0, bar.ink);
        }
        // A clear rectangle, so that the tip shows beside the line as well.
        scene.rect(left, y, w, h, bar.ink.alpha(0.0));
        scene.tip(bar.tip.as_str());
        plate(scene, fonts, label, (left, right), y + h / 2.0);
    } else {
        // A sliver of the lane stays free, so that bars that touch can be told apart.
        let sliver = if w > 12.0 { 0.6 } else { 0.0 };
        scene.rect(left, y, w - sliver, h, bar.ink);
        scene.tip(bar.tip.as_str());
        scene.text(left + 5.0, base, label, Type::new(size, bar.ink.contrast()));
    }
}

/// Numbers over the longest gaps, moved apart where they would touch.
fn numbers(scene: &mut Scene, longest: &[LongGap], axis: Axis, top: f64) {
    const APART: f64 = 19.0;
    let mut marks: Vec<(f64, usize, String)> = longest
        .iter()
        .enumerate()
        .filter(|(_, gap)| axis.shows_since(gap.start_ns, gap.end_ns))
        .map(|(i, gap)| {
            let x = (axis.x_of(gap.start_ns) + axis.x_of(gap.end_ns)) / 2.0;
            (x, i + 1, format!("gap {}: {} by {}", i + 1, time(gap.len()), gap.cause.name()))
        })
        .collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut at: Vec<f64> = marks.iter().map(|mark| mark.0).collect();
    for i in 1..at.len() {
        at[i] = at[i].max(at[i - 1] + APART);
    }
    // What was pushed past the right edge is pushed back.
    let mut limit = RIGHT - 9.0;
    for x in at.iter_mut().rev() {
        *x = x.min(limit);
        limit = *x - APART;
    }
    for ((x, number, tip), drawn) in marks.into_iter().zip(at) {
        scene.line(vec![(drawn, top - 16.0), (x, top)], MUTED, 1.0);
        scene.disc((drawn, top - 16.0), 8.5, DISC);
        scene.tip(tip);
        scene.text(drawn, top - 12.2, number.to_string(), Type::new(10.5, DISC_TEXT).bold().middle());
    }
}
