//! What a simulated card is like: sizes, rates and costs, read from TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::memory::OutOfMemory;
use crate::{Bytes, Nanos};

/// The cards that ship with the crate: name and TOML source.
pub const PRESETS: &[(&str, &str)] = &[
    ("rtx-5070-ti-16g", include_str!("../../presets/rtx-5070-ti-16g.toml")),
    ("rtx-4090-24g", include_str!("../../presets/rtx-4090-24g.toml")),
    ("h100-80g", include_str!("../../presets/h100-80g.toml")),
    ("h200-141g", include_str!("../../presets/h200-141g.toml")),
    ("cascade-16g", include_str!("../../presets/cascade-16g.toml")),
];

/// A simulated card. All rates are in GB/s (10^9 bytes), all costs in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// All memory, e.g. `16303MiB`.
    #[serde(deserialize_with = "bytes")]
    pub capacity: Bytes,
    /// What the driver takes for one process.
    #[serde(deserialize_with = "bytes")]
    pub context: Bytes,
    /// How long opening it takes.
    pub context_ns: u64,
    /// The margin that goes with this card unless another is asked for.
    #[serde(deserialize_with = "bytes")]
    pub margin: Bytes,
    /// What the pool keeps past a synchronisation; `keep` for everything.
    #[serde(deserialize_with = "threshold")]
    pub pool_threshold: Bytes,
    /// What happens when memory runs out.
    #[serde(default)]
    pub out_of_memory: OutOfMemory,
    /// The link to the host.
    pub link: Link,
    /// Calls that manage memory.
    pub memory: MemoryCost,
    /// Fixed cost of handing a kernel over.
    pub launch_ns: u64,
    /// Cost of each kind of kernel, per unit of its work.
    pub kernels: BTreeMap<String, KernelCost>,
}

/// The link to the host.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Host to device from pinned memory.
    pub upload_pinned: f64,
    /// Host to device from pageable memory.
    pub upload_pageable: f64,
    /// Device to host to pinned memory.
    pub download_pinned: f64,
    /// Device to host to pageable memory.
    pub download_pageable: f64,
    /// 2 when uploads and downloads run side by side, 1 when they share an engine.
    pub copy_engines: u8,
}

/// What calls that manage memory cost.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCost {
    /// A direct allocation, per call and per GiB.
    pub allocate_direct: CallCost,
    /// Freeing a direct allocation; it waits for the device as well.
    pub free_direct: CallCost,
    /// A pooled allocation that needs new memory.
    pub allocate_pooled: CallCost,
    /// Giving memory back from the pool to the device.
    pub trim: CallCost,
    /// Registering host memory.
    pub register: CallCost,
    /// Unregistering it.
    pub unregister: CallCost,
    /// Allocating page-locked host memory.
    pub pin: CallCost,
    /// Freeing it.
    pub unpin: CallCost,
}

/// The cost of a call: a fixed part and a part per GiB.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallCost {
    /// Nanoseconds per call.
    pub fixed_ns: u64,
    /// Nanoseconds per GiB.
    pub per_gib_ns: u64,
}

impl CallCost {
    /// The cost of a call for `n` bytes.
    #[must_use]
    pub fn of(&self, n: Bytes) -> Nanos {
        let part = (u128::from(self.per_gib_ns) * u128::from(n.get())) >> 30;
        Nanos::new(self.fixed_ns.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)))
    }
}

/// The cost of a kind of kernel: a fixed part and a part per unit of work.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelCost {
    /// Nanoseconds per launch.
    pub fixed_ns: u64,
    /// Picoseconds per unit (what a unit is, the stage says: a butterfly, a point, an element).
    pub per_unit_ps: u64,
}

impl KernelCost {
    /// The cost of one launch over `units`.
    #[must_use]
    pub fn of(&self, units: u64) -> Nanos {
        let part = u128::from(self.per_unit_ps) * u128::from(units) / 1000;
        Nanos::new(self.fixed_ns.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)))
    }
}

/// A card that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// No preset has this name.
    #[error("no simulated card is called `{name}`; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The text is no card.
    #[error("this is no description of a card: {0}")]
    Parse(String),
    /// A figure makes no sense.
    #[error("{field} of a card must be above zero")]
    Zero {
        /// Which figure.
        field: &'static str,
    },
}

fn names() -> String {
    PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Card {
    /// The preset with this name.
    ///
    /// # Errors
    /// [`CardError::Unknown`] lists the names there are.
    pub fn preset(name: &str) -> Result<Self, CardError> {
        let source = PRESETS.iter().find(|(n, _)| *n == name);
        Self::from_toml(source.ok_or_else(|| CardError::Unknown { name: name.to_owned() })?.1)
    }

    /// Reads a card from TOML.
    ///
    /// # Errors
    /// [`CardError::Parse`] with the parser's words, [`CardError::Zero`].
    pub fn from_toml(text: &str) -> Result<Self, CardError> {
        let card: Self =
            toml::from_str(text).map_err(|e| CardError::Parse(e.to_string().trim().replace('\n', " ")))?;
        let positive = [
            ("link.upload_pinned", card.link.upload_pinned),
            ("link.upload_pageable", card.link.upload_pageable),
            ("link.download_pinned", card.link.download_pinned),
            ("link.download_pageable", card.link.download_pageable),
        ];
        if let Some((field, _)) = positive.iter().find(|(_, v)| !v.is_finite() || *v <= 0.0) {
            return Err(CardError::Zero { field });
        }
        if card.capacity == Bytes::ZERO {
            return Err(CardError::Zero { field: "capacity" });
        }
        if !(1..=2).contains(&card.link.copy_engines) {
            return Err(CardError::Parse("link.copy_engines must be 1 or 2".into()));
        }
        Ok(card)
    }

    /// How long a copy of `n` bytes takes on the link.
    #[must_use]
    pub fn copy(&self, n: Bytes, up: bool, pinned: bool) -> Nanos {
        let rate = match (up, pinned) {
            (true, true) => self.link.upload_pinned,
            (true, false) => self.link.upload_pageable,
            (false, true) => self.link.download_pinned,
            (false, false) => self.link.download_pageable,
        };
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Nanos::new((n.get() as f64 / rate) as u64)
    }
}

fn bytes<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
    String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
}

fn threshold<'de, D: Deserializer<'de>>(d: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(d)?;
    if text == "keep" { Ok(Bytes::MAX) } else { text.parse().map_err(serde::de::Error::custom) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads_and_carries_its_name() {
        for (name, _) in PRESETS {
            assert_eq!(Card::preset(name).unwrap().name, *name);
        }
        let words = Card::preset("gtx-480").unwrap_err().to_string();
        assert!(words.contains("rtx-5070-ti-16g"), "{words}");
        assert!(matches!(Card::from_toml("name = 3"), Err(CardError::Parse(_))));
    }
}
