//! Many scenarios with one key: a key for a full-size circuit takes longer to make than the proofs.
//!
//! `sweep SHAPE LOG PARTITIONS OUT SCENARIO…`, where LOG is the logarithm of the domain, or `full`; OUT is a folder for the
//! reports; and a scenario is `DEVICE,POLICY,on|off,WORKERS`, the third saying whether the next partition stages while one
//! computes, with a number of partitions of its own after one more comma if need be. A cap's context is written with a semicolon: `cuda:0@16GiB;context=1536MiB,auto,on,2`.
//!
//! The first real card makes the key, or the CPU where there is none; simulated cards charge for the full size. Each scenario
//! is told of as soon as it ends: rate, steady state, idle by cause, how long each phase took.
//!
//! `cargo run --release -p prestage-harness --example sweep porep-32g 12 6 out host,auto,on,2 sim:h200-141g,auto,on,2`

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use prestage_groth16::{Assignment, Prover};
use prestage_harness::host_memory;
use prestage_harness::scenario::{Crew, Made, Scenario, Synthetic, Target, Wanted, run};
use prestage_harness::session::About;
use prestage_harness::spec::DeviceSpec;
use prestage_harness::timeline::{Idle, Recorder, Timeline, save};
use prestage_msm::{Msm, Threads};
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, LedgerConfig, Nanos, Track};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One line of the command.
struct Wish {
    words: String,
    device: DeviceSpec,
    policy: Wanted,
    ahead: bool,
    workers: u32,
    partitions: Option<u32>,
}

impl Wish {
    fn parse(words: &str) -> Outcome<Self> {
        let parts: Vec<&str> = words.split(',').collect();
        let [device, policy, ahead @ ("on" | "off"), workers, partitions @ ..] = &parts[..] else {
            return Err(format!("{words}: it is DEVICE,POLICY,on|off,WORKERS or that and ,PARTITIONS").into());
        };
        Ok(Self {
            words: words.to_owned(),
            device: device.replace(';', ",").parse()?,
            policy: policy.parse()?,
            ahead: *ahead == "on",
            workers: workers.parse()?,
            partitions: partitions.first().map(|n| n.parse()).transpose()?,
        })
    }
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [shape, log, partitions, out, wishes @ ..] = &args[..] else {
        return Err("sweep SHAPE LOG|full PARTITIONS OUT DEVICE,POLICY,on|off,WORKERS…".into());
    };
    let (synthetic, partitions, out) = (Synthetic::named(shape)?, partitions.parse()?, Path::new(out));
    let wishes: Vec<Wish> = wishes.iter().map(|words| Wish::parse(words)).collect::<Outcome<_>>()?;
    let full = synthetic.log_domain()?;
    let log = if log == "full" { full } else { log.parse()? };
    let start = Instant::now();
    say(start, &format!("{shape} on 2^{log} rows needs {}", synthetic.host_bytes(log, 2)?));
    let made = make(&synthetic, log, &wishes)?;
    let took = made.took;
    say(
        start,
        &format!(
            "circuit {:?}, key {:?}, logarithms of its proofs {:?}",
            took.circuit, took.key, took.opened
        ),
    );
    let load = Load { synthetic: &synthetic, made: &made, log, full, partitions, out, start };
    for (number, wish) in (1..).zip(&wishes) {
        println!("\n== {}", wish.words);
        if let Err(e) = load.run(number, wish) {
            println!("failed: {e}");
        }
    }
    Ok(())
}

fn say(start: Instant, words: &str) {
    let peak = host_memory::peak_resident().unwrap_or(Bytes::ZERO);
    println!("[{:6.1} s, peak {peak}] {words}", start.elapsed().as_secs_f64());
}

fn make(synthetic: &Synthetic, log: u32, wishes: &[Wish]) -> Outcome<Made> {
    #[cfg(feature = "cuda")]
    for wish in wishes {
        if let Target::Cuda(config) = Target::resolve(&wish.device)? {
            let config = prestage_vram::cuda::CudaConfig { cap: None, ..config };
            let card = Target::open_cuda(&config, LedgerConfig::default())?;
            let mut worker = prestage_vram::Worker::new(0);
            let turn = prestage_vram::Device::turn(&card, &mut worker)?;
            let made = synthetic.make(log, &turn)?;
            turn.release()?;
            return Ok(made);
        }
    }
    let _ = wishes;
    Ok(synthetic.make(log, &Threads)?)
}

/// What all scenarios prove.
struct Load<'l> {
    synthetic: &'l Synthetic,
    made: &'l Made,
    log: u32,
    full: u32,
    partitions: u32,
    out: &'l Path,
    start: Instant,
}

