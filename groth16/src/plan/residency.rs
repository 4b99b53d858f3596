//! Which points of the key stay on the device.

use std::fmt;
use std::str::FromStr;

use super::Sum;

/// Which points of the key stay on the device, uploaded once for all proofs. The others are streamed from host memory, for
/// each proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// What [`Policy::Full`](crate::Policy::Full) leaves room for, beside the next proof where that is staged ahead: the queries
    /// first whose points take longer on the link than in the sum. None where the device reads host memory.
    #[default]
    Auto,
    /// None.
    None,
    /// All, whatever that leaves for a, b and c.
    All,
}

impl Sum {
    /// Queries in the order in which they are kept while there is room. Of the points of L, A and both B half are for scalars
    /// that are zero and most others are only added: streaming those takes longer than the sum. H is as long in the sum as
    /// on the link, or longer.
    pub(super) const KEPT_FIRST: [Self; 5] = [Self::L, Self::A, Self::B1, Self::B2, Self::H];

    /// What the query's points are called in the ledger.
    pub(crate) const fn points(self) -> &'static str {
        match self {
            Self::H => "points of h",
            Self::L => "points of l",
            Self::A => "points of a",
            Self::B1 => "points of b1",
            Self::B2 => "points of b2",
        }
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::All => "all",
        })
    }
}

/// A residency that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} says not which points stay on the device: it is auto, none or all")]
pub struct ParseResidencyError(String);

impl FromStr for Residency {
    type Err = ParseResidencyError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "all" => Ok(Self::All),
            _ => Err(ParseResidencyError(s.to_owned())),
        }
    }
}
