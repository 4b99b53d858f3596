//! Verification: one proof, or many at the price of little more than one.

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Prepared, Gt, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};
use pairing::{Engine, MillerLoopResult, MultiMillerLoop};
use rand_core::OsRng;
use rayon::prelude::*;

use crate::key::VerifyingKey;
use crate::proof::Proof;
use crate::shape::expect_count;
use crate::{Error, random};

/// A verifying key made ready: its fixed pairing and lines are computed once.
///
/// A proof (A, B, C) of the public inputs x is valid when
/// `e(A, B) = e(α, β) · e(IC_0 + Σ x_i·IC_i, γ) · e(C, δ)` (Groth, "On the size of pairing-based non-interactive
/// arguments", EUROCRYPT 2016, section 3.2) and A, B, C are in the prime-order subgroups.
///
/// Inputs are [`Scalar`]s and so below r: a decoder that reduces instead of refusing would accept x + r for x.
/// The readers of this crate refuse.
#[derive(Clone, Debug)]
pub struct PreparedKey {
    vk: VerifyingKey,
    alpha_beta: Gt,
    minus_gamma: G2Prepared,
    minus_delta: G2Prepared,
    beta: G2Prepared,
}

impl PreparedKey {
    /// Makes `vk` ready, unless it is one under which anyone can make proofs of false statements.
    ///
    /// # Errors
    /// [`Error::InsecureKey`] when α, β, γ or δ is at infinity, when δ is the generator (the second phase of its
    /// ceremony never ran), or when γ = δ. [`ShapeError::Count`](crate::ShapeError::Count) when IC is empty.
    pub fn new(vk: &VerifyingKey) -> Result<Self, Error> {
        let refuse = |reason| Err(Error::InsecureKey { reason });
        if bool::from(vk.alpha_g1.is_identity()) || bool::from(vk.beta_g2.is_identity()) {
            return refuse("alpha or beta is at infinity");
        }
        if bool::from(vk.gamma_g2.is_identity()) || bool::from(vk.delta_g2.is_identity()) {
            return refuse("gamma or delta is at infinity");
        }
        if vk.delta_g2 == G2Affine::generator() {
            return refuse("delta is the generator, so the second phase of its ceremony never ran");
        }
        if vk.gamma_g2 == vk.delta_g2 {
            return refuse("gamma equals delta");
        }
        Self::new_insecure(vk)
    }

    /// Makes `vk` ready whatever its points are. **A proof under an unsafe key proves nothing.**
    ///
    /// # Errors
    /// [`ShapeError::Count`](crate::ShapeError::Count) when IC is empty.
    pub fn new_insecure(vk: &VerifyingKey) -> Result<Self, Error> {
        if vk.ic.is_empty() {
            expect_count("points in IC, at least", 1, 0)?;
        }
        Ok(Self {
            alpha_beta: Bls12::pairing(&vk.alpha_g1, &vk.beta_g2),
            minus_gamma: (-vk.gamma_g2).into(),
            minus_delta: (-vk.delta_g2).into(),
            beta: vk.beta_g2.into(),
            vk: vk.clone(),
        })
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &VerifyingKey {
        &self.vk
    }

    /// Whether `proof` proves the statement with these public inputs (the constant one left out).
    ///
    /// # Errors
    /// [`ShapeError::Count`](crate::ShapeError::Count) when there are more or fewer inputs than the key has places
    /// for; [`Error::NotInSubgroup`] for a proof that no decoder of this crate would have let through.
    pub fn verify(&self, public: &[Scalar], proof: &Proof) -> Result<bool, Error> {
        self.check_inputs(public)?;
        check_subgroup(proof)?;
        let inputs = self.commit(Scalar::ONE, public)?;
        let left = Bls12::multi_miller_loop(&[
            (&proof.a, &proof.b.into()),
            (&inputs.to_affine(), &self.minus_gamma),
            (&proof.c, &self.minus_delta),
        ]);
        Ok(left.final_exponentiation() == self.alpha_beta)
    }

    /// Whether every proof proves the statement with its public inputs: a random combination of all equations, so
    /// that a false `true` has probability 2^-128. One Miller loop per proof and three for all, and one final
    /// exponentiation. No proofs at all are fine.
    ///
    /// # Errors
    /// As [`PreparedKey::verify`], for any of them; [`Error::Random`].
    pub fn verify_batch(&self, proofs: &[(&[Scalar], &Proof)]) -> Result<bool, Error> {
        for (public, _) in proofs {
            self.check_inputs(public)?;
        }
        proofs.par_iter().try_for_each(|(_, proof)| check_subgroup(proof))?;
        let weights: Vec<Scalar> =
            proofs.iter().map(|_| random::weight(&mut OsRng)).collect::<Result<_, _>>()?;

        // Σ_j z_j·x_ji for every input i, and Σ_j z_j for the constant one.
        let mut inputs = vec![Scalar::ZERO; self.vk.n_public()];
        for ((public, _), weight) in proofs.iter().zip(&weights) {
            for (sum, input) in inputs.iter_mut().zip(*public) {
                *sum += *weight * input;
            }
        }
        let total: Scalar = weights.iter().sum();
        let inputs = self.commit(total, &inputs)?.to_affine();
        let c: Vec<G1Affine> = proofs.iter().map(|(_, proof)| proof.c).collect();
        let c = prestage_msm::host::msm(&c, &weights)?.to_affine();

        let each = proofs
            .par_iter()
            .zip(&weights)
            .map(|((_, proof), weight)| {
                let a = (proof.a * *weight).to_affine();
                Bls12::multi_miller_loop(&[(&a, &proof.b.into())])
            })
            .reduce(<Bls12 as MultiMillerLoop>::Result::default, |x, y| x + y);
        let all = Bls12::multi_miller_loop(&[
            (&inputs, &self.minus_gamma),
            (&c, &self.minus_delta),
            (&(self.vk.alpha_g1 * -total).to_affine(), &self.beta),
        ]);
        Ok(bool::from((each + all).final_exponentiation().is_identity()))
    }

    fn check_inputs(&self, public: &[Scalar]) -> Result<(), Error> {
        Ok(expect_count("public inputs", self.vk.n_public() as u64, public.len() as u64)?)
    }

    /// `one·IC_0 + Σ x_i·IC_i`.
    fn commit(&self, one: Scalar, public: &[Scalar]) -> Result<G1Projective, Error> {
        let scalars: Vec<Scalar> = std::iter::once(one).chain(public.iter().copied()).collect();
        Ok(prestage_msm::host::msm(&self.vk.ic, &scalars)?)
    }
}

/// Verifies one proof under a key that is used once. For more, keep a [`PreparedKey`].
///
/// # Errors
/// As [`PreparedKey::new`] and [`PreparedKey::verify`].
pub fn verify(vk: &VerifyingKey, public: &[Scalar], proof: &Proof) -> Result<bool, Error> {
    PreparedKey::new(vk)?.verify(public, proof)
}

fn check_subgroup(proof: &Proof) -> Result<(), Error> {
    let good = [
        ("A", proof.a.is_on_curve() & proof.a.is_torsion_free()),
        ("B", proof.b.is_on_curve() & proof.b.is_torsion_free()),
        ("C", proof.c.is_on_curve() & proof.c.is_torsion_free()),
    ];
    match good.into_iter().find(|(_, good)| !bool::from(*good)) {
        Some((name, _)) => Err(Error::NotInSubgroup { name }),
        None => Ok(()),
    }
}
