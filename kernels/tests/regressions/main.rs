//! Faults that others met, kept as tests. Each name starts with the row of the collection it comes from.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;

mod arithmetic;
mod counts;
mod toolchain;
