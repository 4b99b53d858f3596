//! From the name of a device to what has to be opened.

use std::path::Path;

#[cfg(feature = "cuda")]
use prestage_vram::cuda::{Cap, Cuda, CudaConfig, Which};
use prestage_vram::{Card, Host, HostConfig, LedgerConfig, Margin, Sim, SimConfig};

use super::Auto;
use crate::spec::{DeviceKind, DeviceSpec, DeviceSpecs};

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
    /// Several devices where one is meant.
    #[error("{spec} is several devices: only run takes those")]
    Several {
        /// As they were asked for.
        spec: String,
    },
    /// Devices of different kinds, which have no time in common.
    #[error("{specs}: devices that work together are all cuda, all sim or all host")]
    Mixed {
        /// As they were asked for.
        specs: String,
    },
    /// One card twice.
    #[error("{specs}: {card} is there twice")]
    Twice {
        /// As they were asked for.
        specs: String,
        /// The card.
        card: String,
    },
}

/// Devices that can be opened here to work together, each with what it is called. At least one.
#[derive(Clone, Debug)]
pub enum Targets {
    /// The CPU, in one part or in several.
    Host(Vec<(String, HostConfig)>),
    /// Simulated cards.
    Sim(Vec<(String, Card)>),
    /// NVIDIA cards.
    #[cfg(feature = "cuda")]
    Cuda(Vec<(String, CudaConfig)>),
}

impl Targets {
    /// What the names stand for: one device as [`Target::resolve`] has it, or several of one kind; `cuda:*` is every NVIDIA card
    /// that is here.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn resolve(specs: &DeviceSpecs) -> Result<Self, TargetError> {
        let mut each = Vec::new();
        for spec in specs.specs() {
            if spec.kind == DeviceKind::EveryCuda {
                for spec in every_card(spec)? {
                    each.push((spec.to_string(), Target::resolve(&spec)?));
                }
            } else {
                each.push((spec.to_string(), Target::resolve(spec)?));
            }
        }
        let mixed = || TargetError::Mixed { specs: specs.to_string() };
        let (mut hosts, mut sims) = (Vec::new(), Vec::new());
        #[cfg(feature = "cuda")]
        let mut cards = Vec::new();
        for (name, target) in each {
            match target {
                Target::Host(config) => hosts.push((name, config)),
                Target::Sim(card) => sims.push((name, card)),
                #[cfg(feature = "cuda")]
                Target::Cuda(config) => cards.push((name, config)),
            }
        }
        #[cfg(feature = "cuda")]
        if !cards.is_empty() {
            return match (hosts.is_empty() && sims.is_empty(), repeated(&cards)) {
                (false, _) => Err(mixed()),
                (true, Some(card)) => Err(TargetError::Twice { specs: specs.to_string(), card }),
                (true, None) => Ok(Self::Cuda(cards)),
            };
        }
        match (hosts.is_empty(), sims.is_empty()) {
            (false, true) => Ok(Self::Host(hosts)),
            (true, false) => Ok(Self::Sim(sims)),
            _ => Err(mixed()),
        }
    }

    /// As [`Target::recorded`], for all of them.
    #[must_use]
    pub fn recorded(self) -> Option<Self> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(cards) => {
                let recorded = |(name, config)| (name, CudaConfig { records: true, ..config });
                Some(Self::Cuda(cards.into_iter().map(recorded).collect()))
            }
            _ => None,
        }
    }

    /// The first of them alone, and whether there are more.
    #[must_use]
    pub fn first(&self) -> Option<(Target, bool)> {
        fn of<C: Clone>(all: &[(String, C)], target: impl Fn(C) -> Target) -> Option<(Target, bool)> {
            all.split_first().map(|((_, first), rest)| (target(first.clone()), !rest.is_empty()))
        }
        match self {
            Self::Host(all) => of(all, Target::Host),
            Self::Sim(all) => of(all, Target::Sim),
            #[cfg(feature = "cuda")]
            Self::Cuda(all) => of(all, Target::Cuda),
        }
    }
}

/// A card that is named twice, by whatever names.
#[cfg(feature = "cuda")]
fn repeated(cards: &[(String, CudaConfig)]) -> Option<String> {
    let found = prestage_vram::cuda::probe().map(|found| found.devices).unwrap_or_default();
    let mut seen = Vec::new();
    for (name, config) in cards {
        let which = match config.which {
            Which::Ordinal(n) => {
                found.iter().find(|card| card.ordinal == n).map(|card| Which::Uuid(card.uuid))
            }
            Which::Uuid(_) => None,
        };
        let which = which.unwrap_or(config.which);
        if seen.contains(&which) {
            return Some(name.clone());
        }
        seen.push(which);
    }
    None
}

/// `cuda:*`, card by card.
#[cfg(feature = "cuda")]
fn every_card(spec: &DeviceSpec) -> Result<Vec<DeviceSpec>, TargetError> {
    let bad = |detail: String| TargetError::Card { spec: spec.to_string(), detail };
    let found = prestage_vram::cuda::probe().map_err(|e| bad(e.to_string()))?;
    if found.devices.is_empty() {
        return Err(bad("the driver sees no card".to_owned()));
    }
    let kind = |card: &prestage_vram::cuda::Found| DeviceKind::Cuda(card.ordinal.to_string());
    Ok(found.devices.iter().map(|card| DeviceSpec { kind: kind(card), ..spec.clone() }).collect())
}

#[cfg(not(feature = "cuda"))]
fn every_card(spec: &DeviceSpec) -> Result<Vec<DeviceSpec>, TargetError> {
    Err(TargetError::NoCuda { spec: spec.to_string() })
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
            #[cfg(feature = "cuda")]
            DeviceKind::EveryCuda => Err(TargetError::Several { spec: spec.to_string() }),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda(_) | DeviceKind::EveryCuda => {
                Err(TargetError::NoCuda { spec: spec.to_string() })
            }
        }
    }

    /// The same with CUPTI's records of what runs; `None` for what is no NVIDIA card.
    #[must_use]
    pub fn recorded(self) -> Option<Self> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(config) => Some(Self::Cuda(CudaConfig { records: true, ..config })),
            _ => None,
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
        Self::open_sim_beside(card, scale, ledger, None)
    }

    /// The same on the clock of another card, if there is one.
    ///
    /// # Errors
    /// As [`Sim::open`].
    pub fn open_sim_beside(
        card: Card,
        scale: u64,
        ledger: LedgerConfig,
        first: Option<&Sim>,
    ) -> Result<Sim, prestage_vram::Error> {
        let ledger = LedgerConfig { threshold: card.pool_threshold, ..ledger };
        let config = SimConfig { card, scale, ledger };
        first.map_or_else(|| Sim::open(config.clone()), |first| first.open_beside(config.clone()))
    }
}
