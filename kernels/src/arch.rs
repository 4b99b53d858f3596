//! Architectures, and which machine code a device can run.

use std::{fmt, str::FromStr};

use crate::Error;

/// A virtual or real architecture by its number: `sm_90` is compute capability 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Arch {
    /// Turing.
    Sm75,
    /// Ampere, data centre.
    Sm80,
    /// Ampere.
    Sm86,
    /// Ada.
    Sm89,
    /// Hopper.
    Sm90,
    /// Blackwell, data centre.
    Sm100,
    /// Blackwell.
    Sm120,
}

impl Arch {
    /// All of them, oldest first. CUDA 13 dropped everything before 7.5.
    pub const ALL: &'static [Self] =
        &[Self::Sm75, Self::Sm80, Self::Sm86, Self::Sm89, Self::Sm90, Self::Sm100, Self::Sm120];

    /// Ten times the compute capability.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Sm75 => 75,
            Self::Sm80 => 80,
            Self::Sm86 => 86,
            Self::Sm89 => 89,
            Self::Sm90 => 90,
            Self::Sm100 => 100,
            Self::Sm120 => 120,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

impl FromStr for Arch {
    type Err = Error;

    /// Reads `sm_90`, `90` or `9.0`.
    fn from_str(s: &str) -> Result<Self, Error> {
        let digits: String = s.trim_start_matches("sm_").chars().filter(|&c| c != '.').collect();
        Self::ALL
            .iter()
            .copied()
            .find(|a| digits == a.number().to_string())
            .ok_or_else(|| Error::UnknownArchitecture { name: s.to_owned() })
    }
}

/// A device's compute capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Capability {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The form of a compiled module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Machine code: runs on this architecture and on later minor versions of the same major one.
    Cubin,
    /// Intermediate code: the driver translates it when it is loaded, for any later architecture.
    Ptx,
}

/// What to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The architecture.
    pub arch: Arch,
    /// Machine code or PTX.
    pub form: Form,
}

impl Target {
    /// Machine code for `arch`.
    #[must_use]
    pub const fn cubin(arch: Arch) -> Self {
        Self { arch, form: Form::Cubin }
    }

    /// What runs best on a device of `capability`, out of what the compiler knows (`compiler`: architecture
    /// numbers; empty if unknown, then all of [`Arch::ALL`] count). Machine code of the same major version when
    /// there is some, else PTX of the newest older one.
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedArchitecture`] when the device is older than everything that can be compiled for.
    pub fn for_device(capability: Capability, compiler: &[u32]) -> Result<Self, Error> {
        let device = capability.major * 10 + capability.minor;
        let known = |a: &Arch| compiler.is_empty() || compiler.contains(&a.number());
        let older = Arch::ALL.iter().copied().filter(|a| known(a) && a.number() <= device);
        let arch = older.max().ok_or_else(|| Error::UnsupportedArchitecture {
            capability,
            supported: Arch::ALL.iter().copied().filter(known).collect(),
        })?;
        let form = if arch.number() / 10 == capability.major { Form::Cubin } else { Form::Ptx };
        Ok(Self { arch, form })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Cubin => write!(f, "sm_{}", self.arch.number()),
            Form::Ptx => write!(f, "compute_{}", self.arch.number()),
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    /// Reads what `Display` writes.
    fn from_str(s: &str) -> Result<Self, Error> {
        match s.strip_prefix("compute_") {
            Some(number) => Ok(Self { arch: number.parse()?, form: Form::Ptx }),
            None => Ok(Self::cubin(s.parse()?)),
        }
    }
}
