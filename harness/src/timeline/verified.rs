//! The two rules of a report as types: its proofs verify, and its times add up.

use prestage_vram::Nanos;
use serde::{Deserialize, Serialize};

use super::{ByCause, Idle};
use crate::Error;

/// The knowledge that every proof of a run verifies. Made by checking them all, in no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "VerifiedFields", into = "VerifiedFields")]
pub struct Verified {
    proofs: u64,
}

#[derive(Serialize, Deserialize)]
struct VerifiedFields {
    proofs: u64,
    verified: bool,
}

impl From<Verified> for VerifiedFields {
    fn from(verified: Verified) -> Self {
        Self { proofs: verified.proofs, verified: true }
    }
}

impl TryFrom<VerifiedFields> for Verified {
    type Error = String;

    fn try_from(fields: VerifiedFields) -> Result<Self, String> {
        match fields {
            VerifiedFields { verified: false, .. } => Err("its proofs were not verified".into()),
            VerifiedFields { proofs: 0, .. } => Err("it has no proofs".into()),
            VerifiedFields { proofs, .. } => Ok(Self { proofs }),
        }
    }
}

impl Verified {
    /// Runs `verifies` over every proof.
    ///
    /// # Errors
    /// [`Error::Unverified`] with the first proof that fails, [`Error::NoProofs`] when there is none.
    pub fn check<P>(
        proofs: impl IntoIterator<Item = P>,
        mut verifies: impl FnMut(P) -> bool,
    ) -> Result<Self, Error> {
        let (mut count, mut bad) = (0, None);
        for proof in proofs {
            count += 1;
            if !verifies(proof) {
                bad.get_or_insert(count);
            }
        }
        match bad {
            Some(index) => Err(Error::Unverified { index, proofs: count }),
            None if count == 0 => Err(Error::NoProofs),
            None => Ok(Self { proofs: count }),
        }
    }

    /// How many proofs were made and verified.
    #[must_use]
    pub fn proofs(&self) -> u64 {
        self.proofs
    }
}

#[derive(Serialize, Deserialize)]
struct TimesFields {
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
}

/// How the wall time divides. busy + all causes = wall, in integer nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "TimesFields", into = "TimesFields")]
pub struct Times {
    busy: Nanos,
    held: Nanos,
    idle: ByCause,
}

impl From<Times> for TimesFields {
    fn from(t: Times) -> Self {
        Self { wall_ns: t.wall().get(), busy_ns: t.busy.get(), held_ns: t.held.get(), idle_ns: t.idle }
    }
}

impl TryFrom<TimesFields> for Times {
    type Error = String;

    fn try_from(fields: TimesFields) -> Result<Self, String> {
        let causes = fields.idle_ns.iter().map(|(_, time)| u128::from(time.get()));
        let sum = u128::from(fields.busy_ns) + causes.sum::<u128>();
        if sum != u128::from(fields.wall_ns) {
            return Err(format!("busy and the causes add up to {sum} ns, the wall is {} ns", fields.wall_ns));
        }
        if fields.held_ns > fields.wall_ns {
            return Err(format!("held for {} ns of a wall of {} ns", fields.held_ns, fields.wall_ns));
        }
        Ok(Self { busy: Nanos::new(fields.busy_ns), held: Nanos::new(fields.held_ns), idle: fields.idle_ns })
    }
}

impl From<&Idle> for Times {
    fn from(idle: &Idle) -> Self {
        Self { busy: idle.busy, held: idle.held, idle: idle.by_cause }
    }
}

impl Times {
    /// From the first to the last moment of the run.
    #[must_use]
    pub fn wall(&self) -> Nanos {
        self.busy + self.idle.total()
    }

    /// Time in which a kernel ran.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.busy
    }

    /// Time in which somebody held the turn.
    #[must_use]
    pub fn held(&self) -> Nanos {
        self.held
    }

    /// Idle time by cause.
    #[must_use]
    pub fn idle(&self) -> &ByCause {
        &self.idle
    }

    /// A part of the wall in per cent; 0 of no wall.
    #[must_use]
    pub fn percent(&self, part: Nanos) -> f64 {
        let wall = self.wall().as_ms();
        if wall > 0.0 { 100.0 * part.as_ms() / wall } else { 0.0 }
    }
}
