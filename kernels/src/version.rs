//! Versions of the compiler and the driver.

use std::{fmt, str::FromStr};

/// A CUDA version, `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

impl Version {
    /// From the form 1000·major + 10·minor, which `cuDriverGetVersion` uses.
    #[must_use]
    pub const fn from_packed(packed: u32) -> Self {
        Self { major: packed / 1000, minor: packed % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = std::num::ParseIntError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (major, minor) = s.split_once('.').unwrap_or((s, "0"));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}
