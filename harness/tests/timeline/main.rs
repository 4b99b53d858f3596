//! Timelines, reports and pictures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod host;
mod idle;
mod pictures;
mod report;
mod synthetic;
mod text;
mod together;
