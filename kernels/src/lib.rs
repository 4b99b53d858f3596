#![doc = include_str!("../README.md")]

mod arch;
mod cache;
#[cfg(feature = "cuda")]
pub mod card;
pub mod check;
mod error;
mod family;
pub mod fixed_base;
#[cfg(feature = "host")]
pub mod host;
mod launch;
pub mod msm;
pub mod ntt;
#[cfg(feature = "cuda")]
mod nvrtc;
mod version;

pub use arch::{Arch, Capability, Form, Target};
pub use cache::{Cache, Entry, Image, State, check_driver};
pub use error::Error;
pub use family::{Family, Source};
pub use launch::{Args, Argument, Launch};
#[cfg(feature = "cuda")]
pub use nvrtc::{Built, Compiler, build, driver_version, module, ready};
pub use version::Version;
