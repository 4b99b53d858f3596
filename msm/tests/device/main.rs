//! Sums on a device: batches and what the host waits for, footprints, faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod batches;
#[cfg(feature = "cuda")]
mod card;
mod faults;
mod multiples;
mod rings;
mod spy;
#[cfg(feature = "cuda")]
mod times;
