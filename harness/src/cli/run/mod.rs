//! `prestage run`: a scenario on a device or on several, with a report.

mod one;
mod several;
mod work;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use prestage_groth16::{AnyKey, Assignment, Proofs, Prover, ProvingKey, Reduction, Residency};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Card, Error, LedgerConfig, Margin};
use serde::Serialize;

use self::work::{Load, Work};
use super::device::no_records;
use super::output::{Failure, Output};
use super::{files, written};
use crate::scenario::{Auto, Crew, Failed, On, Scenario, Target, Targets, Wanted, run_joint, run_on};
use crate::script::Scribe;
use crate::session::About;
use crate::spec::{DeviceKind, DeviceSpecs};
use crate::timeline::Recorder;

/// What the files of a report are called.
const PICTURES: &str = "run";

/// What devices share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Split {
    /// Each proof is made by one device: for proofs per minute
    Partitions,
    /// Each proof is made by all devices, which share its sums: for the time of one proof
    Sums,
}

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
    #[arg(long, value_name = "M", value_parser = super::device::margin)]
    margin: Option<Margin>,
    /// Proofs to make
    #[arg(long, default_value_t = 10, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    partitions: u32,
    /// What several devices share: partitions, each proved by one device, for proofs per minute; or the sums of each partition,
    /// one partition after the other, for the time of one proof. The device that is named first computes the quotient then
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "partitions",
        value_name = "partitions|sums"
    )]
    split: Split,
    /// Workers that take partitions from one queue, on each device; one with --split sums
    #[arg(long, default_value_t = 2, default_value_if("split", "sums", "1"), value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// How the polynomials are staged: auto, full, a-then-bc, chunked, chunked:K or none
    #[arg(long, default_value = "auto", value_name = "P")]
    policy: Wanted,
    /// Points of the key that stay on the device from proof to proof: auto (where there is room), none or all
    #[arg(long, default_value = "auto", value_name = "R")]
    resident: Residency,
    /// Whether the next partition stages while one computes
    #[arg(long, default_value = "on", value_name = "on|off", value_parser = ["on", "off"])]
    ahead: String,
    /// How many elements of the full size one element stands for; simulated cards only [default: what makes the shape
    /// its full size; 1 with a key]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    scale: Option<u64>,
    /// Shrink the shape to a circuit of 2^K rows [default: 10 on simulated cards; elsewhere its own size, which for porep-32g
    /// takes some 100 GB of host memory]
    #[arg(long, value_name = "K", conflicts_with = "key", value_parser = clap::value_parser!(u32).range(4..=30))]
    log_domain: Option<u32>,
    /// Folder for the report: page, pictures, traces, data
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Times by CUPTI's activity records instead of event pairs; NVIDIA cards only
    #[arg(long)]
    cupti: bool,
    /// Script of the run to write (.toml), for prestage replay
    #[arg(long, value_name = "S.toml")]
    script: Option<PathBuf>,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// A partition without a proof.
#[derive(Debug, Serialize)]
struct FailedPartition {
    partition: u32,
    error: String,
}

impl FailedPartition {
    fn all(failed: &[Failed]) -> Vec<Self> {
        failed.iter().map(|f| Self { partition: f.partition, error: f.error.clone() }).collect()
    }
}

/// An open device.
struct Seat<D> {
    /// As it is written on the command line; never `auto`.
    name: String,
    device: D,
    recorder: Arc<Recorder>,
    /// Writes the script, where one is asked for.
    scribe: Option<Arc<Scribe>>,
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
    if several && args.script.is_some() {
        return Err(Failure::new("--script is the schedule of one device: leave it out, or name one device"));
    }
    if args.split == Split::Sums {
        if !several {
            return Err(Failure::new(
                "--split sums shares one proof among devices: name several, or leave it out",
            ));
        }
        if args.workers > 1 {
            return Err(Failure::new(
                "--split sums makes one proof at a time: leave --workers out, or say 1",
            ));
        }
    }
    let work = work::work(args, &target, out)?;
    match targets {
        Targets::Host(hosts) => {
            let host = |config: &_, ledger, _: Option<&_>| Target::open_host(config, ledger);
            on(args, &open(args, hosts, |_| Margin::default(), host)?, work, out)
        }
        Targets::Sim(cards) => {
            let scale = args.scale.unwrap_or(work.load.scale);
            let margin = |card: &Card| Margin::Fixed(card.margin);
            let sim = |card: &Card, ledger, first: Option<&_>| {
                Target::open_sim_beside(card.clone(), scale, ledger, first)
            };
            on(args, &open(args, cards, margin, sim)?, work, out)
        }
        #[cfg(feature = "cuda")]
        Targets::Cuda(cards) => {
            let card = |config: &_, ledger, _: Option<&_>| Target::open_cuda(config, ledger);
            on(args, &open(args, cards, |_| Margin::default(), card)?, work, out)
        }
    }
}

