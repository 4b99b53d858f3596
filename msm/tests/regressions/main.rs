//! One test for each fault recorded against multi-scalar multiplications elsewhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod bases;
mod devices;
mod scalars;
mod sizes;
