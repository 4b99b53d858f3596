//! `prestage setup`: a key pair for a circuit.

use prestage_groth16::{Libsnark, ProvingKey, format, setup, setup_insecure_from_seed};
use serde::Serialize;

use super::output::{Failure, Output};
use super::{args, files};

#[derive(Debug, Serialize)]
struct Answer {
    constraints: usize,
    public_inputs: u32,
    domain: u64,
    /// True when everyone who knows the seed can forge proofs.
    insecure: bool,
    key: String,
    vkey: String,
}

/// Runs the verb.
pub(super) fn run(args: &args::Setup, out: &mut Output) -> Result<(), Failure> {
    let outputs = [("--key", args.key.as_path()), ("--vkey", args.vkey.as_path())];
    files::can_write(&outputs, &[("--r1cs", &args.r1cs)])?;
    let seed = args.insecure_seed.map(|seed| seed.0);
    let r1cs = format::load_r1cs(&args.r1cs)?;
    let key: ProvingKey<Libsnark> = {
        let _progress = out.progress("setup");
        match seed {
            Some(seed) => setup_insecure_from_seed(&r1cs, seed)?,
            None => setup(&r1cs)?,
        }
    };
    format::save_params(&args.key, &key)?;
    format::save_verifying_key(&args.vkey, key.vk())?;
    if seed.is_some() {
        out.note(format_args!(
            "everyone who knows the seed can prove false statements under this key: for tests only"
        ));
    } else {
        out.note(format_args!(
            "whoever ran this setup could have kept its trapdoor: a key that is to convince others needs a ceremony"
        ));
    }
    let answer = Answer {
        constraints: r1cs.n_constraints(),
        public_inputs: r1cs.n_public(),
        domain: key.domain_size(),
        insecure: seed.is_some(),
        key: args.key.display().to_string(),
        vkey: args.vkey.display().to_string(),
    };
    out.line(format_args!(
        "{} constraints, {} public inputs, domain {}: wrote {} and {}",
        answer.constraints, answer.public_inputs, answer.domain, answer.key, answer.vkey
    ));
    out.json(&answer)
}
