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
    /// The name of a card.
    #[error(transparent)]
    Target(#[from] prestage_harness::scenario::TargetError),
    /// A case whose device is not simulated.
    #[error("{device} is no simulated card: it has no virtual time")]
    Real {
        /// Its name.
        device: String,
    },
    /// The description of a shape.
    #[error(transparent)]
    Source(#[from] prestage_harness::scenario::ShapeSourceError),
    /// A scenario with a partition that was not proved.
    #[error("{case}: partition {partition} was not proved: {error}")]
    Partition {
        /// Which scenario.
        case: String,
        /// Which partition, counted from 1.
        partition: u32,
        /// Why.
        error: String,
    },
    /// A chart that cannot be drawn.
    #[error("no chart: {0}")]
    Chart(String),
    /// Ratios that are no JSON.
    #[error("no ratios: {0}")]
    Json(#[from] serde_json::Error),
    /// The peer on the card.
    #[cfg(feature = "peers-cuda")]
    #[error("sppark: {0}")]
    Sppark(String),
    /// A result that is wrong, or two that are not equal.
    #[cfg(feature = "peers-cuda")]
    #[error("wrong: {0}")]
    Wrong(String),
    /// The report or its picture.
    #[error(transparent)]
    Harness(#[from] prestage_harness::Error),
}
