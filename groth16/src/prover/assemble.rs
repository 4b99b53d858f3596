//! From the five sums to the proof, on the host.

use blstrs::{G1Projective, G2Projective, Scalar};
use group::Curve;

use crate::Error;
use crate::key::{ProvingKey, Reduction};
use crate::proof::Proof;
use crate::random::Blinding;
use crate::verify::PreparedKey;

/// The five sums of a proof: plain host data, for which no turn has to be held.
#[derive(Clone, Debug)]
pub struct Parts {
    pub(super) h: G1Projective,
    pub(super) l: G1Projective,
    pub(super) a: G1Projective,
    pub(super) b1: G1Projective,
    pub(super) b2: G2Projective,
    pub(super) public: Vec<Scalar>,
}

impl Parts {
    /// Assembles the proof and verifies it.
    ///
    /// # Errors
    /// [`Error::NotVerified`]: the proof is not handed out.
    pub fn finish<R: Reduction>(
        self,
        key: &ProvingKey<R>,
        verifier: &PreparedKey,
        blinding: &Blinding,
    ) -> Result<Proof, Error> {
        let public = self.public.clone();
        let proof = self.finish_unverified(key, blinding);
        match verifier.verify(&public, &proof) {
            Ok(true) => Ok(proof),
            // Points of a damaged key can lead out of the subgroup.
            Ok(false) | Err(Error::NotInSubgroup { .. }) => Err(Error::NotVerified),
            Err(other) => Err(other),
        }
    }

    /// Assembles the proof: `A = α + Σ_A + rδ`, `B = β + Σ_B + sδ`, `C = L + H + sA + rB − rsδ`, with B in both
    /// groups.
    #[must_use]
    pub fn finish_unverified<R: Reduction>(self, key: &ProvingKey<R>, blinding: &Blinding) -> Proof {
        let Blinding { r, s } = *blinding;
        let delta_g1 = key.delta_g1();
        let a = self.a + key.vk().alpha_g1 + delta_g1 * r;
        let b1 = self.b1 + key.beta_g1() + delta_g1 * s;
        let b = self.b2 + key.vk().beta_g2 + key.vk().delta_g2 * s;
        let c = self.l + self.h + a * s + b1 * r - delta_g1 * (r * s);
        Proof { a: a.to_affine(), b: b.to_affine(), c: c.to_affine() }
    }
}
