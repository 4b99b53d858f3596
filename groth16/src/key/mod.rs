//! Verifying and proving keys. The reduction that a proving key was made for is part of its type.

mod proving;
mod query;
mod reduction;
mod verifying;

pub(crate) use proving::libsnark_domain;
pub use proving::{AnyKey, ProvingKey, ProvingKeyParts};
pub use query::Query;
pub use reduction::{Circom, Libsnark, Quotient, Reduction, Rows};
pub use verifying::VerifyingKey;
