//! Compiled modules on disk.
//!
//! An entry is one file, `FAMILY-TARGET-SOURCES-cudaX.Y.bin`, where SOURCES is a digest over the sources, the
//! options and the file format. It begins with a header that carries the digest of the module itself, so an
//! entry that was cut short, changed or written by something else is found out and compiled again. Files are
//! written under another name and renamed: a reader sees a whole entry or none.

use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering},
};

use blake2::{Blake2s256, Digest};

use crate::{Arch, Error, Family, Target, Version, arch::Form};

const MAGIC: &[u8; 8] = b"PSKCACH1";
const HEADER_BYTES: usize = MAGIC.len() + 32;
const EXTENSION: &str = "bin";

/// A compiled module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What it holds.
    pub family: Family,
    /// What it is compiled for.
    pub target: Target,
    /// By which version of NVRTC.
    pub compiler: Version,
    /// A cubin, or PTX that ends in NUL.
    pub bytes: Vec<u8>,
}

/// What became of an entry since it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It belongs to the sources of this build.
    Current,
    /// It belongs to other sources or options.
    Stale,
    /// Its content is not what was written.
    Corrupt,
}

/// One file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The family's name; not a [`Family`], since another version may have written it.
    pub family: String,
    /// What it is compiled for.
    pub target: Target,
    /// By which version of NVRTC.
    pub compiler: Version,
    /// The size of the file.
    pub bytes: u64,
    /// Whether it can be used.
    pub state: State,
    /// Where it is.
    pub path: PathBuf,
}

/// The options given to NVRTC for a target, after the sources.
pub(crate) fn options(target: Target) -> Vec<String> {
    vec![format!("--gpu-architecture={target}"), "--std=c++17".to_owned()]
}

/// A digest over all that decides a module's content, except the compiler's version.
pub(crate) fn digest(family: Family, target: Target) -> String {
    let mut hash = Blake2s256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(MAGIC);
    for source in std::iter::once(&family.source()).chain(family.headers()) {
        part(source.name.as_bytes());
        part(source.text.as_bytes());
    }
    for option in options(target) {
        part(option.as_bytes());
    }
    hash.finalize()[..12].iter().map(|b| format!("{b:02x}")).collect()
}

