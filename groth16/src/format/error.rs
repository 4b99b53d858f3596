//! What can be wrong with a file, said in one line: which kind of file, where in it, and what was expected.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::shape::ShapeError;

/// The files that this module reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// snarkjs proving key.
    Zkey,
    /// snarkjs witness.
    Wtns,
    /// circom constraint system.
    R1cs,
    /// bellman or bellperson parameters.
    Params,
    /// arkworks proving key.
    ArkProvingKey,
    /// arkworks verifying key.
    ArkVerifyingKey,
    /// snarkjs `verification_key.json`.
    JsonVerifyingKey,
    /// snarkjs `proof.json`.
    JsonProof,
    /// snarkjs `public.json`.
    JsonPublic,
    /// A proof of 192 bytes.
    ProofBytes,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zkey => "zkey",
            Self::Wtns => "wtns",
            Self::R1cs => "r1cs",
            Self::Params => "bellman parameters",
            Self::ArkProvingKey => "arkworks proving key",
            Self::ArkVerifyingKey => "arkworks verifying key",
            Self::JsonVerifyingKey => "verification key JSON",
            Self::JsonProof => "proof JSON",
            Self::JsonPublic => "public input JSON",
            Self::ProofBytes => "proof bytes",
        })
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The section, query or field, in words.
    pub section: &'static str,
    /// Index of the point, value or row within it.
    pub index: Option<u64>,
    /// Offset in bytes from the start of the file; JSON has none.
    pub offset: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.section)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        Ok(())
    }
}

/// What is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file does not begin as its kind must.
    #[error("expected the magic {expected:?}, got {:?}", String::from_utf8_lossy(.got))]
    Magic {
        /// The four bytes that this kind of file begins with.
        expected: &'static str,
        /// The bytes that are there.
        got: [u8; 4],
    },
    /// A version that is not read here.
    #[error("expected version {expected}, got {got}")]
    Version {
        /// The version that is read.
        expected: u32,
        /// The version that the file says.
        got: u32,
    },
    /// A key or proof of another proof system.
    #[error("expected the protocol groth16, got {got}")]
    Protocol {
        /// Its name, or its number.
        got: Cow<'static, str>,
    },
    /// Made for another curve.
    #[error("expected the curve bls12381, got {got}")]
    Curve {
        /// Its name if known, otherwise the prime.
        got: Cow<'static, str>,
    },
    /// The file ends before what it announces.
    #[error("cut short: {needed} bytes needed, {available} left")]
    Truncated {
        /// Bytes that the next item takes.
        needed: u64,
        /// Bytes that there are.
        available: u64,
    },
    /// Bytes after the end of the last item.
    #[error("{bytes} bytes too many after the end")]
    Trailing {
        /// How many.
        bytes: u64,
    },
    /// A section that must be there is not.
    #[error("the section is missing")]
    Missing,
    /// A section is there twice.
    #[error("section {id} is there twice")]
    Twice {
        /// Its number.
        id: u32,
    },
    /// A section is longer or shorter than the header implies.
    #[error("expected a section of {expected} bytes, got {got}")]
    SectionLength {
        /// Bytes that the header implies.
        expected: u64,
        /// Bytes that the section holds.
        got: u64,
    },
    /// A count differs from what the rest of the file implies.
    #[error("{what}: expected {expected}, got {got}")]
    Count {
        /// What was counted.
        what: &'static str,
        /// The count that the rest implies.
        expected: u64,
        /// The count that is there.
        got: u64,
    },
    /// A number that has to be below a limit is not.
    #[error("{what} {got} is not below {limit}")]
    OutOfRange {
        /// What the number names.
        what: &'static str,
        /// The number.
        got: u64,
        /// The limit, itself not allowed.
        limit: u64,
    },
    /// The circuit uses custom gates, which Groth16 cannot prove.
    #[error("the circuit uses {count} custom gates, which Groth16 cannot prove")]
    CustomGates {
        /// How many are declared or used.
        count: u32,
    },
    /// A scalar that is not below the scalar field's modulus.
    #[error("scalar is not below the modulus r")]
    Scalar,
    /// A coordinate that is not below the base field's modulus.
    #[error("coordinate is not below the modulus q")]
    Coordinate,
    /// A point that is not on the curve.
    #[error("point is not on the curve")]
    OffCurve,
    /// A point on the curve, but outside the subgroup of order r.
    #[error("point is not in the subgroup of order r")]
    Subgroup,
    /// A point at infinity where the format or the protocol allows none.
    #[error("point at infinity where none is allowed")]
    Infinity,
    /// An encoding of infinity with something else in it.
    #[error("point at infinity is not encoded as such: other bits are set")]
    DirtyInfinity,
    /// The three flag bits of an encoded point are not ones that this encoding has.
    #[error("flag bits {got:03b} of the point are not valid here")]
    Flags {
        /// The top three bits: compressed, infinity, sign.
        got: u8,
    },
    /// A decimal number that is not written as one: digits only, no leading zero.
    #[error("not a decimal number in canonical form")]
    Decimal,
    /// Something other than the coordinates of an affine point.
    #[error("not an affine point: the last coordinate is neither one nor that of infinity")]
    NotAffine,
    /// The pairing that a verification key states is not the one of its points.
    #[error("not the pairing of alpha and beta")]
    Pairing,
    /// Not JSON, or JSON of another shape.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: u64,
        /// What the parser says.
        message: String,
    },
    /// Parts that do not fit together.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file system said no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The content is wrong.
    #[error("{}{kind}, {place}: {fault}", path_prefix(.path.as_deref()))]
    Content {
        /// The file, when it was read from one.
        path: Option<Box<Path>>,
        /// What the file should be.
        kind: FileKind,
        /// Where in it.
        place: Place,
        /// What is wrong.
        fault: Box<Fault>,
    },
    /// A key that this format has no way to write.
    #[error("{kind} cannot hold this key: {reason}")]
    NotRepresentable {
        /// The format.
        kind: FileKind,
        /// Why not.
        reason: String,
    },
    /// A proving key of this kind needs the circuit's constraint system beside it.
    #[error("{}: {kind} need the circuit's .r1cs beside them: they do not say which wires their points belong to", .path.display())]
    NeedsR1cs {
        /// The key's file.
        path: PathBuf,
        /// The format.
        kind: FileKind,
    },
}

fn path_prefix(path: Option<&Path>) -> String {
    path.map(|p| format!("{}: ", p.display())).unwrap_or_default()
}

impl FormatError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn content(kind: FileKind, place: Place, fault: impl Into<Fault>) -> Self {
        Self::Content { path: None, kind, place, fault: Box::new(fault.into()) }
    }

    /// Says which file the content came from.
    pub(crate) fn in_file(mut self, at: &Path) -> Self {
        if let Self::Content { path, .. } = &mut self {
            *path = Some(at.into());
        }
        self
    }

    /// What is wrong with the content, if it is the content.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Content { fault, .. } => Some(fault),
            _ => None,
        }
    }

    /// Where in the content, if it is the content.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Content { place, .. } => Some(*place),
            _ => None,
        }
    }
}
