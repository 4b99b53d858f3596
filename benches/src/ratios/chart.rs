//! The ratios of a run over sizes, one panel per operation.

use std::error::Error as Any;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Ratios, Row};
use crate::Error;

/// Of a panel, in pixels.
const PANEL: (u32, u32) = (520, 340);
/// Above the panels, in pixels.
const HEAD: u32 = 34;
/// By where the inputs were, in colours that people with any kind of colour vision tell apart (Okabe and Ito).
const COLOURS: [(&str, RGBColor); 4] = [
    ("resident", RGBColor(0, 114, 178)),
    ("pinned", RGBColor(213, 94, 0)),
    ("pageable", RGBColor(0, 158, 115)),
    ("device", RGBColor(204, 121, 167)),
];
const GREY: RGBColor = RGBColor(110, 110, 110);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) fn svg(ratios: &Ratios) -> Result<String, Error> {
    let panels = names(ratios.rows.iter().map(|row| row.parts().0));
    if panels.is_empty() {
        return Err(Error::Chart("nothing was measured".into()));
    }
    let mut svg = String::new();
    draw(ratios, &panels, &mut svg).map_err(|error| Error::Chart(error.to_string()))?;
    Ok(svg)
}

/// Each once, in order of appearance.
fn names<'r>(all: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut names = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn draw(ratios: &Ratios, panels: &[&str], svg: &mut String) -> Result<(), Box<dyn Any>> {
    let columns = panels.len().min(2);
    let lines = panels.len().div_ceil(columns);
    let size = (PANEL.0 * u32::try_from(columns)?, PANEL.1 * u32::try_from(lines)? + HEAD);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD);
    let title = format!("{} beside prestage, {}, {}", ratios.peer, ratios.device, ratios.date);
    head.draw(&Text::new(title, (16, 12), ("sans-serif", 16)))?;
    for (area, name) in body.split_evenly((lines, columns)).iter().zip(panels) {
        let rows: Vec<&Row> = ratios.rows.iter().filter(|row| row.parts().0 == *name).collect();
        panel(area, name, &rows)?;
    }
    root.present()?;
    Ok(())
}

fn panel(area: &Area<'_>, name: &str, rows: &[&Row]) -> Result<(), Box<dyn Any>> {
    let sizes = rows.iter().map(|row| i32::try_from(row.log_n));
    let sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    let (first, last) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
    let highest = rows.iter().map(|row| row.ratio.max(row.target().unwrap_or(1.0))).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 15))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(28)
        .y_label_area_size(44)
        .build_cartesian_2d(first - 1..last + 1, 0.0..highest * 1.4)?;
    chart
        .configure_mesh()
        .x_labels(usize::try_from(last - first + 3)?)
        .x_label_formatter(&|log| format!("2^{log}"))
        .y_desc("the peer's time / prestage's")
        .light_line_style(TRANSPARENT)
        .draw()?;
    chart.draw_series(LineSeries::new([(first - 1, 1.0), (last + 1, 1.0)], GREY))?;

    let aimed: Vec<_> = sizes.iter().zip(rows).filter_map(|(log, row)| Some((*log, row.target()?))).collect();
    if !aimed.is_empty() {
        chart
            .draw_series(DashedLineSeries::new(aimed, 5, 4, BLACK.stroke_width(1)))?
            .label("target")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLACK));
    }
    for place in names(rows.iter().map(|row| row.parts().1)) {
        let colour = COLOURS.iter().find(|(known, _)| *known == place).map_or(BLACK, |(_, colour)| *colour);
        let points: Vec<_> = sizes
            .iter()
            .zip(rows)
            .filter(|(_, row)| row.parts().1 == place)
            .map(|(log, row)| (*log, row.ratio))
            .collect();
        chart
            .draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?
            .label(place)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(GREY)
        .draw()?;
    Ok(())
}
