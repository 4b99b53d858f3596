//! What a script assumes of its card.

use std::collections::BTreeMap;
use std::sync::Arc;

use prestage_vram::sim::OutOfMemory;
use prestage_vram::{Bytes, Card, LedgerConfig, Margin, SimConfig, Sink};
use serde::{Deserialize, Serialize};

use super::ScriptError;
use super::step::Amount;

/// Properties of the card that matter to a script; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CardChanges {
    /// All memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Amount>,
    /// What the driver takes for one process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Amount>,
    /// Memory kept free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Amount>,
    /// What the pool keeps past a synchronisation; `keep` for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_threshold: Option<Amount>,
    /// What happens when memory runs out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<Behaviour>,
    /// Whether a second worker may stage while the first computes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
}

/// What a card does when it is out of memory; as [`OutOfMemory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Behaviour {
    Clean,
    Leak,
    Sticky,
}

impl CardChanges {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The card with these changes, its ledger telling `sink`.
    pub(super) fn apply(
        &self,
        mut card: Card,
        set: &BTreeMap<String, Amount>,
        sink: Arc<dyn Sink>,
    ) -> Result<SimConfig, ScriptError> {
        let change = |slot: &mut Bytes, amount: &Option<Amount>, name: &str| match amount {
            None => Ok(()),
            Some(amount) => amount.bytes(set, || format!("card.{name}")).map(|bytes| *slot = bytes),
        };
        change(&mut card.capacity, &self.capacity, "capacity")?;
        change(&mut card.context, &self.context, "context")?;
        change(&mut card.margin, &self.margin, "margin")?;
        match &self.pool_threshold {
            Some(amount) if amount.text(set) == "keep" => card.pool_threshold = Bytes::MAX,
            other => change(&mut card.pool_threshold, other, "pool_threshold")?,
        }
        if let Some(behaviour) = self.out_of_memory {
            card.out_of_memory = match behaviour {
                Behaviour::Clean => OutOfMemory::Clean,
                Behaviour::Leak => OutOfMemory::Leak,
                Behaviour::Sticky => OutOfMemory::Sticky,
            };
        }
        let ledger = LedgerConfig {
            margin: Margin::Fixed(card.margin),
            threshold: card.pool_threshold,
            ahead: self.ahead,
            sink,
            ..LedgerConfig::default()
        };
        Ok(SimConfig { ledger, ..SimConfig::new(card) })
    }
}