/// Opens the devices, each beside the first. Those of one name are numbered.
fn open<C, D: Crew>(
    args: &Args,
    configs: Vec<(String, C)>,
    margin: impl Fn(&C) -> Margin,
    open: impl Fn(&C, LedgerConfig, Option<&D>) -> Result<D, Error>,
) -> Result<Vec<Seat<D>>, Failure> {
    let names: Vec<_> = configs.iter().map(|(name, _)| name.clone()).collect();
    let mut seats: Vec<Seat<D>> = Vec::with_capacity(configs.len());
    for (i, (name, config)) in configs.into_iter().enumerate() {
        let first = seats.first().map(|seat| &seat.device);
        let recorder = Arc::new(Recorder::new());
        let (sink, scribe) = written::sink(&recorder, args.script.is_some());
        let ledger = LedgerConfig {
            margin: args.margin.unwrap_or_else(|| margin(&config)),
            ahead: args.ahead == "on" && args.workers > 1,
            sink,
            beside: first.map(|device| device.ledger().clone()),
            ..LedgerConfig::default()
        };
        let device = open(&config, ledger, first).map_err(|e| Failure::at(&name, &e))?;
        let alike = |names: &[String]| names.iter().filter(|other| **other == name).count();
        let name = match alike(&names) {
            1 if name.starts_with("auto") => device.name().to_owned(),
            1 => name,
            _ => format!("{name} ({})", alike(names.get(..=i).unwrap_or_default())),
        };
        seats.push(Seat { name, device, recorder, scribe });
    }
    Ok(seats)
}

fn on<D: Ntt + Msm + Crew>(
    args: &Args,
    seats: &[Seat<D>],
    work: Work,
    out: &mut Output,
) -> Result<(), Failure> {
    let Work { key, r1cs, witness, load } = work;
    match (key, &r1cs) {
        (AnyKey::Circom(key), None) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::from_key(prover, &witness);
            prove(args, seats, key, make, &load, out)
        }
        (AnyKey::Circom(key), Some(r1cs)) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::new(prover, r1cs, &witness);
            prove(args, seats, key, make, &load, out)
        }
        (AnyKey::Libsnark(key), Some(r1cs)) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::new(prover, r1cs, &witness);
            prove(args, seats, key, make, &load, out)
        }
        (AnyKey::Libsnark(_), None) => Err(Failure::new("this kind of key needs its circuit: --r1cs")),
    }
}

fn prove<D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    seats: &[Seat<D>],
    key: ProvingKey<R>,
    assignment: impl Fn(&Prover<'_, D, R>, u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    load: &Load,
    out: &mut Output,
) -> Result<(), Failure> {
    let start = Instant::now();
    let provers = provers(args, seats, key)?;
    let ready = start.elapsed();
    let Some(first) = provers.first() else { return Err(Failure::new("no device is named")) };
    let scenario = Scenario {
        workers: args.workers,
        partitions: args.partitions,
        policy: args.policy.of(first)?,
        host: load.host,
        opened: load.opened.as_ref(),
    };
    let on: Vec<_> =
        provers.iter().zip(seats).map(|(prover, seat)| On { prover, recorder: &seat.recorder }).collect();
    let workers = match seats.len() {
        1 => of(args.workers, "worker"),
        n if args.split == Split::Sums => format!("each proof by {n} devices"),
        n => format!("{} on each of {n} devices", of(args.workers, "worker")),
    };
    let abouts = seats.iter().map(|seat| about(args, load, seat, &workers)).collect();
    let stop = interrupt();
    let outcomes = {
        let _progress = out.progress("proving; Ctrl-C ends between two stages and reports");
        match args.split {
            Split::Partitions => run_on(&on, &scenario, assignment, abouts, &stop)?,
            Split::Sums => run_joint(&on, &scenario, assignment, abouts, &stop)?,
        }
    };
    match seats {
        [seat] => one::answer(args, seat, load, ready, outcomes, out),
        _ => several::answer(args, seats, &load.name, &outcomes, out),
    }
}

/// The key made ready for each device; its points are shared.
fn provers<'s, D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    seats: &'s [Seat<D>],
    key: ProvingKey<R>,
) -> Result<Vec<Prover<'s, D, R>>, Failure> {
    let Some((seat, others)) = seats.split_first() else { return Err(Failure::new("no device is named")) };
    // Points that stay are uploaded whole, by each device: for one proof that they share it is quicker to stream pieces.
    let once = args.split == Split::Sums && args.partitions == 1 && args.resident == Residency::Auto;
    let proofs = if once { Proofs::One } else { Proofs::Many };
    let first = Prover::for_proofs(&seat.device, key, proofs).map_err(|e| Failure::at(&seat.name, &e))?;
    let mut provers = vec![if once { first } else { first.keeping(args.resident) }];
    for seat in others {
        let prover = provers[0].beside(&seat.device).map_err(|e| Failure::at(&seat.name, &e))?;
        provers.push(prover);
    }
    Ok(provers)
}

fn about<D: Crew>(args: &Args, load: &Load, seat: &Seat<D>, workers: &str) -> About {
    let (ledger, scale) = (seat.device.ledger(), seat.device.scale());
    let mut parameters = BTreeMap::from([
        ("workers".to_owned(), args.workers.to_string()),
        ("policy asked for".to_owned(), args.policy.to_string()),
        ("points that stay".to_owned(), args.resident.to_string()),
        ("margin".to_owned(), ledger.margin().to_string()),
        ("staging ahead".to_owned(), if ledger.ahead() { "on" } else { "off" }.to_owned()),
    ]);
    if scale > 1 {
        parameters.insert("scale".to_owned(), format!("one element stands for {scale}"));
    }
    About {
        scenario: format!("{}, {workers}", load.name),
        device: seat.name.clone(),
        circuit: load.name.clone(),
        constraints: load.rows,
        parameters,
    }
}

/// Why there is no proof at all.
fn no_proof(failed: &[Failed]) -> Failure {
    Failure::new(failed.first().map_or_else(
        || "stopped before the first proof".to_owned(),
        |first| format!("no partition was proved; the first failed: {}", first.error),
    ))
}

/// One thing, or so many.
fn of(n: impl Into<u64>, what: &str) -> String {
    match n.into() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// A flag that Ctrl-C sets. A second Ctrl-C ends the program at once.
fn interrupt() -> Arc<AtomicBool> {
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
