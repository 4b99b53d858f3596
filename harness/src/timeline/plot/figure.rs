//! Puts the parts of the picture under each other on one axis of time.

use prestage_vram::{Nanos, Span, Track};

use super::axis::{Axis, LANES, LEFT, RIGHT, WIDTH};
use super::font::Fonts;
use super::palette::{self, ALARM, GRID, MUTED, TEXT, WORK};
use super::scale::{percent, time};
use super::scene::{Scene, Type};
use super::words::{headline, rate, subtitle, tiles};
use super::{gantt, memory, panels};
use crate::timeline::part::longest;
use crate::timeline::report::{Account, refusals, samples};
use crate::timeline::{Chapter, IdleCause, Part, Report, Timeline};

fn head(scene: &mut Scene, report: &Report, fonts: &Fonts) -> f64 {
    let width = RIGHT - LEFT;
    let (text, size) = fonts.fit(&headline(report), 20.0, true, width);
    scene.text(LEFT, 36.0, text, Type::new(size, TEXT).bold());
    let (text, size) = fonts.fit(&subtitle(report), 12.5, false, width);
    scene.text(LEFT, 58.0, text, Type::new(size, MUTED));
    let mut y = 58.0;
    if let Some(complaint) = report.complaint() {
        y += 20.0;
        let (text, size) = fonts.fit(&complaint, 12.5, true, width);
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
            Some(cause) => scene.striped(x, top, w, 24.0, palette::of(cause), &tip),
        }
        x += w;
        match cause {
            None => scene.rect(key, top + 34.0, 14.0, 12.0, WORK[0]),
            Some(cause) => scene.striped(key, top + 34.0, 14.0, 12.0, palette::of(cause), ""),
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
        let (text, size) = fonts.fit(text, style.size, style.bold, RIGHT - LEFT);
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
    let (text, size) = fonts.fit(&says, 15.0, true, RIGHT - LEFT);
    scene.text(LEFT, top + 22.0, text, Type::new(size, ink).bold());
    let mut about = about;
    if let Some(report) = part.report() {
        let (rate, peak) = (rate(report.proofs_per_minute), prestage_vram::Bytes::new(report.peak_bytes));
        about = format!("{rate} proofs per minute  ·  peak {peak}  ·  {refused} refusals  ·  {about}");
    }
    let (text, size) = fonts.fit(&about, 12.5, false, RIGHT - LEFT);
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
    let (text, size) = fonts.fit(title, 20.0, true, RIGHT - LEFT);
    scene.text(LEFT, 36.0, text, Type::new(size, TEXT).bold());
    let (text, size) = fonts.fit(words, 13.5, false, RIGHT - LEFT);
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
