//! Paints a scene on a `plotters` bitmap and packs it as PNG.

use plotters::backend::{BitMapBackend, DrawingBackend};
use plotters::style::{Color, RGBAColor, RGBColor, ShapeStyle};

use super::font::Fonts;
use super::palette::{Ink, PAPER};
use super::scene::{Align, Scene, Shape, strokes};
use crate::Error;

/// Pixels per point.
const SCALE: f64 = 2.0;

/// A coordinate in pixels.
#[allow(clippy::cast_possible_truncation)]
fn px(points: f64) -> i32 {
    (points * SCALE).round() as i32
}

fn style(ink: Ink, filled: bool, width: f64) -> ShapeStyle {
    let (r, g, b) = ink.rgb;
    let stroke_width = u32::try_from(px(width)).unwrap_or(1).max(1);
    ShapeStyle { color: RGBColor(r, g, b).mix(ink.alpha), filled, stroke_width }
}

pub(super) fn paint(scene: &Scene, fonts: &Fonts) -> Result<Vec<u8>, Error> {
    let size = |points: f64| u32::try_from(px(points)).unwrap_or(0).max(1);
    let (width, height) = (size(scene.width), size(scene.height));
    let mut pixels = vec![255u8; width as usize * height as usize * 3];
    {
        let mut painter = Painter { board: BitMapBackend::with_buffer(&mut pixels, (width, height)), fonts };
        let whole = (scene.width, scene.height);
        painter.rect((0.0, 0.0), whole, &style(PAPER, true, 1.0))?;
        for item in &scene.items {
            painter.shape(&item.shape)?;
        }
        painter.board.present().map_err(|e| Error::Draw(e.to_string()))?;
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let packed = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels)?;
        writer.finish()
    });
    packed.map_err(|e| Error::Draw(e.to_string()))?;
    Ok(file)
}

struct Painter<'a> {
    board: BitMapBackend<'a>,
    fonts: &'a Fonts,
}

impl Painter<'_> {
    /// Both corners in points. What is thinner than a pixel is painted as one.
    fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), style: &ShapeStyle) -> Result<(), Error> {
        let (left, top) = (px(x), px(y));
        // The corners of the backend are both inside.
        let (right, bottom) = (px(x + w).max(left + 1) - 1, px(y + h).max(top + 1) - 1);
        self.board
            .draw_rect((left, top), (right, bottom), style, true)
            .map_err(|e| Error::Draw(e.to_string()))
    }

    fn path(&mut self, points: &[(f64, f64)], style: &ShapeStyle) -> Result<(), Error> {
        let path: Vec<(i32, i32)> = points.iter().map(|(x, y)| (px(*x), px(*y))).collect();
        self.board.draw_path(path, style).map_err(|e| Error::Draw(e.to_string()))
    }

    /// A polyline in dashes of 5 points with 4 between them.
    fn dashes(&mut self, points: &[(f64, f64)], style: &ShapeStyle) -> Result<(), Error> {
        const DASH: f64 = 5.0;
        const PERIOD: f64 = 9.0;
        let mut done = 0.0;
        for pair in points.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let length = (b.0 - a.0).hypot(b.1 - a.1);
            if length == 0.0 {
                continue;
            }
            let at = |d: f64| (a.0 + (b.0 - a.0) * d / length, a.1 + (b.1 - a.1) * d / length);
            let mut from = -(done % PERIOD);
            while from < length {
                let (start, end) = (from.max(0.0), (from + DASH).min(length));
                if end > start {
                    self.path(&[at(start), at(end)], style)?;
                }
                from += PERIOD;
            }
            done += length;
        }
        Ok(())
    }

    fn shape(&mut self, shape: &Shape) -> Result<(), Error> {
        match shape {
            Shape::Rect { frame: f, fill } => self.rect((f.x, f.y), (f.w, f.h), &style(*fill, true, 1.0)),
            Shape::Hatch { frame, ink } => {
                strokes(frame).iter().try_for_each(|stroke| self.path(stroke, &style(*ink, false, 1.0)))
            }
            Shape::Line { points, ink, width, dashed: false } => {
                self.path(points, &style(*ink, false, *width))
            }
            Shape::Line { points, ink, width, dashed: true } => {
                self.dashes(points, &style(*ink, false, *width))
            }
            Shape::Area { points, ink } => {
                let corners: Vec<(i32, i32)> = points.iter().map(|(x, y)| (px(*x), px(*y))).collect();
                self.board
                    .fill_polygon(corners, &style(*ink, true, 1.0))
                    .map_err(|e| Error::Draw(e.to_string()))
            }
            Shape::Disc { at: (x, y), radius, ink } => {
                let radius = u32::try_from(px(*radius)).unwrap_or(0);
                self.board
                    .draw_circle((px(*x), px(*y)), radius, &style(*ink, true, 1.0), true)
                    .map_err(|e| Error::Draw(e.to_string()))
            }
            Shape::Text { at: (x, y), text, style } => {
                let width = self.fonts.width(text, style.size, style.bold);
                let left = match style.align {
                    Align::Left => *x,
                    Align::Middle => x - width / 2.0,
                    Align::Right => x - width,
                };
                let (r, g, b) = style.ink.rgb;
                let board = &mut self.board;
                let mut drawn = Ok(());
                self.fonts.draw(
                    text,
                    (left * SCALE, y * SCALE),
                    style.size * SCALE,
                    style.bold,
                    |x, y, cover| {
                        let color = RGBAColor(r, g, b, f64::from(cover) * style.ink.alpha);
                        let (w, h) = board.get_size();
                        let inside = |v: i32, end: u32| u32::try_from(v).is_ok_and(|v| v < end);
                        if drawn.is_ok() && inside(x, w) && inside(y, h) {
                            drawn = board.draw_pixel((x, y), color.to_backend_color());
                        }
                    },
                );
                drawn.map_err(|e| Error::Draw(e.to_string()))
            }
        }
    }
}
