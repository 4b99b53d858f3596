//! Files by their paths: which reader a file takes, and the loads that remember their checks.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Deref;
use std::path::Path;

use blstrs::{G1Affine, Scalar};
use memmap2::Mmap;

use super::atomic::write_atomically;
use super::cache::{CheckCache, ContentDigest};
use super::error::{FileKind, FormatError};
use super::point::{Encoding, PointChecks};
use super::{Loaded, Note, ark, json, params, proof, r1cs, wtns, zkey};
use crate::key::{AnyKey, Libsnark, ProvingKey, VerifyingKey};
use crate::proof::Proof;
use crate::r1cs::{R1cs, Witness};

/// A regular file, mapped read-only: its pages are read when they are looked at, and a key of 47 GB takes
/// no memory beyond what is made of it.
///
/// The file must not be shortened by others while it is mapped: the operating system ends the process then.
#[derive(Debug)]
pub struct MappedFile(Mmap);

impl MappedFile {
    /// Maps a file.
    ///
    /// # Errors
    ///
    /// [`FormatError::Io`] when it cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let map = || {
            let odd = || Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            // Before it is opened, since opening a pipe waits for a writer; and after, in case it was exchanged.
            if !fs::metadata(path)?.is_file() {
                return odd();
            }
            let file = File::open(path)?;
            if !file.metadata()?.is_file() {
                return odd();
            }
            // SAFETY: the map is read-only and private to this type, which gives it out as `&[u8]`. Nothing
            // in this process writes to files in place (`write_atomically` replaces them, and a replaced
            // file stays as it was for those who have it open). Other processes are the documented condition.
            unsafe { Mmap::map(&file) }
        };
        map().map(Self).map_err(|e| FormatError::io(path, e))
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// How keys are loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Whether points are tested.
    pub checks: PointChecks,
    /// Where it is remembered that they were; `None` tests every time.
    pub cache: Option<CheckCache>,
}

impl Default for LoadOptions {
    /// Full checks, remembered in the user's cache folder.
    fn default() -> Self {
        Self { checks: PointChecks::Full, cache: CheckCache::from_env() }
    }
}

/// Loads a proving key of any kind. The suffixes `.zkey`, `.params` and `.ark` decide; without one of them
/// the content does. A parameter file needs the circuit beside it. With a circuit the key must fit it.
///
/// # Errors
///
/// [`FormatError`]; [`FormatError::NeedsR1cs`] when a parameter file comes alone.
pub fn load_proving_key(
    path: &Path,
    r1cs: Option<&R1cs>,
    options: &LoadOptions,
) -> Result<Loaded<AnyKey>, FormatError> {
    let bytes = MappedFile::open(path)?;
    let kind = key_kind(path, &bytes);
    let load = |checks| match kind {
        FileKind::Zkey => zkey::read(&bytes, checks).map(|key| Loaded::new(AnyKey::Circom(key))),
        FileKind::Params => {
            let Some(r1cs) = r1cs else {
                return Err(FormatError::NeedsR1cs { path: path.to_owned(), kind });
            };
            let Loaded { value, notes } = params::read(&bytes, checks)?;
            let key = value.with_r1cs(r1cs).map_err(|e| counts(kind, e))?;
            Ok(Loaded { value: AnyKey::Libsnark(key), notes })
        }
        _ => ark::read(&bytes, checks).map(|key| Loaded::new(AnyKey::Libsnark(key))),
    };
    let loaded = remembering(kind, &bytes, options, load).map_err(|e| e.in_file(path))?;
    if let Some(r1cs) = r1cs {
        match &loaded.value {
            AnyKey::Circom(key) => key.fits(r1cs),
            AnyKey::Libsnark(key) => key.fits(r1cs),
        }
        .map_err(|e| counts(kind, e).in_file(path))?;
    }
    Ok(loaded)
}

fn counts(kind: FileKind, fault: crate::ShapeError) -> FormatError {
    let place = super::Place { section: "key and circuit", index: None, offset: None };
    FormatError::content(kind, place, fault)
}

/// Runs a load with the checks that are still to be done, and remembers them when it succeeds.
fn remembering<T>(
    kind: FileKind,
    bytes: &[u8],
    options: &LoadOptions,
    load: impl FnOnce(PointChecks) -> Result<Loaded<T>, FormatError>,
) -> Result<Loaded<T>, FormatError> {
    let cache = match (&options.cache, options.checks) {
        (Some(cache), PointChecks::Full) => cache,
        (_, checks) => return load(checks),
    };
    let digest = ContentDigest::of(kind, bytes);
    if cache.contains(&digest) {
        let mut loaded = load(PointChecks::Unchecked)?;
        loaded.notes.push(Note::Remembered { digest });
        return Ok(loaded);
    }
    let mut loaded = load(PointChecks::Full)?;
    if let Err(e) = cache.remember(&digest) {
        loaded.notes.push(Note::NotRemembered { folder: cache.folder().to_owned(), reason: e.to_string() });
    }
    Ok(loaded)
}

/// Which proving key a file is, or would be.
fn key_kind(path: &Path, bytes: &[u8]) -> FileKind {
    match path.extension().and_then(OsStr::to_str) {
        Some("zkey") => return FileKind::Zkey,
        Some("params") => return FileKind::Params,
        Some("ark") => return FileKind::ArkProvingKey,
        _ => {}
    }
    if bytes.starts_with(b"zkey") {
        return FileKind::Zkey;
    }
    // After α1, parameters have β1 of G1 and arkworks has β2 of G2.
    let second = bytes.get(96..192);
    let is_g1 = second.is_some_and(|p| Encoding::Uncompressed.decode_finite::<G1Affine>(p).is_ok());
    if is_g1 { FileKind::Params } else { FileKind::ArkProvingKey }
}

