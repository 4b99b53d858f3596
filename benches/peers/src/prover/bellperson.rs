//! bellperson's CPU prover.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use bellperson::groth16::{MappedParameters, ParameterSource, Parameters, create_proof};
use bellperson::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use blstrs::{Bls12, Scalar};
use prestage_groth16::format::{params, save_params};
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

    /// With the key of a parameter file, whose points are believed.
    ///
    /// # Errors
    /// [`Error::Io`] as the file system says it; what bellperson says to the file.
    pub fn load(path: &Path, statement: &Statement) -> Result<Self, Error> {
        let parameters = Parameters::read(BufReader::new(File::open(path)?), false)?;
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
        prove(&self.circuit, &self.parameters, blinding)
    }
}

/// The same with the parameter file mapped: points are read from it, and decoded, by every proof.
pub struct BellpersonMapped {
    parameters: MappedParameters<Bls12>,
    circuit: R1csCircuit,
}

impl BellpersonMapped {
    /// With the key of a parameter file, whose points are believed. The file must not be shortened while this lives.
    ///
    /// # Errors
    /// [`Error::Io`] as the file system says it; what bellperson says to the file.
    pub fn load(path: &Path, statement: &Statement) -> Result<Self, Error> {
        let parameters = Parameters::build_mapped_parameters(path.to_owned(), false)?;
        Ok(Self { parameters, circuit: R1csCircuit::assigned(statement) })
    }

    /// With our key by way of a parameter file that has no name.
    ///
    /// # Errors
    /// [`Error::Format`] for a key that such a file cannot hold; as [`BellpersonMapped::load`].
    pub fn new(key: &ProvingKey<Libsnark>, statement: &Statement) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("key.params");
        save_params(&path, key)?;
        Self::load(&path, statement)
    }
}

impl fmt::Debug for BellpersonMapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BellpersonMapped").field("h", &self.parameters.h.len()).finish_non_exhaustive()
    }
}

impl Peer for BellpersonMapped {
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error> {
        prove(&self.circuit, &self.parameters, blinding)
    }
}

fn prove(
    circuit: &R1csCircuit,
    parameters: impl ParameterSource<Bls12>,
    blinding: &Blinding,
) -> Result<Proof, Error> {
    let Blinding { r, s } = *blinding;
    let proof = create_proof::<Bls12, _, _>(circuit.clone(), parameters, r, s)?;
    Ok(Proof { a: proof.a, b: proof.b, c: proof.c })
}
