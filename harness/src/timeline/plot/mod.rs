//! The picture: one drawing, written as SVG or painted as PNG.
//!
//! `figure` lays a report and its timeline out as a [`scene::Scene`] of rectangles, lines and text; `vector` writes a
//! scene as SVG, `raster` paints it on a `plotters` bitmap. Both measure text with the one embedded font, so neither
//! looks for fonts on the system.

mod axis;
mod figure;
mod font;
mod gantt;
mod memory;
pub(super) mod palette;
pub(super) mod panels;
mod raster;
pub(super) mod scale;
mod scene;
pub(super) mod strips;
pub(super) mod vector;
pub(super) mod words;

use font::Fonts;

use super::part::{comparable, longest};
use super::{Chapter, Part, Report, Timeline};
use crate::Error;

/// The whole picture as an SVG document.
///
/// # Errors
/// [`Error::Draw`] when the embedded font cannot be read.
pub fn svg(report: &Report, timeline: &Timeline) -> Result<String, Error> {
    let fonts = Fonts::embedded()?;
    vector::write(&figure::full(report, timeline, &fonts), &fonts)
}

/// The whole picture as the bytes of a PNG file, at twice the size of the SVG so that it stays sharp.
///
/// # Errors
/// [`Error::Draw`].
pub fn png(report: &Report, timeline: &Timeline) -> Result<Vec<u8>, Error> {
    let fonts = Fonts::embedded()?;
    raster::paint(&figure::full(report, timeline, &fonts), &fonts)
}

/// Lanes and memory of a schedule that proves nothing, so that there is no report of it: a headline, a line about it,
/// when the lanes were taken, and the account. Busy and idle shares are not given.
///
/// # Errors
/// [`Error::Draw`] when the embedded font cannot be read.
pub fn schedule(headline: &str, about: &str, timeline: &Timeline) -> Result<String, Error> {
    let fonts = Fonts::embedded()?;
    vector::write(&figure::schedule(headline, about, timeline, &fonts), &fonts)
}

/// A chapter as an SVG document: its timelines under each other on one axis, and for two runs what they differ in.
///
/// # Errors
/// [`Error::Incomparable`] when the loads or the numbers of proofs differ; [`Error::Draw`].
pub fn svg_of(chapter: &Chapter<'_>) -> Result<String, Error> {
    comparable(chapter)?;
    let fonts = Fonts::embedded()?;
    vector::write(&figure::together(chapter, &fonts), &fonts)
}

/// As [`svg_of`], as the bytes of a PNG file.
///
/// # Errors
/// As [`svg_of`].
pub fn png_of(chapter: &Chapter<'_>) -> Result<Vec<u8>, Error> {
    comparable(chapter)?;
    let fonts = Fonts::embedded()?;
    raster::paint(&figure::together(chapter, &fonts), &fonts)
}

/// The lanes and the memory of one run alone, for a page that says the rest in text.
pub(super) fn chart(report: &Report, timeline: &Timeline) -> Result<String, Error> {
    let fonts = Fonts::embedded()?;
    let span = report.times.wall().get();
    vector::write(&figure::chart(report, timeline, span, &fonts), &fonts)
}

/// The same for several on one axis.
pub(super) fn charts(title: &str, parts: &[Part<'_>]) -> Result<String, Error> {
    let fonts = Fonts::embedded()?;
    vector::write(&figure::combined(title, parts, longest(parts), &fonts), &fonts)
}

/// One turn of a run with many, enlarged; none of a run with few.
pub(super) fn turn(report: &Report, timeline: &Timeline) -> Result<Option<String>, Error> {
    let fonts = Fonts::embedded()?;
    figure::turn(report, timeline, &fonts).map(|scene| vector::write(&scene, &fonts)).transpose()
}
