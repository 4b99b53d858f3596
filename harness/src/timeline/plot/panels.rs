//! Below the lanes: the wall by cause, idle time by length of gap, and the ten longest gaps.

use prestage_vram::Nanos;

use super::axis::{LEFT, RIGHT};
use super::font::Fonts;
use super::palette::{self, DISC, DISC_TEXT, GRID, Ink, MUTED, TEXT, WORK};
use super::scale::{percent, time};
use super::scene::{Scene, Type};
use super::words::grouped;
use crate::timeline::{Bin, Difference, IdleCause, LongGap, Report};

const ROW: f64 = 22.0;

/// Draws the three panels from `top` and returns where the longest of them ends.
pub(super) fn draw(scene: &mut Scene, report: &Report, fonts: &Fonts, top: f64) -> f64 {
    let a = causes(scene, report, top, LEFT, 440.0);
    let b = histogram(scene, report, top, 500.0, 830.0);
    let c = longest(scene, report, fonts, top, 866.0, RIGHT);
    a.max(b).max(c)
}

fn heading(scene: &mut Scene, text: &str, x: f64, y: f64, right: f64) {
    scene.text(x, y, text, Type::new(13.5, TEXT).bold());
    scene.line(vec![(x, y + 8.0), (right, y + 8.0)], GRID, 1.0);
}

fn causes(scene: &mut Scene, report: &Report, top: f64, x: f64, right: f64) -> f64 {
    heading(scene, "Where the wall time went", x, top, right);
    let times = &report.times;
    let (small, right_small) = (Type::new(12.5, TEXT), Type::new(12.5, TEXT).right());
    let mut y = top + 28.0;
    let mut row = |scene: &mut Scene, name: &str, span: Nanos, ink: Option<(Ink, bool)>, bold: bool| {
        match ink {
            Some((ink, true)) => scene.striped(x, y - 10.0, 14.0, 12.0, ink, ""),
            Some((ink, false)) => scene.rect(x, y - 10.0, 14.0, 12.0, ink),
            None => scene.line(vec![(x, y - 15.0), (right, y - 15.0)], GRID, 1.0),
        }
        let style = |t: Type| if bold { t.bold() } else { t };
        scene.text(x + 22.0, y, name, style(small));
        scene.text(x + 200.0, y, time(span), style(right_small));
        scene.text(x + 270.0, y, percent(times.percent(span)), style(right_small));
        scene.text(
            right,
            y,
            format!("{} ns", grouped(span.get())),
            Type { ink: MUTED, ..style(right_small) },
        );
        y += ROW;
    };
    row(scene, "busy", times.busy(), Some((WORK[0], false)), false);
    for (cause, span) in times.idle().iter().filter(|(_, t)| *t > Nanos::ZERO) {
        row(scene, cause.name(), span, Some((palette::of(cause), true)), false);
    }
    row(scene, "wall", times.wall(), None, true);
    y - ROW + 10.0
}

/// Two runs of one load: both values and the difference, row by row. Draws nothing of runs that measure other things.
pub(super) fn differences(
    scene: &mut Scene,
    (a, left): (&str, &Report),
    (b, right): (&str, &Report),
    fonts: &Fonts,
    top: f64,
) -> f64 {
    const COLUMN: f64 = 200.0;
    let Ok(difference) = Difference::new(left, right) else { return top };
    let (first, second, third) =
        (LEFT + 180.0 + COLUMN, LEFT + 180.0 + 2.0 * COLUMN, LEFT + 180.0 + 3.0 * COLUMN);
    heading(scene, "Compared", LEFT, top, third);
    // Of `A: scenario` the letter: the rest stands over the lanes.
    let short = |name: &'_ str| name.split(':').next().unwrap_or_default().to_owned();
    for (text, x) in [(short(a), first), (short(b), second), ("difference".to_owned(), third)] {
        let (text, size) = fonts.fit(&text, 12.5, true, COLUMN - 20.0);
        scene.text(x, top, text, Type::new(size, TEXT).bold().right());
    }
    let mut y = top + 28.0;
    for row in difference.rows(left, right) {
        match row.cause {
            Some(cause) => scene.striped(LEFT, y - 10.0, 14.0, 12.0, palette::of(cause), ""),
            None if row.name == "busy" => scene.rect(LEFT, y - 10.0, 14.0, 12.0, WORK[0]),
            None => {}
        }
        scene.text(LEFT + 22.0, y, row.name, Type::new(12.5, TEXT));
        scene.text(first, y, row.left, Type::new(12.5, TEXT).right());
        scene.text(second, y, row.right, Type::new(12.5, TEXT).right());
        scene.text(third, y, row.change, Type::new(12.5, TEXT).bold().right());
        y += ROW;
    }
    y - ROW + 10.0
}

