//! A Groth16 proof.

use blstrs::{G1Affine, G2Affine};

/// A proof: `e(A, B) = e(α, β) · e(Σ x_i·IC_i, γ) · e(C, δ)` for the public inputs x.
///
/// Groth16 proofs are malleable: anyone can turn one into another valid proof of the same statement, by
/// `(−A, −B, C)` for one. A proof is evidence, not an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// A.
    pub a: G1Affine,
    /// B.
    pub b: G2Affine,
    /// C.
    pub c: G1Affine,
}

impl Proof {
    /// Bytes of the compressed encoding.
    pub const COMPRESSED_BYTES: usize = 192;
}
