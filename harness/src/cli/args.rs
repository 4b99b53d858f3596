//! The command line as types.

use clap::{Parser, Subcommand};

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
    Doctor(super::doctor::Args),
    /// The main job with no input: two workers on a simulated 16 GiB card, before and after; then a circuit and a key of
    /// its own, proved staged and unstaged, verified, and drawn
    Demo(super::demo::Args),
    /// Make a proving key (bellman .params) and a verification key (snarkjs JSON) from an .r1cs
    Setup(super::setup::Args),
    /// Prove a witness under a key; the proof is verified before it is written
    Prove(super::prove::Args),
    /// Verify a proof; exit status 0 means valid
    Verify(super::verify::Args),
    /// Replay a script of memory and work on a simulated card, and say what was refused
    Replay(super::replay::Args),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
