//! `prestage run`: a scenario on a device, with a report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use prestage_groth16::format::{self, FormatError, LoadOptions};
use prestage_groth16::{AnyKey, Assignment, Opened, Policy, Prover, R1cs, Reduction, Residency, Witness};
use prestage_msm::{Msm, Threads};
use prestage_ntt::{MAX_CHUNKS, Ntt};
use prestage_vram::{Bytes, Card, LedgerConfig, Margin, Nanos};
use serde::Serialize;

use super::device::no_records;
use super::output::{Failure, Output};
use super::prove::constraints_of;
use super::{devices, files, written};
use crate::host_memory;
use crate::scenario::{
    Auto, Crew, Failed, HostTime, Made, Outcome, Scenario, Synthetic, Target, Targets, Took, Wanted, marked,
    run as prove_all, run_opened,
};
use crate::script::Scribe;
use crate::session::About;
use crate::spec::{DeviceKind, DeviceSpecs};
use crate::timeline::{ByCause, Recorder, Report, save};

/// Rows of the circuit that stands for a larger one on a simulated card, as a power of two.
const SMALL: u32 = 10;
/// Virtual time in which no figure of a card makes sense any more: a hundred years.
const LONGEST: Nanos = Nanos::new(100 * 365 * 86_400 * 1_000_000_000);
/// What the files of a report are called.
pub(super) const PICTURES: &str = "run";

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct Args {
    /// Shape of the circuit: porep-32g, porep-32g-uniform, square-2^K, or a TOML file with counts and densities
    #[arg(long, value_name = "S", group = "what")]
    shape: Option<String>,
    /// A proving key (.zkey, .params or .ark)
    #[arg(long, value_name = "K", group = "what", requires = "witness")]
    key: Option<PathBuf>,
    /// Witness for the key (.wtns)
    #[arg(long, value_name = "W", conflicts_with = "shape")]
    witness: Option<PathBuf>,
    /// The circuit: needed with .params and .ark keys
    #[arg(long, value_name = "F", conflicts_with = "shape")]
    r1cs: Option<PathBuf>,
    /// Device: host, cuda:N or sim:PRESET (also sim:PATH.toml), with an optional cap such as sim:h200-141g@16GiB; auto takes
    /// cuda:0 where it can be used, else host. Several of one kind, with commas between, share the partitions: cuda:0,cuda:1;
    /// cuda:* is every card
    #[arg(long, default_value = "auto", value_name = "D")]
    device: DeviceSpecs,
    /// Device memory kept free: an amount such as 512MiB, or a share such as 50permille [default: 512MiB, or the
    /// card's own]
    #[arg(long, value_name = "M", value_parser = super::args::margin)]
    pub(super) margin: Option<Margin>,
    /// Proofs to make
    #[arg(long, default_value_t = 10, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) partitions: u32,
    /// Workers that take partitions from one queue, on each device
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) workers: u32,
    /// How the polynomials are staged: auto, full, a-then-bc, chunked, chunked:K or none
    #[arg(long, default_value = "auto", value_name = "P")]
    pub(super) policy: Wanted,
    /// Points of the key that stay on the device from proof to proof: auto (where there is room), none or all
    #[arg(long, default_value = "auto", value_name = "R")]
    pub(super) resident: Residency,
    /// Whether the next partition stages while one computes
    #[arg(long, default_value = "on", value_name = "on|off", value_parser = ["on", "off"])]
    pub(super) ahead: String,
    /// How many elements of the full size one element stands for; simulated cards only [default: what makes the shape
    /// its full size; 1 with a key]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(super) scale: Option<u64>,
    /// Shrink the shape to a circuit of 2^K rows [default: 10 on simulated cards; elsewhere its own size, which for porep-32g
    /// takes some 100 GB of host memory]
    #[arg(long, value_name = "K", conflicts_with = "key", value_parser = clap::value_parser!(u32).range(4..=30))]
    log_domain: Option<u32>,
    /// Folder for the report: page, pictures, traces, data
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Times by CUPTI's activity records instead of event pairs; NVIDIA cards only
    #[arg(long)]
    cupti: bool,
    /// Script of the run to write (.toml), for prestage replay
    #[arg(long, value_name = "S.toml")]
    pub(super) script: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    verified: bool,
    proofs: u64,
    partitions: u32,
    workers: u32,
    device: String,
    shape: String,
    policy: String,
    reason: String,
    plans: Vec<crate::timeline::Plan>,
    refusals: u64,
    failed: Vec<FailedPartition>,
    stopped: u32,
    peak_bytes: u64,
    capacity_bytes: u64,
    context_bytes: u64,
    margin_bytes: u64,
    budget_bytes: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    proofs_per_minute: f64,
    /// On real devices, where it takes what it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    /// What the times are by, where it is not event pairs or the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
    /// Why the exit status is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How a synthetic load was made, and what it took.
