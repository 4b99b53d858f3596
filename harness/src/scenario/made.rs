//! A synthetic load: a circuit, a key with a known trapdoor, and what its proofs must come to.

use std::time::{Duration, Instant};

use prestage_groth16::{Libsnark, Opened, ProvingKey, Trapdoor};
use prestage_msm::Multiples;

use super::Synthetic;
use crate::Error;
use crate::circuits::Circuit;

/// A circuit of a shape, its witness and its key.
///
/// The key comes from a trapdoor that everyone knows: it is good for measurements, and for nothing else. So each proof can be
/// checked against the trapdoor beside the pairing ([`Scenario::opened`](super::Scenario::opened)).
#[derive(Debug)]
pub struct Made {
    /// The circuit and a witness.
    pub circuit: Circuit,
    /// The key.
    pub key: ProvingKey<Libsnark>,
    /// What proofs must come to.
    pub opened: Opened,
    /// How long it took.
    pub took: Took,
}

/// How long a load took to make.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// The circuit and its witness.
    pub circuit: Duration,
    /// The key.
    pub key: Duration,
    /// The logarithms of its proofs.
    pub opened: Duration,
}

/// What `make` returns, and how long it took.
fn timed<T>(make: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let made = make();
    (made, start.elapsed())
}

impl Synthetic {
    /// A load on a domain of 2^`log` rows, the same whoever computes the points of its key.
    ///
    /// # Errors
    /// As [`Synthetic::realise`] and [`Trapdoor::key`].
    pub fn make(&self, log: u32, with: &impl Multiples) -> Result<Made, Error> {
        let (circuit, of_circuit) = timed(|| self.realise(log, 0));
        let circuit = circuit.map_err(prestage_groth16::Error::from)?;
        let trapdoor = Trapdoor::insecure_from_seed(&circuit.r1cs, [0; 32])?;
        let (key, of_key) = timed(|| trapdoor.key(&circuit.r1cs, with));
        let (opened, of_opened) = timed(|| trapdoor.open(&circuit.r1cs, &circuit.witness));
        let took = Took { circuit: of_circuit, key: of_key, opened: of_opened };
        Ok(Made { circuit, key: key?, opened: opened?, took })
    }
}
