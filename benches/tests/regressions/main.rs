//! Faults of other projects that must not be faults of this one. Test names begin with the id of the report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod criterion;
