//! The readers and writers of `format`, against files that circom, snarkjs, bellperson and arkworks wrote.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod faults;
mod golden;
mod manifest;
mod paths;
mod roundtrip;

use std::path::PathBuf;

/// The circuits that snarkjs made keys for.
const SNARKJS: [&str; 9] = [
    "allpublic",
    "boundary_full",
    "boundary_over",
    "linear",
    "manypublic",
    "multiplier",
    "nopublic",
    "rangecheck",
    "sq10",
];

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect()
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}
