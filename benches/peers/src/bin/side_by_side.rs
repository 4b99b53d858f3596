//! Provers side by side: paired repetitions on one statement and one key, then each in a process of its own that loads
//! the same key from a file. All proofs are verified, and equal under one key and blinding.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use prestage_benches::rng;
use prestage_groth16::format::proof;
use prestage_groth16::{Blinding, PreparedKey, Proof, ShapeError};
use prestage_harness::circuits::{Circuit, bits, squares};
use prestage_harness::session::COMMIT;
use prestage_peers::measure::{cost, forget_peak, limit_processors, mapped, resident};
use prestage_peers::report::{Alone, Report, Run, against, rows};
use prestage_peers::{Keys, Kind, Statement};
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
    /// Processors that all provers may use, and so the threads of each: the first of those that this process may use.
    #[arg(long)]
    threads: Option<usize>,
    /// Leaves out the processes of one prover each, and with them memory.
    #[arg(long)]
    no_memory: bool,
    /// Writes everything measured, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Proves once in this process with the key of a file: how memory is measured.
    #[arg(long, hide = true, requires = "key", value_parser = kind)]
    alone: Option<Kind>,
    #[arg(long, hide = true)]
    key: Option<PathBuf>,
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

/// What a process of one prover says.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    alone: Alone,
    /// The proof's 192 bytes.
    proof: Vec<u8>,
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
    if let Some(threads) = args.threads {
        limit_processors(threads)?;
    }
    if let (Some(kind), Some(key)) = (args.alone, &args.key) {
        let (Some(circuit), Some(log)) = (args.circuits.first(), args.log_sizes.first()) else {
            return Err("no circuit".into());
        };
        println!("{}", serde_json::to_string(&alone_here(kind, key, *circuit, *log)?)?);
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
            println!("\n{run}");
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
    let mut first_proofs = Vec::new();
    for round in 0..=args.rounds {
        let blinding = blinding(round)?;
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
        if round == 0 {
            first_proofs = proofs;
        }
    }
    drop(provers);

    let mut alone = vec![None; kinds.len()];
    if !args.no_memory {
        let folder = tempfile::tempdir()?;
        for (alone, &kind) in alone.iter_mut().zip(&kinds) {
            let key = folder.path().join(kind.key_file().name());
            if !key.exists() {
                kind.key_file().write(folder.path(), &keys)?;
            }
            let said = ask_alone(kind, &key, shape, log)?;
            first_proofs.push((kind, proof::read(&said.proof)?));
            *alone = Some(said.alone);
        }
        check(&keys, &first_proofs)?;
    }

    let measured: Vec<_> = kinds
        .into_iter()
        .zip(samples)
        .zip(alone)
        .map(|((kind, samples), alone)| (kind, samples, alone))
        .collect();
    Ok(Run {
        circuit: shape.name(),
        log_size: log,
        constraints: keys.statement().r1cs().n_constraints(),
        rounds: args.rounds,
        verified: true,
        load_average,
        provers: rows(&measured),
    })
}

/// The blinding scalars of a round, the same for all. Processes of one prover take those of the first round.
fn blinding(round: usize) -> Outcome<Blinding> {
    Ok(Blinding::insecure_from_seed([u8::try_from(round % 256)?; 32])?)
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

/// Has `kind` prove in a process of its own, where large blocks go back to the system when they are freed.
fn ask_alone(kind: Kind, key: &Path, shape: Shape, log: u32) -> Outcome<Said> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--alone", kind.name(), "--circuits", shape.name(), "--log-sizes", &log.to_string(), "--key"])
        .arg(key)
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .env("MALLOC_TRIM_THRESHOLD_", "131072")
        .output()?;
    if !output.status.success() {
        return Err(format!("{kind}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn alone_here(kind: Kind, key: &Path, shape: Shape, log: u32) -> Outcome<Said> {
    let host = Host::open(HostConfig::default())?;
    let prover = kind.load(&host, key, Statement::from(shape.circuit(log)?))?;
    if !forget_peak() {
        return Err("this system does not let a process forget its peak".into());
    }
    let unknown = "this system does not say what memory a process has";
    let ready = resident().ok_or(unknown)?;
    let blinding = blinding(0)?;
    let (made, cost) = cost(|| prover.prove(&blinding));
    let (after, key_kib) = (resident().ok_or(unknown)?, mapped(key).ok_or(unknown)?);
    let alone = Alone { proof: cost, ready_kib: ready.now_kib, peak_kib: after.peak_kib, key_kib };
    Ok(Said { alone, proof: proof::to_bytes(&made?).to_vec() })
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
