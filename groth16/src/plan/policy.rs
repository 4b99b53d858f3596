//! How a, b and c come to the device.

use std::fmt;
use std::str::FromStr;

use prestage_vram::Bytes;

use crate::Error;

/// The largest number of pieces of the out-of-core transform.
pub(super) const MAX_CHUNKS: u32 = 64;

/// How a, b and c come to the device. All give the same proofs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The largest of the others that fits; `None` where no host memory can be pinned.
    #[default]
    Auto,
    /// All three staged together.
    Full,
    /// a and one slot, which holds b and then c.
    AThenBc,
    /// a; b and c are transformed out of core, in that many pieces: a power of two from 2 to 64.
    Chunked(u32),
    /// Nothing staged: every upload at the moment of use, on the compute lane.
    None,
}

impl Policy {
    pub(super) fn check(self) -> Result<(), Error> {
        match self {
            Self::Chunked(chunks) if !chunks.is_power_of_two() || !(2..=MAX_CHUNKS).contains(&chunks) => {
                Err(Error::Chunks { chunks })
            }
            _ => Ok(()),
        }
    }

    /// The out-of-core transform needs a domain of at least k² rows.
    pub(super) fn possible(self, domain: u64) -> bool {
        match self {
            Self::Chunked(k) => u64::from(k) * u64::from(k) <= domain,
            _ => true,
        }
    }

    /// Bytes of polynomials that are staged, and that the quotient holds, for polynomials of `n` bytes.
    pub(super) fn polynomials(self, n: Bytes) -> (Bytes, Bytes) {
        let times = |k: u64| Bytes::new(n.get().saturating_mul(k));
        match self {
            Self::Auto | Self::Full => (times(3), times(3)),
            Self::AThenBc => (times(2), times(2)),
            Self::Chunked(k) => (n, n + Bytes::new(2 * n.get() / u64::from(k))),
            Self::None => (Bytes::ZERO, times(2)),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Full => f.write_str("full"),
            Self::AThenBc => f.write_str("a-then-bc"),
            Self::Chunked(chunks) => write!(f, "chunked:{chunks}"),
            Self::None => f.write_str("none"),
        }
    }
}

/// A policy that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy {0:?}: it is auto, full, a-then-bc, chunked:K (K a power of two from 2 to 64) or none")]
pub struct ParsePolicyError(String);

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let unknown = || ParsePolicyError(s.to_owned());
        let policy = match s {
            "auto" => Self::Auto,
            "full" => Self::Full,
            "a-then-bc" => Self::AThenBc,
            "none" => Self::None,
            _ => {
                let chunks = s.strip_prefix("chunked:").and_then(|k| k.parse().ok());
                Self::Chunked(chunks.ok_or_else(unknown)?)
            }
        };
        policy.check().map_err(|_| unknown())?;
        Ok(policy)
    }
}
