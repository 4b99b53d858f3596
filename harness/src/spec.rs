//! Names of devices as they are written on the command line: `host`, `host@8GiB`, `sim:PRESET`, `sim:PATH.toml`, `cuda:N`,
//! `cuda:GPU-…`, `cuda:0@16GiB,context=1536MiB`, `auto`; and lists of them, where several may work: `cuda:0,cuda:1`, `cuda:*`.

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
    /// A capped card's context takes this much, instead of what it takes in fact.
    pub context: Option<Bytes>,
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
    /// An NVIDIA card, by index or by UUID.
    Cuda(String),
    /// Every NVIDIA card that is here.
    EveryCuda,
}

/// Text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no device (write host, cuda:0 or cuda:GPU-…, sim:PRESET or sim:PATH.toml, each with an optional cap such as @16GiB, or auto)"
)]
pub struct ParseDeviceError(String);

impl FromStr for DeviceSpec {
    type Err = ParseDeviceError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || ParseDeviceError(s.to_owned());
        let bytes = |text: &str| text.parse::<Bytes>().map_err(|_| bad());
        let (name, limits) = s.split_once('@').map_or((s, None), |(name, limits)| (name, Some(limits)));
        let (cap, context) = match limits.map(|limits| limits.split_once(",context=").ok_or(limits)) {
            Some(Ok((cap, context))) => (Some(bytes(cap)?), Some(bytes(context)?)),
            Some(Err(cap)) => (Some(bytes(cap)?), None),
            None => (None, None),
        };
        let kind = match name.split_once(':') {
            None if name == "auto" => DeviceKind::Auto,
            None if name == "host" => DeviceKind::Host,
            Some(("cuda", "*")) => DeviceKind::EveryCuda,
            Some(("sim", preset)) if !preset.is_empty() => DeviceKind::Sim(preset.to_owned()),
            Some(("cuda", card)) if card.starts_with("GPU-") || card.parse::<u32>().is_ok() => {
                DeviceKind::Cuda(card.to_owned())
            }
            _ => return Err(bad()),
        };
        if context.is_some() && !matches!(kind, DeviceKind::Cuda(_) | DeviceKind::EveryCuda) {
            return Err(bad());
        }
        Ok(Self { kind, cap, context })
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DeviceKind::Auto => f.write_str("auto")?,
            DeviceKind::Host => f.write_str("host")?,
            DeviceKind::Sim(preset) => write!(f, "sim:{preset}")?,
            DeviceKind::Cuda(card) => write!(f, "cuda:{card}")?,
            DeviceKind::EveryCuda => f.write_str("cuda:*")?,
        }
        let limits = [("@", self.cap), (",context=", self.context)];
        limits.into_iter().filter_map(|(what, n)| Some((what, n?.get()))).try_for_each(|(what, n)| match n {
            n if n % (1 << 30) == 0 => write!(f, "{what}{}GiB", n >> 30),
            n if n % (1 << 20) == 0 => write!(f, "{what}{}MiB", n >> 20),
            n => write!(f, "{what}{n}"),
        })
    }
}

/// One device or several, with commas between them: `cuda:0,cuda:1@16GiB`, `cuda:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpecs(Vec<DeviceSpec>);

impl DeviceSpecs {
    /// The devices as they were written, at least one.
    #[must_use]
    pub fn specs(&self) -> &[DeviceSpec] {
        &self.0
    }
}

impl FromStr for DeviceSpecs {
    type Err = ParseDeviceError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let mut texts: Vec<String> = Vec::new();
        for text in s.split(',') {
            match texts.last_mut().filter(|_| text.starts_with("context=")) {
                // It belongs to the cap before it.
                Some(last) => *last += &format!(",{text}"),
                None => texts.push(text.to_owned()),
            }
        }
        texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for DeviceSpecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, spec) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{spec}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_refuses_the_rest() {
        for good in [
            "auto",
            "host",
            "host@8GiB",
            "cuda:0",
            "cuda:1@16303MiB",
            "cuda:*@16GiB",
            "sim:cascade-16g",
            "sim:h200-141g@100",
            "cuda:GPU-00112233-4455-6677-8899-aabbccddeeff@16GiB,context=1536MiB",
        ] {
            assert_eq!(good.parse::<DeviceSpec>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "gpu",
            "cuda",
            "cuda:",
            "cuda:x",
            "sim:",
            "host@",
            "host@lots",
            "host:1",
            "cuda:-1",
            "host@1GiB,context=1MiB",
        ] {
            assert!(bad.parse::<DeviceSpec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_are_read_and_caps_stay_with_their_device() {
        for (list, n) in [
            ("host", 1),
            ("cuda:0,cuda:1", 2),
            ("cuda:0@16GiB,context=1536MiB,cuda:1,cuda:2@8GiB", 3),
            ("sim:h200-141g,sim:rtx-5070-ti-16g", 2),
        ] {
            let specs: DeviceSpecs = list.parse().unwrap();
            assert_eq!((specs.to_string().as_str(), specs.specs().len()), (list, n));
        }
        for bad in ["", "host,", ",host", "context=1GiB", "host,context=1GiB", "cuda:0,gpu"] {
            assert!(bad.parse::<DeviceSpecs>().is_err(), "{bad}");
        }
    }
}