#[derive(Clone, Copy, Debug, Serialize)]
struct Load {
    circuit_ns: u64,
    key_ns: u64,
    opened_ns: u64,
    /// Making the key ready for the device: page-locking its points.
    ready_ns: u64,
    /// The most host memory that was resident by the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_peak_bytes: Option<u64>,
}

impl Load {
    fn new(took: Took, ready: Duration) -> Self {
        let Took { circuit, key, opened } = took;
        let [circuit_ns, key_ns, opened_ns, ready_ns] =
            [circuit, key, opened, ready].map(|took| Nanos::from(took).get());
        let host_peak_bytes = host_memory::peak_resident().map(Bytes::get);
        Self { circuit_ns, key_ns, opened_ns, ready_ns, host_peak_bytes }
    }
}

/// A partition without a proof.
#[derive(Debug, Serialize)]
pub(super) struct FailedPartition {
    partition: u32,
    error: String,
}

impl FailedPartition {
    pub(super) fn all(failed: &[Failed]) -> Vec<Self> {
        failed.iter().map(|f| Self { partition: f.partition, error: f.error.clone() }).collect()
    }
}

/// What is proved, and how it is charged.
pub(super) struct Work {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) scale: u64,
    pub(super) host: HostTime,
    pub(super) key: AnyKey,
    pub(super) r1cs: Option<R1cs>,
    pub(super) witness: Witness,
    /// What proofs must come to, and how long it took to make all this: of a shape.
    pub(super) opened: Option<Opened>,
    took: Option<Took>,
}

/// Runs the verb.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let inputs = [("--key", &args.key), ("--witness", &args.witness), ("--r1cs", &args.r1cs)];
    let inputs: Vec<_> = inputs.iter().filter_map(|(name, p)| Some((*name, p.as_deref()?))).collect();
    let outputs: Vec<_> = args.script.iter().map(|p| ("--script", p.as_path())).collect();
    files::can_save(&outputs, ("--out", args.out.as_deref(), PICTURES), &inputs)?;
    let mut targets = Targets::resolve(&args.device)?;
    if args.cupti {
        targets = targets.recorded().ok_or_else(|| no_records(&args.device))?;
    }
    let Some((target, several)) = targets.first() else { return Err(Failure::new("no device is named")) };
    let auto = args.device.specs().iter().any(|spec| spec.kind == DeviceKind::Auto);
    if let (true, Some(why)) = (auto, Auto::here().passed_over()) {
        out.note(format_args!("auto takes host, not cuda:0: {why}"));
    }
    if args.scale.is_some() && !matches!(target, Target::Sim(_)) {
        return Err(Failure::new(
            "--scale charges a simulated card for a larger size; real devices take what they take",
        ));
    }
    let work = work(args, &target, out)?;
    if several {
        return devices::run(args, targets, work, out);
    }
    let recorder = Arc::new(Recorder::new());
    let (sink, scribe) = written::sink(&recorder, args.script.is_some());
    let kept = Kept { recorder: &recorder, scribe: scribe.as_deref() };
    let ledger = LedgerConfig {
        margin: args.margin.unwrap_or(target.margin()),
        ahead: args.ahead == "on" && args.workers > 1,
        sink,
        ..LedgerConfig::default()
    };
    match target {
        Target::Host(config) => on(args, &Target::open_host(&config, ledger)?, work, kept, out),
        Target::Sim(card) => {
            let sim = Target::open_sim(card, args.scale.unwrap_or(work.scale), ledger)?;
            on(args, &sim, work, kept, out)
        }
        #[cfg(feature = "cuda")]
        Target::Cuda(config) => {
            let card = Target::open_cuda(&config, ledger).map_err(|e| Failure::at(&args.device, &e))?;
            on(args, &card, work, kept, out)
        }
    }
}

/// What is kept of the events of a run.
#[derive(Clone, Copy)]
struct Kept<'k> {
    recorder: &'k Recorder,
    scribe: Option<&'k Scribe>,
}

