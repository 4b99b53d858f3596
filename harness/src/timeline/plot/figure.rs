//! Puts the parts of the picture under each other on one axis of time.

use prestage_vram::{Nanos, Span, Track};

use super::font::Fonts;
use super::palette::{self, ALARM, GRID, Ink, MUTED, TEXT, WORK};
use super::scale::{decimal_step, in_unit, percent, time, unit_for};
use super::scene::{Scene, Type};
use super::{gantt, memory, panels};
use crate::timeline::part::longest;
use crate::timeline::report::{Account, refusals, samples};
use crate::timeline::{Chapter, IdleCause, Part, Report, Timeline};

/// Width of the picture and its margins.
pub(super) const WIDTH: f64 = 1400.0;
pub(super) const LEFT: f64 = 24.0;
pub(super) const RIGHT: f64 = WIDTH - 24.0;
/// Where lanes begin, right of their names.
pub(super) const LANES: f64 = 116.0;

/// The axis of time: `span` nanoseconds over the width of the lanes, beginning `from` nanoseconds after the first
/// moment of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    first: Nanos,
    from: u64,
    span: u64,
}

impl Axis {
    pub(super) fn x(&self, at: Nanos) -> f64 {
        self.x_of(at.since(self.first).get())
    }

    /// As [`Axis::x`] for a time since the first moment.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn x_of(&self, since: u64) -> f64 {
        let share = since.saturating_sub(self.from) as f64 / self.span.max(1) as f64;
        LANES + share.min(1.0) * (RIGHT - LANES)
    }

    /// The round moments that are marked, and the step between them.
    pub(super) fn ticks(&self) -> (Vec<u64>, u64) {
        let step = decimal_step(self.span, 15);
        let end = self.from.saturating_add(self.span);
        ((self.from.div_ceil(step)..=end / step).map(|i| i * step).collect(), step)
    }

    /// Whether any of an interval lies within the axis; moments at its ends do.
    pub(super) fn shows(&self, start: Nanos, end: Nanos) -> bool {
        self.shows_since(start.since(self.first).get(), end.since(self.first).get())
    }

    /// As [`Axis::shows`] for times since the first moment.
    pub(super) fn shows_since(&self, start: u64, end: u64) -> bool {
        start <= self.from.saturating_add(self.span) && end >= self.from
    }

    fn draw(&self, scene: &mut Scene, bottom: f64) {
        let (ticks, step) = self.ticks();
        let (name, unit) = unit_for(self.from.saturating_add(self.span));
        for at in ticks {
            let x = self.x_of(at);
            scene.line(vec![(x, bottom), (x, bottom + 4.0)], MUTED, 1.0);
            scene.text(x, bottom + 16.0, in_unit(at, unit, step), Type::new(11.0, MUTED).middle());
        }
        scene.line(vec![(LANES, bottom), (RIGHT, bottom)], MUTED, 1.0);
        scene.text(LANES - 12.0, bottom + 16.0, format!("time, {name}"), Type::new(11.0, MUTED).right());
    }

    pub(super) fn grid(&self, scene: &mut Scene, top: f64, bottom: f64) {
        for at in self.ticks().0 {
            let x = self.x_of(at);
            scene.line(vec![(x, top), (x, bottom)], GRID, 1.0);
        }
    }
}

/// What a device is called in a sentence.
fn noun(device: &str) -> &'static str {
    if device == "host" || device.starts_with("host@") { "CPU" } else { "card" }
}

