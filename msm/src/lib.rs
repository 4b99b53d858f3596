#![doc = include_str!("../README.md")]

mod affine;
mod buckets;
mod digits;
mod error;
mod field;
pub mod host;
pub mod naive;
mod pippenger;
mod plan;
mod scratch;
mod split;

pub use affine::{Affine, to_affine_batch};
pub use error::Error;
pub use host::{Stats, msm, msm_with};
pub use plan::Plan;