/// Makes or loads the circuit and its key.
fn work(args: &Args, target: &Target, out: &Output) -> Result<Work, Failure> {
    let _progress = out.progress("circuit and key");
    let Some(name) = &args.shape else { return from_files(args) };
    let synthetic = Synthetic::named(name)?;
    let name = &synthetic.load();
    let full = synthetic.log_domain()?;
    let log = match (args.log_domain, target) {
        (Some(log), _) => log.min(full),
        (None, Target::Sim(card)) => small(args, card, &synthetic)?.min(full),
        (None, _) => full,
    };
    let simulated = matches!(target, Target::Sim(_));
    if !simulated {
        fits(args, &synthetic, log)?;
    }
    let Made { circuit, key, opened, took } = make(args, &synthetic, log, target)?;
    let scale = 1 << (full - log);
    // What is charged is the load: the full size, unless another scale or no scale is asked for.
    let (name, rows) = match (simulated, args.scale) {
        (true, Some(other)) if other != scale => {
            (format!("{name} at 2^{log}, {other} times"), circuit.r1cs.n_rows().saturating_mul(other))
        }
        (true, _) => (name.clone(), synthetic.counts().rows),
        (false, _) if log == full => (name.clone(), circuit.r1cs.n_rows()),
        (false, _) => (format!("{name} at 2^{log}"), circuit.r1cs.n_rows()),
    };
    Ok(Work {
        name,
        rows,
        scale,
        host: synthetic.host(),
        key: AnyKey::Libsnark(key),
        r1cs: Some(circuit.r1cs),
        witness: circuit.witness,
        opened: Some(opened),
        took: (!simulated).then_some(took),
    })
}

/// Whether the host's memory holds a load of 2^`log` rows, before anything of it is made.
fn fits(args: &Args, synthetic: &Synthetic, log: u32) -> Result<(), Failure> {
    let devices = u32::try_from(args.device.specs().len()).unwrap_or(u32::MAX);
    let need = synthetic.host_bytes(log, args.workers.saturating_mul(devices).min(args.partitions))?;
    match host_memory::available() {
        Some(free) if need.total() > free => Err(Failure::new(format!(
            "{} on 2^{log} rows needs {need} in host memory, and {free} are available: shrink it with --log-domain, or take fewer workers",
            synthetic.name()
        ))),
        _ => Ok(()),
    }
}

/// Makes the load, the points of its key on the card where there is one: with all of it, since a cap is for proofs.
fn make(args: &Args, synthetic: &Synthetic, log: u32, target: &Target) -> Result<Made, Failure> {
    #[cfg(feature = "cuda")]
    if let Target::Cuda(config) = target {
        let failed = |e: prestage_vram::Error| Failure::at(&args.device, &e);
        let config = prestage_vram::cuda::CudaConfig { cap: None, ..config.clone() };
        let card = Target::open_cuda(&config, LedgerConfig::default()).map_err(failed)?;
        let mut worker = prestage_vram::Worker::new(0);
        let turn = prestage_vram::Device::turn(&card, &mut worker).map_err(failed)?;
        let made = synthetic.make(log, &turn)?;
        turn.release().map_err(failed)?;
        return Ok(made);
    }
    let _ = (args, target);
    Ok(synthetic.make(log, &Threads)?)
}

/// The rows that stand for the full size: more where a polynomial may have to go through the card in many pieces, of which a
/// domain takes no more than the root of its size.
fn small(args: &Args, card: &Card, synthetic: &Synthetic) -> Result<u32, Failure> {
    let margin = args.margin.unwrap_or(Margin::Fixed(card.margin)).bytes(card.capacity);
    let budget = card.capacity.saturating_sub(card.context).saturating_sub(margin);
    let chunked = match args.policy {
        Wanted::Policy(Policy::Auto) => budget < synthetic.shape()?.polynomial() * 2 + Bytes::mib(32),
        Wanted::Policy(policy) => matches!(policy, Policy::Chunked(_)),
        Wanted::Chunked => true,
    };
    Ok(if chunked { 2 * MAX_CHUNKS.ilog2() } else { SMALL })
}

