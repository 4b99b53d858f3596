#![doc = include_str!("../README.md")]

mod affine;
mod batched;
mod buckets;
mod compact;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod digits;
mod error;
mod field;
mod fixed_base;
pub mod host;
mod joint;
pub mod naive;
mod pippenger;
mod plan;
mod points;
mod scratch;
mod split;

pub use affine::{Affine, to_affine_batch};
pub use batched::{Batches, Deferred, Slots, batched};
pub use compact::{Chosen, Compact, Layout};
pub use device::{Batch, BatchBases, BatchScalars, Msm, Queues};
pub use error::Error;
pub use fixed_base::{Multiples, Threads};
pub use host::{Stats, msm, msm_with};
pub use joint::{Joint, Piece};
pub use plan::Plan;
pub use points::{Bases, Place, PointRings, Points, Resident, Scalars, point_rings};
