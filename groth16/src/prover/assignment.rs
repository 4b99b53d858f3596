//! What a proof is made of on the host: the evaluations a, b, c over the rows, and the scalars of the sums.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::Scalar;
use ff::Field;
use prestage_msm::{Chosen, Compact, Msm};
use prestage_ntt::Ntt;

use super::Prover;
use super::values::Values;
use crate::Error;
use crate::density::Density;
use crate::key::{Circom, ProvingKey, Reduction};
use crate::r1cs::{R1cs, Witness};
use crate::shape::{MatrixName, ShapeError, expect_count};

/// The statement and witness of one proof, ready for a prover: A·w, B·w and C·w over the rows of the domain, zero past
/// the last, and the scalars of the sums.
///
/// Building one is host work and needs no turn; it is pinned for the prover's device where that can be had. Clones
/// share the memory. It shows sizes, never values.
#[derive(Clone)]
pub struct Assignment {
    pub(super) a: Values,
    pub(super) b: Values,
    pub(super) c: Values,
    pub(super) public: Vec<Scalar>,
    /// Of L, A, and both B.
    pub(super) l_scalars: Compact,
    pub(super) a_scalars: Compact,
    pub(super) b1_scalars: Compact,
    pub(super) b2_scalars: Compact,
}

impl Assignment {
    /// From the constraint system. The witness is checked against every constraint first, and the constraint system
    /// against the key as far as the key tells: counts, and the wires that A and B name.
    ///
    /// # Errors
    /// [`Error::Unsatisfied`] with the first constraint that fails; [`Error::Shape`] and [`Error::OtherCircuit`] for
    /// a constraint system that the key was not made for.
    pub fn new<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        r1cs: &R1cs,
        witness: &Witness,
    ) -> Result<Self, Error> {
        let (key, w) = (prover.key(), witness.values());
        let first = AtomicUsize::new(usize::MAX);
        let abc = Self::evaluate(prover, r1cs, w, |i, [a, b, c]| {
            if !is_product(a, b, c) {
                first.fetch_min(i, Ordering::Relaxed);
            }
        })?;
        let (constraint, n_constraints) = (first.into_inner(), r1cs.n_constraints());
        if constraint < n_constraints {
            return Err(Error::Unsatisfied { constraint, n_constraints });
        }
        // A point of a wire that no row names can come from another circuit only. The converse is no sign: terms of a
        // wire may cancel.
        let [in_a, in_b] = r1cs.named();
        subset(key.a().density(), in_a, MatrixName::A)?;
        subset(key.b_g1().density(), in_b, MatrixName::B)?;
        Self::gather(prover, abc, w.split_at(key.n_public() + 1).into())
    }

    /// As [`Assignment::new`], without looking whether the witness satisfies the constraints and the key is theirs.
    ///
    /// # Errors
    /// [`Error::Shape`] when counts differ.
    pub fn new_unchecked<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        r1cs: &R1cs,
        witness: &Witness,
    ) -> Result<Self, Error> {
        let w = witness.values();
        let abc = Self::evaluate(prover, r1cs, w, |_, _| ())?;
        Self::gather(prover, abc, w.split_at(prover.key().n_public() + 1).into())
    }

    /// A·w, B·w and C·w over the domain, in one pass over the rows. `look` sees those of each constraint.
    fn evaluate<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        r1cs: &R1cs,
        w: &[Scalar],
        look: impl Fn(usize, &[Scalar; 3]) + Sync,
    ) -> Result<[Values; 3], Error> {
        prover.key().fits(r1cs)?;
        expect_count("values in the witness", r1cs.n_wires().into(), w.len() as u64)?;
        let (n, inputs) = (r1cs.n_constraints(), &w[..=r1cs.n_public() as usize]);
        let (device, size) = (prover.device(), prover.domain().size());
        Values::evaluate(&prover.memory, device, size, |i| match i.checked_sub(n) {
            None => {
                let values = [r1cs.a().dot(i, w), r1cs.b().dot(i, w), r1cs.c().dot(i, w)];
                look(i, &values);
                values
            }
            // The rows of the one and the public wires, and past them the padding.
            Some(wire) => [inputs.get(wire).copied().unwrap_or(Scalar::ZERO), Scalar::ZERO, Scalar::ZERO],
        })
    }

    /// From the matrices that a circom key carries. It has A and B alone: c is taken to be a∘b, which is C·w for a
    /// witness that satisfies the circuit, and nothing can be checked here. A proof from any other witness does not
    /// verify.
    ///
    /// # Errors
    /// [`Error::Shape`] when the witness has not one value per wire.
    pub fn from_key<D: Ntt + Msm>(prover: &Prover<'_, D, Circom>, witness: &Witness) -> Result<Self, Error> {
        let w = witness.values();
        let rows = prover.key().rows();
        expect_count("values in the witness", prover.key().n_vars() as u64, w.len() as u64)?;
        let (device, size) = (prover.device(), prover.domain().size());
        let abc = Values::evaluate(&prover.memory, device, size, |i| {
            // Past its rows a matrix has empty ones, and the dot product with those is zero.
            let (a, b) = (rows.a.dot(i, w), rows.b.dot(i, w));
            [a, b, a * b]
        })?;
        Self::gather(prover, abc, w.split_at(prover.key().n_public() + 1).into())
    }

    /// From evaluations that someone else computed, over the rows in use or over the whole domain, and the values of
    /// the inputs (the one included) and of the auxiliary wires. Nothing is checked but counts.
    ///
    /// # Errors
    /// [`Error::Shape`] when a, b and c differ in length or are longer than the domain, when there are more or fewer
    /// inputs or auxiliary wires than the key has, and when the first input is not one.
    pub fn from_evaluations<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        [a, b, c]: [&[Scalar]; 3],
        inputs: &[Scalar],
        aux: &[Scalar],
    ) -> Result<Self, Error> {
        let (device, size) = (prover.device(), prover.domain().size());
        let key = prover.key();
        if inputs.first() != Some(&Scalar::ONE) {
            return Err(ShapeError::FirstWire.into());
        }
        expect_count("inputs, the one included", key.n_public() as u64 + 1, inputs.len() as u64)?;
        expect_count("auxiliary wires", key.n_private() as u64, aux.len() as u64)?;
        expect_count("rows of b", a.len() as u64, b.len() as u64)?;
        expect_count("rows of c", a.len() as u64, c.len() as u64)?;
        if a.len() > size {
            expect_count("rows of a, at most", size as u64, a.len() as u64)?;
        }
        let abc = Values::evaluate(&prover.memory, device, size, |i| {
            [a, b, c].map(|rows| rows.get(i).copied().unwrap_or(Scalar::ZERO))
        })?;
        Self::gather(prover, abc, [inputs, aux])
    }

    /// `wires`: the inputs, the one included, and the auxiliary wires.
    fn gather<D: Ntt + Msm, R: Reduction>(
        prover: &Prover<'_, D, R>,
        [a, b, c]: [Values; 3],
        wires: [&[Scalar]; 2],
    ) -> Result<Self, Error> {
        let (device, key) = (prover.device(), prover.key());
        let [inputs, aux] = wires;
        // After a, b and c, which come first where little memory may be pinned.
        let scalars = |wires: [&[Scalar]; 2], density: &Density| -> Result<Compact, Error> {
            expect_count(
                "values for a density map",
                density.len() as u64,
                wires.iter().map(|w| w.len() as u64).sum(),
            )?;
            let chosen =
                if density.is_full() { Chosen::all(wires) } else { Chosen::of(wires, density.words()) };
            Ok(Compact::kept(&prover.memory, device, &chosen)?)
        };
        let b1_scalars = scalars(wires, key.b_g1().density())?;
        let b2_scalars = if key.b_g1().density() == key.b_g2().density() {
            b1_scalars.clone()
        } else {
            scalars(wires, key.b_g2().density())?
        };
        Ok(Self {
            a,
            b,
            c,
            public: inputs.get(1..).unwrap_or_default().to_vec(),
            l_scalars: scalars([aux, &[]], key.l().density())?,
            a_scalars: scalars(wires, key.a().density())?,
            b1_scalars,
            b2_scalars,
        })
    }

    /// The values of the public wires, for the verifier: the one is left out.
    #[must_use]
    pub fn public(&self) -> &[Scalar] {
        &self.public
    }

    /// Checks that this was made for the key: counts of rows, public wires, and scalars of each sum.
    pub(super) fn fits<R: Reduction>(&self, key: &ProvingKey<R>) -> Result<(), ShapeError> {
        let count = |what, key: usize, got: usize| expect_count(what, key as u64, got as u64);
        expect_count("rows of the assignment's domain", key.domain_size(), self.a.len() as u64)?;
        count("public wires of the assignment", key.n_public(), self.public.len())?;
        count("scalars for L", key.l().points().len(), self.l_scalars.len())?;
        count("scalars for A", key.a().points().len(), self.a_scalars.len())?;
        count("scalars for B in G1", key.b_g1().points().len(), self.b1_scalars.len())?;
        count("scalars for B in G2", key.b_g2().points().len(), self.b2_scalars.len())
    }

    /// Whether any of a, b and c is in page-locked memory.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        [&self.a, &self.b, &self.c].into_iter().any(Values::is_pinned)
    }
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("rows", &self.a.len())
            .field("public", &self.public.len())
            .field("pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}

/// Whether `c = a b`. The factors are zero or one in most rows of a circuit.
fn is_product(a: &Scalar, b: &Scalar, c: &Scalar) -> bool {
    let (zero, one) = (&Scalar::ZERO, &Scalar::ONE);
    if a == zero || b == zero {
        c == zero
    } else if a == one {
        b == c
    } else if b == one {
        a == c
    } else {
        a * b == *c
    }
}

/// Fails at the first wire that has a point in the key and no term in the circuit.
fn subset(key: &Density, circuit: &Density, matrix: MatrixName) -> Result<(), Error> {
    for (i, (key, circuit)) in key.words().iter().zip(circuit.words()).enumerate() {
        let alone = key & !circuit;
        if alone != 0 {
            return Err(Error::OtherCircuit {
                matrix,
                wire: i as u64 * u64::from(u64::BITS) + u64::from(alone.trailing_zeros()),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_by_zero_and_one_are_products() {
        let values: Vec<_> = [0, 1, 2, 4].map(Scalar::from).into_iter().chain([-Scalar::ONE]).collect();
        for a in &values {
            for b in &values {
                for c in &values {
                    assert_eq!(is_product(a, b, c), a * b == *c, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
