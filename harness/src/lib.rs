#![doc = include_str!("../README.md")]

mod error;
pub mod timeline;

pub use error::Error;
