//! What the proofs of one witness must come to, by the trapdoor of their key.

use std::fmt;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use rayon::prelude::*;

use super::Trapdoor;
use crate::Error;
use crate::key::Reduction;
use crate::matrix::Matrix;
use crate::proof::Proof;
use crate::r1cs::{R1cs, Witness};
use crate::random::Blinding;
use crate::shape::expect_count;

/// A statement and its witness under a known trapdoor: the logarithms of every proof of them.
///
/// With A(τ) = Σ ⟨A_i, w⟩·L_i(τ) over the rows, B(τ) likewise, and I = Σ w_i·(β·A_i(τ) + α·B_i(τ) + C_i(τ)) over the one and
/// the public wires, a proof is (α + A(τ) + rδ, β + B(τ) + sδ, (ab − αβ − I)/δ) for a and b the first two, times the generators
/// (Groth, "On the size of pairing-based non-interactive arguments", EUROCRYPT 2016, section 3.2). That takes a pass over the
/// rows, and none of the points of the key, no transform and no sum of points.
pub struct Opened {
    a: Scalar,
    b: Scalar,
    alpha_beta: Scalar,
    inputs: Scalar,
    delta: Scalar,
    delta_inverse: Scalar,
}

impl<R: Reduction> Trapdoor<R> {
    /// What proofs come to under the key for `r1cs`. A witness that does not satisfy the circuit has no proof, and what a
    /// prover makes of it differs.
    ///
    /// # Errors
    /// [`Error::Shape`] for a circuit with another domain, and when the witness has not one value for each wire.
    pub fn open(&self, r1cs: &R1cs, witness: &Witness) -> Result<Opened, Error> {
        self.fits(r1cs)?;
        let w = witness.values();
        expect_count("values in the witness", r1cs.n_wires().into(), w.len() as u64)?;
        let lagrange = self.lagrange();
        let (basis, of_inputs) = lagrange.split_at(r1cs.n_constraints());
        let fixed = w.iter().zip(of_inputs).take(r1cs.n_public() as usize + 1);
        let of_fixed_rows: Scalar = fixed.clone().map(|(w, lagrange)| *w * lagrange).sum();
        // Σ w_i·M_i(τ) over the one and the public wires.
        let inputs = |matrix: &Matrix| -> Scalar {
            let columns = matrix.columns(basis, 0..r1cs.n_public() + 1);
            columns.iter().zip(w).map(|(column, w)| *column * w).sum()
        };
        let (inputs_a, (inputs_b, inputs_c)) = rayon::join(
            || inputs(r1cs.a()) + of_fixed_rows,
            || rayon::join(|| inputs(r1cs.b()), || inputs(r1cs.c())),
        );
        Ok(Opened {
            a: self.alpha + at(r1cs.a(), w, basis) + of_fixed_rows,
            b: self.beta + at(r1cs.b(), w, basis),
            alpha_beta: self.alpha * self.beta,
            inputs: self.beta * inputs_a + self.alpha * inputs_b + inputs_c,
            delta: self.delta,
            delta_inverse: self.delta_inverse,
        })
    }
}

/// `Σ_i ⟨row i, w⟩ · basis[i]`.
fn at(matrix: &Matrix, w: &[Scalar], basis: &[Scalar]) -> Scalar {
    let rows = basis.par_iter().enumerate().with_min_len(1 << 10);
    rows.map(|(i, basis)| matrix.dot(i, w) * basis).reduce(|| Scalar::ZERO, |x, y| x + y)
}

impl Opened {
    /// The proof with these blinding scalars, which is the only one.
    #[must_use]
    pub fn proof(&self, blinding: &Blinding) -> Proof {
        let a = self.a + blinding.r * self.delta;
        let b = self.b + blinding.s * self.delta;
        let c = (a * b - self.alpha_beta - self.inputs) * self.delta_inverse;
        let in_g1 = |s: Scalar| (G1Affine::generator() * s).to_affine();
        Proof { a: in_g1(a), b: (G2Affine::generator() * b).to_affine(), c: in_g1(c) }
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}
