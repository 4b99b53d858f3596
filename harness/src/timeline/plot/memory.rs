//! Memory of the device over time, stacked by class, with what may be used and where requests were refused.

use prestage_vram::Bytes;

use super::axis::{Axis, LANES, RIGHT};
use super::font::Fonts;
use super::palette::{ALARM, GRID, Ink, LANE, MEMORY, MUTED, PAPER, TEXT};
use super::scale::{binary_step, short_bytes};
use super::scene::{Scene, Type};
use crate::timeline::Sample;
use crate::timeline::report::Account;

const HEIGHT: f64 = 150.0;
/// One amount of a sample.
type Amount = fn(&Sample) -> u64;

const CLASSES: [(&str, Amount); 4] = [
    ("resident", |s| s.resident),
    ("direct", |s| s.direct),
    ("pooled", |s| s.pooled),
    ("in the pool: freed, or queued work still uses it", |s| s.retained),
];

/// The amounts that the axis shows: a card that is hardly used shows its use, not its size.
fn top_of(account: Account<'_>) -> u64 {
    let peak = account.peak_bytes;
    let wanted = account.refusals.iter().map(|r| r.need_bytes).max().unwrap_or(0);
    let usable = account.memory.iter().map(|s| s.usable).max().unwrap_or(0);
    if peak.max(wanted) > usable / 5 || peak == 0 { peak.max(usable) } else { peak + peak / 3 }.max(1)
}

/// One value over time as steps; samples that fall on the same spot are drawn once, by the largest.
fn steps(account: Account<'_>, axis: Axis, value: impl Fn(&Sample) -> u64) -> Vec<(f64, u64)> {
    let mut out: Vec<(f64, u64)> = Vec::new();
    for sample in account.memory {
        let (x, v) = (axis.x_of(sample.at_ns), value(sample));
        match out.last() {
            Some((_, last)) if *last == v => {}
            _ => out.push((x, v)),
        }
    }
    out
}

/// Draws the panel from `top` and returns where it ends.
pub(super) fn draw(scene: &mut Scene, account: Account<'_>, axis: Axis, fonts: &Fonts, top: f64) -> f64 {
    let bottom = top + HEIGHT;
    let most = top_of(account);
    #[allow(clippy::cast_precision_loss)]
    let y = |bytes: u64| bottom - (bytes as f64 / most as f64).min(1.0) * (HEIGHT - 14.0);
    if account.memory.is_empty() && account.refusals.is_empty() {
        scene.text(LANES, top + 12.0, "memory of the device: nothing was recorded", Type::new(12.0, MUTED));
        return top + 20.0;
    }
    scene.rect(LANES, top, RIGHT - LANES, HEIGHT, LANE);
    axis.grid(scene, top, bottom);
    let step = binary_step(most, 5);
    for i in 0..=(most / step) {
        let at = y(i.saturating_mul(step));
        scene.line(vec![(LANES, at), (RIGHT, at)], GRID, 1.0);
        let label = if i == 0 { "0".to_owned() } else { short_bytes(i.saturating_mul(step)) };
        scene.text(LANES - 12.0, at + 4.0, label, Type::new(11.0, MUTED).right());
    }
    let end = axis.x_of(account.wall.get());
    stack(scene, account, axis, end, &y);
    limits(scene, account, axis, end, most, &y, top, fonts);
    refused(scene, account, axis, fonts, (top, bottom));
    scene.line(vec![(LANES, bottom), (RIGHT, bottom)], MUTED, 1.0);
    legend(scene, account, fonts, bottom + 20.0);
    bottom + 26.0
}

/// A tick at each refusal, and what was refused beside the first of those that stand close together.
fn refused(scene: &mut Scene, account: Account<'_>, axis: Axis, fonts: &Fonts, (top, bottom): (f64, f64)) {
    const CLOSE: f64 = 30.0;
    let mut labels: Vec<(f64, f64, String)> = Vec::new();
    for refusal in account.refusals {
        let x = axis.x_of(refusal.at_ns);
        scene.line(vec![(x, top), (x, bottom)], ALARM, 1.5);
        scene.area(vec![(x - 6.0, top - 9.0), (x + 6.0, top - 9.0), (x, top + 1.0)], ALARM);
        scene.tip(refusal.message.as_str());
        match labels.last_mut().filter(|(_, last, _)| x - *last < CLOSE) {
            Some((_, last, _)) => *last = x,
            None => {
                let (need, free) = (Bytes::new(refusal.need_bytes), Bytes::new(refusal.free_bytes));
                labels.push((x, x, format!("refused: {need} for {}, {free} free", refusal.label)));
            }
        }
    }
    let ends: Vec<f64> = labels.iter().skip(1).map(|(first, _, _)| *first).chain([RIGHT]).collect();
    for ((first, last, text), next) in labels.into_iter().zip(ends) {
        let w = fonts.width(&text, 12.5, true);
        let (right, left) = (last + 10.0, first - w - 10.0);
        let x = if right + w < next { right } else { left };
        if x >= LANES && x + w <= RIGHT {
            scene.rect(x - 4.0, top + 46.0, w + 8.0, 18.0, PAPER.alpha(0.85));
            scene.text(x, top + 59.0, text, Type::new(12.5, ALARM).bold());
        }
    }
}

