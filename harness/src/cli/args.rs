//! The command line as types.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use prestage_groth16::Policy;
use prestage_vram::Margin;

use crate::spec::DeviceSpec;

/// Groth16 proving on BLS12-381 that shows where time and device memory went.
///
/// Errors are one line on stderr. Exit status: 0 done, 1 failed, 2 the command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "prestage", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Environment:
  PRESTAGE_CACHE_DIR  Where it is remembered which keys were checked, and compiled kernels lie in its
                      folder kernels: a folder by its absolute path.
                      Anything else counts as not set: $XDG_CACHE_HOME/prestage or ~/.cache/prestage")]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// What `prestage` does.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Say what is on this machine: devices, driver, NVRTC, CUPTI, memory, limits, and how to get what is missing
    Doctor(Doctor),
    /// The main job with no input: two workers on a simulated 16 GiB card, before and after; then a circuit and a key of
    /// its own, proved staged and unstaged, verified, and drawn
    Demo(Demo),
    /// Make a proving key (bellman .params) and a verification key (snarkjs JSON) from an .r1cs
    Setup(Setup),
    /// Prove a witness under a key; the proof is verified before it is written
    Prove(Prove),
    /// Verify a proof; exit status 0 means valid
    Verify(Verify),
    /// Replay a script of memory and work on a simulated card, and say what was refused
    Replay(Replay),
    /// Show what a proof would hold on a device, phase by phase, touching no device
    Plan(super::plan::Args),
    /// Prove partitions with several workers and report where the time went
    Run(super::run::Args),
    /// Draw two reports of one load on one axis of time, and say what they differ in
    Compare(super::compare::Args),
    /// Compile the kernels of NVIDIA cards ahead of their first use, list them, or remove them; needs no card
    Kernels(super::kernels::Args),
}

impl Verb {
    /// Whether the answer is asked for as JSON.
    #[must_use]
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Doctor(v) => v.json,
            Self::Demo(v) => v.json,
            Self::Setup(v) => v.json,
            Self::Prove(v) => v.json,
            Self::Verify(v) => v.json,
            Self::Replay(v) => v.json,
            Self::Plan(v) => v.json,
            Self::Run(v) => v.json,
            Self::Compare(v) => v.json,
            Self::Kernels(v) => v.json,
        }
    }
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// Where a proof is made, and how.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// Device: host, cuda:N or cuda:GPU-UUID, with an optional cap such as host@8GiB or cuda:0@16GiB; auto takes cuda:0 where
    /// it can be used (its kernels can be compiled, or are in the cache), else host. sim:PRESET and sim:PATH.toml are refused here (plan, run and replay take simulated cards)
    #[arg(long, default_value = "auto", value_name = "D")]
    pub(super) device: DeviceSpec,
    /// Device memory kept free: an amount such as 512MiB, or a share such as 50permille
    #[arg(long, default_value = "512MiB", value_name = "M", value_parser = margin)]
    pub(super) margin: Margin,
    /// Script of the run to write (.toml), for prestage replay; of demo, that of the simulated card
    #[arg(long, value_name = "S.toml")]
    pub(super) script: Option<PathBuf>,
}

