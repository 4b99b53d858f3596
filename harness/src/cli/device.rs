//! Opens the device that the command line names.

use std::sync::Arc;

use prestage_vram::{Host, HostConfig};

use super::args::Place;
use super::output::Failure;
use crate::session::recorded;
use crate::spec::DeviceKind;
use crate::timeline::Recorder;

/// An open device, its recorder, and what it is called.
pub(super) struct Opened {
    pub(super) device: Host,
    pub(super) recorder: Arc<Recorder>,
    pub(super) name: String,
}

/// Opens the device. `auto` takes a card if one is usable, else the CPU.
pub(super) fn open(place: &Place) -> Result<Opened, Failure> {
    match &place.device.kind {
        DeviceKind::Auto | DeviceKind::Host => {}
        DeviceKind::Sim(_) | DeviceKind::Cuda(_) => {
            let spec = &place.device;
            return Err(Failure::new(format!("the device {spec} is not in this build; use --device host")));
        }
    }
    let (ledger, recorder) = recorded(place.margin);
    let mut config = HostConfig { ledger, ..HostConfig::default() };
    let mut name = "host".to_owned();
    if let Some(cap) = place.device.cap {
        config.capacity = cap;
        name = format!("host@{cap}");
    }
    let device = Host::open(config)?;
    Ok(Opened { device, recorder, name })
}
