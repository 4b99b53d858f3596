//! `prestage replay`: a script of memory and work on a simulated card.

use std::path::{Path, PathBuf};

use prestage_vram::{Bytes, Card, Nanos};
use serde::Serialize;

use super::files;
use super::output::{Failure, Output};
use crate::Error;
use crate::scenario::{Target, TargetError};
use crate::script::{Failure as StepFailure, Outcome, Refusal, Replay, Script};
use crate::spec::DeviceSpec;
use crate::timeline::{csv, schedule, write_atomic};

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The script: a TOML file, or the name of one that ships with prestage: c1 to c6
    #[arg(value_name = "SCRIPT")]
    script: String,
    /// Simulated card: sim:PRESET or sim:PATH.toml, with an optional cap such as sim:cascade-16g@12GiB
    #[arg(long, default_value = "sim:cascade-16g", value_name = "D")]
    device: DeviceSpec,
    /// Give a value of the script's [set] another amount, e.g. msm_scratch=0.36GiB; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Folder for the picture (.svg), the events (.csv) and the script as it was replayed (.toml)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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

#[derive(Debug, Serialize)]
struct Answer {
    script: String,
    device: String,
    /// The first refusal.
    refused: Option<Refused>,
    peak_bytes: u64,
    budget_bytes: u64,
    usable_bytes: u64,
    /// What is held, or kept by the pool, when the script has ended.
    left_bytes: u64,
    refusals: Vec<Refused>,
    /// Steps that failed for another reason.
    failures: Vec<Failed>,
    /// Whether the card failed for good.
    poisoned: bool,
    proofs: Vec<ProofAnswer>,
    /// When the last worker ended, in the card's time.
    end_ns: u64,
    picture: Option<String>,
}

#[derive(Debug, Serialize)]
struct Refused {
    worker: u32,
    proof: Option<u32>,
    label: String,
    need_bytes: u64,
    free_bytes: u64,
    /// What the pool kept.
    retained_bytes: u64,
    /// Which of the worker's steps, counted from 0.
    step: usize,
    at_ns: u64,
    message: String,
}