impl Load<'_> {
    fn run(&self, number: u32, wish: &Wish) -> Outcome<()> {
        let target = Target::resolve(&wish.device)?;
        let recorder = Arc::new(Recorder::new());
        let sink = recorder.clone();
        let ledger =
            LedgerConfig { margin: target.margin(), ahead: wish.ahead, sink, ..LedgerConfig::default() };
        match target {
            Target::Host(config) => self.on(number, wish, &Target::open_host(&config, ledger)?, &recorder),
            Target::Sim(card) => {
                let scale = 1 << (self.full - self.log);
                self.on(number, wish, &Target::open_sim(card, scale, ledger)?, &recorder)
            }
            #[cfg(feature = "cuda")]
            Target::Cuda(config) => self.on(number, wish, &Target::open_cuda(&config, ledger)?, &recorder),
        }
    }

    fn on<D: Ntt + Msm + Crew>(
        &self,
        number: u32,
        wish: &Wish,
        device: &D,
        recorder: &Recorder,
    ) -> Outcome<()> {
        let Made { circuit, key, opened, .. } = self.made;
        let prover = Prover::new(device, key.clone())?;
        say(self.start, "the key is ready");
        let policy = wish.policy.of(&prover)?;
        let (workers, partitions) = (wish.workers, wish.partitions.unwrap_or(self.partitions));
        let scenario =
            Scenario { workers, partitions, policy, host: self.synthetic.host(), opened: Some(opened) };
        let about = About {
            scenario: format!("{} on 2^{}, {}", self.synthetic.name(), self.log, wish.words),
            device: wish.device.to_string(),
            circuit: self.synthetic.load(),
            constraints: circuit.r1cs.n_rows() * device.scale(),
            parameters: BTreeMap::new(),
        };
        let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
        let stop = AtomicBool::new(false);
        let outcome = run(&prover, &scenario, assignment, recorder, about, &stop)?;
        for failed in &outcome.failed {
            println!("partition {}: {}", failed.partition, failed.error);
        }
        let report = outcome.report.ok_or("no proof was made")?;
        let proofs = report.verified.proofs();
        say(
            self.start,
            &format!("{proofs} of {partitions} proofs, each verified and equal to the trapdoor's"),
        );
        for plan in &report.plans {
            println!("plan     {} ({}): {}", plan.policy, plan.proofs, plan.reason);
        }
        println!("memory   peak {} on the device", Bytes::new(report.peak_bytes));
        for phase in &report.phases {
            println!("         {phase:?}");
        }
        let wall = report.times.wall();
        println!("whole    {:.3} s, {:.2} proofs a minute", wall.as_ms() / 1e3, report.proofs_per_minute);
        times("all", &outcome.timeline.idle(), &outcome.timeline);
        steady(&outcome.timeline);
        phases(&outcome.timeline);
        save(self.out, &format!("run{number}"), &report, &outcome.timeline)?;
        Ok(())
    }
}

fn times(what: &str, idle: &Idle, timeline: &Timeline) {
    let (first, last) = timeline.extent();
    let wall = last.since(first).as_ms().max(1e-9);
    let share = |time: Nanos| 100.0 * time.as_ms() / wall;
    let causes: Vec<String> = idle
        .by_cause
        .iter()
        .filter(|(_, time)| *time > Nanos::ZERO)
        .map(|(cause, time)| format!("{} {:.2} %", cause.name(), share(time)))
        .collect();
    let (busy, held) = (share(idle.busy), share(idle.held));
    println!("{what:8} busy {busy:.2} %, held {held:.2} %; idle: {}", causes.join(", "));
}

/// From the end of the first turn to the end of the last but one: neither the start nor the end of the job.
fn steady(timeline: &Timeline) {
    let mut ends: Vec<Nanos> = timeline.on(Track::Held).map(|span| span.end).collect();
    ends.sort();
    if let [first, .., last, _] = ends[..] {
        let turns = f64::from(u32::try_from(ends.len() - 2).unwrap_or(u32::MAX));
        let part = timeline.between(first, last);
        println!("steady   {:.3} s a partition", last.since(first).as_ms() / 1e3 / turns);
        times("steady", &part.idle(), &part);
    }
}

/// The mean of each phase: how long it took on the compute lane from its first kernel to its last, and what of it kernels ran.
fn phases(timeline: &Timeline) {
    let mut runs: BTreeMap<&str, (u32, f64, f64)> = BTreeMap::new();
    for worker in timeline.workers() {
        let mut current: Option<(&'static str, Nanos, Nanos, f64)> = None;
        let mut close = |run: Option<(&'static str, Nanos, Nanos, f64)>| {
            if let Some((name, start, end, busy)) = run {
                let sum = runs.entry(name).or_default();
                *sum = (sum.0 + 1, sum.1 + end.since(start).as_ms(), sum.2 + busy);
            }
        };
        for span in timeline.on(Track::Compute).filter(|span| span.worker == worker) {
            let phase = phase(&span.name);
            let took = span.end.since(span.start).as_ms();
            match &mut current {
                Some((name, _, end, busy)) if *name == phase => {
                    (*end, *busy) = (span.end.max(*end), *busy + took);
                }
                _ => close(current.replace((phase, span.start, span.end, took))),
            }
        }
        close(current.take());
    }
    for (name, (n, length, busy)) in runs {
        let n_f = f64::from(n);
        println!("phase    {name:9} {:9.1} ms, kernels {:9.1} ms, {n} times", length / n_f, busy / n_f);
    }
    let mut copies: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for span in timeline.on(Track::Upload) {
        let sum = copies.entry(span.name.split(' ').next().unwrap_or("")).or_default();
        *sum = (sum.0 + span.end.since(span.start).as_ms(), sum.1 + span.bytes.as_gib());
    }
    for (name, (ms, gib)) in copies {
        println!(
            "copies   {name:9} {gib:9.1} GiB in {ms:9.1} ms in all, {:.1} GB/s",
            gib * 1_073.741_824 / ms.max(1e-9)
        );
    }
    let mut host: BTreeMap<String, (u32, f64)> = BTreeMap::new();
    for span in timeline.on(Track::Host) {
        let name = span.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ').to_owned();
        let sum = host.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + span.end.since(span.start).as_ms());
    }
    for (name, (n, ms)) in host {
        println!("host     {name:18} {:9.1} ms, {n} times", ms / f64::from(n));
    }
}

fn phase(name: &str) -> &'static str {
    const SUMS: [(&str, &str); 5] =
        [("msm h", "h"), ("msm l", "l"), ("msm a", "a"), ("msm b1", "b1"), ("msm b2", "b2")];
    SUMS.into_iter().find(|(start, _)| name.starts_with(start)).map_or("quotient", |(_, phase)| phase)
}
