#![doc = include_str!("../README.md")]

mod density;
mod error;
pub mod format;
mod key;
mod matrix;
mod plan;
mod proof;
mod prover;
mod r1cs;
mod random;
mod setup;
mod shape;
mod sizes;
mod verify;

pub use density::Density;
pub use error::Error;
pub use key::{
    AnyKey, Circom, Libsnark, ProvingKey, ProvingKeyParts, Query, Quotient, Reduction, Rows, VerifyingKey,
};
pub use matrix::{Matrix, MatrixBuilder};
pub use plan::{Change, Footprints, ParseResidencyError, Phase, Plan, Policy, Residency, Step, Sum};
pub use proof::Proof;
pub use prover::{
    Assignment, Committed, Computed, DeviceFootprints, H, JointProof, Options, Parts, Proofs, Proved, Prover,
    Provided, Share, Staged, commit_h, prove_provided, quotient, stage, tail,
};
pub use r1cs::{R1cs, R1csBuilder, Witness};
pub use random::Blinding;
pub use setup::{Opened, Trapdoor, setup, setup_insecure_from_seed};
pub use shape::{MatrixName, ShapeError};
pub use sizes::{Counts, Shape};
pub use verify::{PreparedKey, verify};
