#![doc = include_str!("../README.md")]

mod arch;
mod args;
mod cache;
pub mod check;
mod error;
mod family;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "cuda")]
mod nvrtc;
mod version;

pub use arch::{Arch, Capability, Form, Target};
pub use args::{Args, Argument};
pub use cache::{Cache, Entry, Image, State, check_driver};
pub use error::Error;
pub use family::{Family, Source};
#[cfg(feature = "cuda")]
pub use nvrtc::{Built, Compiler, build, driver_version, module};
pub use version::Version;