/// A margin as it is written on the command line.
pub(super) fn margin(text: &str) -> Result<Margin, String> {
    const FORMS: &str = "write an amount such as 512MiB, or a share such as 50permille";
    match text.parse() {
        Ok(Margin::Permille(share)) if share > 1000 => Err(format!("more than the whole device; {FORMS}")),
        Ok(margin) => Ok(margin),
        Err(_) => Err(format!("no margin; {FORMS}")),
    }
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Where to prove
    #[command(flatten)]
    pub(super) place: Place,
    /// Size of the circuit: 2^K rows, K from 4 to 20
    #[arg(long, default_value_t = 14, value_name = "K", value_parser = clap::value_parser!(u32).range(4..=20))]
    pub(super) log_size: u32,
    /// Folder for the report page and its data
    #[arg(long, default_value = "prestage-demo", value_name = "DIR")]
    pub(super) out: PathBuf,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `setup`.
#[derive(Debug, Args)]
pub(super) struct Setup {
    /// The circuit (circom .r1cs)
    #[arg(long, value_name = "F")]
    pub(super) r1cs: PathBuf,
    /// Proving key to write (bellman .params)
    #[arg(long, value_name = "K.params")]
    pub(super) key: PathBuf,
    /// Verification key to write (snarkjs JSON)
    #[arg(long, value_name = "V.json")]
    pub(super) vkey: PathBuf,
    /// Make the trapdoor from this seed (up to 64 hex digits). Whoever knows the seed can forge proofs: for tests only
    #[arg(long, value_name = "HEX")]
    pub(super) insecure_seed: Option<Seed>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// The seed of a trapdoor: up to 64 hex digits, right-aligned in 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(pub(super) [u8; 32]);

/// Text that is no seed.
#[derive(Debug, thiserror::Error)]
#[error("write 1 to 64 hex digits")]
pub(super) struct ParseSeedError;

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

/// Arguments of `prove`.
#[derive(Debug, Args)]
pub(super) struct Prove {
    /// Proving key: .zkey (snarkjs), .params (bellman) or .ark (arkworks, uncompressed or compressed)
    #[arg(long, value_name = "K")]
    pub(super) key: PathBuf,
    /// Witness (.wtns)
    #[arg(long, value_name = "W.wtns")]
    pub(super) witness: PathBuf,
    /// Proof to write: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    pub(super) proof: PathBuf,
    /// The circuit: needed with .params and .ark keys; with it the witness is checked first
    #[arg(long, value_name = "F")]
    pub(super) r1cs: Option<PathBuf>,
    /// Do not check the witness against the circuit first; only with --r1cs, since without it there is nothing to check against
    #[arg(long, requires = "r1cs")]
    pub(super) no_check: bool,
    /// Public inputs to write (snarkjs JSON)
    #[arg(long, value_name = "PUB.json")]
    pub(super) public: Option<PathBuf>,
    /// Where to prove
    #[command(flatten)]
    pub(super) place: Place,
    /// How the polynomials are staged: auto (the first that fits of full, a-then-bc, chunked), full, a-then-bc,
    /// chunked:K (in K pieces, a power of two from 2 to 64) or none
    #[arg(long, default_value = "auto", value_name = "P")]
    pub(super) policy: Policy,
    /// Times by CUPTI's activity records instead of event pairs; NVIDIA cards only
    #[arg(long)]
    pub(super) cupti: bool,
    /// Load the key without checking its points (they are checked once per file and remembered)
    #[arg(long)]
    pub(super) no_key_check: bool,
    /// Folder for the timeline: page, pictures, traces, report
    #[arg(long, value_name = "DIR")]
    pub(super) timeline: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The script: a TOML file, or the name of one that ships with prestage: c1 to c6
    #[arg(value_name = "SCRIPT")]
    pub(super) script: String,
    /// Simulated card: sim:PRESET or sim:PATH.toml, with an optional cap such as sim:cascade-16g@12GiB
    #[arg(long, default_value = "sim:cascade-16g", value_name = "D")]
    pub(super) device: DeviceSpec,
    /// Give a value of the script's [set] another amount, e.g. msm_scratch=0.36GiB; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(super) set: Vec<(String, String)>,
    /// Folder for the picture (.svg), the events (.csv) and the script as it was replayed (.toml)
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write name=value".into()),
    }
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// Verification key: .json (snarkjs), .params (bellman) or .ark (arkworks)
    #[arg(long, value_name = "V")]
    pub(super) vkey: PathBuf,
    /// Public inputs: .json (snarkjs) or .wtns
    #[arg(long, value_name = "PUB")]
    pub(super) public: PathBuf,
    /// Proof: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    pub(super) proof: PathBuf,
    /// Accept a verification key whose delta is known to all (a key whose second phase was never run)
    #[arg(long)]
    pub(super) insecure: bool,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
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

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
