//! Files that are either the old ones or the new ones, never half of one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Whether `path` is that of a stream, under `/dev` or `/proc`, that leads to a regular file: `/dev/stdout` where it is
/// redirected. Replacing that file would lose what others write to it, so the file has to be named itself.
#[must_use]
pub fn leads_to_file(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|streams| path.starts_with(streams))
        && fs::metadata(path).is_ok_and(|there| there.is_file())
}

/// Writes a file through a temporary neighbour: written, flushed to the device, then renamed over `path`, so
/// that whatever interrupts it leaves the old content or the new. A symbolic link is followed. Something at
/// `path` that is not a regular file, such as a pipe, is written to directly; a stream that
/// [`leads_to_file`] is refused.
///
/// # Errors
///
/// Whatever `fill` or the file system says; `path` is unchanged then.
pub fn write_atomically(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => {
            let mut w = BufWriter::new(File::options().write(true).open(path)?);
            fill(&mut w)?;
            return w.flush();
        }
        Ok(_) if leads_to_file(path) => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a stream that leads to a file: name the file",
            ));
        }
        Ok(_) => fs::canonicalize(path)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(e) => return Err(e),
    };
    let Some(name) = target.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Less what the umask takes away, as for any new file; an existing file keeps its mode.
        let mode = fs::metadata(&target).map_or(0o666, |m| m.permissions().mode() & 0o777);
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    let mut temporary = builder.tempfile_in(folder)?;
    let mut w = BufWriter::new(temporary.as_file_mut());
    fill(&mut w)?;
    w.flush()?;
    drop(w);
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|e| e.error)?;
    // The rename lasts once the folder is on the device too. Not every file system can do that.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}
