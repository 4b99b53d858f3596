//! Files that are there in full or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Report, Timeline, csv, page, png, svg, trace};
use crate::Error;

/// Writes a file so that whoever is interrupted leaves the old one or the new one, never half of one: a temporary
/// file in the same folder, flushed to the disk, then renamed over the old one.
///
/// # Errors
/// [`Error::Write`] with the path.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let attempt = || -> io::Result<()> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".prestage-").tempfile_in(folder)?;
        file.write_all(bytes)?;
        readable(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The rename itself reaches the disk with its folder, where the system can be asked for that.
        if let Ok(folder) = std::fs::File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    };
    attempt().map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Temporary files are private; reports are for everyone who may read the folder.
#[cfg(unix)]
fn readable(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &std::fs::File) -> io::Result<()> {
    Ok(())
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

/// Writes `name.html`, `.json`, `.trace.json`, `.csv`, `.svg` and `.png` into a folder, which is made if missing.
///
/// # Errors
/// [`Error::Write`] with the path, [`Error::Draw`].
pub fn save(folder: &Path, name: &str, report: &Report, timeline: &Timeline) -> Result<Saved, Error> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let write = |end: &str, bytes: &[u8]| {
        let path = folder.join(format!("{name}.{end}"));
        write_atomic(&path, bytes).map(|()| path)
    };
    Ok(Saved {
        report: write("json", report.to_json()?.as_bytes())?,
        trace: write("trace.json", trace(report, timeline).as_bytes())?,
        csv: write("csv", csv(timeline).as_bytes())?,
        svg: write("svg", svg(report, timeline)?.as_bytes())?,
        png: write("png", &png(report, timeline)?)?,
        page: write("html", page(&report.key.scenario, &[(name, report, timeline)])?.as_bytes())?,
    })
}
