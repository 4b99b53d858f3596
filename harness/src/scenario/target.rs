//! From the name of a device to what has to be opened.

use std::path::Path;

use prestage_vram::{Card, Host, HostConfig, LedgerConfig, Margin, Sim, SimConfig};

use crate::spec::{DeviceKind, DeviceSpec};

/// A device that can be opened here.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // One of them is made per command.
pub enum Target {
    /// The CPU.
    Host(HostConfig),
    /// A simulated card.
    Sim(Card),
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
    /// A real card.
    #[error(
        "{spec}: scenarios run on the CPU and on simulated cards in this version; use host or sim:PRESET"
    )]
    Real {
        /// As it was asked for.
        spec: String,
    },
}

impl Target {
    /// What the name stands for. `auto` is the CPU; `sim:PATH.toml` reads a card of one's own; a cap makes either smaller.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn resolve(spec: &DeviceSpec) -> Result<Self, TargetError> {
        match &spec.kind {
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
            _ => Err(TargetError::Real { spec: spec.to_string() }),
        }
    }

    /// The margin that is kept unless another is asked for.
    #[must_use]
    pub fn margin(&self) -> Margin {
        match self {
            Self::Host(_) => Margin::default(),
            Self::Sim(card) => Margin::Fixed(card.margin),
        }
    }

    /// The CPU with this ledger.
    ///
    /// # Errors
    /// As [`Host::open`].
    pub fn open_host(config: &HostConfig, ledger: LedgerConfig) -> Result<Host, prestage_vram::Error> {
        Host::open(HostConfig { capacity: config.capacity, ledger })
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
