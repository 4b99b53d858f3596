//! What can go wrong with a device or its memory.

use std::fmt;
use std::sync::Arc;

use crate::{Bytes, Class, WorkerId};

/// An operation on a device that can fail and, in tests, be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// An allocation of device memory.
    Allocate,
    /// A copy between host and device.
    Copy,
    /// A kernel launch, or what stands for one.
    Launch,
    /// Pinning or registering host memory.
    Register,
    /// Recording a mark.
    Mark,
    /// Creating a lane.
    Lane,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allocate => "allocation",
            Self::Copy => "copy",
            Self::Launch => "launch",
            Self::Register => "registration",
            Self::Mark => "mark",
            Self::Lane => "lane creation",
        })
    }
}

/// Errors of devices, ledgers and turns.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Memory was refused; the account is as it was before the request.
    #[error(transparent)]
    Refused(#[from] Arc<Refused>),
    /// The margin leaves nothing of the device.
    #[error("a margin of {margin} leaves nothing of a device with {capacity}")]
    MarginTooLarge {
        /// The margin in bytes.
        margin: Bytes,
        /// What the device holds.
        capacity: Bytes,
    },
    /// A count of elements whose size in bytes overflows.
    #[error("{elements} elements of {size} bytes are more than any memory holds")]
    TooLong {
        /// The number of elements.
        elements: usize,
        /// The size of one.
        size: usize,
    },
    /// No more host memory may be page-locked for the device.
    #[error("locking {need} of host memory was refused: {free} of {budget} are left")]
    PinnedBudget {
        /// Bytes asked for, whole pages.
        need: Bytes,
        /// Bytes that could have been granted.
        free: Bytes,
        /// Bytes that may be locked in all.
        budget: Bytes,
    },
    /// Host memory that is locked already, in part or as a whole.
    #[error("host memory at {asked:#x?} is locked already, at {locked:#x?}")]
    AlreadyLocked {
        /// The addresses asked for.
        asked: std::ops::Range<usize>,
        /// The locked range they run into.
        locked: std::ops::Range<usize>,
    },
    /// A raw operation of the device failed.
    #[error("{op} failed on {device}: {detail}")]
    Device {
        /// What was tried.
        op: Op,
        /// On which device.
        device: String,
        /// The device's own words.
        detail: String,
    },
    /// Work on a lane failed after it was handed over; found when the host synchronised.
    #[error("work on the {lane} lane failed: {detail}")]
    Lane {
        /// Which lane.
        lane: &'static str,
        /// What happened.
        detail: String,
    },
    /// The device failed for good; open it again.
    #[error("{device} failed earlier and must be opened again: {detail}")]
    Poisoned {
        /// Which device.
        device: String,
        /// The first failure.
        detail: String,
    },
    /// A turn of one device was used with another.
    #[error("the turn belongs to {turn}, not to {device}")]
    OtherDevice {
        /// The device whose turn it is.
        turn: String,
        /// The device it was used with.
        device: String,
    },
    /// A call to the NVIDIA driver failed.
    #[error("the NVIDIA driver failed at {call}: {detail}")]
    Driver {
        /// Which call.
        call: &'static str,
        /// The driver's own words.
        detail: String,
    },
    /// A card whose context failed in this process, and whose driver makes no other one in the same process.
    #[error("{device} is lost to this process, which must be started again: {detail}")]
    Lost {
        /// Which device.
        device: String,
        /// The driver's own words.
        detail: String,
    },
    /// No such card.
    #[error("no card {asked}: the driver shows {found}")]
    NoDevice {
        /// Its number, or its UUID.
        asked: String,
        /// How many cards there are for this process.
        found: u32,
    },
    /// No CUPTI on this machine, one that is too old, or one that may not be used.
    #[error(
        "no activity records ({detail}): `pip install nvidia-cuda-cupti` and put the folder of its libcupti.so.13 in LD_LIBRARY_PATH"
    )]
    NoCupti {
        /// What the loader or the library said.
        detail: String,
    },
    /// No NVIDIA driver on this machine, or one that is too old.
    #[error("no NVIDIA driver here ({detail}); install one or use the device `host`")]
    NoDriver {
        /// What was looked for.
        detail: String,
    },
}

/// One holder of memory at the moment of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The lease's label.
    pub label: &'static str,
    /// Its size.
    pub bytes: Bytes,
    /// Whose it is, `None` for resident memory.
    pub worker: Option<WorkerId>,
    /// The phase it was taken in.
    pub phase: &'static str,
    /// Its class.
    pub class: Class,
}

/// A request for memory that was not granted: how much, for whom, and who holds the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What the memory was for.
    pub label: &'static str,
    /// Bytes asked for.
    pub need: Bytes,
    /// Bytes that could have been granted: budget − used, less what running plans are still owed.
    pub free: Bytes,
    /// The margin kept.
    pub margin: Bytes,
    /// Bytes that the pool keeps.
    pub retained: Bytes,
    /// usable − margin.
    pub budget: Bytes,
    /// What the device would grant if nobody, other processes included, held anything.
    pub empty: Bytes,
    /// Who asked.
    pub worker: WorkerId,
    /// In which phase.
    pub phase: &'static str,
    /// True when the request does not fit the empty device either.
    pub never: bool,
    /// Every lease at that moment, oldest first.
    pub held: Vec<Holding>,
    /// The driver's own words, where the account agreed and the driver refused.
    pub driver: Option<String>,
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    /// `refused 8.00 GiB for bc (worker 1, stage): free 5.95, margin 0.50, retained 4.55; held: a 4.00 (worker 1)`.
    /// Amounts after the first are in GiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "refused {} for {} ({}, {}): free {}, margin {}, retained {}",
            self.need,
            self.label,
            self.worker,
            self.phase,
            Gib(self.free),
            Gib(self.margin),
            Gib(self.retained)
        )?;
        if self.never {
            write!(f, "; the empty device grants {}", Gib(self.empty))?;
        }
        if let Some(words) = &self.driver {
            write!(f, "; the driver says: {words}")?;
        }
        f.write_str("; held: ")?;
        if self.held.is_empty() {
            return f.write_str("nothing");
        }
        for (i, h) in self.held.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            match h.worker {
                Some(w) => write!(f, "{} {} ({w})", h.label, Gib(h.bytes))?,
                None => write!(f, "{} {} (resident)", h.label, Gib(h.bytes))?,
            }
        }
        Ok(())
    }
}

/// GiB with two decimals; small amounts keep their unit, so that nothing shows as 0.00.
struct Gib(Bytes);

impl fmt::Display for Gib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Bytes::ZERO || self.0 >= Bytes::mib(10) {
            write!(f, "{:.2}", self.0.as_gib())
        } else {
            write!(f, "{}", self.0)
        }
    }
}