/// Loads a verifying key: JSON, arkworks' own, or the one in a proving key.
///
/// # Errors
///
/// [`FormatError`].
pub fn load_verifying_key(path: &Path) -> Result<VerifyingKey, FormatError> {
    let bytes = MappedFile::open(path)?;
    let is_json = path.extension() == Some(OsStr::new("json")) || first_character(&bytes) == Some(b'{');
    let read = if is_json {
        json::read_verifying_key(&bytes)
    } else {
        match key_kind(path, &bytes) {
            FileKind::Zkey => zkey::read_verifying_key(&bytes),
            FileKind::Params => params::read_verifying_key(&bytes),
            _ => ark::read_verifying_key(&bytes),
        }
    };
    read.map_err(|e| e.in_file(path))
}

/// Loads a proof: JSON or 192 bytes.
///
/// # Errors
///
/// [`FormatError`].
pub fn load_proof(path: &Path) -> Result<Proof, FormatError> {
    let bytes = MappedFile::open(path)?;
    let is_json = path.extension() == Some(OsStr::new("json")) || first_character(&bytes) == Some(b'{');
    let read = if is_json { json::read_proof(&bytes) } else { proof::read(&bytes) };
    read.map_err(|e| e.in_file(path))
}

/// Loads public inputs: JSON, or the `n_public` public values of a witness.
///
/// # Errors
///
/// [`FormatError`].
pub fn load_public(path: &Path, n_public: usize) -> Result<Vec<Scalar>, FormatError> {
    let bytes = MappedFile::open(path)?;
    let read = || {
        if !bytes.starts_with(b"wtns") {
            return json::read_public(&bytes);
        }
        let n = u32::try_from(n_public).unwrap_or(u32::MAX);
        let witness = wtns::read(&bytes)?;
        witness.public(n).map(<[_]>::to_vec).map_err(|e| {
            let place = super::Place { section: "section 2 (values)", index: None, offset: None };
            FormatError::content(FileKind::Wtns, place, e)
        })
    };
    read().map_err(|e| e.in_file(path))
}

/// Loads a constraint system.
///
/// # Errors
///
/// [`FormatError`].
pub fn load_r1cs(path: &Path) -> Result<R1cs, FormatError> {
    r1cs::read(&MappedFile::open(path)?).map_err(|e| e.in_file(path))
}

/// Loads a witness.
///
/// # Errors
///
/// [`FormatError`].
pub fn load_witness(path: &Path) -> Result<Witness, FormatError> {
    wtns::read(&MappedFile::open(path)?).map_err(|e| e.in_file(path))
}

fn first_character(bytes: &[u8]) -> Option<u8> {
    bytes.iter().copied().find(|b| !b.is_ascii_whitespace())
}

/// Writes a proof: JSON to a path that ends in `.json`, otherwise its 192 bytes.
///
/// # Errors
///
/// [`FormatError::Io`]; what was at `path` is unchanged then.
pub fn save_proof(path: &Path, proof: &Proof) -> Result<(), FormatError> {
    save(path, |w| {
        if path.extension() == Some(OsStr::new("json")) {
            json::write_proof(w, proof)
        } else {
            w.write_all(&proof::to_bytes(proof))
        }
    })
}

/// Writes public inputs as JSON.
///
/// # Errors
///
/// [`FormatError::Io`]; what was at `path` is unchanged then.
pub fn save_public(path: &Path, inputs: &[Scalar]) -> Result<(), FormatError> {
    save(path, |w| json::write_public(w, inputs))
}

/// Writes a verifying key as JSON.
///
/// # Errors
///
/// [`FormatError::Io`]; what was at `path` is unchanged then.
pub fn save_verifying_key(path: &Path, vk: &VerifyingKey) -> Result<(), FormatError> {
    save(path, |w| json::write_verifying_key(w, vk))
}

/// Writes a proving key as bellman parameters.
///
/// # Errors
///
/// [`FormatError::Io`], or [`FormatError::NotRepresentable`] as [`params::write`] says; what was at `path` is
/// unchanged then.
pub fn save_params(path: &Path, key: &ProvingKey<Libsnark>) -> Result<(), FormatError> {
    let mut refused = None;
    let saved = save(path, |w| {
        params::write(w, key).unwrap_or_else(|e| {
            refused = Some(e);
            Err(io::ErrorKind::InvalidInput.into())
        })
    });
    refused.map_or(saved, Err)
}

/// Writes a constraint system.
///
/// # Errors
///
/// [`FormatError::Io`]; what was at `path` is unchanged then.
pub fn save_r1cs(path: &Path, r1cs: &R1cs) -> Result<(), FormatError> {
    save(path, |w| r1cs::write(w, r1cs))
}

/// Writes a witness.
///
/// # Errors
///
/// [`FormatError::Io`]; what was at `path` is unchanged then.
pub fn save_witness(path: &Path, witness: &Witness) -> Result<(), FormatError> {
    save(path, |w| wtns::write(w, witness))
}

fn save(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FormatError> {
    write_atomically(path, fill).map_err(|e| FormatError::io(path, e))
}
