//! `prestage prove`: files in, a verified proof out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prestage_groth16::format::{self, FormatError, LoadOptions, Note, PointChecks};
use prestage_groth16::{
    AnyKey, Assignment, Error as Groth16Error, Options, Policy, Proofs, Prover, ProvingKey, R1cs, Reduction,
    Witness,
};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{WorkerId, host_work};
use serde::Serialize;

use super::device::{self, Opened, Place};
use super::files;
use super::output::{Failure, Output};
use super::written;
use crate::Error;
use crate::scenario::Crew;
use crate::session::{About, Run, prove_in_turn};
use crate::timeline::{ByCause, save};

/// Arguments of `prove`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Proving key: .zkey (snarkjs), .params (bellman) or .ark (arkworks, uncompressed or compressed)
    #[arg(long, value_name = "K")]
    key: PathBuf,
    /// Witness (.wtns)
    #[arg(long, value_name = "W.wtns")]
    witness: PathBuf,
    /// Proof to write: .json (snarkjs) or .bin (192 bytes, compressed)
    #[arg(long, value_name = "P")]
    proof: PathBuf,
    /// The circuit: needed with .params and .ark keys; with it the witness is checked first
    #[arg(long, value_name = "F")]
    r1cs: Option<PathBuf>,
    /// Do not check the witness against the circuit first; only with --r1cs, since without it there is nothing to check against
    #[arg(long, requires = "r1cs")]
    no_check: bool,
    /// Public inputs to write (snarkjs JSON)
    #[arg(long, value_name = "PUB.json")]
    public: Option<PathBuf>,
    /// Where to prove
    #[command(flatten)]
    place: Place,
    /// How the polynomials are staged: auto (the first that fits of full, a-then-bc, chunked), full, a-then-bc,
    /// chunked:K (in K pieces, a power of two from 2 to 64) or none
    #[arg(long, default_value = "auto", value_name = "P")]
    policy: Policy,
    /// Times by CUPTI's activity records instead of event pairs; NVIDIA cards only
    #[arg(long)]
    cupti: bool,
    /// Load the key without checking its points (they are checked once per file and remembered)
    #[arg(long)]
    no_key_check: bool,
    /// Folder for the timeline: page, pictures, traces, report
    #[arg(long, value_name = "DIR")]
    timeline: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// What the files of a timeline are called.
const PICTURES: &str = "prove";

#[derive(Debug, Serialize)]
struct Answer {
    verified: bool,
    device: String,
    policy: String,
    reason: String,
    domain: u64,
    public_inputs: usize,
    wall_ns: u64,
    busy_ns: u64,
    idle_ns: ByCause,
    peak_bytes: u64,
    proof: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<String>,
    /// What the times are by, where it is not event pairs or the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<String>,
}

/// Runs the verb. Nothing is written unless the proof verifies.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    can_write(args)?;
    let witness = format::load_witness(&args.witness)?;
    let r1cs = args.r1cs.as_deref().map(format::load_r1cs).transpose()?;
    match device::open(&args.place, args.cupti)? {
        device::Prover::Host(opened) => on(args, &opened, r1cs.as_ref(), &witness, out),
        #[cfg(feature = "cuda")]
        device::Prover::Cuda(opened) => on(args, &opened, r1cs.as_ref(), &witness, out),
    }
}

fn on<D: Ntt + Msm + Crew>(
    args: &Args,
    opened: &Opened<D>,
    r1cs: Option<&R1cs>,
    witness: &Witness,
    out: &mut Output,
) -> Result<(), Failure> {
    let key = load_key(args, r1cs, out)?;
    let options = Options::default().policy(args.policy);
    match (key, r1cs) {
        (AnyKey::Circom(key), None) => {
            let prover = Prover::for_proofs(&opened.device, key, Proofs::One)?;
            let constraints = prover.key().n_constraints();
            prove(args, opened, &prover, constraints, || Assignment::from_key(&prover, witness), options, out)
        }
        (AnyKey::Circom(key), Some(r1cs)) => with_circuit(args, opened, key, r1cs, witness, options, out),
        (AnyKey::Libsnark(key), Some(r1cs)) => with_circuit(args, opened, key, r1cs, witness, options, out),
        (AnyKey::Libsnark(_), None) => Err(Failure::new(format!(
            "{}: this kind of key has no constraints in it: give the circuit with --r1cs",
            args.key.display()
        ))),
    }
}

/// Looks at the paths before the work begins.
fn can_write(args: &Args) -> Result<(), Failure> {
    let mut inputs = vec![("--key", args.key.as_path()), ("--witness", &args.witness)];
    inputs.extend(args.r1cs.as_deref().map(|p| ("--r1cs", p)));
    let mut outputs = vec![("--proof", args.proof.as_path())];
    outputs.extend(args.public.as_deref().map(|p| ("--public", p)));
    outputs.extend(args.place.script.as_deref().map(|p| ("--script", p)));
    files::can_save(&outputs, ("--timeline", args.timeline.as_deref(), PICTURES), &inputs)
}

