//! The command line as types.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use prestage_vram::Margin;

use crate::spec::DeviceSpec;

/// Groth16 proving on BLS12-381 that shows where time and device memory went.
///
/// Errors are one line on stderr. Exit status: 0 done, 1 failed, 2 the command line is wrong.
#[derive(Debug, Parser)]
#[command(name = "prestage", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What `prestage` does.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Say what is on this machine: devices, driver, NVRTC, CUPTI, memory, limits, and how to get what is missing
    Doctor(Doctor),
    /// The main job with no input: make a circuit and a key, prove it staged and unstaged, verify, draw the timeline
    Demo(Demo),
    /// Make a proving key (bellman .params) and a verification key (snarkjs JSON) from an .r1cs
    Setup(Setup),
    /// Prove a witness under a key; the proof is verified before it is written
    Prove(Prove),
    /// Verify a proof; exit status 0 means valid
    Verify(Verify),
}

impl Verb {
    /// Whether the answer is asked for as JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        match self {
            Self::Doctor(v) => v.json,
            Self::Demo(v) => v.json,
            Self::Setup(v) => v.json,
            Self::Prove(v) => v.json,
            Self::Verify(v) => v.json,
        }
    }
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Answer as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Where a proof is made, and how.
#[derive(Debug, Args)]
pub struct Place {
    /// Device: auto, host, cuda:N or sim:PRESET, with an optional cap such as host@8GiB
    #[arg(long, default_value = "auto", value_name = "D")]
    pub device: DeviceSpec,
    /// Device memory kept free: an amount such as 512MiB, or a share such as 50permille
    #[arg(long, default_value = "512MiB", value_name = "M")]
    pub margin: Margin,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to prove
    #[command(flatten)]
    pub place: Place,
    /// Size of the circuit: 2^K rows, K from 4 to 20
    #[arg(long, default_value_t = 14, value_name = "K", value_parser = clap::value_parser!(u32).range(4..=20))]
    pub log_size: u32,
    /// Folder for the report page and its data
    #[arg(long, default_value = "prestage-demo", value_name = "DIR")]
    pub out: PathBuf,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `setup`.
#[derive(Debug, Args)]
pub struct Setup {
    /// The circuit (circom .r1cs)
    #[arg(long, value_name = "F")]
    pub r1cs: PathBuf,
    /// Proving key to write (bellman .params)
    #[arg(long, value_name = "K.params")]
    pub key: PathBuf,
    /// Verification key to write (snarkjs JSON)
    #[arg(long, value_name = "V.json")]
    pub vkey: PathBuf,
    /// Make the trapdoor from this seed (up to 64 hex digits). Whoever knows the seed can forge proofs: for tests only
    #[arg(long, value_name = "HEX")]
    pub insecure_seed: Option<String>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `prove`.
#[derive(Debug, Args)]
pub struct Prove {
    /// Proving key: .zkey (snarkjs), .params (bellman) or .ark (arkworks, uncompressed or compressed)
    #[arg(long, value_name = "K")]
    pub key: PathBuf,
    /// Witness (.wtns)
    #[arg(long, value_name = "W.wtns")]
    pub witness: PathBuf,
    /// Proof to write: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    pub proof: PathBuf,
    /// The circuit: needed with .params and .ark keys; with it the witness is checked first
    #[arg(long, value_name = "F")]
    pub r1cs: Option<PathBuf>,
    /// Do not check the witness against the circuit first
    #[arg(long, requires = "r1cs")]
    pub no_check: bool,
    /// Public inputs to write (snarkjs JSON)
    #[arg(long, value_name = "PUB.json")]
    pub public: Option<PathBuf>,
    /// Where to prove
    #[command(flatten)]
    pub place: Place,
    /// How the polynomials are staged: auto, full, a-then-bc, chunked, chunked-K or none
    #[arg(long, default_value = "auto", value_name = "P")]
    pub policy: String,
    /// Load the key without checking its points (they are checked once per file and remembered)
    #[arg(long)]
    pub no_key_check: bool,
    /// Folder for the timeline: page, pictures, traces, report
    #[arg(long, value_name = "DIR")]
    pub timeline: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// Verification key: .json (snarkjs), .params (bellman) or .ark (arkworks)
    #[arg(long, value_name = "V")]
    pub vkey: PathBuf,
    /// Public inputs: .json (snarkjs) or .wtns
    #[arg(long, value_name = "PUB")]
    pub public: PathBuf,
    /// Proof: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    pub proof: PathBuf,
    /// Accept a verification key whose delta is known to all (a key whose second phase was never run)
    #[arg(long)]
    pub insecure: bool,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub json: bool,
}
