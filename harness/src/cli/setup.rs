//! `prestage setup`: a key pair for a circuit.

use std::path::PathBuf;
use std::str::FromStr;

use prestage_groth16::{Libsnark, ProvingKey, format, setup, setup_insecure_from_seed};
use serde::Serialize;

use super::files;
use super::output::{Failure, Output};

/// Arguments of `setup`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The circuit (circom .r1cs)
    #[arg(long, value_name = "F")]
    r1cs: PathBuf,
    /// Proving key to write (bellman .params)
    #[arg(long, value_name = "K.params")]
    key: PathBuf,
    /// Verification key to write (snarkjs JSON)
    #[arg(long, value_name = "V.json")]
    vkey: PathBuf,
    /// Make the trapdoor from this seed (up to 64 hex digits). Whoever knows the seed can forge proofs: for tests only
    #[arg(long, value_name = "HEX")]
    insecure_seed: Option<Seed>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// The seed of a trapdoor: up to 64 hex digits, right-aligned in 32 bytes.
#[derive(Clone, Copy, Debug)]
struct Seed([u8; 32]);

/// Text that is no seed.
#[derive(Debug, thiserror::Error)]
#[error("write 1 to 64 hex digits")]
struct ParseSeedError;

impl FromStr for Seed {
    type Err = ParseSeedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if !(1..=64).contains(&digits.len()) {
            return Err(ParseSeedError);
        }
        let mut seed = [0; 32];
        let values = digits.chars().rev().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()));
        for (i, value) in values.enumerate() {
            let value = value.ok_or(ParseSeedError)?;
            if let Some(byte) = seed.get_mut(31 - i / 2) {
                *byte |= value << (4 * (i % 2));
            }
        }
        Ok(Self(seed))
    }
}

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
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_hex_aligned_to_the_right() {
        let seed = |s: &str| s.parse::<Seed>().ok().map(|s| s.0);
        let mut expected = [0; 32];
        expected[31] = 0xef;
        expected[30] = 0x0d;
        assert_eq!(seed("def"), Some(expected));
        assert_eq!(seed("0xDEF"), Some(expected));
        assert_eq!(seed(&"f".repeat(64)), Some([0xff; 32]));
        for bad in ["", "0x", "g", "-1", " 1", "é", &"0".repeat(65)] {
            assert_eq!(seed(bad), None, "{bad}");
        }
    }
}
