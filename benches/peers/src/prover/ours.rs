//! prestage on the CPU.

use prestage_groth16::{Assignment, Blinding, Options, Proof, Prover, ProvingKey, Reduction};
use prestage_vram::{Host, Worker};

use super::{Peer, Statement};
use crate::Error;

/// prestage's prover on the CPU, from a witness to a proof.
#[derive(Debug)]
pub struct Ours<'d, R: Reduction> {
    prover: Prover<'d, Host, R>,
    statement: Statement,
    checked: bool,
}

impl<'d, R: Reduction> Ours<'d, R> {
    /// With nothing checked.
    ///
    /// # Errors
    /// As [`Prover::new`].
    pub fn new(device: &'d Host, key: ProvingKey<R>, statement: Statement) -> Result<Self, Error> {
        Ok(Self { prover: Prover::new(device, key)?, statement, checked: false })
    }

    /// The witness is checked against the constraints before, the proof verified after.
    #[must_use]
    pub fn checked(mut self) -> Self {
        self.checked = true;
        self
    }
}

impl<R: Reduction> Peer for Ours<'_, R> {
    fn prove(&self, blinding: &Blinding) -> Result<Proof, Error> {
        let options = Options::default().insecure_blinding(*blinding);
        let (r1cs, witness) = (self.statement.r1cs(), self.statement.witness());
        let (assignment, options) = if self.checked {
            (Assignment::new(&self.prover, r1cs, witness)?, options)
        } else {
            (Assignment::new_unchecked(&self.prover, r1cs, witness)?, options.unverified())
        };
        Ok(self.prover.prove(&mut Worker::new(0), &assignment, &options)?.proof)
    }
}
