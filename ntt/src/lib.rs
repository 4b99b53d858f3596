#![doc = include_str!("../README.md")]

mod chunked;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod domain;
mod error;
mod field;
pub mod host;
mod lanes;
#[cfg(any(feature = "cuda", test))]
mod launches;
pub mod naive;
mod passes;
mod plan;
pub mod polynomial;
mod reorder;
mod tables;
mod tile;
mod transform;
mod twiddles;

pub use chunked::{Chunked, Outside};
pub use device::{Ntt, Step, Work};
pub use domain::{CIRCOM_GENERATOR, Domain, LIBSNARK_GENERATOR, MAX_LOG_SIZE};
pub use error::Error;
pub use lanes::Backend;
pub use plan::{Footprint, MAX_CHUNKS, Plan};
pub use transform::{Direction, Order, Transform};
pub use twiddles::Twiddles;
