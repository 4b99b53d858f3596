//! What a proof is made of on the host: the evaluations a, b, c over the rows, and the values of the wires.

use std::fmt;
use std::sync::Arc;

use blstrs::Scalar;
use ff::Field;
use prestage_transfer::{Pinned, Transfer};
use rayon::prelude::*;

use crate::Error;
use crate::key::{Circom, ProvingKey, Reduction};
use crate::r1cs::{R1cs, Witness};
use crate::shape::{ShapeError, expect_count};

/// Elements per piece of parallel work.
const PIECE: usize = 1 << 12;

/// Host memory that an upload can read: page-locked where that can be had.
#[derive(Clone)]
pub(crate) enum Values {
    /// Page-locked: copies run at the speed of the link, beside everything else.
    Pinned(Arc<Pinned<Scalar>>),
    /// Ordinary memory.
    Plain(Arc<Vec<Scalar>>),
}

impl std::ops::Deref for Values {
    type Target = [Scalar];

    fn deref(&self) -> &[Scalar] {
        match self {
            Self::Pinned(values) => values,
            Self::Plain(values) => values,
        }
    }
}

/// The statement and witness of one proof, ready for the device: A·w, B·w and C·w over the rows of the domain, zero
/// past the last, and the values of the wires.
///
/// Building one is host work and needs no turn. Clones share the memory. It shows sizes, never values.
#[derive(Clone)]
pub struct Assignment {
    pub(crate) a: Values,
    pub(crate) b: Values,
    pub(crate) c: Values,
    pub(crate) wires: Arc<Vec<Scalar>>,
    n_public: usize,
}

impl Assignment {
    /// From the constraint system, in host memory pinned for `device`. The witness is checked against every
    /// constraint first.
    ///
    /// # Errors
    /// [`Error::Unsatisfied`] with the first constraint that fails; [`Error::Shape`].
    pub fn new<D: Transfer>(device: &D, r1cs: &R1cs, witness: &Witness) -> Result<Self, Error> {
        let n_constraints = r1cs.n_constraints();
        if let Some(constraint) = r1cs.first_unsatisfied(witness)? {
            return Err(Error::Unsatisfied { constraint, n_constraints });
        }
        Self::new_unchecked(device, r1cs, witness)
    }