/// `< 10 µs`, `10–100 µs`, `1–10 ms`, `≥ 1 s`.
pub(in crate::timeline) fn range(bin: &Bin) -> String {
    let plain = |ns: u64| time(Nanos::new(ns)).replace(".00", "").replace(".0", "");
    match bin.below_ns {
        None => format!("≥ {}", plain(bin.from_ns)),
        Some(end) if bin.from_ns == 0 => format!("< {}", plain(end)),
        Some(end) => {
            let (from, to) = (plain(bin.from_ns), plain(end));
            match (from.split_once(' '), to.split_once(' ')) {
                (Some((a, unit)), Some((_, same))) if unit == same => format!("{a}–{to}"),
                // The next unit begins: write the lower end in it, too.
                (_, Some((end, unit))) => format!("{}–{end} {unit}", "0.1"),
                _ => format!("{from} –"),
            }
        }
    }
}

fn histogram(scene: &mut Scene, report: &Report, top: f64, x: f64, right: f64) -> f64 {
    const HEIGHT: f64 = 140.0;
    heading(scene, "Idle time by length of gap", x, top, right);
    let bins = &report.histogram;
    let bottom = top + 40.0 + HEIGHT;
    let most = bins.iter().map(|bin| bin.idle_ns.total()).max().unwrap_or_default().as_ms();
    #[allow(clippy::cast_precision_loss)]
    let pitch = (right - x) / bins.len().max(1) as f64;
    for (i, bin) in bins.iter().enumerate() {
        #[allow(clippy::cast_precision_loss)]
        let left = x + pitch * i as f64;
        let middle = left + pitch / 2.0;
        let mut y = bottom;
        for (cause, span) in bin.idle_ns.iter().filter(|(_, t)| *t > Nanos::ZERO) {
            let h = if most > 0.0 { span.as_ms() / most * (HEIGHT - 18.0) } else { 0.0 };
            y -= h;
            let tip = format!("{}: {} in {} gaps", cause.name(), time(span), bin.gaps);
            scene.striped(left + 4.0, y, pitch - 8.0, h, palette::of(cause), &tip);
        }
        if bin.gaps > 0 {
            scene.text(middle, y - 16.0, time(bin.idle_ns.total()), Type::new(10.5, TEXT).middle());
            let count = format!("{} {}", bin.gaps, if bin.gaps == 1 { "gap" } else { "gaps" });
            scene.text(middle, y - 4.0, count, Type::new(10.0, MUTED).middle());
        }
        scene.text(middle, bottom + 14.0, range(bin), Type::new(10.0, MUTED).middle());
    }
    scene.line(vec![(x, bottom), (right, bottom)], MUTED, 1.0);
    bottom + 24.0
}

/// What computed before and after a gap.
pub(in crate::timeline) fn neighbours(gap: &LongGap) -> String {
    let before = gap.before.as_deref().unwrap_or("start");
    let after = gap.after.as_deref().unwrap_or("end");
    format!("{before} → {after}")
}

/// The causes of a gap, the largest first; with their shares where there are several. What is less than a twentieth
/// of the gap is left out.
pub(in crate::timeline) fn causes_of(gap: &LongGap) -> String {
    let mut parts: Vec<(IdleCause, Nanos)> = gap.idle_ns.iter().filter(|(_, t)| *t > Nanos::ZERO).collect();
    parts.sort_by_key(|(_, t)| std::cmp::Reverse(*t));
    let share = |t: Nanos| 100.0 * t.as_ms() / gap.len().as_ms();
    parts.retain(|(_, t)| share(*t) >= 5.0);
    let named = |(cause, t): &(IdleCause, Nanos)| match parts.len() {
        1 => cause.name().to_owned(),
        _ => format!("{} {:.0} %", cause.name(), share(*t)),
    };
    parts.iter().map(named).collect::<Vec<_>>().join(", ")
}

fn longest(scene: &mut Scene, report: &Report, fonts: &Fonts, top: f64, x: f64, right: f64) -> f64 {
    heading(scene, "The longest gaps", x, top, right);
    let mut y = top + 28.0;
    if report.longest.is_empty() {
        scene.text(x, y, "none", Type::new(12.5, MUTED));
    }
    for (i, gap) in report.longest.iter().enumerate() {
        let small = Type::new(12.0, TEXT);
        scene.disc((x + 8.0, y - 4.0), 8.5, DISC);
        scene.text(x + 8.0, y - 0.2, (i + 1).to_string(), Type::new(10.5, DISC_TEXT).bold().middle());
        scene.text(x + 76.0, y, time(gap.len()), small.right());
        scene.striped(x + 86.0, y - 10.0, 12.0, 12.0, palette::of(gap.cause), "");
        let (text, size) = fonts.fit(&causes_of(gap), 12.0, false, 150.0);
        scene.text(x + 104.0, y, text, Type::new(size, TEXT));
        let (text, size) = fonts.fit(&neighbours(gap), 12.0, false, right - x - 264.0);
        scene.text(x + 264.0, y, text, Type::new(size, MUTED));
        y += ROW;
    }
    y - ROW + 10.0
}
