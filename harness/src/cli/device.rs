//! Opens the device that the command line names.

use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "cuda")]
use prestage_vram::cuda::Cuda;
use prestage_vram::{Error, Host, HostConfig, LedgerConfig, Margin};

use super::output::Failure;
use super::written;
use crate::scenario::{Auto, Target};
use crate::script::Scribe;
use crate::spec::{DeviceKind, DeviceSpec};
use crate::timeline::Recorder;

/// Where a proof is made, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// Device: host, cuda:N or cuda:GPU-UUID, with an optional cap such as host@8GiB or cuda:0@16GiB; auto takes cuda:0 where
    /// it can be used (its kernels can be compiled, or are in the cache), else host. sim:PRESET and sim:PATH.toml are refused here (plan, run and replay take simulated cards)
    #[arg(long, default_value = "auto", value_name = "D")]
    pub(super) device: DeviceSpec,
    /// Device memory kept free: an amount such as 512MiB, or a share such as 50permille
    #[arg(long, default_value = "512MiB", value_name = "M", value_parser = margin)]
    pub(super) margin: Margin,
    /// Script of the run to write (.toml), for prestage replay; of demo, that of the simulated card
    #[arg(long, value_name = "S.toml")]
    pub(super) script: Option<PathBuf>,
}

/// A margin as it is written on the command line.
pub(super) fn margin(text: &str) -> Result<Margin, String> {
    const FORMS: &str = "write an amount such as 512MiB, or a share such as 50permille";
    match text.parse() {
        Ok(Margin::Permille(share)) if share > 1000 => Err(format!("more than the whole device; {FORMS}")),
        Ok(margin) => Ok(margin),
        Err(_) => Err(format!("no margin; {FORMS}")),
    }
}

/// An open device, its recorder, and what it is called.
pub(super) struct Opened<D> {
    pub(super) device: D,
    pub(super) recorder: Arc<Recorder>,
    /// Writes the script, where one is asked for.
    pub(super) scribe: Option<Arc<Scribe>>,
    /// As it is written on the command line; never `auto`.
    pub(super) name: String,
    /// The name, and whether `auto` took it.
    pub(super) shown: String,
}

/// A device that proves.
#[allow(clippy::large_enum_variant)] // One of them is made per command.
pub(super) enum Prover {
    Host(Opened<Host>),
    #[cfg(feature = "cuda")]
    Cuda(Opened<Cuda>),
}

/// Opens the device. `auto` takes the first NVIDIA card where it can be used, and else the CPU. No proof is ever made
/// elsewhere than asked for.
pub(super) fn open(place: &Place, cupti: bool) -> Result<Prover, Failure> {
    let mut target = Target::resolve(&place.device)?;
    if cupti {
        target = target.recorded().ok_or_else(|| no_records(&place.device))?;
    }
    match target {
        Target::Host(config) => host(place, &config).map(Prover::Host),
        Target::Sim(_) => Err(simulated(&place.device)),
        #[cfg(feature = "cuda")]
        Target::Cuda(config) => {
            opened(place, "cuda:0", |ledger| Target::open_cuda(&config, ledger)).map(Prover::Cuda)
        }
    }
}

/// What is not recorded by CUPTI.
pub(super) fn no_records(device: &impl std::fmt::Display) -> Failure {
    Failure::new(format!("--cupti records what NVIDIA cards do, and {device} is none: leave it out"))
}

/// As [`open`], for the CPU alone.
pub(super) fn open_host(place: &Place) -> Result<Opened<Host>, Failure> {
    match Target::resolve(&place.device)? {
        Target::Host(config) => host(place, &config),
        Target::Sim(_) => Err(simulated(&place.device)),
        #[cfg(feature = "cuda")]
        Target::Cuda(_) if place.device.kind == DeviceKind::Auto => {
            let mut config = HostConfig::default();
            config.capacity = place.device.cap.unwrap_or(config.capacity);
            host(place, &config)
        }
        #[cfg(feature = "cuda")]
        Target::Cuda(_) => Err(Failure::new(format!(
            "{}: the demo runs on the CPU and on a simulated card; use prestage run on this one",
            place.device
        ))),
    }
}

fn simulated(spec: &DeviceSpec) -> Failure {
    Failure::new(format!(
        "{spec}: simulated cards are for plan, run and replay; prove with --device host or cuda:0"
    ))
}

fn host(place: &Place, config: &HostConfig) -> Result<Opened<Host>, Failure> {
    opened(place, "host", |ledger| Target::open_host(config, ledger))
}

/// Opens what `auto` calls `kind`.
fn opened<D>(
    place: &Place,
    kind: &str,
    open: impl FnOnce(LedgerConfig) -> Result<D, Error>,
) -> Result<Opened<D>, Failure> {
    let spec = &place.device;
    let recorder = Arc::new(Recorder::new());
    let (sink, scribe) = written::sink(&recorder, place.script.is_some());
    let ledger = LedgerConfig { margin: place.margin, sink, ..LedgerConfig::default() };
    let device = open(ledger).map_err(|e| match e {
        Error::MarginTooLarge { .. } => {
            Failure::new(format!("{spec}: {e}; choose a smaller one with --margin"))
        }
        e => Failure::at(spec, &e),
    })?;
    let name = spec.to_string().replacen("auto", kind, 1);
    let shown = match spec.kind {
        DeviceKind::Auto => match Auto::here().passed_over() {
            Some(why) => format!("{name} (taken by auto; cuda:0 was not: {why})"),
            None => format!("{name} (taken by auto)"),
        },
        _ => name.clone(),
    };
    Ok(Opened { device, recorder, scribe, name, shown })
}
