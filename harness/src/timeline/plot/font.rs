//! The one font, embedded: DejaVu Sans Condensed, whose widths are close to those of the usual sans-serif faces.

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};

use crate::Error;

/// Names for viewers of the SVG, who may have the font or something like it.
pub(super) const FAMILY: &str =
    "'DejaVu Sans Condensed', 'Helvetica Neue', Arial, 'Liberation Sans', Roboto, sans-serif";

pub(super) struct Fonts {
    regular: FontRef<'static>,
    bold: FontRef<'static>,
}

impl Fonts {
    pub(super) fn embedded() -> Result<Self, Error> {
        let read = |bytes| FontRef::try_from_slice(bytes).map_err(|e| Error::Draw(e.to_string()));
        Ok(Self {
            regular: read(dejavu::sans_condensed::regular())?,
            bold: read(dejavu::sans_condensed::bold())?,
        })
    }

    fn face(&self, bold: bool) -> &FontRef<'static> {
        if bold { &self.bold } else { &self.regular }
    }

    /// `size` is the em, as in CSS; the library scales by the height from descent to ascent.
    fn scale(font: &FontRef<'static>, size: f64) -> PxScale {
        #[allow(clippy::cast_possible_truncation)]
        let size = size as f32;
        let em = font.units_per_em().unwrap_or(2048.0);
        PxScale::from(size * font.height_unscaled() / em)
    }

    /// The width of a text in points.
    pub(super) fn width(&self, text: &str, size: f64, bold: bool) -> f64 {
        self.lay(text, size, bold).1
    }

    /// Calls `dot` with each pixel that the text covers, and how much of it.
    pub(super) fn draw(
        &self,
        text: &str,
        (x, y): (f64, f64),
        size: f64,
        bold: bool,
        mut dot: impl FnMut(i32, i32, f32),
    ) {
        let font = self.face(bold);
        for mut glyph in self.lay(text, size, bold).0 {
            #[allow(clippy::cast_possible_truncation)]
            let origin = point(x as f32, y.round() as f32);
            glyph.position += origin;
            if let Some(outline) = font.outline_glyph(glyph) {
                let min = outline.px_bounds().min;
                #[allow(clippy::cast_possible_truncation)]
                let (left, top) = (min.x as i32, min.y as i32);
                outline.draw(|dx, dy, cover| {
                    let at = |base: i32, d: u32| base.saturating_add(i32::try_from(d).unwrap_or(i32::MAX));
                    dot(at(left, dx), at(top, dy), cover.clamp(0.0, 1.0));
                });
            }
        }
    }

    /// Glyphs on a baseline that begins at the origin, and the advance.
    fn lay(&self, text: &str, size: f64, bold: bool) -> (Vec<Glyph>, f64) {
        let font = self.face(bold);
        let scale = Self::scale(font, size);
        let scaled = font.as_scaled(scale);
        let mut x = 0.0f32;
        let mut last = None;
        let mut glyphs = Vec::new();
        for c in text.chars() {
            let id = scaled.glyph_id(c);
            if let Some(last) = last {
                x += scaled.kern(last, id);
            }
            glyphs.push(id.with_scale_and_position(scale, point(x, 0.0)));
            x += scaled.h_advance(id);
            last = Some(id);
        }
        (glyphs, f64::from(x))
    }

    /// The first font size from `size` downwards in which the text fits, and the text, cut if it must be.
    pub(super) fn fit(&self, text: &str, size: f64, bold: bool, width: f64) -> (String, f64) {
        let mut size = size;
        while size > 11.0 && (text.len() > 2000 || self.width(text, size, bold) > width) {
            size -= 1.0;
        }
        // No line holds more than that, and each try measures all of it.
        let mut text: String = text.chars().take(500).collect();
        if self.width(&text, size, bold) > width {
            while !text.is_empty() && self.width(&format!("{text}…"), size, bold) > width {
                text.pop();
            }
            text.push('…');
        }
        (text, size)
    }
}
