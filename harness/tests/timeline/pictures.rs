//! The structure of the SVG and of the page. Whether they are readable was judged by eye; these tests leave the
//! pictures in the build folder for that.

use std::path::PathBuf;

use prestage_harness::timeline::{IdleCause, Report, Timeline, page, png, svg};
use prestage_vram::{Bytes, Cause, Level, Nanos, Track};
use roxmltree::{Document, Node};

use crate::synthetic::{level, porep_report, refusal, report, span, wait};

pub(crate) fn keep(name: &str, bytes: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join(name), bytes).unwrap();
}

fn texts(document: &Document) -> Vec<String> {
    let own =
        |n: Node| n.children().filter(Node::is_text).map(|t| t.text().unwrap_or("")).collect::<String>();
    document
        .descendants()
        .filter(|n| n.has_tag_name("text") || n.tag_name().name() == "text")
        .map(own)
        .collect()
}

/// Every cause at once.
fn all_causes() -> (Report, Timeline) {
    report(vec![
        span(Track::Compute, 0, "k <&> \"1\"", 0, 10_000),
        span(Track::Memory, 0, "allocate", 10_000, 20_000),
        span(Track::Upload, 0, "u", 20_000, 30_000),
        wait(0, Cause::Sync, 30_000, 40_000),
        span(Track::Host, 0, "h", 40_000, 50_000),
        wait(1, Cause::Turn, 50_000, 60_000),
        span(Track::Launch, 0, "k", 60_000, 70_000),
        span(Track::Compute, 0, "k", 72_000, 90_000),
        level(0, Level { usable: Bytes::gib(14), budget: Bytes::gib(13), ..Level::default() }),
        level(
            5_000,
            Level {
                direct: Bytes::gib(8),
                usable: Bytes::gib(14),
                budget: Bytes::gib(13),
                ..Level::default()
            },
        ),
        refusal(15_000),
    ])
}

#[test]
fn the_svg_is_well_formed_and_names_every_cause_it_shows() {
    let (report, timeline) = all_causes();
    let text = svg(&report, &timeline).unwrap();
    keep("causes.svg", text.as_bytes());
    let document = Document::parse(&text).unwrap();
    let texts = texts(&document);
    for cause in IdleCause::ALL {
        let share = report.times.percent(report.times.idle().get(cause));
        assert!(share > 0.0);
        // In the legend with its share, and in the table.
        assert!(
            texts.iter().any(|t| t.starts_with(&format!("{} ", cause.name())) && t.ends_with('%')),
            "{cause:?}"
        );
        assert!(texts.iter().any(|t| t == cause.name()), "{cause:?}");
    }
    for lane in ["compute", "H2D", "D2H", "worker 0", "worker 1", "direct", "time, µs"] {
        assert!(texts.iter().any(|t| t == lane), "{lane}");
    }
    assert!(texts.iter().any(|t| t.starts_with("usable 14.00 GiB")));
    assert!(texts.iter().any(|t| t.starts_with("usable − margin 13.00 GiB")));
    let tips: Vec<&str> = document
        .descendants()
        .filter_map(|n| (n.tag_name().name() == "title").then(|| n.text()).flatten())
        .collect();
    assert!(tips.iter().any(|t| t.starts_with("refused 8.00 GiB for bc (worker 1, stage <&>)")));
    assert!(tips.iter().any(|t| t.starts_with("k <&> \"1\" · worker 0 · 10.0 µs")));
}

#[test]
fn the_cause_table_adds_up_to_the_wall() {
    for (report, timeline) in [all_causes(), porep_report(true), porep_report(false)] {
        let exact = |texts: Vec<String>| -> Vec<u64> {
            texts
                .iter()
                .filter_map(|t| t.strip_suffix(" ns"))
                .filter_map(|t| t.replace('\u{202f}', "").parse().ok())
                .collect()
        };
        let text = svg(&report, &timeline).unwrap();
        let document = Document::parse(&text).unwrap();
        // The rows of the table stand at the left; the amounts of the longest gaps further right have units too.
        let rows: Vec<String> = document
            .descendants()
            .filter(|n| n.tag_name().name() == "text" && n.attribute("x") == Some("440"))
            .filter_map(|n| n.text().map(str::to_owned))
            .collect();
        let rows = exact(rows);
        let (wall, parts) = rows.split_last().unwrap();
        assert_eq!(*wall, report.times.wall().get());
        assert_eq!(parts.iter().sum::<u64>(), *wall);

        let html = page("t", &[("one", &report, &timeline)]).unwrap();
        let cells: Vec<String> = html
            .split("class=\"n exact\">")
            .skip(1)
            .map(|rest| rest.split('<').next().unwrap().to_owned())
            .collect();
        let cells = exact(cells);
        let (wall, parts) = cells.split_last().unwrap();
        assert_eq!((parts.len(), *wall), (8, report.times.wall().get()));
        assert_eq!(parts.iter().sum::<u64>(), *wall);
    }
}

