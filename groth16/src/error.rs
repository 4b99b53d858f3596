//! The errors of the crate.

use prestage_vram::{Bytes, Refused};

use crate::format::FormatError;
use crate::plan::Policy;
use crate::shape::{MatrixName, ShapeError};

/// Why there is no proof, no key or no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Counts of a circuit, a witness, a key or a set of public inputs do not fit together.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A file is not what it should be.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The device, its memory or a lane failed.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
    /// A copy between host and device failed.
    #[error(transparent)]
    Transfer(#[from] prestage_transfer::Error),
    /// A transform was refused.
    #[error(transparent)]
    Ntt(#[from] prestage_ntt::Error),
    /// A multi-scalar multiplication was refused.
    #[error(transparent)]
    Msm(#[from] prestage_msm::Error),
    /// The witness does not satisfy the circuit.
    #[error("the witness does not satisfy constraint {constraint} of {n_constraints} (counted from 0)")]
    Unsatisfied {
        /// The first constraint that fails, counted from zero.
        constraint: usize,
        /// How many constraints the circuit has.
        n_constraints: usize,
    },
    /// Whoever asked for the proof no longer wants it.
    #[error("stopped before {before}")]
    Stopped {
        /// What would have come next.
        before: &'static str,
    },
    /// A proof that several devices were to make together, of which none is left.
    #[error("the proof is not finished: every device that worked on it has failed")]
    Unfinished,
    /// The finished proof does not verify and is not handed out.
    #[error(
        "the proof does not verify: the witness does not satisfy the key's circuit, or the key is damaged; \
         with the constraint system (--r1cs) the failing constraint is named"
    )]
    NotVerified,
    /// A circuit or a density map that the key was not made for.
    #[error("another circuit than the key's: wire {wire} has a point in {matrix} on one side only")]
    OtherCircuit {
        /// The matrix, A or B.
        matrix: MatrixName,
        /// The first such wire.
        wire: u64,
    },
    /// No plan, or not the plan that was asked for, fits the memory.
    #[error(
        "no plan fits: {policy} needs {need} in its phase {phase}, but the budget is {free} (margin {margin} kept)"
    )]
    PlanRefused {
        /// The smallest plan that was tried.
        policy: Policy,
        /// The phase in which it needs most.
        phase: &'static str,
        /// Bytes that it needs at least.
        need: Bytes,
        /// Bytes that may be granted.
        free: Bytes,
        /// Bytes kept free on purpose.
        margin: Bytes,
    },
    /// A number of chunks that is not a power of two from 2 to 64.
    #[error("{chunks} chunks: need a power of two from 2 to 64")]
    Chunks {
        /// The number asked for.
        chunks: u32,
    },
    /// A verifying key under which anyone can make proofs of false statements.
    #[error("this verifying key is not safe: {reason}")]
    InsecureKey {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A point of a proof that is not in the subgroup, which no decoder of this crate lets through.
    #[error("the point {name} of a proof is not in the prime-order subgroup")]
    NotInSubgroup {
        /// A, B or C.
        name: &'static str,
    },
    /// The operating system has no randomness to give.
    #[error("the operating system gives no randomness: {detail}")]
    Random {
        /// Its own words.
        detail: String,
    },
    /// A setup whose circuit is larger than memory can address.
    #[error("a domain of {size} rows is larger than this machine can address")]
    TooLarge {
        /// Rows of the domain.
        size: u64,
    },
}

impl Error {
    /// What was refused and who held the rest, when the device ran out of memory.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        use prestage_transfer::Error as Transfer;
        use prestage_vram::Error as Device;
        match self {
            Self::Device(Device::Refused(refused))
            | Self::Transfer(Transfer::Device(Device::Refused(refused)))
            | Self::Msm(prestage_msm::Error::Device(Transfer::Device(Device::Refused(refused))))
            | Self::Ntt(
                prestage_ntt::Error::Device(Device::Refused(refused))
                | prestage_ntt::Error::Transfer(Transfer::Device(Device::Refused(refused))),
            ) => Some(refused),
            _ => None,
        }
    }

    /// Whether the device has too little memory, at all or now: another one may have enough.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::PlanRefused { .. }) || self.refused().is_some()
    }
}