impl Refused {
    fn of(refusal: &Refusal) -> Self {
        let refused = &refusal.refused;
        Self {
            worker: refusal.worker.0,
            proof: refusal.proof,
            label: refused.label.to_owned(),
            need_bytes: refused.need.get(),
            free_bytes: refused.free.get(),
            retained_bytes: refused.retained.get(),
            step: refusal.step,
            at_ns: refusal.at.get(),
            message: refused.to_string(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Failed {
    worker: u32,
    proof: Option<u32>,
    step: usize,
    action: String,
    at_ns: u64,
    message: String,
}

impl Failed {
    fn of(failure: &StepFailure) -> Self {
        Self {
            worker: failure.worker.0,
            proof: failure.proof,
            step: failure.step,
            action: failure.action.clone(),
            at_ns: failure.at.get(),
            message: failure.error.to_string(),
        }
    }
}

#[derive(Debug, Serialize)]
struct ProofAnswer {
    proof: u32,
    /// `passed`, `refused`, `failed`, `not reached`.
    outcome: &'static str,
}

/// Runs the verb: done when the replay itself worked, whatever was refused in it.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    args.out.as_deref().map_or(Ok(()), files::can_make)?;
    let mut script = load(&args.script)?;
    let outputs =
        args.out.as_deref().map(|folder| ["csv", "toml", "svg"].map(|end| view(folder, &script, end)));
    let outputs: Vec<_> = outputs.iter().flatten().map(|path| ("--out", path.as_path())).collect();
    if args.out.as_deref().is_some_and(Path::is_dir) {
        files::can_write(&outputs, &[("the script", Path::new(&args.script))])?;
    }
    for (name, value) in &args.set {
        script.set(name, value.as_str())?;
    }
    let card = card(&args.device)?;
    let device = args.device.to_string();
    let replay = script.replay(card).map_err(|e| Failure::at(&args.script, &e))?;
    let headline = headline(&replay);
    let picture = args.out.as_deref().map(|folder| save(folder, &script, &device, &headline, &replay));
    let picture = picture.transpose()?;

    out.line(format_args!("{} on {device}: {headline}", script.name));
    if !script.story.is_empty() {
        out.line(format_args!("  {}", script.story));
    }
    for (proof, outcome) in &replay.proofs {
        out.line(format_args!("  proof {proof}: {}", words(outcome)));
    }
    for refusal in replay.refusals.iter().filter(|refusal| refusal.proof.is_none()) {
        out.line(format_args!("  at {}: {}", refusal.at, refusal.refused));
    }
    out.line(format_args!(
        "peak {} of {} that may be granted; {} of the card's time, as far as the script gives durations",
        replay.peak, replay.level.budget, replay.end
    ));
    if let Some(path) = &picture {
        out.line(format_args!("picture: {}", path.display()));
    }
    out.json(&answer(&script, device, &replay, picture.as_deref()))
}

fn load(name: &str) -> Result<Script, Failure> {
    let path = Path::new(name);
    if path.extension().is_some_and(|end| end == "toml") || path.components().count() > 1 || path.is_file() {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::at(name, &e))?;
        return Script::from_toml(&text).map_err(|e| Failure::at(name, &e));
    }
    Script::named(name).map_err(|e| Failure::new(format!("{e}, or write the path of a TOML file")))
}

/// The simulated card: a preset, or a description in a file.
fn card(spec: &DeviceSpec) -> Result<Card, Failure> {
    match Target::resolve(spec) {
        Ok(Target::Sim(card)) => Ok(card),
        Ok(_) | Err(TargetError::NoCuda { .. }) => Err(Failure::new(format!(
            "a script is replayed on a simulated card, not on {spec}; use --device sim:cascade-16g"
        ))),
        Err(e) => Err(e.into()),
    }
}

fn proof_of(proof: Option<u32>) -> String {
    proof.map_or_else(String::new, |proof| format!(" for proof {proof}"))
}

/// What happened, in a sentence or two.
pub(super) fn headline(replay: &Replay) -> String {
    let passed = replay.proofs.values().filter(|outcome| matches!(outcome, Outcome::Passed)).count();
    let of = replay.proofs.len();
    let mut text = match replay.refusals.first() {
        None if replay.failures.is_empty() => "nothing was refused".to_owned(),
        None => "nothing was refused, but steps failed".to_owned(),
        Some(first) => {
            let refused = &first.refused;
            let mut text = format!(
                "{} of {} was refused to {}{}: {} were free",
                refused.label,
                refused.need,
                first.worker,
                proof_of(first.proof),
                refused.free
            );
            if refused.retained > Bytes::ZERO {
                text += &format!(", the pool kept {}", refused.retained);
            }
            text
        }
    };
    if of > 0 {
        text += &format!("; {passed} of {of} proofs passed");
    }
    if replay.poisoned {
        text += &format!("; the card is poisoned, {} later steps failed", replay.failures.len());
    }
    text
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "passed".into(),
        Outcome::Refused(refusal) => format!("at {}: {}", refusal.at, refusal.refused),
        Outcome::Failed(failure) => format!("{} failed at {}: {}", failure.action, failure.at, failure.error),
        Outcome::NotReached => "not reached: its worker had stopped".into(),
    }
}

/// What a picture of a replay shows.
pub(super) fn about(script: &Script, device: &str) -> String {
    format!(
        "replay of the script {}  ·  device {device}  ·  no proofs were made: the durations are the script's own",
        script.name
    )
}

/// A file of a replay in its folder.
fn view(folder: &Path, script: &Script, end: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = script.name.chars().map(plain).collect();
    let name = if name.is_empty() { "script" } else { &name };
    folder.join(format!("{name}.{end}"))
}

/// Writes picture, events and script. There is no report: a report is of proofs that were verified.
fn save(
    folder: &Path,
    script: &Script,
    device: &str,
    headline: &str,
    replay: &Replay,
) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let path = |end: &str| view(folder, script, end);
    let about = about(script, device);
    write_atomic(&path("csv"), csv(&replay.timeline).as_bytes())?;
    write_atomic(&path("toml"), script.to_toml()?.as_bytes())?;
    let picture = path("svg");
    write_atomic(&picture, schedule(headline, &about, &replay.timeline)?.as_bytes())?;
    Ok(picture)
}

fn answer(script: &Script, device: String, replay: &Replay, picture: Option<&Path>) -> Answer {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Passed => "passed",
        Outcome::Refused(_) => "refused",
        Outcome::Failed(_) => "failed",
        Outcome::NotReached => "not reached",
    };
    let ns = |at: Nanos| at.get();
    Answer {
        script: script.name.clone(),
        device,
        refused: replay.refusals.first().map(Refused::of),
        peak_bytes: replay.peak.get(),
        budget_bytes: replay.level.budget.get(),
        usable_bytes: replay.level.usable.get(),
        left_bytes: replay.level.used().get(),
        refusals: replay.refusals.iter().map(Refused::of).collect(),
        failures: replay.failures.iter().map(Failed::of).collect(),
        poisoned: replay.poisoned,
        proofs: replay
            .proofs
            .iter()
            .map(|(proof, o)| ProofAnswer { proof: *proof, outcome: outcome(o) })
            .collect(),
        end_ns: ns(replay.end),
        picture: picture.map(|path| path.display().to_string()),
    }
}