fn from_files(args: &Args) -> Result<Work, Failure> {
    let (Some(key), Some(witness)) = (&args.key, &args.witness) else {
        return Err(Failure::new("one of --shape and --key with --witness is needed"));
    };
    let r1cs = args.r1cs.as_deref().map(format::load_r1cs).transpose()?;
    let witness = format::load_witness(witness)?;
    let name = key.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let path = key.display();
    let key = format::load_proving_key(key, r1cs.as_ref(), &LoadOptions::default())
        .map_err(|e| match e {
            FormatError::NeedsR1cs { .. } => Failure::new(format!("{e}; give it with --r1cs")),
            e => e.into(),
        })?
        .value;
    let constraints = match (&key, &r1cs) {
        (_, Some(r1cs)) => r1cs.n_constraints(),
        (AnyKey::Circom(key), None) => constraints_of(key),
        (AnyKey::Libsnark(_), None) => {
            return Err(Failure::new(format!(
                "{path}: this kind of key has no constraints in it: give the circuit with --r1cs"
            )));
        }
    };
    let rows = (constraints as u64).saturating_mul(args.scale.unwrap_or(1));
    // Keys are called circuit.zkey all over: reports tell circuits apart all the same.
    let name = marked(&name, &format!("{:?}", key.vk()));
    let name = match args.scale {
        Some(scale) if scale > 1 => format!("{name}, {scale} times"),
        _ => name,
    };
    let host = HostTime::default();
    Ok(Work { name, rows, scale: 1, host, key, r1cs, witness, opened: None, took: None })
}

fn on<D: Ntt + Msm + Crew>(
    args: &Args,
    device: &D,
    work: Work,
    kept: Kept<'_>,
    out: &mut Output,
) -> Result<(), Failure> {
    let Work { name, rows, host, key, r1cs, witness, opened, took, .. } = work;
    let device_name = args.device.to_string();
    let device_name = if device_name.starts_with("auto") { device.name().to_owned() } else { device_name };
    let about = about(args, &name, rows, device, device_name, &of(args.workers, "worker"));
    let start = Instant::now();
    match (key, r1cs) {
        (AnyKey::Circom(key), None) => {
            let prover = Prover::new(device, key)?.keeping(args.resident);
            let assignment = |_| Assignment::from_key(&prover, &witness);
            proved(args, &prover, host, assignment, &Expected::none(), kept, about, out)
        }
        (AnyKey::Circom(key), Some(r1cs)) => {
            let prover = Prover::new(device, key)?.keeping(args.resident);
            let assignment = |_| Assignment::new(&prover, &r1cs, &witness);
            proved(args, &prover, host, assignment, &Expected::none(), kept, about, out)
        }
        (AnyKey::Libsnark(key), Some(r1cs)) => {
            let prover = Prover::new(device, key)?.keeping(args.resident);
            let expected = Expected { opened, took: took.map(|took| (took, start.elapsed())) };
            let assignment = |_| Assignment::new(&prover, &r1cs, &witness);
            proved(args, &prover, host, assignment, &expected, kept, about, out)
        }
        (AnyKey::Libsnark(_), None) => Err(Failure::new("this kind of key needs its circuit: --r1cs")),
    }
}

pub(super) fn about<D: Crew>(
    args: &Args,
    name: &str,
    rows: u64,
    device: &D,
    device_name: String,
    workers: &str,
) -> About {
    let ledger = device.ledger();
    let mut parameters = BTreeMap::from([
        ("workers".to_owned(), args.workers.to_string()),
        ("policy asked for".to_owned(), args.policy.to_string()),
        ("points that stay".to_owned(), args.resident.to_string()),
        ("margin".to_owned(), ledger.margin().to_string()),
        ("staging ahead".to_owned(), if ledger.ahead() { "on" } else { "off" }.to_owned()),
    ]);
    if device.scale() > 1 {
        parameters.insert("scale".to_owned(), format!("one element stands for {}", device.scale()));
    }
    About {
        scenario: format!("{name}, {workers}"),
        device: device_name,
        circuit: name.to_owned(),
        constraints: rows,
        parameters,
    }
}

/// What is known of the proofs of a shape before they are made.
struct Expected {
    opened: Option<Opened>,
    /// How long the load took to make, and to be made ready.
    took: Option<(Took, Duration)>,
}

impl Expected {
    fn none() -> Self {
        Self { opened: None, took: None }
    }
}

