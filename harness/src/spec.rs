//! Names of devices as they are written on the command line: `host`, `host@8GiB`, `sim:PRESET`, `sim:PATH.toml`, `cuda:N`,
//! `auto`.

use std::fmt;
use std::str::FromStr;

use prestage_vram::Bytes;

/// Which device, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Which device.
    pub kind: DeviceKind,
    /// Behave as a device of this capacity.
    pub cap: Option<Bytes>,
}

/// Which device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The first usable card, else the CPU.
    Auto,
    /// The CPU.
    Host,
    /// A simulated card, by the name of its preset or the path of its description.
    Sim(String),
    /// An NVIDIA card, by index.
    Cuda(u32),
}

/// Text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no device (write host, cuda:0, sim:PRESET or sim:PATH.toml, each with an optional cap such as @16GiB, or auto)"
)]
pub struct ParseDeviceError(String);

impl FromStr for DeviceSpec {
    type Err = ParseDeviceError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || ParseDeviceError(s.to_owned());
        let (name, cap) = match s.split_once('@') {
            Some((name, cap)) => (name, Some(cap.parse::<Bytes>().map_err(|_| bad())?)),
            None => (s, None),
        };
        let kind = match name.split_once(':') {
            None if name == "auto" => DeviceKind::Auto,
            None if name == "host" => DeviceKind::Host,
            Some(("sim", preset)) if !preset.is_empty() => DeviceKind::Sim(preset.to_owned()),
            Some(("cuda", n)) => DeviceKind::Cuda(n.parse().map_err(|_| bad())?),
            _ => return Err(bad()),
        };
        Ok(Self { kind, cap })
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DeviceKind::Auto => f.write_str("auto")?,
            DeviceKind::Host => f.write_str("host")?,
            DeviceKind::Sim(preset) => write!(f, "sim:{preset}")?,
            DeviceKind::Cuda(n) => write!(f, "cuda:{n}")?,
        }
        match self.cap {
            Some(cap) if cap.get() % (1 << 30) == 0 => write!(f, "@{}GiB", cap.get() >> 30),
            Some(cap) if cap.get() % (1 << 20) == 0 => write!(f, "@{}MiB", cap.get() >> 20),
            Some(cap) => write!(f, "@{}", cap.get()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_the_rest() {
        for good in
            ["auto", "host", "host@8GiB", "cuda:0", "cuda:1@16303MiB", "sim:cascade-16g", "sim:h200-141g@100"]
        {
            assert_eq!(good.parse::<DeviceSpec>().unwrap().to_string(), good);
        }
        for bad in ["", "gpu", "cuda", "cuda:", "cuda:x", "sim:", "host@", "host@lots", "host:1", "cuda:-1"] {
            assert!(bad.parse::<DeviceSpec>().is_err(), "{bad}");
        }
    }
}
