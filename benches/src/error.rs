//! What can go wrong in a recorded run.

/// Errors of the recorded runs: those of the crates that they run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
    /// A copy.
    #[error(transparent)]
    Transfer(#[from] prestage_transfer::Error),
    /// A transform.
    #[error(transparent)]
    Ntt(#[from] prestage_ntt::Error),
    /// A sum.
    #[error(transparent)]
    Msm(#[from] prestage_msm::Error),
    /// A proof.
    #[error(transparent)]
    Groth16(#[from] prestage_groth16::Error),
    /// A circuit.
    #[error(transparent)]
    Shape(#[from] prestage_groth16::ShapeError),
    /// The report or its picture.
    #[error(transparent)]
    Harness(#[from] prestage_harness::Error),
}
