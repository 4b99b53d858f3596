#![doc = include_str!("../README.md")]

pub mod conformance;
mod copy;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
mod host;
mod lane;
mod mark;
mod memory;
mod pinned;
mod pool;
mod registered;
mod ring;
mod rings;
mod scope;
mod shared;
mod sim;
mod source;

pub use copy::{Downloading, Place, Uploading};
pub use device::{HostRange, Pages, Registration, Transfer, page_size};
pub use error::Error;
pub use lane::{Lane, Lanes};
pub use mark::Mark;
pub use pinned::Pinned;
pub use pool::PinnedPool;
pub use registered::{Registered, registered};
pub use ring::{Ring, RingSlots};
pub use rings::Rings;
pub use scope::Scope;
pub use shared::Shared;
pub use source::{Part, Source};