fn load_key(args: &Args, r1cs: Option<&R1cs>, out: &Output) -> Result<AnyKey, Failure> {
    let _progress = out.progress("loading the key");
    let mut options = LoadOptions::default();
    if args.no_key_check {
        options.checks = PointChecks::Unchecked;
    }
    let loaded = format::load_proving_key(&args.key, r1cs, &options).map_err(|e| match e {
        FormatError::NeedsR1cs { .. } => Failure::new(format!("{e}; give it with --r1cs")),
        e => e.into(),
    })?;
    for note in loaded.notes.iter().filter(|note| !matches!(note, Note::Remembered { .. })) {
        out.note(format_args!("{}: {note}", args.key.display()));
    }
    Ok(loaded.value)
}

fn with_circuit<D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    opened: &Opened<D>,
    key: ProvingKey<R>,
    r1cs: &R1cs,
    witness: &Witness,
    options: Options,
    out: &mut Output,
) -> Result<(), Failure> {
    let prover = Prover::for_proofs(&opened.device, key, Proofs::One)?;
    let assignment = || match args.no_check {
        true => Assignment::new_unchecked(&prover, r1cs, witness),
        false => Assignment::new(&prover, r1cs, witness),
    };
    prove(args, opened, &prover, r1cs.n_constraints(), assignment, options, out)
}

fn prove<D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    opened: &Opened<D>,
    prover: &Prover<'_, D, R>,
    constraints: usize,
    assignment: impl FnOnce() -> Result<Assignment, Groth16Error>,
    options: Options,
    out: &mut Output,
) -> Result<(), Failure> {
    let progress = out.progress("proving");
    // The account of time begins with the proof, not with the loading of the key.
    drop(opened.device.records()?);
    drop(opened.recorder.take());
    let assignment = host_work(&opened.device, WorkerId(0), "evaluate a, b, c", assignment).map_err(|e| {
        let file = match (&e, &args.r1cs) {
            (Groth16Error::OtherCircuit { .. }, Some(r1cs)) => r1cs,
            _ => &args.witness,
        };
        Failure::at(file.display(), &e)
    })?;
    let file = |path: &Path| path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let about = About {
        scenario: format!("prove {}", file(&args.key)),
        device: opened.name.clone(),
        circuit: file(&args.key),
        constraints: constraints as u64,
        parameters: BTreeMap::from([
            ("workers".into(), "1".into()),
            ("margin".into(), args.place.margin.to_string()),
        ]),
    };
    let Run { proofs, plan, report, timeline } =
        prove_in_turn(prover, &assignment, &[options], &opened.recorder, about)
            .map_err(|e| advise(args, e))?;
    drop(progress);
    let public = assignment.public();
    if let Some(path) = &args.public {
        format::save_public(path, public)?;
    }
    let [proof] = proofs.as_slice() else { return Err(Failure::new("no proof was made")) };
    format::save_proof(&args.proof, proof)?;
    // The rest comes after the proof: it is what was asked for, and drawing may fail.
    let script = args.place.script.as_deref();
    written::write(script, opened.scribe.as_deref(), PICTURES, prover.device().ledger())?;
    let saved = args
        .timeline
        .as_deref()
        .map(|folder| save(folder, PICTURES, &report, &timeline))
        .transpose()
        .map_err(|e| {
            Failure::at(format!("{} is written, but its timeline is not", args.proof.display()), &e)
        })?;

    let answer = Answer {
        verified: true,
        device: opened.name.clone(),
        policy: plan.policy().to_string(),
        reason: plan.reason().to_owned(),
        domain: prover.key().domain_size(),
        public_inputs: public.len(),
        wall_ns: report.times.wall().get(),
        busy_ns: report.times.busy().get(),
        idle_ns: *report.times.idle(),
        peak_bytes: report.peak_bytes,
        proof: args.proof.display().to_string(),
        public: args.public.as_ref().map(|p| p.display().to_string()),
        timeline: saved.map(|s| s.page.display().to_string()),
        times: report.parameters.get("times").cloned(),
    };
    out.line(format_args!(
        "proved and verified on {} in {} (policy {}: {}); wrote {}",
        opened.shown,
        report.times.wall(),
        answer.policy,
        answer.reason,
        answer.proof
    ));
    if let Some(times) = &answer.times {
        out.line(format_args!("times: {times}"));
    }
    if let Some(page) = &answer.timeline {
        if let Some(complaint) = report.complaint() {
            out.note(format_args!("{page}: {complaint}"));
        }
        out.line(format_args!("timeline: {page}"));
    }
    out.json(&answer)
}

/// A proof that does not verify is nearly always a witness of something else; the circuit would say where.
fn advise(args: &Args, error: Error) -> Failure {
    match &error {
        Error::Groth16(Groth16Error::NotVerified) if args.r1cs.is_some() && !args.no_check => {
            Failure::new(format!(
                "{}: the proof does not verify although the witness satisfies the circuit: the key is damaged or is \
                 not of this circuit",
                args.key.display()
            ))
            .field("verified", false)
        }
        Error::Groth16(Groth16Error::NotVerified) => {
            Failure::at(args.witness.display(), &error).field("verified", false)
        }
        _ => error.into(),
    }
}
