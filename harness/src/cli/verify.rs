//! `prestage verify`: is this a proof of that statement?

use std::path::PathBuf;

use prestage_groth16::{PreparedKey, format};
use serde::Serialize;

use super::output::{Failure, Output};

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Verification key: .json (snarkjs), .params (bellman) or .ark (arkworks)
    #[arg(long, value_name = "V")]
    vkey: PathBuf,
    /// Public inputs: .json (snarkjs) or .wtns
    #[arg(long, value_name = "PUB")]
    public: PathBuf,
    /// Proof: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    proof: PathBuf,
    /// Accept a verification key whose delta is known to all (a key whose second phase was never run)
    #[arg(long)]
    insecure: bool,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    valid: bool,
    public_inputs: usize,
}

/// Runs the verb: done when the proof is valid, failed when it is not.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let vk = format::load_verifying_key(&args.vkey)?;
    let public = format::load_public(&args.public, vk.n_public())?;
    let proof = format::load_proof(&args.proof)?;
    let key = if args.insecure { PreparedKey::new_insecure(&vk) } else { PreparedKey::new(&vk) }
        .map_err(|e| Failure::at(args.vkey.display(), &e))?;
    let valid = key.verify(&public, &proof).map_err(|e| Failure::at(args.public.display(), &e))?;
    if !valid {
        return Err(Failure::new(format!(
            "{}: the proof is not valid for these public inputs under this key",
            args.proof.display()
        ))
        .field("valid", false));
    }
    out.line(format_args!("valid"));
    out.json(&Answer { valid, public_inputs: public.len() })
}