#[test]
fn shapes_stay_inside_the_picture() {
    for (report, timeline) in [all_causes(), porep_report(true)] {
        let text = svg(&report, &timeline).unwrap();
        let document = Document::parse(&text).unwrap();
        let root = document.root_element();
        let number = |n: Node, name: &str| n.attribute(name).and_then(|v| v.parse::<f64>().ok());
        let (width, height) = (number(root, "width").unwrap(), number(root, "height").unwrap());
        for rect in document.descendants().filter(|n| n.tag_name().name() == "rect") {
            let of = |name| number(rect, name).unwrap();
            assert!(of("x") >= 0.0 && of("y") >= 0.0 && of("width") >= 0.0 && of("height") >= 0.0);
            assert!(of("x") + of("width") <= width + 1e-6 && of("y") + of("height") <= height);
        }
        for text in document.descendants().filter(|n| n.tag_name().name() == "text") {
            let (x, w) = (number(text, "x").unwrap(), number(text, "textLength").unwrap());
            let left = match text.attribute("text-anchor") {
                Some("middle") => x - w / 2.0,
                Some("end") => x - w,
                _ => x,
            };
            assert!(left >= 0.0 && left + w <= width, "{:?} from {left}, {w} wide", text.text());
        }
    }
}

#[test]
fn the_png_has_the_size_of_the_svg_and_something_on_it() {
    let (report, timeline) = porep_report(true);
    let vector = svg(&report, &timeline).unwrap();
    keep("porep.svg", vector.as_bytes());
    let bytes = png(&report, &timeline).unwrap();
    keep("porep.png", &bytes);
    let (other, lane) = porep_report(false);
    keep("porep-unstaged.png", &png(&other, &lane).unwrap());
    let mut reader = png_reader(&bytes);
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let document = Document::parse(&vector).unwrap();
    let width: f64 = document.root_element().attribute("width").unwrap().parse().unwrap();
    assert_eq!(f64::from(info.width), 2.0 * width);
    // Colours of the palette are there: slate for work, blue for copies.
    let has = |rgb: [u8; 3]| pixels.chunks(3).any(|p| p == rgb);
    assert!(has([55, 71, 92]) && has([0, 114, 178]) && has([255, 255, 255]));
}

fn png_reader(bytes: &[u8]) -> png::Reader<&[u8]> {
    png::Decoder::new(bytes).read_info().unwrap()
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let (staged, a) = porep_report(true);
    let (unstaged, b) = porep_report(false);
    let html = page("Staged & unstaged", &[("staged", &staged, &a), ("unstaged", &unstaged, &b)]).unwrap();
    keep("porep.html", html.as_bytes());
    let one = page("One run", &[("staged", &staged, &a)]).unwrap();
    keep("one.html", one.as_bytes());
    assert!(html.contains("<h1>Staged &amp; unstaged</h1>"));
    for outside in ["<script", "<link", "<img", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
    let addresses: Vec<&str> = html.match_indices("http").map(|(i, _)| &html[i..i + 26]).collect();
    assert!(addresses.iter().all(|a| *a == "http://www.w3.org/2000/svg"), "{addresses:?}");
    // Both on one axis, then one turn of each.
    assert_eq!(html.matches("<svg").count(), 3);
    assert_eq!(one.matches("<svg").count(), 1);
    assert!(html.contains("<h2>Comparison</h2>"));
    assert!(!one.contains("<h2>Comparison</h2>"));
    for inner in html.split("<figure>").skip(1) {
        Document::parse(inner.split("</figure>").next().unwrap().trim()).unwrap();
    }
}

#[test]
fn runs_on_one_page_have_one_axis() {
    let (long, a) = report(vec![span(Track::Compute, 0, "k", 0, 4_000_000)]);
    let (short, b) = report(vec![span(Track::Compute, 0, "k", 500, 2_000_500)]);
    let html = page("t", &[("long", &long, &a), ("short", &short, &b)]).unwrap();
    let figure = html.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap().trim();
    let document = Document::parse(figure).unwrap();
    let bars = document.descendants().filter(|n| {
        n.tag_name().name() == "rect"
            && n.first_element_child().and_then(|t| t.text()).is_some_and(|t| t.starts_with("k · "))
    });
    let widths: Vec<f64> = bars.map(|bar| bar.attribute("width").unwrap().parse().unwrap()).collect();
    assert_eq!(widths.len(), 2);
    assert!((widths[0] - 2.0 * widths[1]).abs() < 1.5, "{widths:?}");
}

#[test]
fn t4_a_page_does_not_compare_other_loads() {
    let (report_a, a) = all_causes();
    let (mut report_b, b) = all_causes();
    report_b.key.load.circuit = "other".into();
    assert!(page("t", &[("a", &report_a, &a), ("b", &report_b, &b)]).is_err());
}

#[test]
fn many_short_spans_make_a_small_picture() {
    let events = (0..100_000).map(|i| span(Track::Compute, 0, "k", 100 * i, 100 * i + 90)).collect();
    let (report, timeline) = report(events);
    assert_eq!(timeline.extent().1, Nanos::new(99_999 * 100 + 90));
    let text = svg(&report, &timeline).unwrap();
    assert!(text.len() < 2_000_000, "{}", text.len());
}
