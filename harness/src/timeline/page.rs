//! One page that says it all: HTML with everything inside, nothing loaded, no script.

use std::fmt::Write;

use prestage_vram::{Bytes, Nanos};

use super::part::comparable;
use super::plot::palette::{self, WORK};
use super::plot::panels::{causes_of, neighbours, range};
use super::plot::scale::{percent, time};
use super::plot::vector::escape;
use super::plot::words::{grouped, headline, rate, subtitle, tiles};
use super::plot::{chart, charts, palette::Ink, turn};
use super::{Chapter, Difference, IdleCause, Part, RefusalNote, Report, Timeline};
use crate::Error;

pub(super) const STYLE: &str = include_str!("page.css");

/// A page with one or several runs of one load, each with its name. Several are drawn under each other on one axis of
/// time and compared in a table first.
///
/// # Errors
/// [`Error::Draw`]; [`Error::Incomparable`] when the loads or the numbers of proofs differ.
pub fn page(title: &str, runs: &[(&str, &Report, &Timeline)]) -> Result<String, Error> {
    let parts: Vec<Part<'_>> =
        runs.iter().map(|&(name, report, timeline)| Part::Run { name, report, timeline }).collect();
    story(title, &[Chapter { parts: &parts, ..Chapter::default() }])
}

/// A page in chapters. The timelines of a chapter are drawn first, under each other on one axis of time, then what is to
/// be said of each run. A schedule that proves nothing has its lanes, its memory and its refusals, and no figures.
///
/// # Errors
/// As [`page`], for the runs of each chapter.
pub fn story(title: &str, chapters: &[Chapter<'_>]) -> Result<String, Error> {
    chapters.iter().try_for_each(comparable)?;
    let mut out = opening(title, STYLE);
    for chapter in chapters {
        self::chapter(&mut out, title, chapter)?;
    }
    out += CLOSING;
    Ok(out)
}

/// The end of a page.
pub(super) const CLOSING: &str = "<footer>Made by prestage. Idle is the time in which no kernel ran, from the first to the last moment \
            of the run; every nanosecond of it has one cause, the first in the order of the table that a recorded \
            event covers. Hover a bar for its name and length.</footer>\n</main>\n</body>\n</html>\n";

/// The beginning of a page.
pub(super) fn opening(title: &str, style: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <meta name=\"color-scheme\" content=\"light dark\" />\n<title>{0}</title>\n<style>\n{style}</style>\n\
         </head>\n<body>\n<main>\n<h1>{0}</h1>\n",
        escape(title)
    )
}

fn chapter(out: &mut String, title: &str, chapter: &Chapter<'_>) -> Result<(), Error> {
    if let Some(heading) = chapter.heading {
        put!(out, "<h2 class=\"chapter\">{}</h2>\n", escape(heading));
    }
    if !chapter.words.is_empty() {
        put!(out, "<p class=\"words\">{}</p>\n", escape(chapter.words));
    }
    let several = chapter.parts.len() > 1;
    if several {
        let name = chapter.heading.unwrap_or(title);
        put!(out, "<figure>\n{}</figure>\n", charts(name, chapter.parts)?);
    }
    let reports = || chapter.parts.iter().filter_map(|part| part.report().map(|r| (part.name(), r)));
    if reports().count() > 1 {
        comparison(out, &reports().collect::<Vec<_>>(), chapter.devices);
    }
    for part in chapter.parts {
        match part {
            Part::Run { name, report, timeline } => run(out, name, report, timeline, several)?,
            Part::Schedule { name, headline, about, .. } => {
                put!(out, "<section class=\"run\">\n<h2>{}</h2>\n", escape(name));
                put!(out, "<p class=\"headline alarm\">{}</p>\n", escape(headline));
                put!(out, "<p class=\"subtitle\">{}</p>\n<div class=\"panels\">\n", escape(about));
                refused(out, &part.account().1);
                *out += "</div>\n</section>\n";
            }
        }
    }
    Ok(())
}

