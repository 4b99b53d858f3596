#![doc = include_str!("../README.md")]

mod error;
mod inputs;
mod ratios;
mod recorded;
mod scenarios;
mod settings;
#[cfg(feature = "peers-cuda")]
pub mod sppark;

pub use error::Error;
pub use inputs::{CIRCUITS, NamedCircuit, Progression, bits, rng, scalars};
pub use ratios::{Ratios, Row, date};
pub use recorded::{Outcome, Recorded, msm, ntt, prove, record, transfer};
pub use scenarios::{CARDS, Case, Partitions, WAYS, WORKERS, cases, save};
pub use settings::{LOG_SIZES, Mode, criterion, criterion_defaults, log_sizes, output_folder};
