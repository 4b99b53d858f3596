#![doc = include_str!("../README.md")]

mod domain;
mod error;
mod field;
pub mod host;
mod lanes;
pub mod naive;
mod passes;
pub mod polynomial;
mod reorder;
mod tables;
mod tile;
mod transform;

pub use domain::{CIRCOM_GENERATOR, Domain, LIBSNARK_GENERATOR, MAX_LOG_SIZE};
pub use error::Error;
pub use lanes::Backend;
pub use transform::{Direction, Order, Transform};
