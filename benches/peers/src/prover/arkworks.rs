//! ark-groth16, from matrices: no synthesis.

use ark_bls12_381::{Bls12_381, Fr};
use ark_groth16::Groth16;
use prestage_groth16::{Blinding, Proof};

use super::{Peer, Statement};
use crate::Error;
use crate::convert::{self, Rows};

/// ark-groth16's prover.
#[derive(Debug)]
pub struct Arkworks {
    key: ark_groth16::ProvingKey<Bls12_381>,
    matrices: [Rows; 3],
    n_inputs: usize,
    wires: Vec<Fr>,
}

impl Arkworks {
    /// With the constraints as matrices.
    #[must_use]
    pub fn new(key: ark_groth16::ProvingKey<Bls12_381>, statement: &Statement) -> Self {
        Self {
            key,
            matrices: convert::matrices(statement.r1cs()),
            n_inputs: statement.r1cs().n_public() as usize + 1,
            wires: convert::scalars(statement.witness().values()),
        }
    }
}

impl Peer for Arkworks {
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error> {
        let (r, s) = (convert::scalar(&blinding.r), convert::scalar(&blinding.s));
        let proof = Groth16::<Bls12_381>::create_proof_with_reduction_and_matrices(
            &self.key,
            r,
            s,
            &self.matrices,
            self.n_inputs,
            self.matrices[0].len(),
            &self.wires,
        );
        proof.map(|p| convert::proof_from(&p)).map_err(|e| Error::Arkworks(e.to_string()))
    }
}
