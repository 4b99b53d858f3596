//! Files of circom, snarkjs, bellman, bellperson and arkworks, for BLS12-381.
//!
//! Each reader takes the bytes of a file (`zkey::read(&bytes, …)`), allocates no more than a small multiple
//! of their number whatever the lengths in them say, and returns an error rather than panic. The `load_*` and
//! `save_*` functions do the same by path: files are mapped, not read as a whole; writes replace the old file
//! at once or not at all; and it is remembered in a cache that the points of a key have been tested, which
//! takes longer than everything else.
//!
//! ```no_run
//! use prestage_groth16::format::{LoadOptions, load_proving_key, load_witness};
//!
//! let key = load_proving_key("circuit.zkey".as_ref(), None, &LoadOptions::default())?;
//! for note in &key.notes {
//!     eprintln!("note: {note}");
//! }
//! let witness = load_witness("witness.wtns".as_ref())?;
//! # Ok::<(), prestage_groth16::format::FormatError>(())
//! ```

#![doc = include_str!("../../FORMATS.md")]

pub mod ark;
mod atomic;
mod cache;
mod container;
mod cursor;
mod error;
mod field;
mod file;
pub mod json;
pub mod params;
mod point;
pub mod proof;
mod query;
pub mod r1cs;
mod subgroup;
pub mod wtns;
pub mod zkey;

use std::fmt;
use std::path::PathBuf;

pub use atomic::{leads_to_file, write_atomically};
pub use cache::{CheckCache, ContentDigest};
pub use error::{Fault, FileKind, FormatError, Place};
pub use file::{
    LoadOptions, MappedFile, load_proof, load_proving_key, load_public, load_r1cs, load_verifying_key,
    load_witness, save_params, save_proof, save_public, save_r1cs, save_verifying_key, save_witness,
};
pub use point::PointChecks;

/// Something read, and what the reader wants to have said about it.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// What a user may want to know.
    pub notes: Vec<Note>,
}

impl<T> Loaded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, notes: Vec::new() }
    }
}

/// A remark about a file that was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Bytes after the end of a parameter file, where ceremonies put their transcript. They were not read.
    Trailing {
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// The points were tested by an earlier load of the same content.
    Remembered {
        /// What they are remembered by.
        digest: ContentDigest,
    },
    /// The points were tested, but the next load will have to test them again.
    NotRemembered {
        /// Where it could not be noted.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trailing { offset, bytes } => {
                write!(
                    f,
                    "{bytes} bytes after the end at byte {offset} were not read (a ceremony's transcript?)"
                )
            }
            Self::Remembered { digest } => {
                write!(f, "points were tested by an earlier load of the same content ({digest})")
            }
            Self::NotRemembered { folder, reason } => {
                write!(f, "cannot remember in {} that the points were tested: {reason}", folder.display())
            }
        }
    }
}
