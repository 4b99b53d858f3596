//! The verifying key.

use std::sync::Arc;

use blstrs::{G1Affine, G2Affine};

/// What a verifier needs, and two points more that only some files have and only provers use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// α in G1.
    pub alpha_g1: G1Affine,
    /// β in G1, where the file has it. Verification does not use it.
    pub beta_g1: Option<G1Affine>,
    /// β in G2.
    pub beta_g2: G2Affine,
    /// γ in G2.
    pub gamma_g2: G2Affine,
    /// δ in G1, where the file has it. Verification does not use it.
    pub delta_g1: Option<G1Affine>,
    /// δ in G2.
    pub delta_g2: G2Affine,
    /// One point for the constant one, then one per public input.
    pub ic: Arc<[G1Affine]>,
}

impl VerifyingKey {
    /// Number of public inputs.
    #[must_use]
    pub fn n_public(&self) -> usize {
        self.ic.len().saturating_sub(1)
    }
}
