//! `prestage doctor`: what is on this machine, what is missing, and how to get it.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;

use super::output::{Failure, Output};
use crate::host_memory;
use crate::scenario::Auto;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct Finding {
    /// What.
    name: &'static str,
    /// Whether it is there; `None` where that is no question.
    present: Option<bool>,
    /// What was found, or why not.
    detail: String,
    /// How to get it, when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Finding {
    fn fact(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, present: None, detail: detail.into(), hint: None }
    }

    fn found(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, present: Some(true), detail: detail.into(), hint: None }
    }

    fn missing(name: &'static str, detail: impl Into<String>, hint: &'static str) -> Self {
        Self { name, present: Some(false), detail: detail.into(), hint: Some(hint) }
    }
}

/// The whole answer.
#[derive(Debug, Serialize)]
struct Answer {
    /// What `--device auto` takes.
    device: &'static str,
    /// Why it does not take a card that is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_taken: Option<&'static str>,
    findings: Vec<Finding>,
}

/// Runs the verb. Missing things are findings, not failures.
pub(super) fn run(_: &Args, out: &mut Output) -> Result<(), Failure> {
    let mut findings = vec![processor(), memory(), memlock(), copy_bandwidth()];
    findings.extend(cards());
    findings.extend([nvrtc(), cupti()]);
    findings.extend(kernels());
    let auto = Auto::here();
    let device = if *auto == Auto::Card { "cuda:0" } else { "host" };
    let answer = Answer { device, not_taken: auto.passed_over(), findings };
    for f in &answer.findings {
        let mark = match f.present {
            Some(true) => "ok",
            Some(false) => "missing",
            None => "",
        };
        out.line(format_args!("{:<16} {mark:<8} {}", f.name, f.detail));
        if let Some(hint) = f.hint {
            out.line(format_args!("{:<16} {:<8} to get it: {hint}", "", ""));
        }
    }
    let why = answer.not_taken.map_or_else(String::new, |why| format!("; cuda:0 is not taken: {why}"));
    out.line(format_args!("\n--device auto takes `{device}`{why}"));
    out.json(&answer)
}

fn processor() -> Finding {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Finding::fact("processor", format!("{threads} threads, {}", std::env::consts::ARCH))
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match (host_memory::kib(&text, "MemTotal:"), host_memory::available()) {
        (Some(total), Some(free)) => Finding::fact("host memory", format!("{total}, {free} available")),
        _ => Finding::fact("host memory", "the operating system does not say"),
    }
}

fn memlock() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    match limit.current {
        None => Finding::fact("memlock limit", "none: any amount of host memory can be pinned"),
        Some(n) => Finding::fact(
            "memlock limit",
            format!(
                "{} (`ulimit -l unlimited` raises it; CUDA's own pinning does not need it)",
                prestage_vram::Bytes::new(n)
            ),
        ),
    }
}

/// The rate of a large copy within host memory: the link of the device `host`.
fn copy_bandwidth() -> Finding {
    let source = vec![1u8; 64 << 20];
    let mut target = vec![0u8; source.len()];
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        target.copy_from_slice(black_box(&source));
        black_box(&mut target);
        best = best.min(start.elapsed().as_secs_f64());
    }
    #[allow(clippy::cast_precision_loss)]
    let rate = source.len() as f64 / best / 1e9;
    Finding::fact("host copies", format!("{rate:.1} GB/s on one thread (64 MiB, best of 5)"))
}

/// The driver and a line per card.
#[cfg(feature = "cuda")]
fn cards() -> Vec<Finding> {
    const HINT: &str = "install the NVIDIA driver (Debian: apt install nvidia-driver), version 580 or later";
    let found = match prestage_vram::cuda::probe() {
        Ok(found) => found,
        Err(e) => return vec![Finding::missing("NVIDIA driver", e.to_string(), HINT)],
    };
    let driver = Finding::found(
        "NVIDIA driver",
        format!("for CUDA {}, cards: {}", found.version, found.devices.len()),
    );
    let card = |d: prestage_vram::cuda::Found| {
        let free = d.free.map_or_else(|e| format!("no context: {e}"), |free| format!("{free} free"));
        let (major, minor) = d.compute;
        Finding::found(
            "card",
            format!("cuda:{} {} (sm_{major}{minor}, {}), {}, {free}", d.ordinal, d.name, d.uuid, d.total),
        )
    };
    std::iter::once(driver).chain(found.devices.into_iter().map(card)).collect()
}

/// A build without the feature `cuda` cannot look.
#[cfg(not(feature = "cuda"))]
fn cards() -> Vec<Finding> {
    vec![Finding::missing("NVIDIA driver", "not looked for", "build with --features cuda")]
}

/// The folder of compiled kernels, and how many modules of this build are in it.
#[cfg(feature = "cuda")]
fn kernels() -> Option<Finding> {
    use std::collections::BTreeSet;

    use prestage_kernels::{Cache, Error, Family, State};

    let count = || -> Result<String, Error> {
        let cache = Cache::from_env()?;
        let mut modules = BTreeSet::new();
        for entry in cache.list()?.into_iter().filter(|entry| entry.state == State::Current) {
            modules.insert((entry.target.to_string(), entry.family));
        }
        let targets: BTreeSet<&str> = modules.iter().map(|(target, _)| target.as_str()).collect();
        let of = match targets.len() {
            0 => "`prestage kernels build` warms them".to_owned(),
            n => {
                let targets: Vec<_> = targets.into_iter().collect();
                format!("of {} for {}", n * Family::ALL.len(), targets.join(", "))
            }
        };
        Ok(format!("{}, warm modules of this build: {} ({of})", cache.dir().display(), modules.len()))
    };
    Some(Finding::fact("kernel cache", count().unwrap_or_else(|e| e.to_string())))
}

/// A build without the feature `cuda` has no kernels.
#[cfg(not(feature = "cuda"))]
fn kernels() -> Option<Finding> {
    None
}

fn nvrtc() -> Finding {
    library(
        "NVRTC",
        &["libnvrtc.so.13", "libnvrtc.so"],
        "pip install 'nvidia-cuda-nvrtc==13.0.*' and put its lib folder on LD_LIBRARY_PATH",
    )
}

const CUPTI: &str =
    "pip install 'nvidia-cuda-cupti==13.0.*' and put its lib folder on LD_LIBRARY_PATH (for --cupti)";

/// Loaded, to see that it can be: nothing else says so.
#[cfg(feature = "cuda")]
fn cupti() -> Finding {
    match prestage_vram::cuda::cupti() {
        Ok(found) => Finding::found("CUPTI", found),
        Err(prestage_vram::Error::NoCupti { detail }) => Finding::missing("CUPTI", detail, CUPTI),
        Err(other) => Finding::missing("CUPTI", other.to_string(), CUPTI),
    }
}

/// A build without the feature `cuda` cannot use it.
#[cfg(not(feature = "cuda"))]
fn cupti() -> Finding {
    library("CUPTI", &["libcupti.so.13", "libcupti.so"], CUPTI)
}

/// Looks for a shared library the way the loader does, by file name alone: nothing is loaded or run.
fn library(name: &'static str, files: &[&str], hint: &'static str) -> Finding {
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&listed).chain(
        [
            "/usr/local/cuda/lib64",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
        ]
        .map(Into::into),
    );
    for folder in folders {
        if let Some(at) = files.iter().map(|f| folder.join(f)).find(|p| p.exists()) {
            return Finding::found(name, at.display().to_string());
        }
    }
    Finding::missing(name, format!("no {} where the loader looks", files.join(" or ")), hint)
}