    /// As [`Assignment::new`], without looking whether the witness satisfies the constraints.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn new_unchecked<D: Transfer>(device: &D, r1cs: &R1cs, witness: &Witness) -> Result<Self, Error> {
        let w = witness.values();
        expect_count("values in the witness", r1cs.n_wires().into(), w.len() as u64)?;
        let size = rows(r1cs.domain_size())?;
        let n = r1cs.n_constraints();
        let n_fixed = r1cs.n_public() as usize + 1;
        let make = |matrix: &crate::Matrix, more: &[Scalar]| {
            evaluations(device, size, |out| {
                let (head, tail) = out.split_at_mut(n);
                matrix.evaluate(w, head)?;
                let (fixed, padding) = tail.split_at_mut(more.len());
                fixed.copy_from_slice(more);
                padding.fill(Scalar::ZERO);
                Ok(())
            })
        };
        Ok(Self {
            a: make(r1cs.a(), &w[..n_fixed])?,
            b: make(r1cs.b(), &[])?,
            c: make(r1cs.c(), &[])?,
            wires: Arc::new(w.to_vec()),
            n_public: n_fixed - 1,
        })
    }

    /// From the matrices that a circom key carries. It has A and B alone: c is taken to be a∘b, which is C·w for a
    /// witness that satisfies the circuit, and nothing can be checked here. A proof from any other witness does not
    /// verify.
    ///
    /// # Errors
    /// [`Error::Shape`] when the witness has not one value per wire.
    pub fn from_key<D: Transfer>(
        device: &D,
        key: &ProvingKey<Circom>,
        witness: &Witness,
    ) -> Result<Self, Error> {
        let w = witness.values();
        let size = rows(key.domain_size())?;
        let a = evaluations(device, size, |out| key.rows().a.evaluate(w, out))?;
        let b = evaluations(device, size, |out| key.rows().b.evaluate(w, out))?;
        let c = evaluations(device, size, |out| {
            let rows = out.par_chunks_mut(PIECE).zip(a.par_chunks(PIECE)).zip(b.par_chunks(PIECE));
            rows.for_each(|((c, a), b)| {
                for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
                    *c = *a * b;
                }
            });
            Ok(())
        })?;
        Ok(Self { a, b, c, wires: Arc::new(w.to_vec()), n_public: key.n_public() })
    }

    /// From evaluations that someone else computed, over the rows in use or over the whole domain of `domain_size`
    /// rows, and the values of the inputs (the one included) and of the auxiliary wires.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are more rows than the domain has, a, b and c differ in length, or the first input
    /// is not one.
    pub fn from_evaluations<D: Transfer>(
        device: &D,
        domain_size: u64,
        [a, b, c]: [&[Scalar]; 3],
        inputs: &[Scalar],
        aux: &[Scalar],
    ) -> Result<Self, Error> {
        let size = rows(domain_size)?;
        if inputs.first() != Some(&Scalar::ONE) {
            return Err(ShapeError::FirstWire.into());
        }
        expect_count("rows of b", a.len() as u64, b.len() as u64)?;
        expect_count("rows of c", a.len() as u64, c.len() as u64)?;
        if a.len() > size {
            expect_count("rows of a, at most", domain_size, a.len() as u64)?;
        }
        let copy = |rows: &[Scalar]| {
            evaluations(device, size, |out| {
                let (head, padding) = out.split_at_mut(rows.len());
                head.par_chunks_mut(PIECE)
                    .zip(rows.par_chunks(PIECE))
                    .for_each(|(out, rows)| out.copy_from_slice(rows));
                padding.fill(Scalar::ZERO);
                Ok(())
            })
        };
        let mut wires = Vec::with_capacity(inputs.len() + aux.len());
        wires.extend_from_slice(inputs);
        wires.extend_from_slice(aux);
        Ok(Self {
            a: copy(a)?,
            b: copy(b)?,
            c: copy(c)?,
            wires: Arc::new(wires),
            n_public: inputs.len() - 1,
        })
    }

    /// Rows of the domain.
    #[must_use]
    pub fn domain_size(&self) -> u64 {
        self.a.len() as u64
    }

    /// The values of the public wires, for the verifier: the one is left out.
    #[must_use]
    pub fn public(&self) -> &[Scalar] {
        self.wires.get(1..=self.n_public).unwrap_or_default()
    }

    /// The values of all wires: the one, the public ones, the private ones.
    pub(crate) fn wires(&self) -> &[Scalar] {
        &self.wires
    }

    /// The values of the private wires.
    pub(crate) fn private(&self) -> &[Scalar] {
        self.wires.get(self.n_public + 1..).unwrap_or_default()
    }

    /// Whether a, b and c are all in page-locked memory.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        [&self.a, &self.b, &self.c].into_iter().all(|v| matches!(v, Values::Pinned(_)))
    }

    /// Checks that this can be an assignment of the key's circuit: wires, public wires, domain.
    ///
    /// # Errors
    /// [`ShapeError::Count`] with the first count that differs.
    pub fn fits<R: Reduction>(&self, key: &ProvingKey<R>) -> Result<(), ShapeError> {
        expect_count("rows of the assignment's domain", key.domain_size(), self.domain_size())?;
        expect_count("public wires of the assignment", key.n_public() as u64, self.n_public as u64)?;
        expect_count("wires of the assignment", key.n_vars() as u64, self.wires.len() as u64)
    }
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("domain_size", &self.domain_size())
            .field("wires", &self.wires.len())
            .field("n_public", &self.n_public)
            .field("pinned", &self.is_pinned())
            .finish_non_exhaustive()
    }
}

fn rows(size: u64) -> Result<usize, Error> {
    usize::try_from(size).map_err(|_| Error::TooLarge { size })
}

/// `size` elements, page-locked where that can be had, written by `fill`.
fn evaluations<D: Transfer>(
    device: &D,
    size: usize,
    fill: impl FnOnce(&mut [Scalar]) -> Result<(), ShapeError>,
) -> Result<Values, Error> {
    match Pinned::filled(device, size, Scalar::ZERO) {
        Ok(mut pinned) => {
            fill(&mut pinned)?;
            Ok(Values::Pinned(Arc::new(pinned)))
        }
        Err(e) if e.is_unpinnable() => {
            let mut plain = vec![Scalar::ZERO; size];
            fill(&mut plain)?;
            Ok(Values::Plain(Arc::new(plain)))
        }
        Err(e) => Err(e.into()),
    }
}
