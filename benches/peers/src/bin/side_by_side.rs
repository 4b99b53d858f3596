//! Provers side by side: paired repetitions on one statement and one key, all proofs verified and equal, then the
//! peak of resident memory of each in a process of its own.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use prestage_benches::rng;
use prestage_groth16::{Blinding, PreparedKey, Proof, ShapeError};
use prestage_harness::circuits::{Circuit, bits, squares};
use prestage_harness::session::COMMIT;
use prestage_peers::measure::{Cost, cost, forget_peak, median, resident};
use prestage_peers::{Keys, Kind, Peer, Statement};
use prestage_vram::{Host, HostConfig};
use serde::{Deserialize, Serialize};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Compares Groth16 provers on the CPU.
#[derive(Debug, Parser)]
struct Args {
    /// Rows of the constraint systems, as exponents of two.
    #[arg(long, value_delimiter = ',', default_value = "14")]
    log_sizes: Vec<u32>,
    /// Which statements: dense ones, or witnesses of bits.
    #[arg(long, value_delimiter = ',', default_value = "squares,bits")]
    circuits: Vec<Shape>,
    /// Which provers; all by default.
    #[arg(long, value_delimiter = ',', value_parser = kind)]
    provers: Vec<Kind>,
    /// How often each prover proves, after once to warm up.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Leaves the memory of each prover out.
    #[arg(long)]
    no_memory: bool,
    /// Writes everything measured, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Says what one prover takes in this process: how the peaks are measured.
    #[arg(long, hide = true, value_parser = kind)]
    memory_of: Option<Kind>,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or_else(|| format!("it is one of {}", Kind::ALL.map(Kind::name).join(", ")))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shape {
    Squares,
    Bits,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Self::Squares => "squares",
            Self::Bits => "bits",
        }
    }

    fn circuit(self, log: u32) -> Result<Circuit, ShapeError> {
        match self {
            Self::Squares => squares(log, rng(0)),
            Self::Bits => bits(log, rng(0)),
        }
    }
}

