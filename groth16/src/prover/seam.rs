//! The seam that bellperson-like provers have: one call from an assignment and its densities to a proof.

use blstrs::Scalar;
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::Worker;

use super::{Assignment, Options, Prover};
use crate::Error;
use crate::density::Density;
use crate::key::Libsnark;
use crate::proof::Proof;
use crate::random::Blinding;
use crate::shape::{MatrixName, expect_count};

/// What a synthesised circuit leaves behind in bellman, bellperson and their relatives (`ProvingAssignment`).
#[derive(Clone, Copy)]
pub struct Provided<'a> {
    /// A·w, row by row, the rows of the inputs included. No padding is needed.
    pub a: &'a [Scalar],
    /// B·w.
    pub b: &'a [Scalar],
    /// C·w.
    pub c: &'a [Scalar],
    /// Values of the inputs; the first is one.
    pub inputs: &'a [Scalar],
    /// Values of the auxiliary variables.
    pub aux: &'a [Scalar],
    /// Which auxiliary variables A names. All inputs are taken to be named: each has a row of its own.
    pub a_aux_density: &'a Density,
    /// Which inputs B names.
    pub b_input_density: &'a Density,
    /// Which auxiliary variables B names.
    pub b_aux_density: &'a Density,
}

/// Proves what another prover has synthesised, in place of its own prover.
///
/// The arguments are those that bellperson's and supraseal's provers have at this point: the vectors a, b, c, the
/// values of inputs and auxiliary variables, three density maps, r, s, and a key. A provider that proves several
/// circuits under one key makes one [`Prover`] and calls this for each, from as many threads, each with a
/// [`Worker`] of its own: preparation of one proof then overlaps with the device work of another. Vectors are copied
/// into pinned memory before the turn is asked for. A density map as those provers hold it, a bit vector, becomes a
/// [`Density`] by [`Density::from_words`].
///
/// r and s must be fresh and secret (see [`Blinding`]); the caller draws them because those provers do. The proof is
/// verified before it is returned.
///
/// # Errors
/// [`Error::Shape`] when counts differ from the key's; [`Error::OtherCircuit`] when a density map does;
/// [`Error::NotVerified`] when the assignment does not satisfy the circuit; what the device says.
pub fn prove_provided<D: Ntt + Msm>(
    prover: &Prover<'_, D, Libsnark>,
    worker: &mut Worker,
    provided: &Provided<'_>,
    r: Scalar,
    s: Scalar,
) -> Result<Proof, Error> {
    let Provided { a, b, c, inputs, aux, a_aux_density, b_input_density, b_aux_density } = *provided;
    let key = prover.key();
    same(key.a().density(), &Density::full(inputs.len()), a_aux_density, MatrixName::A)?;
    same(key.b_g1().density(), b_input_density, b_aux_density, MatrixName::B)?;
    let assignment = Assignment::from_evaluations(prover, [a, b, c], inputs, aux)?;
    let options = Options::default().insecure_blinding(Blinding { r, s });
    Ok(prover.prove(worker, &assignment, &options)?.proof)
}

/// Fails at the first wire that only one of the key and the assignment has.
fn same(key: &Density, inputs: &Density, aux: &Density, matrix: MatrixName) -> Result<(), Error> {
    expect_count("wires of a density map", key.len() as u64, (inputs.len() + aux.len()) as u64)?;
    let given = |wire: usize| match wire.checked_sub(inputs.len()) {
        Some(wire) => aux.get(wire),
        None => inputs.get(wire),
    };
    let joined = Density::from_fn(key.len(), given);
    for (i, (key, given)) in key.words().iter().zip(joined.words()).enumerate() {
        let differs = key ^ given;
        if differs != 0 {
            let wire = i as u64 * u64::from(u64::BITS) + u64::from(differs.trailing_zeros());
            return Err(Error::OtherCircuit { matrix, wire });
        }
    }
    Ok(())
}

impl std::fmt::Debug for Provided<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provided")
            .field("rows", &self.a.len())
            .field("inputs", &self.inputs.len())
            .field("aux", &self.aux.len())
            .finish_non_exhaustive()
    }
}
