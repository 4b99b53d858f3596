//! Faults that others had, kept from happening here. Each test carries the id of its row.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cli;
#[allow(dead_code, unused_macros, unused_imports)]
#[path = "../cli/command.rs"]
mod command;
mod memory;
#[path = "../scenario/rig.rs"]
mod rig;
mod timeline;
