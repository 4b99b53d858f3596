//! What a peer can say.

/// Errors of all the provers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// prestage.
    #[error(transparent)]
    Ours(#[from] prestage_groth16::Error),
    /// A circuit that does not fit.
    #[error(transparent)]
    Shape(#[from] prestage_groth16::ShapeError),
    /// A file of prestage's.
    #[error(transparent)]
    Format(#[from] prestage_groth16::format::FormatError),
    /// bellperson.
    #[error("bellperson: {0}")]
    Bellperson(#[from] bellperson::SynthesisError),
    /// ark-groth16.
    #[error("ark-groth16: {0}")]
    Arkworks(String),
    /// taceo-groth16.
    #[error("taceo-groth16: {0}")]
    Taceo(String),
    /// The Spend circuit.
    #[cfg(feature = "spend")]
    #[error("the Spend circuit: {0}")]
    Spend(String),
    /// A key of another reduction than the prover takes.
    #[error("{}: a key of the other reduction", path.display())]
    OtherReduction {
        /// Its file.
        path: std::path::PathBuf,
    },
    /// A file of the system's.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
