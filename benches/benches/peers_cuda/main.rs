//! prestage beside sppark on one NVIDIA card: sums in G1 and G2, transforms and quotients, in one process, on the same inputs.
//!
//! Both sides work in the card's primary context, one after the other, each round begun by the other one. A time is what the
//! host waits: from the call to the result in host memory, the host's last part included; it is the median of all rounds but
//! the first. Where an operation is called `device`, it is the time between two events around the work instead. Every result is
//! compared before its time counts: sums with each other and with what the logarithms of the points say, transforms with each
//! other and in one place with the definition.

mod compare;
mod msm;
mod ntt;
mod quotient;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use blstrs::{G1Affine, G2Affine};
use clap::Parser;
use prestage_benches::{Error, Ratios, date, sppark};
use prestage_harness::session::{COMMIT, recorded};
use prestage_vram::Margin;
use prestage_vram::cuda::{Cuda, CudaConfig, Which, probe};

use crate::compare::Lab;

type Outcome<T> = Result<T, Error>;

/// Compares prestage with sppark on one NVIDIA card.
#[derive(Debug, Parser)]
struct Args {
    /// The card's number in this process.
    #[arg(long, default_value_t = 0)]
    card: u32,
    /// Sizes of sums in G1, as exponents of two; `none` for no sums.
    #[arg(long, default_value = "16,18,20,22,24,26")]
    g1: Sizes,
    /// Sizes of sums in G2.
    #[arg(long, default_value = "16,18,20,22,24")]
    g2: Sizes,
    /// Sizes of transforms.
    #[arg(long, default_value = "16,18,20,22,24,26,27")]
    ntt: Sizes,
    /// Sizes of quotients.
    #[arg(long, default_value = "16,20,22,24,26,27")]
    quotient: Sizes,
    /// How often each side is timed, after once to warm up.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds after which nothing new is begun. What would take longer, by what smaller sizes took, is left out.
    #[arg(long, default_value_t = 600.0)]
    limit: f64,
    /// Leaves out what copies from and to host memory.
    #[arg(long)]
    resident_only: bool,
    /// Writes everything measured, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draws the ratios, as SVG.
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Exponents of two.
#[derive(Clone, Debug)]
struct Sizes(Vec<u32>);

impl std::str::FromStr for Sizes {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        if list == "none" {
            return Ok(Self(Vec::new()));
        }
        let size = |s: &str| match s.trim().parse() {
            Ok(log @ 5..=28) => Ok(log),
            _ => Err(format!("{s:?} is no number from 5 to 28")),
        };
        list.split(',').map(size).collect::<Result<_, _>>().map(Self)
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers_cuda: {error}");
            ExitCode::FAILURE
        }
    }
}

/// False when something could not be measured.
fn run(args: &Args) -> Outcome<bool> {
    let (ledger, recorder) = recorded(Margin::default());
    let card = Cuda::open(CudaConfig { which: Which::Ordinal(args.card), ledger, ..CudaConfig::default() })?;
    let peer = sppark::Sppark::open(card.info().ordinal)?;
    let ratios = Ratios {
        date: date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())),
        device: card.info().name.clone(),
        driver: driver(),
        commit: COMMIT.into(),
        command: std::iter::once(
            "cargo bench -p prestage-benches --features peers-cuda --bench peers_cuda --".into(),
        )
        .chain(std::env::args().skip(1).filter(|arg| arg != "--bench"))
        .collect::<Vec<String>>()
        .join(" "),
        peer: sppark::NAME.into(),
        rounds: args.rounds.max(1),
        ..Ratios::default()
    };
    println!(
        "{}, {}, driver {}, commit {COMMIT}, beside {}",
        ratios.date, ratios.device, ratios.driver, ratios.peer
    );
    let (json, chart) = (args.json.as_deref(), args.chart.as_deref());
    let mut lab = Lab::new(&card, &peer, &recorder, ratios, args.limit, args.resident_only);

    // Small sizes of everything first: what time there is goes to as many of them as it takes.
    for log in 5..=28 {
        let before = lab.ratios.rows.len();
        if args.g1.0.contains(&log) {
            msm::sums::<G1Affine>(&mut lab, log);
        }
        if args.g2.0.contains(&log) {
            msm::sums::<G2Affine>(&mut lab, log);
        }
        if args.ntt.0.contains(&log) {
            ntt::transforms(&mut lab, log);
        }
        if args.quotient.0.contains(&log) {
            lab.within("quotient_resident", log, |lab| quotient::resident(lab, log));
        }
        if lab.ratios.rows.len() > before {
            lab.ratios.save(json, chart)?;
        }
    }
    lab.ratios.rows.sort_by(|a, b| a.op.cmp(&b.op).then(a.log_n.cmp(&b.log_n)));
    lab.ratios.save(json, if lab.ratios.rows.is_empty() { None } else { chart })?;
    println!("\n{}", lab.ratios.table());
    for what in &lab.ratios.left_out {
        println!("left out: {what}");
    }
    Ok(!lab.failed)
}

/// The driver's version, and that of CUDA.
fn driver() -> String {
    let cuda = probe().map_or_else(|error| error.to_string(), |found| format!("CUDA {}", found.version));
    let version = std::fs::read_to_string("/sys/module/nvidia/version").unwrap_or_default();
    format!("{} ({cuda})", version.trim())
}
