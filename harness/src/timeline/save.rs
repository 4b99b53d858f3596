//! Files that are there in full or not at all.

use std::path::{Path, PathBuf};

use prestage_groth16::format;

use super::{Chapter, Part, Report, Timeline, csv, page, png, png_of, story, svg, svg_of, trace, trace_of};
use crate::Error;

/// Writes a file so that whoever is interrupted leaves the old one or the new one, never half of one: a temporary
/// file in the same folder, flushed to the disk, then renamed over the old one.
///
/// # Errors
/// [`Error::Write`] with the path.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    format::write_atomically(path, |file| file.write_all(bytes))
        .map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Where the files of a report are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Saved {
    pub page: PathBuf,
    pub report: PathBuf,
    pub trace: PathBuf,
    pub csv: PathBuf,
    pub svg: PathBuf,
    pub png: PathBuf,
}

impl Saved {
    /// The files that [`save`] writes for `name` into `folder`.
    #[must_use]
    pub fn at(folder: &Path, name: &str) -> Self {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        Self {
            page: file("html"),
            report: file("json"),
            trace: file("trace.json"),
            csv: file("csv"),
            svg: file("svg"),
            png: file("png"),
        }
    }

    /// All of them.
    #[must_use]
    pub fn paths(&self) -> [&Path; 6] {
        [&self.page, &self.report, &self.trace, &self.csv, &self.svg, &self.png].map(PathBuf::as_path)
    }
}

/// Writes `name.html`, `.json`, `.trace.json`, `.csv`, `.svg` and `.png` into a folder, which is made if missing.
///
/// # Errors
/// [`Error::Write`] with the path, [`Error::Draw`].
pub fn save(folder: &Path, name: &str, report: &Report, timeline: &Timeline) -> Result<Saved, Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let files = Saved::at(folder, name);
    write_atomic(&files.report, report.to_json_with(timeline)?.as_bytes())?;
    write_atomic(&files.trace, trace(report, timeline).as_bytes())?;
    write_atomic(&files.csv, csv(timeline).as_bytes())?;
    write_atomic(&files.svg, svg(report, timeline)?.as_bytes())?;
    write_atomic(&files.png, &png(report, timeline)?)?;
    write_atomic(&files.page, page(&report.key.scenario, &[(name, report, timeline)])?.as_bytes())?;
    Ok(files)
}

/// The reports of a run on several devices: `name.html`, `.svg`, `.png` and `.trace.json` show all of them on one clock, `words`
/// says what they came to together, and `name-1.json`, `name-1.csv`, `name-2.json` … are those of each.
///
/// # Errors
/// As [`save`].
pub fn save_devices(
    folder: &Path,
    name: &str,
    words: &str,
    devices: &[(&Report, &Timeline)],
) -> Result<Saved, Error> {
    let [(first, _), ..] = devices else { return Err(Error::NoProofs) };
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let title = &first.key.scenario;
    let parts: Vec<_> = devices
        .iter()
        .map(|&(report, timeline)| Part::Run { name: &report.key.device, report, timeline })
        .collect();
    let chapter = Chapter { heading: Some(title), words, parts: &parts, devices: true };
    for (number, (report, timeline)) in (1..).zip(devices) {
        let own = Saved::at(folder, &format!("{name}-{number}"));
        write_atomic(&own.report, report.to_json_with(timeline)?.as_bytes())?;
        write_atomic(&own.csv, csv(timeline).as_bytes())?;
    }
    let all = Saved::at(folder, name);
    write_atomic(&all.trace, trace_of(devices).as_bytes())?;
    write_atomic(&all.svg, svg_of(&chapter)?.as_bytes())?;
    write_atomic(&all.png, &png_of(&chapter)?)?;
    write_atomic(&all.page, story(title, &[Chapter { heading: None, ..chapter }])?.as_bytes())?;
    Ok(all)
}
