//! Many runs of one load on one page: a line of figures and a strip on one axis of time for each.

use std::fmt::Write;

use prestage_vram::{Bytes, Nanos};

use super::page::{CLOSING, STYLE, opening, swatch};
use super::plot::palette::{self, WORK};
use super::plot::scale::percent;
use super::plot::strips;
use super::plot::strips::Strip;
use super::plot::vector::escape;
use super::plot::words::{grouped, rate};
use super::{IdleCause, Report, Timeline};
use crate::Error;

const MORE_STYLE: &str = include_str!("index.css");

/// A run in an index.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The table in which it stands: the name of the device.
    pub group: String,
    /// What tells it from the others of its table, beside the number of workers.
    pub name: String,
    /// How many workers took part.
    pub workers: u32,
    /// Where its picture is, relative to the page.
    pub picture: String,
    /// What it came to.
    pub report: &'a Report,
    /// What happened.
    pub timeline: &'a Timeline,
}

impl Entry<'_> {
    /// Seconds of wall time per proof.
    fn seconds(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let proofs = self.report.verified.proofs().max(1) as f64;
        self.report.times.wall().as_ms() / 1e3 / proofs
    }

    fn title(&self) -> String {
        let workers = if self.workers == 1 { "worker" } else { "workers" };
        format!("{}, {} {workers}", self.name, self.workers)
    }

    fn plans(&self) -> String {
        let plans: Vec<&str> = self.report.plans.iter().map(|plan| plan.policy.as_str()).collect();
        plans.join(", ")
    }
}

/// The columns that some line needs.
struct Columns {
    causes: Vec<IdleCause>,
    refusals: bool,
}

