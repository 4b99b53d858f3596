//! taceo-groth16, from matrices.

use ark_bls12_381::{Bls12_381, Fr};
use prestage_groth16::{Blinding, Proof};
use taceo_groth16::{CircomReduction, ConstraintMatrices, Groth16, LibSnarkReduction};

use super::{Peer, Statement};
use crate::Error;
use crate::convert::{self, Rows};

/// taceo-groth16's prover.
#[derive(Debug)]
pub struct Taceo {
    key: ark_groth16::ProvingKey<Bls12_381>,
    matrices: ConstraintMatrices<Fr>,
    wires: Vec<Fr>,
    circom: bool,
}

impl Taceo {
    /// Under a key of bellman or arkworks.
    #[must_use]
    pub fn libsnark(key: ark_groth16::ProvingKey<Bls12_381>, statement: &Statement) -> Self {
        Self::new(key, statement, false)
    }

    /// Under a key of circom.
    #[must_use]
    pub fn circom(key: ark_groth16::ProvingKey<Bls12_381>, statement: &Statement) -> Self {
        Self::new(key, statement, true)
    }

    fn new(key: ark_groth16::ProvingKey<Bls12_381>, statement: &Statement, circom: bool) -> Self {
        let r1cs = statement.r1cs();
        let [a, b, c] = convert::matrices(r1cs);
        let terms = |rows: &Rows| rows.iter().map(Vec::len).sum();
        let n_inputs = r1cs.n_public() as usize + 1;
        let matrices = ConstraintMatrices {
            num_instance_variables: n_inputs,
            num_witness_variables: r1cs.n_wires() as usize - n_inputs,
            num_constraints: r1cs.n_constraints(),
            a_num_non_zero: terms(&a),
            b_num_non_zero: terms(&b),
            c_num_non_zero: terms(&c),
            a,
            b,
            c,
        };
        let wires = convert::scalars(statement.witness().values());
        Self { key, matrices, wires, circom }
    }
}

impl Peer for Taceo {
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error> {
        let (r, s) = (convert::scalar(&blinding.r), convert::scalar(&blinding.s));
        let Self { key, matrices, wires, circom } = self;
        let proof = if *circom {
            Groth16::<Bls12_381>::prove::<CircomReduction>(key, r, s, matrices, wires)
        } else {
            Groth16::<Bls12_381>::prove::<LibSnarkReduction>(key, r, s, matrices, wires)
        };
        proof.map(|p| convert::proof_from(&p)).map_err(|e| Error::Taceo(e.to_string()))
    }
}
