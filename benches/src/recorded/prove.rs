//! A staged and an unstaged proof, one after the other.

use std::collections::BTreeMap;

use prestage_groth16::{Assignment, Libsnark, Options, Policy, Prover, setup_insecure_from_seed};
use prestage_harness::circuits::squares;
use prestage_harness::scenario::Crew;
use prestage_harness::session::{About, prove_in_turn};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{WorkerId, host_work};

use super::{Outcome, Recorded};
use crate::{Error, rng};

/// Two proofs of the square circuit over 2^`log` rows, under the policies full and none, both verified.
///
/// # Errors
/// What the prover says; [`prestage_harness::Error::Unverified`].
pub fn prove<D: Ntt + Msm + Crew>(on: &Recorded<D>, log: u32) -> Result<Outcome, Error> {
    let circuit = squares(log, rng(0))?;
    let key = setup_insecure_from_seed::<Libsnark>(&circuit.r1cs, [0; 32])?;
    let prover = Prover::new(&on.device, key)?;
    drop(on.recorder.take());
    let assignment = host_work(&on.device, WorkerId(0), "evaluate a, b, c", || {
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
    })?;
    let options = [Policy::Full, Policy::None].map(|policy| Options::default().policy(policy));
    let about = About {
        scenario: "bench prove".into(),
        device: on.name.clone(),
        circuit: format!("square-2^{log}"),
        constraints: circuit.r1cs.n_constraints() as u64,
        parameters: BTreeMap::from([("workers".into(), "1".into())]),
    };
    let run = prove_in_turn(&prover, &assignment, &options, &on.recorder, about)?;
    Ok(Outcome { report: run.report, timeline: run.timeline })
}
