//! `prestage setup`: a key pair for a circuit.

use prestage_groth16::{Libsnark, ProvingKey, format, setup, setup_insecure_from_seed};
use serde::Serialize;

use super::args;
use super::output::{Failure, Output};

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
    let seed = args.insecure_seed.as_deref().map(seed).transpose()?;
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

/// Up to 64 hex digits, right-aligned in 32 bytes.
fn seed(text: &str) -> Result<[u8; 32], Failure> {
    let bad = || Failure::new(format!("--insecure-seed `{text}`: write 1 to 64 hex digits"));
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let padded = format!("{digits:0>64}");
    let mut seed = [0; 32];
    for (byte, pair) in seed.iter_mut().zip(padded.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| bad())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
    }
    Ok(seed)
}
