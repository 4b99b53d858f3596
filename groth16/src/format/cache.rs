//! Remembering that the points of a file have been tested, so that the next load need not.
//!
//! An entry is an empty promise without the content: its name is a digest of every byte of the file, of the
//! kind of file, and of the version of the tests. A changed file has another digest and is tested again.
//! Whoever can write to the folder can vouch for a bad key, as whoever can replace this program can.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest};
use rayon::prelude::*;

use super::atomic::write_atomically;
use super::error::FileKind;

/// To be raised when the tests become stricter.
const TESTS: u32 = 1;
/// Bytes per leaf of the digest.
const LEAF: usize = 1 << 20;

/// A folder of digests of files whose points have been tested.
#[derive(Clone, Debug)]
pub struct CheckCache {
    folder: PathBuf,
}

/// The digest of a file's content: BLAKE2b-256 over a heading (kind of file, version of the tests, length)
/// and the BLAKE2b-256 digests of its pieces of 1 MiB, which are computed in parallel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Digests a file's content.
    #[must_use]
    pub fn of(kind: FileKind, bytes: &[u8]) -> Self {
        let leaves: Vec<[u8; 32]> =
            bytes.par_chunks(LEAF).map(|leaf| Blake2b::<U32>::digest(leaf).into()).collect();
        let mut root = Blake2b::<U32>::new();
        root.update(format!("prestage tested points {TESTS} {kind} {}\n", bytes.len()));
        for leaf in leaves {
            root.update(leaf);
        }
        Self(root.finalize().into())
    }
}

impl std::fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ContentDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ContentDigest({self})")
    }
}

impl CheckCache {
    /// Uses this folder; it is made when the first entry is.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder `checked` in `PRESTAGE_CACHE_DIR`, otherwise in `prestage` in `XDG_CACHE_HOME`, otherwise
    /// in `.cache/prestage` in `HOME`. `None` when none of them is set to an absolute path.
    #[must_use]
    pub fn from_env() -> Option<Self> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("PRESTAGE_CACHE_DIR")
            .or_else(|| absolute("XDG_CACHE_HOME").map(|p| p.join("prestage")))
            .or_else(|| absolute("HOME").map(|p| p.join(".cache/prestage")))?;
        Some(Self::new(base.join("checked")))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn entry(&self, digest: &ContentDigest) -> (PathBuf, String) {
        (self.folder.join(digest.to_string()), format!("prestage tested points {TESTS} {digest}\n"))
    }

    /// Whether the content of that digest is known to be good. An entry that cannot be read, or says anything
    /// but what it must, counts as none.
    #[must_use]
    pub fn contains(&self, digest: &ContentDigest) -> bool {
        let (path, expected) = self.entry(digest);
        let mut content = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(expected.len() as u64 + 1).read_to_end(&mut content))
            .is_ok_and(|_| content == expected.as_bytes())
    }

    /// Remembers the content of that digest as good.
    ///
    /// # Errors
    ///
    /// Whatever the file system says.
    pub fn remember(&self, digest: &ContentDigest) -> io::Result<()> {
        let (path, content) = self.entry(digest);
        fs::create_dir_all(&self.folder)?;
        write_atomically(&path, |w| w.write_all(content.as_bytes()))
    }
}