#[derive(Debug, Serialize)]
struct Report {
    commit: &'static str,
    unix_time_s: u64,
    cpu: String,
    threads: usize,
    load_average: String,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Run {
    circuit: &'static str,
    log_size: u32,
    constraints: usize,
    rounds: usize,
    /// Every proof of every prover was verified, and provers of one reduction gave equal proofs.
    verified: bool,
    load_average: String,
    provers: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    prover: &'static str,
    /// Which prover the ratios are against: prestage with a key of the same reduction.
    against: &'static str,
    /// Medians.
    wall_s: f64,
    cpu_s: f64,
    /// Medians of the ratios of single rounds, this prover's time over the other's.
    wall_ratio: f64,
    cpu_ratio: f64,
    memory: Option<Memory>,
    samples: Vec<Cost>,
}

/// Resident memory of a process that has one prover, its key and its statement, in KiB.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Memory {
    /// Ready to prove.
    ready_kib: u64,
    /// At most while proving.
    peak_kib: u64,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("side_by_side: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Outcome<()> {
    if let Some(kind) = args.memory_of {
        let (Some(circuit), Some(log)) = (args.circuits.first(), args.log_sizes.first()) else {
            return Err("no circuit".into());
        };
        println!("{}", serde_json::to_string(&memory_here(kind, *circuit, *log)?)?);
        return Ok(());
    }
    let mut report = Report {
        commit: COMMIT,
        unix_time_s: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        cpu: cpu_model(),
        threads: std::thread::available_parallelism()?.get(),
        load_average: load_average(),
        runs: Vec::new(),
    };
    println!("{}, {} threads, load {}, commit {}", report.cpu, report.threads, report.load_average, COMMIT);
    for &log in &args.log_sizes {
        for &circuit in &args.circuits {
            let run = compare(args, circuit, log)?;
            print(&run);
            std::io::stdout().flush()?;
            report.runs.push(run);
        }
    }
    if let Some(path) = &args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

fn compare(args: &Args, shape: Shape, log: u32) -> Outcome<Run> {
    let mut kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(|k| args.provers.is_empty() || args.provers.contains(k)).collect();
    // Ratios need what they are against.
    for base in [Kind::OursCircom, Kind::Ours] {
        if kinds.iter().any(|k| against(*k) == base) && !kinds.contains(&base) {
            kinds.insert(0, base);
        }
    }
    let host = Host::open(HostConfig::default())?;
    let keys = Keys::new(&Statement::from(shape.circuit(log)?));
    let provers = kinds.iter().map(|k| k.ready(&host, &keys)).collect::<Result<Vec<_>, _>>()?;

    let load_average = load_average();
    let mut samples = vec![Vec::with_capacity(args.rounds); kinds.len()];
    for round in 0..=args.rounds {
        let blinding = Blinding::insecure_from_seed([u8::try_from(round % 256)?; 32])?;
        let mut proofs = Vec::with_capacity(kinds.len());
        for turn in 0..kinds.len() {
            // Another prover begins each round.
            let i = (turn + round) % kinds.len();
            let (proof, cost) = cost(|| provers[i].prove(&blinding));
            proofs.push((kinds[i], proof?));
            if round > 0 {
                samples[i].push(cost);
            }
        }
        check(&keys, &proofs)?;
    }
    drop(provers);

    let base = |kind| kinds.iter().position(|k| *k == against(kind)).unwrap_or(0);
    let rows = kinds.iter().enumerate().map(|(i, &kind)| {
        let (own, other) = (&samples[i], &samples[base(kind)]);
        let of = |f: fn(&Cost) -> f64| median(own.iter().map(f));
        let ratio = |f: fn(&Cost) -> f64| median(own.iter().zip(other).map(|(a, b)| f(a) / f(b)));
        Ok(Row {
            prover: kind.name(),
            against: against(kind).name(),
            wall_s: of(|c| c.wall_s),
            cpu_s: of(|c| c.cpu_s),
            wall_ratio: ratio(|c| c.wall_s),
            cpu_ratio: ratio(|c| c.cpu_s),
            memory: if args.no_memory { None } else { Some(memory(kind, shape, log)?) },
            samples: own.clone(),
        })
    });
    Ok(Run {
        circuit: shape.name(),
        log_size: log,
        constraints: keys.statement().r1cs().n_constraints(),
        rounds: args.rounds,
        verified: true,
        load_average,
        provers: rows.collect::<Outcome<_>>()?,
    })
}

/// What a prover's times are divided by.
fn against(kind: Kind) -> Kind {
    if kind.is_circom() { Kind::OursCircom } else { Kind::Ours }
}

/// Fails unless every proof verifies, and those under one key are equal.
fn check(keys: &Keys, proofs: &[(Kind, Proof)]) -> Outcome<()> {
    for circom in [false, true] {
        let mut of_key = proofs.iter().filter(|(kind, _)| kind.is_circom() == circom);
        let Some((first, proof)) = of_key.next() else { continue };
        let vk = if circom { keys.circom()?.vk() } else { keys.libsnark()?.vk() };
        let statement = keys.statement();
        let public = statement.witness().public(statement.r1cs().n_public())?;
        if !PreparedKey::new(vk)?.verify(public, proof)? {
            return Err(format!("the proof of {first} does not verify").into());
        }
        if let Some((other, _)) = of_key.find(|(_, other)| other != proof) {
            return Err(format!("{first} and {other} gave different proofs").into());
        }
    }
    Ok(())
}

/// What `kind` takes in a process of its own, where large blocks go back to the system when they are freed.
fn memory(kind: Kind, shape: Shape, log: u32) -> Outcome<Memory> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--memory-of", kind.name(), "--circuits", shape.name(), "--log-sizes", &log.to_string()])
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .output()?;
    if !output.status.success() {
        return Err(format!("{kind}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn memory_here(kind: Kind, shape: Shape, log: u32) -> Outcome<Memory> {
    let host = Host::open(HostConfig::default())?;
    let prover: Box<dyn Peer + '_> = {
        let keys = Keys::new(&Statement::from(shape.circuit(log)?));
        kind.ready(&host, &keys)?
    };
    if !forget_peak() {
        return Err("this system does not let a process forget its peak".into());
    }
    let unknown = "this system does not say what memory a process has";
    let ready = resident().ok_or(unknown)?;
    prover.prove(&Blinding::insecure_from_seed([0; 32])?)?;
    let after = resident().ok_or(unknown)?;
    Ok(Memory { ready_kib: ready.now_kib, peak_kib: after.peak_kib })
}

fn print(run: &Run) {
    println!(
        "\n{}, 2^{} rows, {} constraints, {} rounds, load {}\n",
        run.circuit, run.log_size, run.constraints, run.rounds, run.load_average
    );
    println!("| prover | wall s | CPU s | wall ratio | CPU ratio | ready MiB | peak MiB |");
    println!("|---|---|---|---|---|---|---|");
    for row in &run.provers {
        let memory = row
            .memory
            .map_or_else(|| "– | –".into(), |m| format!("{} | {}", m.ready_kib / 1024, m.peak_kib / 1024));
        println!(
            "| {} | {:.3} | {:.3} | {:.2} | {:.2} | {memory} |",
            row.prover, row.wall_s, row.cpu_s, row.wall_ratio, row.cpu_ratio
        );
    }
}

fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().into())
}

fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
