//! `prestage compare`: two reports of one load on one axis of time, and what they differ in.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::files;
use super::output::{Failure, Output};
use crate::Error;
use crate::timeline::{
    ByCause, Chapter, Difference, Load, Part, Report, Timeline, png_of, story, svg_of, write_atomic,
};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The first report: the .json that run --out, prove --timeline or demo wrote
    #[arg(value_name = "A.json")]
    first: PathBuf,
    /// The second report, of the same load
    #[arg(value_name = "B.json")]
    second: PathBuf,
    /// Folder for compare.html, compare.svg and compare.png
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// What both proved.
    load: Load,
    first: Side,
    second: Side,
    /// Second minus first.
    difference: Difference,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
}

#[derive(Debug, Serialize)]
struct Side {
    report: String,
    scenario: String,
    device: String,
    commit: String,
    verified: bool,
    proofs: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    proofs_per_minute: f64,
    peak_bytes: u64,
    refusals: u64,
}

impl Side {
    fn of(path: &Path, report: &Report) -> Self {
        let (key, times) = (report.key.clone(), &report.times);
        Self {
            report: path.display().to_string(),
            scenario: key.scenario,
            device: key.device,
            commit: key.commit,
            verified: true,
            proofs: report.verified.proofs(),
            wall_ns: times.wall().get(),
            busy_ns: times.busy().get(),
            held_ns: times.held().get(),
            idle_ns: *times.idle(),
            proofs_per_minute: report.proofs_per_minute,
            peak_bytes: report.peak_bytes,
            refusals: report.refusals.len() as u64,
        }
    }
}

/// Runs the verb.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let inputs = [("A.json", args.first.as_path()), ("B.json", args.second.as_path())];
    if let Some(folder) = &args.out {
        files::can_make(folder)?;
        if folder.is_dir() {
            let views = names(folder);
            files::can_write(&views.each_ref().map(|view| ("--out", view.as_path())), &inputs)?;
        }
    }
    let (left, a) = load(&args.first)?;
    let (right, b) = load(&args.second)?;
    let difference = Difference::new(&left, &right)?;
    let words = differ(&left, &right);
    let name =
        |letter, report: &Report| format!("{letter}: {} on {}", report.key.scenario, report.key.device);
    let (first, second) = (name("A", &left), name("B", &right));
    let page = args.out.as_deref().map(|folder| {
        let parts = [
            Part::Run { name: &first, report: &left, timeline: &a },
            Part::Run { name: &second, report: &right, timeline: &b },
        ];
        save(folder, &left, &words, &parts)
    });
    let page = page.transpose()?.map(|path| path.display().to_string());

    out.line(format_args!("A: {}: {} on {}", args.first.display(), left.key.scenario, left.key.device));
    out.line(format_args!("B: {}: {} on {}", args.second.display(), right.key.scenario, right.key.device));
    out.line(format_args!("{words}\n"));
    out.line(format_args!("{}", difference.table(("A", &left), ("B", &right))));
    if let Some(page) = &page {
        out.line(format_args!("\npage:  {page}"));
    }
    out.json(&Answer {
        load: left.key.load.clone(),
        first: Side::of(&args.first, &left),
        second: Side::of(&args.second, &right),
        difference,
        page,
    })
}

fn load(path: &Path) -> Result<(Report, Timeline), Failure> {
    let there = fs::metadata(path).map_err(|e| Failure::at(path.display(), &e))?;
    if !there.is_file() {
        return Err(Failure::new(format!("{}: it is not a file", path.display())));
    }
    let text = fs::read_to_string(path).map_err(|e| Failure::at(path.display(), &e))?;
    Report::with_timeline(&text).map_err(|e| Failure::at(path.display(), &e))
}

/// In which settings the two differ.
fn differ(left: &Report, right: &Report) -> String {
    let settings = |report: &Report| {
        let key = &report.key;
        let mut all = report.parameters.clone();
        for (name, value) in [("scenario", &key.scenario), ("device", &key.device), ("commit", &key.commit)] {
            all.insert(name.to_owned(), value.clone());
        }
        let policies: Vec<&str> = report.plans.iter().map(|plan| plan.policy.as_str()).collect();
        all.insert("policy".to_owned(), policies.join(", "));
        all
    };
    let (left, right) = (settings(left), settings(right));
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort();
    names.dedup();
    let value = |side: &std::collections::BTreeMap<String, String>, name: &String| {
        side.get(name).filter(|v| !v.is_empty()).cloned().unwrap_or_else(|| "not set".to_owned())
    };
    let parts: Vec<String> = names
        .into_iter()
        .filter(|name| left.get(*name) != right.get(*name))
        .map(|name| format!("{name}: {} and {}", value(&left, name), value(&right, name)))
        .collect();
    match parts.is_empty() {
        true => "The two have equal settings.".to_owned(),
        false => format!("They differ in {}.", parts.join("; ")),
    }
}

fn names(folder: &Path) -> [PathBuf; 3] {
    ["compare.html", "compare.svg", "compare.png"].map(|name| folder.join(name))
}

/// Writes the page and the picture; returns where the page is.
fn save(folder: &Path, report: &Report, words: &str, parts: &[Part<'_>]) -> Result<PathBuf, Failure> {
    let load = &report.key.load;
    let title = format!("{} × {}, two runs compared", report.verified.proofs(), load.circuit);
    let [page, svg, png] = names(folder);
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let chapter = Chapter { heading: Some(&title), words, parts, devices: false };
    write_atomic(&svg, svg_of(&chapter)?.as_bytes())?;
    write_atomic(&png, &png_of(&chapter)?)?;
    write_atomic(&page, story(&title, &[Chapter { heading: None, ..chapter }])?.as_bytes())?;
    Ok(page)
}