/// The classes on top of each other. Each is drawn down to the bottom, the uppermost first.
fn stack(scene: &mut Scene, account: Account<'_>, axis: Axis, end: f64, y: &impl Fn(u64) -> f64) {
    for class in (0..CLASSES.len()).rev() {
        let upto =
            |s: &Sample| CLASSES[..=class].iter().map(|(_, of)| Bytes::new(of(s))).sum::<Bytes>().get();
        if CLASSES[class].1(&account.memory.iter().fold(Sample::default(), largest)) == 0 {
            continue;
        }
        let steps = steps(account, axis, upto);
        let Some(start) = steps.first().map(|(x, _)| *x) else { continue };
        let mut points = vec![(start, y(0))];
        let mut level = 0;
        for (x, v) in steps {
            points.push((x, y(level)));
            points.push((x, y(v)));
            level = v;
        }
        points.push((end, y(level)));
        points.push((end, y(0)));
        scene.area(points, MEMORY[class]);
        scene.tip(CLASSES[class].0);
    }
}

/// Class by class the larger amount.
fn largest(a: Sample, b: &Sample) -> Sample {
    Sample {
        at_ns: 0,
        resident: a.resident.max(b.resident),
        direct: a.direct.max(b.direct),
        pooled: a.pooled.max(b.pooled),
        retained: a.retained.max(b.retained),
        usable: a.usable.max(b.usable),
        budget: a.budget.max(b.budget),
    }
}

/// The lines at usable and at usable − margin, with their amounts.
#[allow(clippy::too_many_arguments)]
fn limits(
    scene: &mut Scene,
    account: Account<'_>,
    axis: Axis,
    end: f64,
    most: u64,
    y: &impl Fn(u64) -> f64,
    top: f64,
    fonts: &Fonts,
) {
    let Some(last) = account.memory.last() else { return };
    let style = Type::new(11.0, TEXT);
    if last.budget > most {
        let text = format!(
            "usable {}, usable − margin {}: far above this frame",
            Bytes::new(last.usable),
            Bytes::new(last.budget)
        );
        let w = fonts.width(&text, 11.0, false);
        scene.rect(RIGHT - w - 10.0, top + 2.0, w + 8.0, 16.0, PAPER.alpha(0.8));
        scene.text(RIGHT - 6.0, top + 14.0, text, style.right());
        return;
    }
    let lines: [(&str, Amount, u64, bool); 2] =
        [("usable", |s| s.usable, last.usable, false), ("usable − margin", |s| s.budget, last.budget, true)];
    for (name, of, amount, dashed) in lines {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (x, v) in steps(account, axis, of) {
            points.extend(points.last().map(|(_, y)| (x, *y)));
            points.push((x, y(v)));
        }
        // The limits hold before the first change and after the last one.
        let ends = points.first().zip(points.last()).map(|(first, last)| ((LANES, first.1), (end, last.1)));
        if let Some((first, last)) = ends {
            points.insert(0, first);
            points.push(last);
        }
        if dashed {
            scene.dashes(points, TEXT, 1.5);
        } else {
            scene.line(points, TEXT, 1.5);
        }
        let text = format!("{name} {}", Bytes::new(amount));
        let w = fonts.width(&text, 11.0, false);
        let line = y(amount);
        let base = if dashed { line + 13.0 } else { line - 4.0 };
        let x = LANES + 6.0;
        scene.rect(x - 2.0, base - 10.0, w + 4.0, 13.0, PAPER.alpha(0.75));
        scene.text(x, base, text, style);
    }
}

fn legend(scene: &mut Scene, account: Account<'_>, fonts: &Fonts, base: f64) {
    let style = Type::new(12.0, TEXT);
    let mut x = LANES;
    let mut entry = |scene: &mut Scene, ink: Option<Ink>, text: &str| {
        if let Some(ink) = ink {
            scene.rect(x, base - 10.0, 14.0, 12.0, ink);
            x += 20.0;
        }
        scene.text(x, base, text, style);
        x += fonts.width(text, 12.0, false) + 22.0;
    };
    entry(scene, None, "memory of the device:");
    let seen = account.memory.iter().fold(Sample::default(), largest);
    for ((name, of), ink) in CLASSES.into_iter().zip(MEMORY) {
        if of(&seen) > 0 {
            entry(scene, Some(ink), name);
        }
    }
    if !account.refusals.is_empty() {
        entry(scene, Some(ALARM), "a request was refused");
    }
    let peak = format!("peak {}", Bytes::new(account.peak_bytes));
    scene.text(RIGHT, base, peak, style.bold().right());
}
