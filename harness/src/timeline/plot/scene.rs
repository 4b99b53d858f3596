//! A drawing as a list of shapes. Coordinates are in points from the top left corner.

use super::palette::Ink;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

/// Where a text stands relative to its point. Its point is on the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) ink: Ink,
    pub(super) align: Align,
}

impl Type {
    pub(super) const fn new(size: f64, ink: Ink) -> Self {
        Self { size, bold: false, ink, align: Align::Left }
    }

    pub(super) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(super) const fn middle(self) -> Self {
        Self { align: Align::Middle, ..self }
    }

    pub(super) const fn right(self) -> Self {
        Self { align: Align::Right, ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Rect {
        frame: Frame,
        fill: Ink,
    },
    /// A band filled with diagonal strokes.
    Hatch {
        frame: Frame,
        ink: Ink,
    },
    Line {
        points: Vec<(f64, f64)>,
        ink: Ink,
        width: f64,
        dashed: bool,
    },
    Area {
        points: Vec<(f64, f64)>,
        ink: Ink,
    },
    Disc {
        at: (f64, f64),
        radius: f64,
        ink: Ink,
    },
    Text {
        at: (f64, f64),
        text: String,
        style: Type,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) shape: Shape,
    /// Shown when the pointer rests on it.
    pub(super) tip: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    /// What the drawing shows, for those who cannot see it.
    pub(super) title: String,
    pub(super) items: Vec<Item>,
}

impl Scene {
    pub(super) fn new(width: f64, title: impl Into<String>) -> Self {
        Self { width, height: 0.0, title: title.into(), items: Vec::new() }
    }

    fn add(&mut self, shape: Shape) {
        self.items.push(Item { shape, tip: None });
    }

    /// Gives the last shape a tip.
    pub(super) fn tip(&mut self, tip: impl Into<String>) {
        if let Some(item) = self.items.last_mut() {
            item.tip = Some(tip.into());
        }
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, fill: Ink) {
        self.add(Shape::Rect { frame: Frame { x, y, w, h }, fill });
    }

    pub(super) fn hatch(&mut self, x: f64, y: f64, w: f64, h: f64, ink: Ink) {
        self.add(Shape::Hatch { frame: Frame { x, y, w, h }, ink });
    }

    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, ink: Ink, width: f64) {
        self.add(Shape::Line { points, ink, width, dashed: false });
    }

    pub(super) fn dashes(&mut self, points: Vec<(f64, f64)>, ink: Ink, width: f64) {
        self.add(Shape::Line { points, ink, width, dashed: true });
    }

    pub(super) fn area(&mut self, points: Vec<(f64, f64)>, ink: Ink) {
        self.add(Shape::Area { points, ink });
    }

    pub(super) fn disc(&mut self, at: (f64, f64), radius: f64, ink: Ink) {
        self.add(Shape::Disc { at, radius, ink });
    }

    pub(super) fn text(&mut self, x: f64, y: f64, text: impl Into<String>, style: Type) {
        let text = text.into();
        if !text.is_empty() {
            self.add(Shape::Text { at: (x, y), text, style });
        }
    }

    /// A striped rectangle, as idle time is drawn.
    pub(super) fn striped(&mut self, x: f64, y: f64, w: f64, h: f64, ink: Ink, tip: &str) {
        self.rect(x, y, w, h, ink.alpha(0.35));
        if !tip.is_empty() {
            self.tip(tip);
        }
        self.hatch(x, y, w, h, ink);
    }
}

/// The strokes of a hatched band, clipped to it: lines that rise to the right, 5 points apart.
pub(super) fn strokes(frame: &Frame) -> Vec<[(f64, f64); 2]> {
    const STEP: f64 = 5.0;
    let Frame { x, y, w, h } = *frame;
    let mut strokes = Vec::new();
    // Each line is x + y = c. Counting from a multiple of the step keeps neighbouring bands in phase.
    let mut c = ((x + y) / STEP).ceil() * STEP;
    while c < x + y + w + h {
        let low = ((c - (y + h)).max(x), (c - x).min(y + h));
        let high = ((c - y).min(x + w), (c - (x + w)).max(y));
        strokes.push([low, high]);
        c += STEP;
    }
    strokes
}
