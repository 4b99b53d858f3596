//! The `prestage` command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    prestage_harness::cli::run(std::env::args_os())
}
