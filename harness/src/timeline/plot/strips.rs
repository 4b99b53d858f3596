//! Runs under each other on one axis of time, a strip for each: when the card computed, and why it did not.

use prestage_vram::Nanos;

use super::axis::{LEFT, RIGHT, WIDTH};
use super::font::Fonts;
use super::palette::{self, GRID, MUTED, TEXT, WORK};
use super::scale::{decimal_step, in_unit, percent, time, unit_for};
use super::scene::{Scene, Type};
use super::vector;
use crate::Error;
use crate::timeline::{Idle, Timeline};

/// Where strips begin, right of their names.
const STRIPS: f64 = 190.0;
/// Where the longest of them ends; a few words stand right of it.
const END: f64 = RIGHT - 132.0;
const ROW: f64 = 23.0;
const HEIGHT: f64 = 17.0;
/// Shorter pieces are not seen, and not drawn.
const SEEN: f64 = 0.04;
/// Shorter pieces are not pointed at.
const POINTED: f64 = 1.0;

/// One strip.
pub(in crate::timeline) struct Strip<'a> {
    pub(in crate::timeline) name: String,
    /// Leaves some room above.
    pub(in crate::timeline) apart: bool,
    pub(in crate::timeline) timeline: &'a Timeline,
}

/// The strips over an axis of `span` nanoseconds, as an SVG element.
pub(in crate::timeline) fn svg(title: &str, strips: &[Strip<'_>], span: u64) -> Result<String, Error> {
    let fonts = Fonts::embedded()?;
    vector::write(&draw(title, strips, span, &fonts), &fonts)
}

/// The strips over an axis of `span` nanoseconds.
#[allow(clippy::cast_precision_loss)]
fn draw(title: &str, strips: &[Strip<'_>], span: u64, fonts: &Fonts) -> Scene {
    let mut scene = Scene::new(WIDTH, title);
    let x = |at: u64| STRIPS + (at as f64 / span.max(1) as f64).min(1.0) * (END - STRIPS);
    let tops: Vec<f64> = strips
        .iter()
        .scan(4.0, |top, strip| {
            *top += if strip.apart { 10.0 } else { 0.0 };
            let this = *top;
            *top += ROW;
            Some(this)
        })
        .collect();
    let bottom = tops.last().copied().unwrap_or(0.0) + ROW;

    let step = decimal_step(span, 12);
    let (unit_name, unit) = unit_for(span);
    for at in (0..=span / step).map(|i| i * step) {
        scene.line(vec![(x(at), 0.0), (x(at), bottom)], GRID, 1.0);
        scene.text(x(at), bottom + 16.0, in_unit(at, unit, step), Type::new(11.0, MUTED).middle());
    }
    scene.line(vec![(STRIPS, bottom), (END, bottom)], MUTED, 1.0);
    scene.text(STRIPS - 12.0, bottom + 16.0, format!("time, {unit_name}"), Type::new(11.0, MUTED).right());

    for (strip, top) in strips.iter().zip(tops) {
        let idle = strip.timeline.idle();
        let (name, size) = fonts.fit(&strip.name, 13.0, false, STRIPS - LEFT - 12.0);
        scene.text(STRIPS - 12.0, top + 13.0, name, Type::new(size, TEXT).right());
        one(&mut scene, &idle, top, x);
        let wall = idle.wall();
        let share = if wall > Nanos::ZERO { 100.0 * idle.busy.as_ms() / wall.as_ms() } else { 0.0 };
        let words = format!("{} · busy {}", time(wall), percent(share));
        scene.text(x(wall.get()) + 8.0, top + 13.0, words, Type::new(12.0, MUTED));
    }
    scene.height = bottom + 26.0;
    scene
}

fn one(scene: &mut Scene, idle: &Idle, top: f64, x: impl Fn(u64) -> f64) {
    let since = |at: Nanos| at.since(idle.first).get();
    // What lies between gaps is work.
    let starts = idle.gaps.iter().map(|gap| since(gap.start())).chain([since(idle.last)]);
    let ends = std::iter::once(0).chain(idle.gaps.iter().map(|gap| since(gap.end())));
    for (from, to) in ends.zip(starts) {
        let width = x(to) - x(from);
        if width >= SEEN {
            scene.rect(x(from), top, width, HEIGHT, WORK[0]);
        }
    }
    for piece in idle.gaps.iter().flat_map(|gap| &gap.pieces) {
        let (from, width) = (x(since(piece.start)), x(since(piece.end)) - x(since(piece.start)));
        if width >= SEEN {
            let tip = match width >= POINTED {
                true => format!("idle: {}, {}", piece.cause.name(), time(piece.end.since(piece.start))),
                false => String::new(),
            };
            scene.striped(from, top, width, HEIGHT, palette::of(piece.cause), &tip);
        }
    }
}