impl Columns {
    fn of(entries: &[Entry<'_>]) -> Self {
        let some =
            |cause: &IdleCause| entries.iter().any(|e| e.report.times.idle().get(*cause) > Nanos::ZERO);
        Self {
            causes: IdleCause::ALL.into_iter().filter(some).collect(),
            refusals: entries.iter().any(|entry| !entry.report.refusals.is_empty()),
        }
    }
}

/// A page that puts runs of one load side by side: for each group a table with a line per run, and below it their strips,
/// all groups on one axis of time. Like [`page`](super::page()) it has everything inside but the pictures that it links to.
///
/// # Errors
/// [`Error::Draw`]; [`Error::Incomparable`] when the loads or the numbers of proofs differ; [`Error::NoProofs`] without an
/// entry.
pub fn index(title: &str, about: &str, entries: &[Entry<'_>]) -> Result<String, Error> {
    let Some((first, rest)) = entries.split_first() else { return Err(Error::NoProofs) };
    rest.iter().try_for_each(|entry| first.report.comparable(entry.report))?;
    let span = entries.iter().map(|entry| entry.report.times.wall().get()).max().unwrap_or(0);
    let slowest = entries.iter().map(Entry::seconds).fold(0.0, f64::max);
    let proofs: u64 = entries.iter().map(|entry| entry.report.verified.proofs()).sum();
    let columns = Columns::of(entries);

    let mut out = opening(title, &format!("{STYLE}{MORE_STYLE}"));
    let load = &first.report.key.load;
    put!(
        out,
        "<p class=\"subtitle\">{}, {} constraints, {} partitions in each run; {} runs, all {} proofs verified. Commit {}.</p>\n\
         <p>{}</p>\n",
        escape(&load.circuit),
        grouped(load.constraints),
        load.partitions,
        entries.len(),
        proofs,
        escape(&first.report.key.commit),
        escape(about)
    );
    legend(&mut out, &columns.causes);
    let mut groups: Vec<&str> = Vec::new();
    for entry in entries {
        if !groups.contains(&entry.group.as_str()) {
            groups.push(&entry.group);
        }
    }
    for group in groups {
        let members: Vec<&Entry<'_>> = entries.iter().filter(|entry| entry.group == group).collect();
        put!(out, "<section>\n<h2>{}</h2>\n", escape(group));
        summary(&mut out, &members);
        table(&mut out, &members, &columns, slowest);
        let mut before = members.first().map_or("", |entry| entry.name.as_str());
        let strips: Vec<Strip<'_>> = members
            .iter()
            .map(|entry| {
                let apart = entry.name != before;
                before = &entry.name;
                Strip { name: entry.title(), apart, timeline: entry.timeline }
            })
            .collect();
        put!(out, "<figure>\n{}</figure>\n</section>\n", strips::svg(group, &strips, span)?);
    }
    out += CLOSING;
    Ok(out)
}

fn legend(out: &mut String, causes: &[IdleCause]) {
    put!(out, "<ul class=\"legend\"><li>{}busy: a kernel ran</li>", swatch(WORK[0], false));
    for cause in causes {
        let swatch = swatch(palette::of(*cause), true);
        put!(out, "<li>{swatch}{}: {}</li>", cause.name(), escape(cause.meaning()));
    }
    *out += "</ul>\n";
}

/// Which of the group is fastest, which is slowest, and what memory there was.
fn summary(out: &mut String, members: &[&Entry<'_>]) {
    let by_time = |a: &&&Entry<'_>, b: &&&Entry<'_>| a.seconds().total_cmp(&b.seconds());
    let (Some(best), Some(worst)) = (members.iter().min_by(by_time), members.iter().max_by(by_time)) else {
        return;
    };
    let words = |entry: &Entry<'_>| format!("{} at {:.3} s per partition", entry.title(), entry.seconds());
    let samples = members.iter().flat_map(|entry| &entry.report.memory);
    let budget = samples
        .map(|sample| sample.budget)
        .max()
        .map_or_else(String::new, |budget| format!(" Budget of memory: {}.", Bytes::new(budget)));
    put!(
        out,
        "<p class=\"headline\">Fastest: {}. Slowest: {}.{budget}</p>\n",
        escape(&words(best)),
        escape(&words(worst))
    );
}

fn table(out: &mut String, members: &[&Entry<'_>], columns: &Columns, slowest: f64) {
    put!(
        out,
        "<div class=\"panel\">\n<table class=\"index\">\n<thead>\n<tr><th rowspan=\"2\">policy</th>\
         <th class=\"n\" rowspan=\"2\">workers</th><th rowspan=\"2\">plan</th>\
         <th class=\"n\" rowspan=\"2\">s per partition</th><th rowspan=\"2\"></th>\
         <th class=\"n\" rowspan=\"2\">proofs/min</th><th class=\"n\" rowspan=\"2\">busy</th>\
         <th class=\"n\" rowspan=\"2\">held</th><th class=\"over\" colspan=\"{}\">idle, of the wall</th>\
         <th class=\"n\" rowspan=\"2\">peak memory</th>{}</tr>\n<tr>",
        columns.causes.len().max(1),
        if columns.refusals { "<th class=\"n\" rowspan=\"2\">refusals</th>" } else { "" }
    );
    for cause in &columns.causes {
        put!(out, "<th class=\"n\">{}{}</th>", swatch(palette::of(*cause), true), cause.name());
    }
    *out += "</tr>\n</thead>\n<tbody>\n";
    let best = members.iter().map(|entry| entry.seconds()).fold(f64::INFINITY, f64::min);
    for entry in members {
        line(out, entry, columns, slowest, entry.seconds() <= best);
    }
    *out += "</tbody>\n</table>\n</div>\n";
}

/// A share of the wall in per cent, as markup.
fn words(report: &Report, part: Nanos) -> String {
    escape(&percent(report.times.percent(part)))
}

fn line(out: &mut String, entry: &Entry<'_>, columns: &Columns, slowest: f64, best: bool) {
    let Entry { name, workers, picture, report, .. } = entry;
    let times = &report.times;
    let reasons: Vec<&str> = report.plans.iter().map(|plan| plan.reason.as_str()).collect();
    put!(
        out,
        "<tr{}><th><a href=\"{}\">{}</a></th><td class=\"n\">{workers}</td><td title=\"{}\">{}</td>",
        if best { " class=\"best\"" } else { "" },
        escape(picture),
        escape(name),
        escape(&reasons.join("; ")),
        escape(&entry.plans())
    );
    let exact = |t: Nanos| format!("{} ns", t.get());
    put!(out, "<td class=\"n\" title=\"{}\">{:.3}</td>", exact(times.wall()), entry.seconds());
    bar(out, entry, slowest);
    put!(out, "<td class=\"n\">{}</td>", rate(report.proofs_per_minute));
    let mut share = |t: Nanos| {
        put!(out, "<td class=\"n\" title=\"{}\">{}</td>", exact(t), words(report, t));
    };
    share(times.busy());
    share(times.held());
    columns.causes.iter().for_each(|cause| share(times.idle().get(*cause)));
    put!(out, "<td class=\"n\" title=\"{} bytes\">{}</td>", report.peak_bytes, Bytes::new(report.peak_bytes));
    if columns.refusals {
        put!(out, "<td class=\"n\">{}</td>", report.refusals.len());
    }
    *out += "</tr>\n";
}

/// Seconds per partition as a bar: work first, then the causes by size, the slowest run of the page full.
fn bar(out: &mut String, entry: &Entry<'_>, slowest: f64) {
    let times = &entry.report.times;
    let of_bar = |t: Nanos| times.percent(t) * entry.seconds() / slowest.max(f64::MIN_POSITIVE);
    *out += "<td class=\"bar\">";
    put!(
        out,
        "<span class=\"work\" style=\"width:{:.3}%\" title=\"busy {}\"></span>",
        of_bar(times.busy()),
        words(entry.report, times.busy())
    );
    let mut causes: Vec<_> = times.idle().iter().filter(|(_, t)| *t > Nanos::ZERO).collect();
    causes.sort_by_key(|(_, t)| std::cmp::Reverse(*t));
    for (cause, t) in causes {
        put!(
            out,
            "<span class=\"idle\" style=\"--c:{};width:{:.3}%\" title=\"{} {}\"></span>",
            palette::of(cause).hex(),
            of_bar(t),
            cause.name(),
            words(entry.report, t)
        );
    }
    *out += "</td>";
}
