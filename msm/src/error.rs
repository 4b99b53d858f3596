//! What can go wrong.

use prestage_vram::Bytes;

/// An error of this crate.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A sum needs one scalar for each base; nothing is truncated to the shorter side.
    #[error("{bases} bases but {scalars} scalars")]
    LengthMismatch {
        /// Number of bases.
        bases: usize,
        /// Number of scalars.
        scalars: usize,
    },
    /// The sum is longer than the one that was planned for.
    #[error("{len} terms, but the plan is for at most {planned}")]
    LongerThanPlanned {
        /// Number of terms.
        len: usize,
        /// Longest sum that the plan allows.
        planned: usize,
    },
    /// The scratch memory is smaller than the plan's footprint.
    #[error("scratch memory of {got}, but the plan needs {need}")]
    ScratchTooSmall {
        /// What the plan's footprint states.
        need: Bytes,
        /// What was given.
        got: Bytes,
    },
    /// A window width that does not exist.
    #[error("window of {bits} bits: it must be 1 to {max}")]
    WindowOutOfRange {
        /// The width asked for.
        bits: u32,
        /// The largest width.
        max: u32,
    },
    /// Device memory was refused, or a copy or other work on the device failed.
    #[error(transparent)]
    Device(#[from] prestage_transfer::Error),
}

impl From<prestage_vram::Error> for Error {
    fn from(error: prestage_vram::Error) -> Self {
        Self::Device(error.into())
    }
}
