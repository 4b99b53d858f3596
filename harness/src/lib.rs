#![doc = include_str!("../README.md")]

pub mod circuits;
pub mod cli;
mod error;
pub mod host_memory;
pub mod scenario;
pub mod script;
pub mod session;
pub mod spec;
pub mod timeline;

pub use error::Error;
