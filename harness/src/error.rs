//! What can go wrong around a proof: reports, files, pictures.

use std::path::PathBuf;

/// Errors of the harness.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The prover failed.
    #[error(transparent)]
    Groth16(#[from] prestage_groth16::Error),
    /// The device failed outside of a proof.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
    /// A proof did not verify, so nothing may be said about its time.
    #[error("proof {index} of {proofs} does not verify: no timing is reported")]
    Unverified {
        /// Which proof, counted from 1.
        index: u64,
        /// How many there were.
        proofs: u64,
    },
    /// There was no proof to verify.
    #[error("no proof was made: no timing is reported")]
    NoProofs,
    /// Two reports that measure different things.
    #[error("the reports cannot be compared: {what} is {left} in one and {right} in the other")]
    Incomparable {
        /// What differs.
        what: &'static str,
        /// Its value in the first report.
        left: String,
        /// Its value in the second report.
        right: String,
    },
    /// Text that is no report of ours.
    #[error("not a report: {0}")]
    Report(#[from] serde_json::Error),
    /// A report that was changed after it was written: one part of it contradicts another.
    #[error("the report contradicts itself: {what} cannot be right")]
    Tampered {
        /// What does not follow from the rest.
        what: &'static str,
    },
    /// A picture could not be drawn.
    #[error("cannot draw the timeline: {0}")]
    Draw(String),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
