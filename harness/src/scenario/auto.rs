//! What `--device auto` takes.

use std::sync::OnceLock;

/// What `auto` takes on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auto {
    /// The first NVIDIA card: its context can be made, and its kernels can be compiled or are in the cache.
    Card,
    /// The CPU.
    Host {
        /// Why a card that is here is not taken.
        passed_over: Option<String>,
    },
}

impl Auto {
    /// Looks once in the life of the process.
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Auto> = OnceLock::new();
        HERE.get_or_init(look)
    }

    /// Why a card that is here is not taken.
    #[must_use]
    pub fn passed_over(&self) -> Option<&str> {
        match self {
            Self::Card => None,
            Self::Host { passed_over } => passed_over.as_deref(),
        }
    }
}

#[cfg(feature = "cuda")]
fn look() -> Auto {
    let found = prestage_vram::cuda::probe().ok().and_then(|found| found.devices.into_iter().next());
    match found.map(|card| usable(&card)) {
        Some(Ok(())) => Auto::Card,
        Some(Err(why)) => Auto::Host { passed_over: Some(why) },
        None => Auto::Host { passed_over: None },
    }
}

/// Whether a proof can be made on the card.
#[cfg(feature = "cuda")]
fn usable(card: &prestage_vram::cuda::Found) -> Result<(), String> {
    use prestage_kernels::{Cache, Capability, Error, Family, driver_version, ready};

    if let Err(e) = &card.free {
        return Err(e.to_string());
    }
    let (major, minor) = card.compute;
    let kernels = || -> Result<(), Error> {
        ready(&Cache::from_env()?, Family::PROVING, Capability { major, minor }, driver_version()?)
    };
    kernels().map_err(|e| e.to_string())
}

#[cfg(not(feature = "cuda"))]
fn look() -> Auto {
    Auto::Host { passed_over: None }
}
