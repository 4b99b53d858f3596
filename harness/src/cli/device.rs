//! Opens the device that the command line names.

use std::sync::Arc;

use prestage_vram::{Error, Host, HostConfig, LedgerConfig};

use super::args::Place;
use super::output::Failure;
use super::written;
use crate::script::Scribe;
use crate::spec::{DeviceKind, DeviceSpec};
use crate::timeline::Recorder;

/// An open device, its recorder, and what it is called.
pub(super) struct Opened {
    pub(super) device: Host,
    pub(super) recorder: Arc<Recorder>,
    /// Writes the script, where one is asked for.
    pub(super) scribe: Option<Arc<Scribe>>,
    /// As it is written on the command line; never `auto`.
    pub(super) name: String,
    /// The name, and whether `auto` took it.
    pub(super) shown: String,
}

/// Opens the device. `auto` takes the CPU, since this version proves nowhere else. Any other device is refused: no
/// proof is ever made elsewhere than asked for.
pub(super) fn open(place: &Place) -> Result<Opened, Failure> {
    let spec = &place.device;
    match &spec.kind {
        DeviceKind::Auto | DeviceKind::Host => {}
        DeviceKind::Cuda(n) => return Err(no_card(spec, *n)),
        DeviceKind::Sim(_) => {
            return Err(Failure::new(format!(
                "{spec}: simulated cards are for plan, run and replay; prove with --device host"
            )));
        }
    }
    let recorder = Arc::new(Recorder::new());
    let (sink, scribe) = written::sink(&recorder, place.script.is_some());
    let ledger = LedgerConfig { margin: place.margin, sink, ..LedgerConfig::default() };
    let mut config = HostConfig { ledger, ..HostConfig::default() };
    if let Some(cap) = spec.cap {
        config.capacity = cap;
    }
    let device = Host::open(config).map_err(|e| match e {
        Error::MarginTooLarge { .. } => {
            Failure::new(format!("{spec}: {e}; choose a smaller one with --margin"))
        }
        e => Failure::at(spec, &e),
    })?;
    let name = DeviceSpec { kind: DeviceKind::Host, cap: spec.cap }.to_string();
    let shown = if spec.kind == DeviceKind::Auto { format!("{name} (taken by auto)") } else { name.clone() };
    Ok(Opened { device, recorder, scribe, name, shown })
}

/// Why there is no proof on card `n`.
#[cfg(feature = "cuda")]
fn no_card(spec: &DeviceSpec, n: u32) -> Failure {
    match prestage_vram::cuda::probe() {
        Err(e) => {
            Failure::new(format!("{spec}: this version proves on the CPU only (use --device host), and {e}"))
        }
        Ok(found) if found.devices.iter().all(|d| d.ordinal != n) => Failure::new(format!(
            "{spec}: no such card: the driver shows {} (see prestage doctor, CUDA_VISIBLE_DEVICES)",
            found.devices.len()
        )),
        Ok(_) => Failure::new(format!("{spec}: this version proves on the CPU only; use --device host")),
    }
}

/// A build without the feature `cuda` cannot look.
#[cfg(not(feature = "cuda"))]
fn no_card(spec: &DeviceSpec, _: u32) -> Failure {
    Failure::new(format!("{spec}: built without the feature cuda; use --device host"))
}
