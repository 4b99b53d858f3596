//! The command line: reads arguments, runs a verb, says how it ended.

mod args;
mod demo;
mod device;
mod doctor;
mod output;
mod prove;
mod setup;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use self::args::{Cli, Verb};
use self::output::Output;

/// Runs `prestage` with these arguments, the program's name first. Exit status: 0 done, 1 failed, 2 wrong usage.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let verb = match Cli::try_parse_from(args) {
        Ok(cli) => cli.verb,
        Err(e) => return usage(&e),
    };
    let mut out = Output::new(verb.json());
    let outcome = match &verb {
        Verb::Doctor(args) => doctor::run(args, &mut out),
        Verb::Demo(args) => demo::run(args, &mut out),
        Verb::Setup(args) => setup::run(args, &mut out),
        Verb::Prove(args) => prove::run(args, &mut out),
        Verb::Verify(args) => verify::run(args, &mut out),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            out.failed(&failure);
            let _ = writeln!(std::io::stderr(), "prestage: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Help and version go out as they are; a wrong command line becomes one line.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let mut words: Vec<&str> = text.lines().map(str::trim).take_while(|l| !l.starts_with("Usage:")).collect();
    words.retain(|l| !l.is_empty());
    let line = words.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    let _ = writeln!(std::io::stderr(), "prestage: {line} (see prestage --help)");
    ExitCode::from(2)
}