pub(super) fn swatch(ink: Ink, idle: bool) -> String {
    let kind = if idle { "swatch idle" } else { "swatch" };
    format!("<span class=\"{kind}\" style=\"--c:{}\"></span>", ink.hex())
}

/// Rows of figures, one column per run or device; of two runs, what they differ in.
fn comparison(out: &mut String, runs: &[(&str, &Report)], devices: bool) {
    put!(out, "<section>\n<h2>{}</h2>\n", if devices { "Devices" } else { "Comparison" });
    *out += "<table class=\"compare\">\n<thead><tr><th></th>";
    for (name, _) in runs {
        put!(out, "<th>{}</th>", escape(name));
    }
    if let [(_, left), (_, right)] = runs
        && !devices
        && let Ok(difference) = Difference::new(left, right)
    {
        *out += "<th>difference</th></tr></thead>\n<tbody>\n";
        for row in difference.rows(left, right) {
            let mark = row.cause.map_or_else(String::new, |cause| swatch(palette::of(cause), true));
            put!(
                out,
                "<tr><th>{mark}{}</th><td>{}</td><td>{}</td><td><b>{}</b></td></tr>\n",
                escape(&row.name),
                escape(&row.left),
                escape(&row.right),
                escape(&row.change)
            );
        }
        *out += "</tbody>\n</table>\n</section>\n";
        return;
    }
    *out += "</tr></thead>\n<tbody>\n";
    let mut row = |name: &str, cell: &dyn Fn(&Report) -> String| {
        put!(out, "<tr><th>{name}</th>");
        for (_, report) in runs {
            put!(out, "<td>{}</td>", escape(&cell(report)));
        }
        *out += "</tr>\n";
    };
    row("wall", &|r| time(r.times.wall()));
    let share = |r: &Report, t: Nanos| format!("{} · {}", percent(r.times.percent(t)), time(t));
    row("busy", &|r| share(r, r.times.busy()));
    for cause in IdleCause::ALL {
        if runs.iter().any(|(_, r)| r.times.idle().get(cause) > Nanos::ZERO) {
            let name = format!("{}idle: {}", swatch(palette::of(cause), true), cause.name());
            row(&name, &|r| share(r, r.times.idle().get(cause)));
        }
    }
    row("held", &|r| share(r, r.times.held()));
    row("proofs per minute", &|r| rate(r.proofs_per_minute));
    row("peak memory", &|r| Bytes::new(r.peak_bytes).to_string());
    row("refusals", &|r| r.refusals.len().to_string());
    *out += "</tbody>\n</table>\n</section>\n";
}

