//! Scripts: the cascade, replays of typed runs, what is no script, the verb.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cascade;
#[cfg(feature = "cuda")]
mod driver;
mod scribe;
mod verb;
mod words;
