//! Writes a scene as SVG 1.1 text, <https://www.w3.org/TR/SVG11/>.
//!
//! Written here and not by the SVG backend of `plotters`, for three reasons: positions keep their fractions, so that
//! a bar of a few microseconds appears when one zooms in; each bar has a title that shows when the pointer rests on
//! it; and each text carries the width it was laid out with (`textLength`), so that a viewer with another font
//! cannot make labels overlap.

use std::fmt::Write;

use super::font::{FAMILY, Fonts};
use super::palette::Ink;
use super::scene::{Align, Scene, Shape, Type, strokes};
use crate::Error;

pub(super) fn write(scene: &Scene, fonts: &Fonts) -> Result<String, Error> {
    let mut out = String::new();
    let draw = |out: &mut String| -> std::fmt::Result {
        let (w, h) = (scene.width, scene.height);
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" \
             role=\"img\" aria-label=\"{}\" font-family=\"{FAMILY}\">\n\
             <style>text,.hatch,.fill-plate{{pointer-events:none}}</style>\n",
            n(w),
            n(h),
            n(w),
            n(h),
            escape(&scene.title)
        )?;
        for item in &scene.items {
            shape(out, &item.shape, item.tip.as_deref(), fonts)?;
        }
        out.push_str("</svg>\n");
        Ok(())
    };
    draw(&mut out).map_err(|e| Error::Draw(e.to_string()))?;
    Ok(out)
}

/// A coordinate with as many decimals as a hundredfold zoom needs.
fn n(v: f64) -> String {
    let text = format!("{v:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text as XML: markup escaped, and characters that XML 1.0 forbids replaced.
pub(in crate::timeline) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn paint(kind: &str, ink: Ink) -> String {
    let mut text = format!(" {kind}=\"{}\"", ink.hex());
    if ink.alpha < 1.0 {
        let _ = write!(text, " {kind}-opacity=\"{}\"", n(ink.alpha));
    }
    if let Some(class) = ink.class {
        let _ = write!(text, " class=\"{kind}-{class}\"");
    }
    text
}

fn points(points: &[(f64, f64)]) -> String {
    let pairs: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", n(*x), n(*y))).collect();
    pairs.join(" ")
}

fn shape(out: &mut String, shape: &Shape, tip: Option<&str>, fonts: &Fonts) -> std::fmt::Result {
    let (open, close) = match tip {
        Some(tip) => (format!("><title>{}</title>", escape(tip)), true),
        None => ("/>".to_owned(), false),
    };
    let end = |name: &str| if close { format!("{open}</{name}>") } else { open.clone() };
    match shape {
        Shape::Rect { frame: f, fill } => writeln!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}{}",
            n(f.x),
            n(f.y),
            n(f.w),
            n(f.h),
            paint("fill", *fill),
            end("rect")
        ),
        Shape::Hatch { frame, ink } => {
            let path: Vec<String> = strokes(frame)
                .iter()
                .map(|[a, b]| format!("M{} {}L{} {}", n(a.0), n(a.1), n(b.0), n(b.1)))
                .collect();
            writeln!(
                out,
                "<path class=\"hatch\" d=\"{}\" fill=\"none\" stroke-width=\"1\"{}{}",
                path.concat(),
                paint("stroke", *ink),
                end("path")
            )
        }
        Shape::Line { points: p, ink, width, dashed } => writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke-width=\"{}\"{}{}{}",
            points(p),
            n(*width),
            if *dashed { " stroke-dasharray=\"5 4\"" } else { "" },
            paint("stroke", *ink),
            end("polyline")
        ),
        Shape::Area { points: p, ink } => {
            writeln!(out, "<polygon points=\"{}\"{}{}", points(p), paint("fill", *ink), end("polygon"))
        }
        Shape::Disc { at: (x, y), radius, ink } => writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}{}",
            n(*x),
            n(*y),
            n(*radius),
            paint("fill", *ink),
            end("circle")
        ),
        Shape::Text { at, text, style } => label(out, *at, text, style, tip, fonts),
    }
}

fn label(
    out: &mut String,
    (x, y): (f64, f64),
    text: &str,
    style: &Type,
    tip: Option<&str>,
    fonts: &Fonts,
) -> std::fmt::Result {
    let anchor = match style.align {
        Align::Left => "",
        Align::Middle => " text-anchor=\"middle\"",
        Align::Right => " text-anchor=\"end\"",
    };
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{anchor}{}{}>{}{}</text>",
        n(x),
        n(y),
        n(style.size),
        n(fonts.width(text, style.size, style.bold)),
        if style.bold { " font-weight=\"700\"" } else { "" },
        paint("fill", style.ink),
        tip.map(|tip| format!("<title>{}</title>", escape(tip))).unwrap_or_default(),
        escape(text)
    )
}
