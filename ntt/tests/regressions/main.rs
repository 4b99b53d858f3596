//! Faults of other provers' transforms, kept as tests. Names begin with the row of the project's list.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod ntt;