fn run(
    out: &mut String,
    name: &str,
    report: &Report,
    timeline: &Timeline,
    among_others: bool,
) -> Result<(), Error> {
    *out += "<section class=\"run\">\n";
    if among_others {
        put!(out, "<h2>{}</h2>\n", escape(name));
    }
    put!(out, "<p class=\"headline\">{}</p>\n", escape(&headline(report)));
    put!(out, "<p class=\"subtitle\">{}</p>\n", escape(&subtitle(report)));
    if let Some(complaint) = report.complaint() {
        put!(out, "<p class=\"alarm\">{}</p>\n", escape(&complaint));
    }
    *out += "<dl class=\"tiles\">\n";
    for (name, value) in tiles(report) {
        put!(out, "<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(&value));
    }
    *out += "</dl>\n";
    wall_bar(out, report);
    // Among others its lanes are drawn with theirs.
    let figure = if among_others { turn(report, timeline)? } else { Some(chart(report, timeline)?) };
    if let Some(figure) = figure {
        put!(out, "<figure>\n{figure}</figure>\n");
    }
    *out += "<div class=\"panels\">\n";
    causes(out, report);
    longest(out, report);
    histogram(out, report);
    memory(out, report);
    parameters(out, report);
    *out += "</div>\n</section>\n";
    Ok(())
}

/// The wall as one bar, work first, then the causes by size.
fn wall_bar(out: &mut String, report: &Report) {
    let times = &report.times;
    let mut parts = vec![("busy", times.busy(), WORK[0], false)];
    let mut causes: Vec<_> = times.idle().iter().collect();
    causes.sort_by_key(|(_, t)| std::cmp::Reverse(*t));
    parts.extend(causes.into_iter().map(|(cause, t)| (cause.name(), t, palette::of(cause), true)));
    parts.retain(|(_, t, _, _)| *t > Nanos::ZERO);
    *out += "<div class=\"wall\" aria-hidden=\"true\">";
    for (name, t, ink, idle) in &parts {
        let share = times.percent(*t);
        let kind = if *idle { "idle" } else { "work" };
        put!(
            out,
            "<span class=\"{kind}\" style=\"--c:{};width:{share:.4}%\" title=\"{name} {}\"></span>",
            ink.hex(),
            percent(share)
        );
    }
    *out += "</div>\n<ul class=\"legend\">";
    for (name, t, ink, idle) in parts {
        put!(out, "<li>{}{name} <b>{}</b></li>", swatch(ink, idle), percent(times.percent(t)));
    }
    *out += "<li class=\"note\">striped: idle</li></ul>\n";
}

fn causes(out: &mut String, report: &Report) {
    let times = &report.times;
    *out += "<div class=\"panel wide\">\n<h3>Where the wall time went</h3>\n<table class=\"causes\">\n\
             <thead><tr><th></th><th class=\"n\">time</th><th class=\"n\">of the wall</th>\
             <th class=\"n\">exactly</th><th>what it means</th></tr></thead>\n<tbody>\n";
    let mut row = |head: &str, t: Nanos, meaning: &str| {
        put!(
            out,
            "<tr><th>{head}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n exact\">{} ns</td>\
             <td>{}</td></tr>\n",
            time(t),
            percent(times.percent(t)),
            grouped(t.get()),
            escape(meaning)
        );
    };
    row(&format!("{}busy", swatch(WORK[0], false)), times.busy(), "a kernel ran");
    for (cause, t) in times.idle().iter() {
        row(&format!("{}{}", swatch(palette::of(cause), true), cause.name()), t, cause.meaning());
    }
    *out += "</tbody>\n<tfoot>";
    let wall = times.wall();
    put!(
        out,
        "<tr><th>wall</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n exact\">{} ns</td>\
         <td>busy and all causes, exactly</td></tr>",
        time(wall),
        percent(times.percent(wall)),
        grouped(wall.get())
    );
    *out += "</tfoot>\n</table>\n</div>\n";
}

fn longest(out: &mut String, report: &Report) {
    *out += "<div class=\"panel\">\n<h3>The longest gaps</h3>\n";
    if report.longest.is_empty() {
        *out += "<p>None: it was never idle.</p>\n</div>\n";
        return;
    }
    *out += "<table>\n<thead><tr><th></th><th class=\"n\">length</th><th class=\"n\">at</th><th>cause</th>\
             <th>between</th></tr></thead>\n<tbody>\n";
    for (i, gap) in report.longest.iter().enumerate() {
        put!(
            out,
            "<tr><th><span class=\"disc\">{}</span></th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td>{}{}</td><td>{}</td></tr>\n",
            i + 1,
            time(gap.len()),
            time(Nanos::new(gap.start_ns)),
            swatch(palette::of(gap.cause), true),
            causes_of(gap),
            escape(&neighbours(gap))
        );
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn histogram(out: &mut String, report: &Report) {
    *out += "<div class=\"panel\">\n<h3>Idle time by length of gap</h3>\n<table class=\"histogram\">\n<thead><tr>\
             <th>gaps of</th><th class=\"n\">number</th><th class=\"n\">together</th><th></th></tr></thead>\n<tbody>\n";
    let most = report.histogram.iter().map(|b| b.idle_ns.total()).max().unwrap_or_default().as_ms();
    for bin in &report.histogram {
        let total = bin.idle_ns.total();
        let range = range(bin);
        put!(
            out,
            "<tr><th>{range}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"bar\">",
            bin.gaps,
            time(total)
        );
        for (cause, t) in bin.idle_ns.iter().filter(|(_, t)| *t > Nanos::ZERO) {
            let width = if most > 0.0 { 100.0 * t.as_ms() / most } else { 0.0 };
            put!(
                out,
                "<span class=\"idle\" style=\"--c:{};width:{width:.3}%\" title=\"{} {}\"></span>",
                palette::of(cause).hex(),
                cause.name(),
                time(t)
            );
        }
        *out += "</td></tr>\n";
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

/// Plans, peaks per phase, refusals; nothing where a run has none of them.
fn memory(out: &mut String, report: &Report) {
    if !report.plans.is_empty() {
        *out += "<div class=\"panel\">\n<h3>Plans</h3>\n<table>\n<thead><tr><th>policy</th><th class=\"n\">proofs</th>\
                 <th>because</th></tr></thead>\n<tbody>\n";
        for plan in &report.plans {
            put!(
                out,
                "<tr><th>{}</th><td class=\"n\">{}</td><td>{}</td></tr>\n",
                escape(&plan.policy),
                plan.proofs,
                escape(&plan.reason)
            );
        }
        *out += "</tbody>\n</table>\n</div>\n";
    }
    if !report.phases.is_empty() {
        *out += "<div class=\"panel\">\n<h3>Peak memory by phase</h3>\n<table>\n<thead><tr><th>phase</th>\
                 <th class=\"n\">planned</th><th class=\"n\">measured</th></tr></thead>\n<tbody>\n";
        for phase in &report.phases {
            put!(
                out,
                "<tr><th>{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(&phase.name),
                Bytes::new(phase.predicted_bytes),
                Bytes::new(phase.measured_bytes)
            );
        }
        *out += "</tbody>\n</table>\n</div>\n";
    }
    refused(out, &report.refusals);
}

/// Every request for memory that was refused; nothing where there is none.
fn refused(out: &mut String, refusals: &[RefusalNote]) {
    if refusals.is_empty() {
        return;
    }
    *out += "<div class=\"panel wide\">\n<h3>Refused requests for memory</h3>\n<table>\n<thead><tr>\
             <th class=\"n\">at</th><th>what</th></tr></thead>\n<tbody>\n";
    for refusal in refusals {
        put!(
            out,
            "<tr><td class=\"n\">{}</td><td>{}</td></tr>\n",
            time(Nanos::new(refusal.at_ns)),
            escape(&refusal.message)
        );
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

fn parameters(out: &mut String, report: &Report) {
    let key = &report.key;
    let mut rows = vec![
        ("scenario", key.scenario.clone()),
        ("device", key.device.clone()),
        ("circuit", key.load.circuit.clone()),
        ("constraints", grouped(key.load.constraints)),
        ("partitions", key.load.partitions.to_string()),
        ("proofs, all verified", report.verified.proofs().to_string()),
        ("commit", key.commit.clone()),
    ];
    rows.extend(report.parameters.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let cost = match report.recording_ns {
        0 => String::new(),
        ns => format!(", recorded in about {}, all threads together", time(Nanos::new(ns))),
    };
    rows.push(("events", format!("{}{cost}", grouped(report.events))));
    *out += "<div class=\"panel\">\n<h3>Parameters</h3>\n<table>\n<tbody>\n";
    for (name, value) in rows {
        put!(out, "<tr><th>{}</th><td>{}</td></tr>\n", escape(name), escape(&value));
    }
    *out += "</tbody>\n</table>\n</div>\n";
}
