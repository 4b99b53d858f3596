//! What went wrong elsewhere and must not here. A test's name begins with the id of its row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

#[cfg(feature = "cuda")]
mod card;
#[path = "../common/mod.rs"]
mod common;
mod formats;
mod proving;
mod verifying;

use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}