/// A folder of compiled modules.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// The cache in `dir`, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The user's cache: `PRESTAGE_CACHE_DIR`, or `prestage` under `XDG_CACHE_HOME` or `~/.cache`; the modules
    /// are in its folder `kernels`. A path that is not absolute counts as not set.
    ///
    /// # Errors
    ///
    /// [`Error::NoCacheDir`] when none of these variables is set.
    pub fn from_env() -> Result<Self, Error> {
        let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let dir = var("PRESTAGE_CACHE_DIR")
            .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("prestage")))
            .or_else(|| var("HOME").map(|d| d.join(".cache").join("prestage")))
            .ok_or(Error::NoCacheDir)?;
        Ok(Self::at(dir.join("kernels")))
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, family: Family, target: Target, compiler: Version) -> PathBuf {
        let digest = digest(family, target);
        self.dir.join(format!("{family}-{target}-{digest}-cuda{compiler}.{EXTENSION}"))
    }

    /// The module of `family` for `target` from the sources of this build, compiled by `compiler`, or by the
    /// newest there is when `None`. A missing, stale or corrupt entry is `Ok(None)`.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] when the folder or a file in it cannot be read.
    pub fn load(
        &self,
        family: Family,
        target: Target,
        compiler: Option<Version>,
    ) -> Result<Option<Image>, Error> {
        let mut found: Vec<(Version, PathBuf)> = match compiler {
            Some(version) => vec![(version, self.path(family, target, version))],
            None => self
                .files()?
                .into_iter()
                .filter_map(|path| {
                    let name = Name::of(&path)?;
                    let ours = name.family == family.name() && name.target == target;
                    (ours && name.digest == digest(family, target)).then_some((name.compiler, path))
                })
                .collect(),
        };
        found.sort();
        for (compiler, path) in found.into_iter().rev() {
            match fs::read(&path) {
                Ok(file) => {
                    if let Some(bytes) = content(&file) {
                        return Ok(Some(Image { family, target, compiler, bytes: bytes.to_vec() }));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Cache { path, source }),
            }
        }
        Ok(None)
    }

    /// Writes a module: the whole entry or none appears, and an older one is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] when the folder cannot be made or the file not written.
    pub fn store(&self, image: &Image) -> Result<PathBuf, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(image.family, image.target, image.compiler);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Cache { path, source }
        };
        fs::create_dir_all(&self.dir).map_err(failed(&self.dir))?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{count}.tmp", std::process::id()));
        let mut file = Vec::with_capacity(HEADER_BYTES + image.bytes.len());
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&Blake2s256::digest(&image.bytes));
        file.extend_from_slice(&image.bytes);
        let written = fs::write(&temporary, &file).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // Nothing more can be done about a temporary file that cannot be removed.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed(&path))?;
        Ok(path)
    }

    /// All entries, sorted by name. Files of other kinds are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] when the folder or a file in it cannot be read. A folder that does not exist is empty.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for path in self.files()? {
            let Some(name) = Name::of(&path) else { continue };
            let file = match fs::read(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::Cache { path, source }),
            };
            let family = Family::ALL.iter().find(|f| f.name() == name.family);
            let state = if content(&file).is_none() {
                State::Corrupt
            } else if family.is_some_and(|&f| digest(f, name.target) == name.digest) {
                State::Current
            } else {
                State::Stale
            };
            entries.push(Entry {
                family: name.family,
                target: name.target,
                compiler: name.compiler,
                bytes: file.len() as u64,
                state,
                path,
            });
        }
        Ok(entries)
    }

    /// Removes every entry and what interrupted writers left, for `arch` alone if given. Returns how many files
    /// went.
    ///
    /// # Errors
    ///
    /// [`Error::Cache`] when a file cannot be removed.
    pub fn clear(&self, arch: Option<Arch>) -> Result<usize, Error> {
        let mut removed = 0;
        for path in self.files()? {
            let leftover = path.extension().is_some_and(|e| e == "tmp");
            let entry = Name::of(&path).is_some_and(|n| arch.is_none_or(|a| n.target.arch == a));
            if !(entry || leftover && arch.is_none()) {
                continue;
            }
            match fs::remove_file(&path) {
                Ok(()) => removed += 1,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Cache { path, source }),
            }
        }
        Ok(removed)
    }

    /// The files of the folder, sorted.
    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| Error::Cache { path: self.dir.clone(), source };
        let listing = match fs::read_dir(&self.dir) {
            Ok(listing) => listing,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(failed(e)),
        };
        let mut files =
            listing.map(|entry| entry.map(|e| e.path())).collect::<io::Result<Vec<_>>>().map_err(failed)?;
        files.sort();
        Ok(files)
    }
}

/// The parts of an entry's file name.
struct Name {
    family: String,
    target: Target,
    digest: String,
    compiler: Version,
}

impl Name {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(&format!(".{EXTENSION}"))?;
        let parts: Vec<&str> = name.split('-').collect();
        let [family, target, digest, compiler] = parts[..] else { return None };
        Some(Self {
            family: family.to_owned(),
            target: Target::from_str(target).ok()?,
            digest: digest.to_owned(),
            compiler: compiler.strip_prefix("cuda")?.parse().ok()?,
        })
    }
}

/// The module in a file, if the file is whole.
fn content(file: &[u8]) -> Option<&[u8]> {
    let (header, bytes) = file.split_at_checked(HEADER_BYTES)?;
    let (magic, sum) = header.split_at(MAGIC.len());
    (magic == MAGIC && sum == Blake2s256::digest(bytes).as_slice()).then_some(bytes)
}

/// Whether a driver can load a module.
///
/// # Errors
///
/// [`Error::DriverTooOld`] when the module comes from a later major version of CUDA than the driver's, or is PTX
/// from any later version.
pub fn check_driver(driver: Version, image: &Image) -> Result<(), Error> {
    check_version(driver, image.target, image.compiler)
}

/// As [`check_driver`], for a module that need not be there yet.
pub(crate) fn check_version(driver: Version, target: Target, compiler: Version) -> Result<(), Error> {
    let too_old = match target.form {
        Form::Cubin => compiler.major > driver.major,
        Form::Ptx => compiler > driver,
    };
    if too_old { Err(Error::DriverTooOld { driver, compiler }) } else { Ok(()) }
}
