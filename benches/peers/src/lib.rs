#![doc = include_str!("../README.md")]

pub mod convert;
mod error;
pub mod measure;
mod prover;
#[cfg(feature = "spend")]
pub mod spend;

pub use error::Error;
pub use prover::{Arkworks, Bellperson, Keys, Kind, Ours, Peer, R1csCircuit, Statement, Taceo};
