#![doc = include_str!("../README.md")]

mod args;
pub mod check;
mod error;
mod family;
#[cfg(feature = "host")]
pub mod host;

pub use args::{Args, Argument};
pub use error::Error;
pub use family::{Family, Source};
