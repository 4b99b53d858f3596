//! bellperson's CPU prover.

use std::fmt;

use bellperson::groth16::{Parameters, create_proof};
use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::{Bls12, Scalar};
use prestage_groth16::format::params;
use prestage_groth16::{Blinding, Libsnark, Matrix, Proof, ProvingKey};

use super::{Peer, Statement};
use crate::Error;

/// A constraint system as bellperson's circuits are: code that allocates variables and enforces constraints.
#[derive(Clone, Debug)]
pub struct R1csCircuit {
    statement: Statement,
    /// False while parameters are made, when no value is known.
    assigned: bool,
}

impl R1csCircuit {
    /// With the values of the witness.
    #[must_use]
    pub fn assigned(statement: &Statement) -> Self {
        Self { statement: statement.clone(), assigned: true }
    }

    /// Without values, to make parameters.
    #[must_use]
    pub fn blank(statement: &Statement) -> Self {
        Self { statement: statement.clone(), assigned: false }
    }

    fn value(&self, wire: u32) -> Result<Scalar, SynthesisError> {
        let value = self.statement.witness().values().get(wire as usize).filter(|_| self.assigned);
        value.copied().ok_or(SynthesisError::AssignmentMissing)
    }
}

impl Circuit<Scalar> for R1csCircuit {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let r1cs = self.statement.r1cs();
        let mut wires = Vec::with_capacity(r1cs.n_wires() as usize);
        wires.push(CS::one());
        for wire in 1..r1cs.n_wires() {
            wires.push(if wire <= r1cs.n_public() {
                cs.alloc_input(|| "", || self.value(wire))?
            } else {
                cs.alloc(|| "", || self.value(wire))?
            });
        }
        for row in 0..r1cs.n_constraints() {
            let side = |matrix| combination(matrix, row, &wires);
            cs.enforce(|| "", |_| side(r1cs.a()), |_| side(r1cs.b()), |_| side(r1cs.c()));
        }
        Ok(())
    }
}

fn combination(matrix: &Matrix, row: usize, wires: &[Variable]) -> LinearCombination<Scalar> {
    matrix
        .row(row)
        .fold(LinearCombination::zero(), |sum, (wire, coefficient)| sum + (coefficient, wires[wire as usize]))
}

/// bellperson's prover on the CPU. Synthesis is part of every proof: it is how this library takes a witness.
pub struct Bellperson {
    parameters: Parameters<Bls12>,
    circuit: R1csCircuit,
}

impl Bellperson {
    /// With our key by way of a parameter file.
    ///
    /// # Errors
    /// [`Error::Format`] for a key that such a file cannot hold; what bellperson says to it.
    pub fn new(key: &ProvingKey<Libsnark>, statement: &Statement) -> Result<Self, Error> {
        let mut file = Vec::new();
        params::write(&mut file, key)??;
        let parameters = Parameters::read(&file[..], false)?;
        Ok(Self { parameters, circuit: R1csCircuit::assigned(statement) })
    }
}

impl fmt::Debug for Bellperson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bellperson").field("h", &self.parameters.h.len()).finish_non_exhaustive()
    }
}

impl Peer for Bellperson {
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error> {
        let Blinding { r, s } = *blinding;
        let proof = create_proof::<Bls12, _, _>(self.circuit.clone(), &self.parameters, r, s)?;
        Ok(Proof { a: proof.a, b: proof.b, c: proof.c })
    }
}