/// In one or two sentences: how much of the time the device computed, and what it waited for.
pub(in crate::timeline) fn headline(report: &Report) -> String {
    let times = &report.times;
    let wall = times.wall();
    if wall == Nanos::ZERO {
        return "Nothing was recorded.".to_owned();
    }
    let busy = times.percent(times.busy());
    let mut text = format!("The {} was busy {} of {}.", noun(&report.key.device), percent(busy), time(wall));
    let mut causes: Vec<(IdleCause, f64)> =
        times.idle().iter().map(|(cause, t)| (cause, times.percent(t))).filter(|(_, p)| *p > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    // The causes that make up most of the idle time, two at most, and none worth less than half a per cent.
    let enough = 0.75 * (100.0 - busy);
    let mut named = 0.0;
    let mut parts = Vec::new();
    for (cause, share) in causes {
        if share < 0.5 || named >= enough || parts.len() == 2 {
            break;
        }
        named += share;
        let (name, share) = (cause.name(), percent(share));
        parts.push(match cause {
            IdleCause::Unattributed => format!("for reasons that were not recorded ({name}, {share})"),
            _ => format!("because {} ({name}, {share})", cause.meaning()),
        });
    }
    if !parts.is_empty() {
        text += " Idle mainly ";
        text += &parts.join(" and ");
        text += ".";
    }
    text
}

/// Scenario, device and the rest of what identifies the run.
pub(in crate::timeline) fn subtitle(report: &Report) -> String {
    let key = &report.key;
    let proofs = report.verified.proofs();
    let mut parts = vec![
        key.scenario.clone(),
        format!("device {}", key.device),
        format!("{}, {} constraints", key.load.circuit, grouped(key.load.constraints)),
        format!("{proofs} {} verified", if proofs == 1 { "proof" } else { "proofs" }),
    ];
    let mut policies: Vec<&str> = report.plans.iter().map(|plan| plan.policy.as_str()).collect();
    policies.dedup();
    if !policies.is_empty() {
        parts.push(format!("policy {}", policies.join(", ")));
    }
    parts.push(format!("commit {}", key.commit));
    parts.join("  ·  ")
}

/// Digits in groups of three.
pub(in crate::timeline) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// The figures of the run that are read first: name and value.
pub(in crate::timeline) fn tiles(report: &Report) -> Vec<(&'static str, String)> {
    let times = &report.times;
    let budget = report.memory.iter().map(|s| s.budget).max().unwrap_or(0);
    let peak = prestage_vram::Bytes::new(report.peak_bytes);
    vec![
        ("busy (a kernel runs)", percent(times.percent(times.busy()))),
        ("held (someone has the turn)", percent(times.percent(times.held()))),
        ("proofs per minute", rate(report.proofs_per_minute)),
        ("wall time", time(times.wall())),
        (
            "peak memory / budget",
            if budget == 0 {
                peak.to_string()
            } else {
                format!("{peak} / {}", prestage_vram::Bytes::new(budget))
            },
        ),
        ("refusals", report.refusals.len().to_string()),
    ]
}

/// Proofs per minute, three figures or so.
pub(in crate::timeline) fn rate(per_minute: f64) -> String {
    if per_minute >= 100.0 { format!("{per_minute:.0}") } else { format!("{per_minute:.1}") }
}

/// The first font size from `size` downwards in which the text fits, and the text, cut if it must be.
pub(super) fn fit(fonts: &Fonts, text: &str, size: f64, bold: bool, width: f64) -> (String, f64) {
    let mut size = size;
    while size > 11.0 && (text.len() > 2000 || fonts.width(text, size, bold) > width) {
        size -= 1.0;
    }
    // No line holds more than that, and each try measures all of it.
    let mut text: String = text.chars().take(500).collect();
    if fonts.width(&text, size, bold) > width {
        while !text.is_empty() && fonts.width(&format!("{text}…"), size, bold) > width {
            text.pop();
        }
        text.push('…');
    }
    (text, size)
}

/// A striped rectangle, as idle time is drawn.
pub(super) fn striped(scene: &mut Scene, x: f64, y: f64, w: f64, h: f64, ink: Ink, tip: &str) {
    scene.rect(x, y, w, h, ink.alpha(0.35));
    if !tip.is_empty() {
        scene.tip(tip);
    }
    scene.hatch(x, y, w, h, ink);
}

fn head(scene: &mut Scene, report: &Report, fonts: &Fonts) -> f64 {
    let width = RIGHT - LEFT;
    let (text, size) = fit(fonts, &headline(report), 20.0, true, width);
    scene.text(LEFT, 36.0, text, Type::new(size, TEXT).bold());
    let (text, size) = fit(fonts, &subtitle(report), 12.5, false, width);
    scene.text(LEFT, 58.0, text, Type::new(size, MUTED));
    let mut y = 58.0;
    if let Some(complaint) = report.complaint() {
        y += 20.0;
        let (text, size) = fit(fonts, &complaint, 12.5, true, width);
        scene.text(LEFT, y, text, Type::new(size, ALARM).bold());
    }
    let tiles = tiles(report);
    let mut x = LEFT;
    for (name, value) in tiles {
        let alarm = name == "refusals" && value != "0";
        scene.text(x, y + 26.0, name, Type::new(11.5, MUTED));
        scene.text(x, y + 50.0, value.as_str(), Type::new(20.0, if alarm { ALARM } else { TEXT }).bold());
        x += fonts.width(name, 11.5, false).max(fonts.width(&value, 20.0, true)) + 44.0;
    }
    y + 66.0
}

/// The wall as one bar: work, then the causes, widest first; below it what each colour means.
fn wall_bar(scene: &mut Scene, report: &Report, fonts: &Fonts, top: f64) -> f64 {
    let times = &report.times;
    let width = RIGHT - LEFT;
    let mut parts = vec![("busy", times.percent(times.busy()), None)];
    let mut causes: Vec<(IdleCause, Nanos)> = times.idle().iter().filter(|(_, t)| *t > Nanos::ZERO).collect();
    causes.sort_by_key(|(_, t)| std::cmp::Reverse(*t));
    parts.extend(causes.iter().map(|(c, t)| (c.name(), times.percent(*t), Some(*c))));
    let mut x = LEFT;
    let mut key = LEFT;
    for (name, share, cause) in parts {
        let w = width * share / 100.0;
        let tip = format!("{name}: {} of the wall", percent(share));
        match cause {
            None => {
                scene.rect(x, top, w, 24.0, WORK[0]);
                scene.tip(tip);
            }
            Some(cause) => striped(scene, x, top, w, 24.0, palette::of(cause), &tip),
        }
        x += w;
        match cause {
            None => scene.rect(key, top + 34.0, 14.0, 12.0, WORK[0]),
            Some(cause) => striped(scene, key, top + 34.0, 14.0, 12.0, palette::of(cause), ""),
        }
        let label = format!("{name} {}", percent(share));
        scene.text(key + 20.0, top + 44.5, label.as_str(), Type::new(12.5, TEXT));
        key += 20.0 + fonts.width(&label, 12.5, false) + 26.0;
    }
    if !causes.is_empty() {
        scene.text(RIGHT, top + 44.5, "striped: idle", Type::new(12.0, MUTED).right());
    }
    top + 58.0
}

/// Lanes, axis, memory, and one turn enlarged; returns where it ends.
fn lanes_and_memory(
    scene: &mut Scene,
    report: &Report,
    timeline: &Timeline,
    axis: Axis,
    fonts: &Fonts,
    top: f64,
) -> f64 {
    let bottom = gantt::draw(scene, &report.longest, timeline, axis, fonts, top);
    axis.draw(scene, bottom);
    let bottom = gantt::legend(scene, timeline, fonts, bottom + 40.0);
    let bottom = memory::draw(scene, report.account(), axis, fonts, bottom + 24.0);
    match one_turn(timeline, axis.first) {
        Some(turn) => enlarged(scene, report, timeline, turn, fonts, bottom + 34.0),
        None => bottom,
    }
}

/// The lanes during one turn, under a line that says which; returns where they end.
fn enlarged(
    scene: &mut Scene,
    report: &Report,
    timeline: &Timeline,
    (turn, axis): (&Span, Axis),
    fonts: &Fonts,
    top: f64,
) -> f64 {
    let (from, to) = (turn.start.since(axis.first), turn.end.since(axis.first));
    let text = format!("One turn, enlarged: {}, from {} to {}", turn.worker, time(from), time(to));
    scene.text(LANES, top, text, Type::new(13.5, TEXT).bold());
    let bottom = gantt::draw(scene, &report.longest, timeline, axis, fonts, top + 38.0);
    axis.draw(scene, bottom);
    bottom + 20.0
}

/// Of a run with many turns the middle one, with an axis for it and a little of what is around it: there the phases
/// can be read.
fn one_turn(timeline: &Timeline, first: Nanos) -> Option<(&Span, Axis)> {
    const MANY: usize = 5;
    let turns: Vec<&Span> = timeline.on(Track::Held).collect();
    let turn = *turns.get(turns.len() / 2).filter(|_| turns.len() >= MANY)?;
    let length = turn.end.since(turn.start).get();
    let around = length / 20;
    let from = turn.start.since(first).get().saturating_sub(around);
    (length > 0).then_some((turn, Axis { first, from, span: length.saturating_add(2 * around) }))
}

/// The whole picture.
pub(super) fn full(report: &Report, timeline: &Timeline, fonts: &Fonts) -> Scene {
    let mut scene = Scene::new(WIDTH, format!("{}: {}", report.key.scenario, headline(report)));
    let axis = Axis { first: timeline.extent().0, from: 0, span: report.times.wall().get() };
    let y = head(&mut scene, report, fonts);
    let y = wall_bar(&mut scene, report, fonts, y);
    let y = lanes_and_memory(&mut scene, report, timeline, axis, fonts, y + 34.0);
    scene.height = panels::draw(&mut scene, report, fonts, y + 34.0) + 20.0;
    scene
}

/// Lanes and memory of a schedule that proves nothing, under a headline of its own.
pub(super) fn schedule(headline: &str, about: &str, timeline: &Timeline, fonts: &Fonts) -> Scene {
    let mut scene = Scene::new(WIDTH, headline.to_owned());
    let (first, last) = timeline.extent();
    let (memory, refusals) = (samples(timeline, first), refusals(timeline, first));
    let account = Account::new(&memory, &refusals, last.since(first));
    let axis = Axis { first, from: 0, span: account.wall.get() };
    for (text, y, style) in
        [(headline, 36.0, Type::new(20.0, TEXT).bold()), (about, 58.0, Type::new(12.5, MUTED))]
    {
        let (text, size) = fit(fonts, text, style.size, style.bold, RIGHT - LEFT);
        scene.text(LEFT, y, text, Type { size, ..style });
    }
    let bottom = gantt::draw(&mut scene, &[], timeline, axis, fonts, 84.0);
    axis.draw(&mut scene, bottom);
    let bottom = gantt::legend(&mut scene, timeline, fonts, bottom + 40.0);
    scene.height = memory::draw(&mut scene, account, axis, fonts, bottom + 24.0) + 20.0;
    scene
}

/// One part among several: its name, what came of it, lanes and memory. Returns where it ends.
fn part(scene: &mut Scene, part: &Part<'_>, span: u64, fonts: &Fonts, top: f64) -> f64 {
    let timeline = part.timeline();
    let axis = Axis { first: timeline.extent().0, from: 0, span };
    let (says, about) = match part {
        Part::Run { report, .. } => (headline(report), subtitle(report)),
        Part::Schedule { headline, about, .. } => ((*headline).to_owned(), (*about).to_owned()),
    };
    scene.text(LEFT, top, part.name(), Type::new(17.0, TEXT).bold());
    let refused = part.account().1.len();
    let ink = if refused > 0 { ALARM } else { TEXT };
    let (text, size) = fit(fonts, &says, 15.0, true, RIGHT - LEFT);
    scene.text(LEFT, top + 22.0, text, Type::new(size, ink).bold());
    let mut about = about;
    if let Some(report) = part.report() {
        let (rate, peak) = (rate(report.proofs_per_minute), prestage_vram::Bytes::new(report.peak_bytes));
        about = format!("{rate} proofs per minute  ·  peak {peak}  ·  {refused} refusals  ·  {about}");
    }
    let (text, size) = fit(fonts, &about, 12.5, false, RIGHT - LEFT);
    scene.text(LEFT, top + 42.0, text, Type::new(size, MUTED));
    let longest = part.report().map_or(&[][..], |report| &report.longest);
    let lanes = top + if longest.is_empty() { 56.0 } else { 80.0 };
    let bottom = gantt::draw(scene, longest, timeline, axis, fonts, lanes);
    axis.draw(scene, bottom);
    let end = axis.x_of(part.span().get());
    if refused > 0 && part.report().is_none() && RIGHT - end > 180.0 {
        scene.text(end + 10.0, lanes + 22.0, "stopped here", Type::new(15.0, ALARM).bold());
    }
    let (memory, refusals) = part.account();
    let account = Account::new(&memory, &refusals, part.span());
    let bottom = gantt::legend(scene, timeline, fonts, bottom + 40.0);
    memory::draw(scene, account, axis, fonts, bottom + 20.0)
}

/// Several timelines under each other on one axis, `span` nanoseconds long.
pub(super) fn combined(title: &str, parts: &[Part<'_>], span: u64, fonts: &Fonts) -> Scene {
    let mut scene = Scene::new(WIDTH, title.to_owned());
    let mut top = 28.0;
    for (i, each) in parts.iter().enumerate() {
        if i > 0 {
            scene.line(vec![(LEFT, top - 30.0), (RIGHT, top - 30.0)], GRID, 1.0);
        }
        top = part(&mut scene, each, span, fonts, top) + 56.0;
    }
    scene.height = top - 36.0;
    scene
}

/// The picture of a chapter: heading and words, then as [`combined`], then the differences where two runs are compared.
pub(super) fn together(chapter: &Chapter<'_>, fonts: &Fonts) -> Scene {
    let Chapter { heading, words, parts, devices } = *chapter;
    let title = heading.unwrap_or_default();
    let mut scene = Scene::new(WIDTH, title.to_owned());
    let (text, size) = fit(fonts, title, 20.0, true, RIGHT - LEFT);
    scene.text(LEFT, 36.0, text, Type::new(size, TEXT).bold());
    let (text, size) = fit(fonts, words, 13.5, false, RIGHT - LEFT);
    scene.text(LEFT, 60.0, text, Type::new(size, TEXT));
    let span = longest(parts);
    let mut top = if words.is_empty() { 74.0 } else { 96.0 };
    for each in parts {
        top = part(&mut scene, each, span, fonts, top) + 44.0;
    }
    if let [Part::Run { name: a, report: left, .. }, Part::Run { name: b, report: right, .. }] = parts
        && !devices
    {
        top = panels::differences(&mut scene, (a, left), (b, right), fonts, top) + 34.0;
    }
    scene.height = top - 14.0;
    scene
}

/// One turn of a run with many, alone.
pub(super) fn turn(report: &Report, timeline: &Timeline, fonts: &Fonts) -> Option<Scene> {
    let found = one_turn(timeline, timeline.extent().0)?;
    let mut scene = Scene::new(WIDTH, format!("{}: one turn", report.key.scenario));
    scene.height = enlarged(&mut scene, report, timeline, found, fonts, 24.0) + 8.0;
    Some(scene)
}

/// Lanes and memory over `span` nanoseconds.
pub(super) fn chart(report: &Report, timeline: &Timeline, span: u64, fonts: &Fonts) -> Scene {
    let mut scene = Scene::new(WIDTH, format!("{}: {}", report.key.scenario, headline(report)));
    let axis = Axis { first: timeline.extent().0, from: 0, span };
    scene.height = lanes_and_memory(&mut scene, report, timeline, axis, fonts, 34.0) + 8.0;
    scene
}
