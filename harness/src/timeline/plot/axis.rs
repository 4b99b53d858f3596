//! The axis of time, and where everything stands beside it.

use prestage_vram::Nanos;

use super::palette::{GRID, MUTED};
use super::scale::{decimal_step, in_unit, unit_for};
use super::scene::{Scene, Type};

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
    pub(super) first: Nanos,
    pub(super) from: u64,
    pub(super) span: u64,
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

    pub(super) fn draw(&self, scene: &mut Scene, bottom: f64) {
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