#[allow(clippy::too_many_arguments)]
fn proved<D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    prover: &Prover<'_, D, R>,
    host: HostTime,
    assignment: impl Fn(u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    expected: &Expected,
    kept: Kept<'_>,
    about: About,
    out: &mut Output,
) -> Result<(), Failure> {
    let ledger = prover.device().ledger();
    let policy = args.policy.of(prover)?;
    let scenario = Scenario { workers: args.workers, partitions: args.partitions, policy, host };
    let name = about.circuit.clone();
    let stop = interrupt();
    let outcome = {
        let _progress = out.progress("proving; Ctrl-C ends between two stages and reports");
        match &expected.opened {
            Some(opened) => run_opened(prover, &scenario, assignment, opened, kept.recorder, about, &stop)?,
            None => prove_all(prover, &scenario, assignment, kept.recorder, about, &stop)?,
        }
    };
    written::write(args.script.as_deref(), kept.scribe, &name, ledger)?;
    let Outcome { report, timeline, failed, stopped, .. } = outcome;
    let Some(report) = report else {
        let why = failed.first().map_or_else(
            || "stopped before the first proof".to_owned(),
            |first| format!("no partition was proved; the first failed: {}", first.error),
        );
        return Err(Failure::new(why));
    };
    let saved = args.out.as_deref().map(|folder| save(folder, PICTURES, &report, &timeline)).transpose()?;
    let page = saved.map(|saved| saved.page.display().to_string());
    let (reading, level) = (ledger.reading(), ledger.level());
    let plan = report.plans.first();
    let proofs = report.verified.proofs();
    let wrong = match failed.len() {
        0 if stopped > 0 => Some(format!("stopped: {proofs} of {} partitions proved", args.partitions)),
        0 if report.times.wall() >= LONGEST => {
            Some("the card's figures give durations past all clocks".to_owned())
        }
        // Whatever else is right, an account of time with a hole in it is not.
        0 => report.complaint(),
        n => Some(format!("{n} of {} partitions failed", args.partitions)),
    };
    let answer = Answer {
        verified: true,
        proofs,
        partitions: args.partitions,
        workers: args.workers,
        device: report.key.device.clone(),
        shape: report.key.load.circuit.clone(),
        policy: plan.map_or_else(String::new, |p| p.policy.clone()),
        reason: plan.map_or_else(String::new, |p| p.reason.clone()),
        plans: report.plans.clone(),
        refusals: report.refusals.len() as u64,
        failed: FailedPartition::all(&failed),
        stopped,
        peak_bytes: report.peak_bytes,
        capacity_bytes: reading.capacity.get(),
        context_bytes: reading.context.get(),
        margin_bytes: ledger.margin().get(),
        budget_bytes: level.budget.get(),
        wall_ns: report.times.wall().get(),
        busy_ns: report.times.busy().get(),
        held_ns: report.times.held().get(),
        idle_ns: *report.times.idle(),
        proofs_per_minute: report.proofs_per_minute,
        load: expected.took.map(|(took, ready)| Load::new(took, ready)),
        times: report.parameters.get("times").cloned(),
        report: page,
        error: wrong.clone(),
    };
    show(&answer, &report, out);
    out.json(&answer)?;
    if let Some(first) = failed.first() {
        out.note(format_args!("partition {}: {}", first.partition, first.error));
    }
    wrong.map_or(Ok(()), |wrong| Err(Failure::new(wrong)))
}

/// One thing, or so many.
pub(super) fn of(n: impl Into<u64>, what: &str) -> String {
    match n.into() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn show(answer: &Answer, report: &Report, out: &mut Output) {
    let Answer { proofs, partitions, shape, device, workers, .. } = answer;
    out.line(format_args!(
        "{shape} on {device}: {proofs} of {partitions} proofs by {}, all verified",
        of(*workers, "worker")
    ));
    for plan in &answer.plans {
        let proofs = of(plan.proofs, "proof");
        out.line(format_args!("plan:    {} ({proofs}): {}", plan.policy, plan.reason));
    }
    let bytes = Bytes::new;
    out.line(format_args!(
        "memory:  peak {} of a budget of {} (capacity {} - context {} - margin {}); {} refusals",
        bytes(answer.peak_bytes),
        bytes(answer.budget_bytes),
        bytes(answer.capacity_bytes),
        bytes(answer.context_bytes),
        bytes(answer.margin_bytes),
        answer.refusals
    ));
    if let Some(Load { circuit_ns, key_ns, opened_ns, ready_ns, host_peak_bytes }) = answer.load {
        let took = Nanos::new;
        let peak =
            host_peak_bytes.map_or_else(String::new, |peak| format!("; host memory peak {}", bytes(peak)));
        out.line(format_args!(
            "load:    circuit in {}, key in {}, logarithms of its proofs in {}, made ready in {}{peak}",
            took(circuit_ns),
            took(key_ns),
            took(opened_ns),
            took(ready_ns)
        ));
    }
    if let Some(times) = &answer.times {
        out.line(format_args!("times:   {times}"));
    }
    out.line(format_args!("rate:    {:.1} proofs per minute\n", answer.proofs_per_minute));
    out.line(format_args!("{}", report.table()));
    if let Some(page) = &answer.report {
        out.line(format_args!("\nreport:  {page}"));
    }
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the program at once.
pub(super) fn interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // Where a handler is set already, Ctrl-C stays what it was.
    let _ = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    stop
}
