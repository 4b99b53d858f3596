//! A schedule as data: what each worker does, step by step, replayed on a simulated card.
//!
//! The typed pipeline cannot express the historical faults, so they live here as scripts: memory taken before the turn,
//! freed after it, kept by the wrong pool. A script may break every rule that the types keep; the card does not forgive.
//! The other way round, a [`Scribe`] writes down the script of any typed run, and replaying it gives the same levels of
//! the account one after another.

mod card;
#[cfg(feature = "cuda")]
mod driver;
mod names;
mod plan;
mod replay;
mod scribe;
mod seat;
mod simulated;
mod step;

use std::collections::BTreeMap;

use prestage_vram::{Card, Sim};
use serde::{Deserialize, Serialize};

pub use card::{Behaviour, CardChanges};
pub use replay::{Failure, Outcome, Refusal, Replay};
pub use scribe::Scribe;
pub use step::{Action, Amount, Lane, MemoryClass, Step};

use crate::timeline::Recorder;

/// The scripts that ship with the crate: name and TOML source. `harness/scripts/README.md` tells their story.
pub const SCRIPTS: &[(&str, &str)] = &[
    ("c1-before-the-lock", include_str!("../../scripts/c1-before-the-lock.toml")),
    ("c2-freed-after-the-turn", include_str!("../../scripts/c2-freed-after-the-turn.toml")),
    ("c3-freed-at-the-end", include_str!("../../scripts/c3-freed-at-the-end.toml")),
    ("c4-the-pool-keeps", include_str!("../../scripts/c4-the-pool-keeps.toml")),
    ("c5-trim-on-refusal", include_str!("../../scripts/c5-trim-on-refusal.toml")),
    ("c6-sticky", include_str!("../../scripts/c6-sticky.toml")),
];

/// A schedule for one card: either a list of steps per worker, or the steps of one proof and how proofs are dealt out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// What it shows, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub story: String,
    /// What a worker does when memory is refused.
    #[serde(default)]
    pub on_refusal: OnRefusal,
    /// Values that steps may name instead of an amount: `msm_scratch = "4659MiB"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Amount>,
    /// How the card differs from the one it is replayed on.
    #[serde(default, skip_serializing_if = "CardChanges::is_empty")]
    pub card: CardChanges,
    /// The steps of each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker: Vec<WorkerScript>,
    /// The steps of each proof, and how many proofs and workers there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deal: Option<Deal>,
}

/// What a refused request leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OnRefusal {
    /// The worker frees what it holds, gives its turn back and stops, as a program does that unwinds. Others go on.
    #[default]
    Fail,
    /// It synchronises and asks once more; if that is refused, as `fail`.
    Sync,
    /// It synchronises, trims the pool and asks once more, as turns do; if that is refused, as `fail`.
    Trim,
    /// It goes on without the memory, as a program does that looks at no return code.
    Continue,
}

/// The steps of one worker, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerScript {
    /// The steps.
    pub steps: Vec<Step>,
}

/// Proofs dealt out to workers in turn: proof `p` is made by worker `p mod workers`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Deal {
    /// How many workers, at most 64.
    pub workers: Amount,
    /// How many proofs, at most 4096.
    pub proofs: Amount,
    /// The steps of each.
    pub steps: Vec<Step>,
}

/// A script that cannot be read or makes no sense. Workers, steps and proofs count from 0.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It is no script.
    #[error("this is no script: {0}")]
    Parse(String),
    /// A value is neither an amount nor the name of one.
    #[error("{place}: `{text}` is no amount and no name in [set]")]
    Amount {
        /// Where.
        place: String,
        /// What stands there.
        text: String,
    },
    /// A number that is too small or too large.
    #[error("{what} must be from 1 to {most}, not {value}")]
    Range {
        /// Of what.
        what: &'static str,
        /// What it is.
        value: u64,
        /// What it may be at most.
        most: u64,
    },
    /// A step that cannot be done where it stands.
    #[error("{place}: {reason}")]
    Step {
        /// Where.
        place: String,
        /// Why not.
        reason: String,
    },
    /// `set` names a value that the script does not have.
    #[error("the script has no value `{name}` to set; it has: {known}")]
    Set {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// No script has this name.
    #[error("no script is called `{name}`; there are {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Its workers wait for each other.
    #[error("the schedule cannot go on: {waits} (counted from 0) wait for steps that come after them")]
    Stuck {
        /// Which steps wait.
        waits: String,
    },
    /// The card cannot be opened.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
}

impl Script {
    /// Reads a script from TOML.
    ///
    /// # Errors
    /// [`ScriptError::Parse`] with the parser's words.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        toml::from_str(text).map_err(|e| ScriptError::Parse(e.to_string().trim().replace('\n', " ")))
    }

    /// Writes the script as TOML.
    ///
    /// # Errors
    /// [`ScriptError::Parse`] with the writer's words.
    pub fn to_toml(&self) -> Result<String, ScriptError> {
        toml::to_string(self).map_err(|e| ScriptError::Parse(e.to_string()))
    }

    /// A script that ships with the crate, by its name or the part before the first `-`: `c4`.
    ///
    /// # Errors
    /// [`ScriptError::Unknown`] lists the names there are.
    pub fn named(name: &str) -> Result<Self, ScriptError> {
        let meant = |full: &str| full == name || full.split('-').next() == Some(name);
        match SCRIPTS.iter().find(|(full, _)| meant(full)) {
            Some((_, source)) => Self::from_toml(source),
            None => Err(ScriptError::Unknown {
                name: name.to_owned(),
                known: SCRIPTS.iter().map(|(full, _)| *full).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Gives a value in [`Script::set`] another amount.
    ///
    /// # Errors
    /// [`ScriptError::Set`] for one that the script does not name.
    pub fn set(&mut self, name: &str, amount: impl Into<Amount>) -> Result<(), ScriptError> {
        match self.set.get_mut(name) {
            Some(slot) => *slot = amount.into(),
            None => {
                let known = self.set.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(ScriptError::Set { name: name.to_owned(), known });
            }
        }
        Ok(())
    }

    /// Whether every step makes sense where it stands: amounts are amounts, what is freed was allocated, and so on.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn check(&self) -> Result<(), ScriptError> {
        plan::Plan::of(self).map(drop)
    }

    /// Replays the script on a simulated card, in virtual time.
    ///
    /// Refusals and other failures of steps are part of the answer, not errors: that is what scripts are for.
    ///
    /// # Errors
    /// As [`Script::check`]; [`ScriptError::Device`] when the card cannot be opened.
    pub fn replay(&self, card: Card) -> Result<Replay, ScriptError> {
        let plan = plan::Plan::of(self)?;
        let recorder = std::sync::Arc::new(Recorder::new());
        let sim = Sim::open(self.card.apply(card, &self.set, recorder.clone())?)?;
        replay::run(&plan, &simulated::Simulated { sim: &sim, on_refusal: plan.on_refusal }, &recorder)
    }
}
