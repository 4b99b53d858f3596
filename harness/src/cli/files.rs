//! Looks at the paths of a command before its work begins: what cannot be written is better said at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prestage_groth16::format::leads_to_file;

use super::output::Failure;
use crate::timeline::Saved;

/// An argument and the path that it names.
pub(super) type Named<'a> = (&'static str, &'a Path);

/// Checks that each output can be made, and is neither another output nor an input. Nothing is left behind.
pub(super) fn can_write(outputs: &[Named<'_>], inputs: &[Named<'_>]) -> Result<(), Failure> {
    let mut seen: Vec<(&str, PathBuf)> =
        inputs.iter().filter_map(|(name, path)| Some((*name, fs::canonicalize(path).ok()?))).collect();
    for (name, path) in outputs {
        if leads_to_file(path) {
            return Err(cannot(path, "it is a stream that leads to a file: name the file"));
        }
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(cannot(path, "it is a directory")),
            // A pipe or a terminal is written to directly.
            Ok(there) if !there.is_file() => continue,
            _ => {}
        }
        try_folder(folder_of(path)).map_err(|e| cannot(path, &e))?;
        let resolved = resolve(path);
        if let Some((other, _)) = seen.iter().find(|(_, p)| *p == resolved) {
            return Err(cannot(path, &format!("{name} and {other} are the same file")));
        }
        seen.push((name, resolved));
    }
    Ok(())
}

/// The same for outputs and, where a folder is given by `flag`, the views of a timeline called `name` in it.
pub(super) fn can_save(
    outputs: &[Named<'_>],
    (flag, folder, name): (&'static str, Option<&Path>, &str),
    inputs: &[Named<'_>],
) -> Result<(), Failure> {
    can_write(outputs, inputs)?;
    let Some(folder) = folder else { return Ok(()) };
    can_make(folder)?;
    // A folder that is not there yet holds nothing that could be lost.
    if folder.is_dir() {
        let views = Saved::at(folder, name);
        let all: Vec<_> = outputs.iter().copied().chain(views.paths().map(|path| (flag, path))).collect();
        can_write(&all, inputs)?;
    }
    Ok(())
}

/// Checks that a folder is there and can be written to, or can be made.
pub(super) fn can_make(folder: &Path) -> Result<(), Failure> {
    let missing = |p: &&Path| !p.as_os_str().is_empty() && fs::symlink_metadata(p).is_err();
    let there = folder.ancestors().find(|p| !missing(p)).unwrap_or(folder);
    if there == folder && !folder.is_dir() {
        return Err(cannot(folder, "it is not a directory"));
    }
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    try_folder(there).map_err(|e| cannot(folder, &e))
}

fn cannot(path: &Path, why: &str) -> Failure {
    Failure::new(format!("cannot write {}: {why}", path.display()))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where a path leads, also when its last part does not exist yet.
fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let folder = folder_of(path);
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        path.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
    })
}

/// Makes a file in the folder, as every write does first, and removes it.
fn try_folder(folder: &Path) -> Result<(), String> {
    let words = |e: &io::Error| {
        // The name of the temporary file is of no use to anyone.
        let inner = e.get_ref().and_then(std::error::Error::source);
        inner.map_or_else(|| e.to_string(), ToString::to_string)
    };
    tempfile::tempfile_in(folder).map(drop).map_err(|e| words(&e))
}
