//! From the name of a device to what has to be opened.

use std::path::Path;

#[cfg(feature = "cuda")]
use prestage_vram::cuda::{Cap, Cuda, CudaConfig, Which};
use prestage_vram::{Card, Host, HostConfig, LedgerConfig, Margin, Sim, SimConfig};

use super::Auto;
use crate::spec::{DeviceKind, DeviceSpec};

/// A device that can be opened here.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One of them is made per command.
pub enum Target {
    /// The CPU.
    Host(HostConfig),
    /// A simulated card.
    Sim(Card),
    /// An NVIDIA card.
    #[cfg(feature = "cuda")]
    Cuda(CudaConfig),
}

/// A device that cannot be opened here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A card that is neither a preset nor a readable description.
    #[error("{spec}: {detail}")]
    Card {
        /// As it was asked for.
        spec: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A real card in a build that cannot use one.
    #[error("{spec}: built without the feature cuda; use host or sim:PRESET")]
    NoCuda {
        /// As it was asked for.
        spec: String,
    },
}

impl Target {
    /// What the name stands for. `auto` is the first NVIDIA card where it can be used ([`Auto`]), else the CPU; `sim:PATH.toml` reads a card of one's own; a cap makes either smaller.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn resolve(spec: &DeviceSpec) -> Result<Self, TargetError> {
        match &spec.kind {
            DeviceKind::Auto if *Auto::here() == Auto::Card => {
                Self::resolve(&DeviceSpec { kind: DeviceKind::Cuda("0".to_owned()), ..spec.clone() })
            }
            DeviceKind::Auto | DeviceKind::Host => {
                let mut config = HostConfig::default();
                if let Some(cap) = spec.cap {
                    config.capacity = cap;
                }
                Ok(Self::Host(config))
            }
            DeviceKind::Sim(name) => {
                let bad = |detail: String| TargetError::Card { spec: spec.to_string(), detail };
                let own = Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
                let card = if own {
                    let text = std::fs::read_to_string(name).map_err(|e| bad(e.to_string()))?;
                    Card::from_toml(&text)
                } else {
                    Card::preset(name)
                };
                let mut card = card.map_err(|e| bad(e.to_string()))?;
                if let Some(cap) = spec.cap {
                    card.capacity = card.capacity.min(cap);
                }
                Ok(Self::Sim(card))
            }
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda(card) => {
                let bad = |e: &dyn std::error::Error| TargetError::Card {
                    spec: spec.to_string(),
                    detail: e.to_string(),
                };
                let which = card.parse::<Which>().map_err(|e| bad(&e))?;
                let cap = spec.cap.map(|total| Cap { total, context: spec.context });
                Ok(Self::Cuda(CudaConfig { which, cap, ..CudaConfig::default() }))
            }
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) => Err(TargetError::NoCuda { spec: spec.to_string() }),
        }
    }

    /// The margin that is kept unless another is asked for.
    #[must_use]
    pub fn margin(&self) -> Margin {
        match self {
            Self::Sim(card) => Margin::Fixed(card.margin),
            _ => Margin::default(),
        }
    }

    /// The CPU with this ledger.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_host(config: &HostConfig, ledger: LedgerConfig) -> Result<Host, prestage_vram::Error> {
        Host::open(HostConfig { capacity: config.capacity, ledger })
    }

    /// An NVIDIA card with this ledger.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    #[cfg(feature = "cuda")]
    pub fn open_cuda(config: &CudaConfig, ledger: LedgerConfig) -> Result<Cuda, prestage_vram::Error> {
        Cuda::open(CudaConfig { ledger, ..config.clone() })
    }

    /// A simulated card with this ledger, its pool threshold the card's.
    ///
    /// # Errors
    /// As [`Sim::open`].
    pub fn open_sim(card: Card, scale: u64, ledger: LedgerConfig) -> Result<Sim, prestage_vram::Error> {
        let ledger = LedgerConfig { threshold: card.pool_threshold, ..ledger };
        Sim::open(SimConfig { card, scale, ledger })
    }
}
