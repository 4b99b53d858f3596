//! A policy as it is asked for: one of the prover's, or out of core in as few pieces as will do.

use std::fmt;
use std::str::FromStr;

use prestage_groth16::{DeviceFootprints, Plan, Policy, Prover, Reduction};
use prestage_msm::Msm;
use prestage_ntt::Ntt;

/// Which policy is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This one.
    Policy(Policy),
    /// `Chunked` in the smallest number of pieces that fits.
    Chunked,
}

impl Wanted {
    /// The policies to try, in order; the first that fits is taken.
    #[must_use]
    pub fn candidates(self) -> Vec<Policy> {
        match self {
            Self::Policy(policy) => vec![policy],
            Self::Chunked => (1..=6).map(|log| Policy::Chunked(1 << log)).collect(),
        }
    }

    /// The first candidate for which `plan` succeeds, with what it gave.
    ///
    /// # Errors
    /// The last candidate's.
    pub fn first<T>(
        self,
        mut plan: impl FnMut(Policy) -> Result<T, prestage_groth16::Error>,
    ) -> Result<(Policy, T), prestage_groth16::Error> {
        let mut last = None;
        for policy in self.candidates() {
            match plan(policy) {
                Ok(planned) => return Ok((policy, planned)),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or(prestage_groth16::Error::Chunks { chunks: 0 }))
    }

    /// The policy to prove under: the one that was asked for, or the first candidate that fits the budget as it stands.
    ///
    /// # Errors
    /// As [`Plan::new`] for the last candidate, when none fits.
    pub fn of<D: Ntt + Msm, R: Reduction>(
        self,
        prover: &Prover<'_, D, R>,
    ) -> Result<Policy, prestage_groth16::Error> {
        if let Self::Policy(policy) = self {
            return Ok(policy);
        }
        let ledger = prover.device().ledger();
        let footprints = DeviceFootprints::new(prover.device(), prover.domain());
        let budget = ledger.level().budget;
        let fits = |policy| Plan::new(prover.shape(), &footprints, policy, budget, ledger.margin()).map(drop);
        Ok(self.first(fits)?.0)
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => policy.fmt(f),
            Self::Chunked => f.write_str("chunked"),
        }
    }
}

/// Text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no policy `{0}`: it is auto, full, a-then-bc, chunked, chunked:K (K a power of two from 2 to 64) or none"
)]
pub struct ParseWantedError(String);

impl FromStr for Wanted {
    type Err = ParseWantedError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "chunked" => Ok(Self::Chunked),
            _ => s.parse().map(Self::Policy).map_err(|_| ParseWantedError(s.to_owned())),
        }
    }
}
