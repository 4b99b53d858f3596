//! The files of the scenarios: a picture and a report for each, and the page that puts them side by side.

use std::path::{Path, PathBuf};

use prestage_harness::timeline::{Entry, index, svg, write_atomic};

use super::Case;
use crate::{Error, Outcome};

const ABOUT: &str = "Simulated cards, in virtual time: the same commit gives the same figures on every machine. The \
    partitions are realised small and charged at full size. “staged” takes the largest plan that fits; with several \
    workers the next partition is staged while one computes. A policy’s name opens the timeline of its line; the report \
    beside it (.json) is for prestage compare. A line again: prestage run --shape porep-32g --device sim:CARD \
    --partitions N --workers N --policy auto, a-then-bc, chunked or none.";

/// Writes `CASE.svg` and `CASE.json` for each scenario into `folder`, and `index.html`, which it returns.
///
/// # Errors
/// [`Error::Harness`] when a file cannot be written, when there is no run, or when their loads differ.
pub fn save(folder: &Path, runs: &[(Case, Outcome)]) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(folder)
        .map_err(|source| prestage_harness::Error::Write { path: folder.to_owned(), source })?;
    for (case, Outcome { report, timeline }) in runs {
        write_atomic(&folder.join(format!("{case}.svg")), svg(report, timeline)?.as_bytes())?;
        write_atomic(&folder.join(format!("{case}.json")), report.to_json()?.as_bytes())?;
    }
    let entries: Vec<Entry<'_>> = runs
        .iter()
        .map(|(case, Outcome { report, timeline })| Entry {
            group: report.key.device.clone(),
            name: case.way.to_owned(),
            workers: case.workers,
            picture: format!("{case}.svg"),
            report,
            timeline,
        })
        .collect();
    let page = folder.join("index.html");
    write_atomic(&page, index("Staged and unstaged, one to three workers", ABOUT, &entries)?.as_bytes())?;
    Ok(page)
}
