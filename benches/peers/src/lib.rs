#![doc = include_str!("../README.md")]

pub mod convert;
mod error;
mod files;
pub mod measure;
mod prover;
pub mod report;
#[cfg(feature = "spend")]
pub mod spend;
pub mod zkey;

pub use error::Error;
pub use files::KeyFile;
pub use prover::{
    Arkworks, Bellperson, BellpersonMapped, Keys, Kind, Ours, Peer, R1csCircuit, Statement, Taceo,
};
