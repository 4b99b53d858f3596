#![doc = include_str!("../README.md")]

mod density;
pub mod format;
mod key;
mod matrix;
mod proof;
mod r1cs;
mod shape;

pub use density::Density;
pub use key::{AnyKey, Circom, Libsnark, ProvingKey, ProvingKeyParts, Query, Reduction, Rows, VerifyingKey};
pub use matrix::{Matrix, MatrixBuilder};
pub use proof::Proof;
pub use r1cs::{R1cs, R1csBuilder, Witness};
pub use shape::{MatrixName, ShapeError};
