//! Faults of other systems that must not come back. Each test is named after its row in the collection.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

#[path = "../common/mod.rs"]
mod common;

mod async_copy;
mod misuse;
mod pinned_memory;
mod sticky_error;
