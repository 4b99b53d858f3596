//! The command line: reads arguments, runs a verb, says how it ended.

mod args;
mod card;
mod compare;
mod demo;
mod device;
mod doctor;
mod files;
mod kernels;
mod output;
mod plan;
mod prove;
mod replay;
mod run;
mod setup;
mod verify;
mod written;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use self::args::{Cli, Verb};
use self::output::{Failure, Output};

/// Runs `prestage` with these arguments, the program's name first. Exit status: 0 done, 1 failed, 2 wrong usage.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let verb = match Cli::try_parse_from(&args) {
        Ok(cli) => cli.verb,
        Err(e) => return usage(&e, args.iter().any(|a| a == "--json")),
    };
    let mut out = Output::new(verb.json());
    // Made here rather than at first use, where a machine that grants no threads would end in a panic.
    if let Err(e) = rayon::ThreadPoolBuilder::new().build_global() {
        return fail(&Failure::new(format!("cannot start worker threads: {e}")), &mut out, ExitCode::FAILURE);
    }
    let outcome = match &verb {
        Verb::Doctor(args) => doctor::run(args, &mut out),
        Verb::Demo(args) => demo::run(args, &mut out),
        Verb::Setup(args) => setup::run(args, &mut out),
        Verb::Prove(args) => prove::run(args, &mut out),
        Verb::Verify(args) => verify::run(args, &mut out),
        Verb::Replay(args) => replay::run(args, &mut out),
        Verb::Plan(args) => plan::run(args, &mut out),
        Verb::Run(args) => run::run(args, &mut out),
        Verb::Kernels(args) => kernels::run(args, &mut out),
        Verb::Compare(args) => compare::run(args, &mut out),
    };
    match outcome.and_then(|()| out.end()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, &mut out, ExitCode::FAILURE),
    }
}

/// One line on stderr, and with `--json` an object on stdout.
fn fail(failure: &Failure, out: &mut Output, status: ExitCode) -> ExitCode {
    out.failed(failure);
    let _ = writeln!(std::io::stderr(), "prestage: {failure}");
    status
}

/// Help and version go out as they are; a wrong command line becomes one line.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        _ => {}
    }
    let text = error.render().to_string();
    let mut line = String::new();
    let over = |l: &&str| l.starts_with("Usage:") || l.starts_with("For more information");
    for part in text.lines().map(str::trim).take_while(|l| !over(l)) {
        let part = part.strip_prefix("error: ").unwrap_or(part);
        let join = match line.is_empty() || part.is_empty() {
            true => "",
            false if part.starts_with("tip:") => "; ",
            false => " ",
        };
        line += join;
        line += part;
    }
    let failure = Failure::new(format!("{line} (see prestage --help)"));
    fail(&failure, &mut Output::new(json), ExitCode::from(2))
}
