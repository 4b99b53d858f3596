//! One step of a script, as a type and as TOML: `{ do = "alloc", label = "a", bytes = "4GiB", class = "direct" }`.

use std::collections::BTreeMap;

use prestage_vram::{Bytes, Class, Track};
use serde::{Deserialize, Serialize};

use super::ScriptError;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// Names the step, so that others can come after it.
    pub id: Option<String>,
    /// Wait until that step, written `worker.id`, is done, or its worker has stopped.
    pub after: Option<String>,
    /// Which proof it belongs to, for the answer. Where proofs are dealt out, it is the one that was dealt.
    pub proof: Option<u32>,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self { action, id: None, after: None, proof: None }
    }
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Work of the worker's own.
    Host {
        /// What it is called.
        label: String,
        /// How long it takes, in nanoseconds.
        ns: u64,
    },
    /// Registers host memory, which is then locked until the worker ends.
    Register {
        /// How much.
        bytes: Amount,
    },
    /// Asks the card what is free.
    Query,
    /// Waits in line for the turn.
    Acquire,
    /// Moves on to the computing half of the turn.
    Compute,
    /// Allocates memory.
    Alloc {
        /// Its name.
        label: String,
        /// How much.
        bytes: Amount,
        /// How.
        class: MemoryClass,
        /// Whether it is counted as memory that outlives turns.
        resident: bool,
    },
    /// Copies between host and device.
    Copy {
        /// What it is called.
        label: String,
        /// How much.
        bytes: Amount,
        /// On which lane: `upload` or `download` say the direction.
        lane: Lane,
        /// Whether the host side is page-locked.
        pinned: bool,
    },
    /// Records a mark at the end of a lane.
    Record {
        /// The mark's name.
        label: String,
        /// Which lane.
        lane: Lane,
    },
    /// Makes a lane wait for a mark.
    Wait {
        /// The mark's name.
        label: String,
        /// Which lane.
        lane: Lane,
    },
    /// Runs a kernel.
    Kernel {
        /// What it is called.
        label: String,
        /// How long it takes, in nanoseconds.
        ns: u64,
        /// On which lane.
        lane: Lane,
    },
    /// Notes what its turn has freed so far.
    Note,
    /// Lets turns that stage beside its own have what was noted; it stays in the pool.
    PassOn,
    /// Waits until all lanes of the worker are done.
    Sync,
    /// Trims the pool. What has not been freed in fact stays there: `sync` first.
    Trim,
    /// Frees memory in the order of a lane.
    Free {
        /// Its name.
        label: String,
        /// Which lane.
        lane: Lane,
    },
    /// Gives the turn back.
    Release,
    /// Other processes hold so much of the card from now on.
    Foreign {
        /// How much.
        bytes: Amount,
    },
}

/// An amount of memory, a number, or the name of one in `[set]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Text", into = "String")]
pub struct Amount(String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Words(String),
    Number(u64),
}

impl From<Text> for Amount {
    fn from(text: Text) -> Self {
        Self(match text {
            Text::Words(words) => words,
            Text::Number(number) => number.to_string(),
        })
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.0
    }
}

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<Bytes> for Amount {
    fn from(bytes: Bytes) -> Self {
        Self(bytes.get().to_string())
    }
}

impl Amount {
    /// What is written, or what it names.
    pub(super) fn text<'a>(&'a self, set: &'a BTreeMap<String, Self>) -> &'a str {
        &set.get(&self.0).unwrap_or(self).0
    }

    /// As a number of bytes.
    pub(super) fn bytes(
        &self,
        set: &BTreeMap<String, Self>,
        place: impl FnOnce() -> String,
    ) -> Result<Bytes, ScriptError> {
        let text = self.text(set);
        text.parse().map_err(|_| ScriptError::Amount { place: place(), text: text.to_owned() })
    }
}

/// [`Class`] as scripts write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryClass {
    /// [`Class::Direct`].
    Direct,
    /// [`Class::Pooled`].
    #[default]
    Pooled,
}

impl From<MemoryClass> for Class {
    fn from(class: MemoryClass) -> Self {
        match class {
            MemoryClass::Direct => Self::Direct,
            MemoryClass::Pooled => Self::Pooled,
        }
    }
}

/// A lane as scripts write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// Kernels.
    #[default]
    Compute,
    /// Host to device.
    Upload,
    /// Device to host.
    Download,
}

impl Lane {
    pub(super) fn track(self) -> Track {
        match self {
            Self::Compute => Track::Compute,
            Self::Upload => Track::Upload,
            Self::Download => Track::Download,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verb {
    Host,
    Register,
    Query,
    Acquire,
    Compute,
    Alloc,
    Copy,
    Record,
    Wait,
    Kernel,
    Note,
    PassOn,
    Sync,
    Trim,
    Free,
    Release,
    Foreign,
}

/// A step as it is written.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(rename = "do")]
    verb: Verb,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<Amount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<MemoryClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resident: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lane: Option<Lane>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<bool>,
}

impl Raw {
    fn new(verb: Verb) -> Self {
        Self {
            verb,
            id: None,
            after: None,
            proof: None,
            label: None,
            bytes: None,
            ns: None,
            class: None,
            resident: None,
            lane: None,
            pinned: None,
        }
    }
}

impl TryFrom<Raw> for Step {
    type Error = String;

    fn try_from(mut raw: Raw) -> Result<Self, String> {
        let verb = raw.verb;
        let lacks = |field: &str| format!("a step that does `{}` needs `{field}`", name(verb));
        let mut label = || raw.label.take().ok_or_else(|| lacks("label"));
        let mut bytes = || raw.bytes.take().ok_or_else(|| lacks("bytes"));
        let mut ns = || raw.ns.take().ok_or_else(|| lacks("ns"));
        let mut lane = |usual: Lane| raw.lane.take().unwrap_or(usual);
        let action = match verb {
            Verb::Host => Action::Host { label: label().unwrap_or_else(|_| "host".into()), ns: ns()? },
            Verb::Register => Action::Register { bytes: bytes()? },
            Verb::Query => Action::Query,
            Verb::Acquire => Action::Acquire,
            Verb::Compute => Action::Compute,
            Verb::Alloc => Action::Alloc {
                label: label()?,
                bytes: bytes()?,
                class: raw.class.take().unwrap_or_default(),
                resident: raw.resident.take().unwrap_or(false),
            },
            Verb::Copy => Action::Copy {
                label: label()?,
                bytes: bytes()?,
                lane: lane(Lane::Upload),
                pinned: raw.pinned.take().unwrap_or(true),
            },
            Verb::Record => Action::Record { label: label()?, lane: lane(Lane::Upload) },
            Verb::Wait => Action::Wait { label: label()?, lane: lane(Lane::Compute) },
            Verb::Kernel => Action::Kernel { label: label()?, ns: ns()?, lane: lane(Lane::Compute) },
            Verb::Note => Action::Note,
            Verb::PassOn => Action::PassOn,
            Verb::Sync => Action::Sync,
            Verb::Trim => Action::Trim,
            Verb::Free => Action::Free { label: label()?, lane: lane(Lane::Compute) },
            Verb::Release => Action::Release,
            Verb::Foreign => Action::Foreign { bytes: bytes()? },
        };
        let left = [
            ("label", raw.label.is_some()),
            ("bytes", raw.bytes.is_some()),
            ("ns", raw.ns.is_some()),
            ("class", raw.class.is_some()),
            ("resident", raw.resident.is_some()),
            ("lane", raw.lane.is_some()),
            ("pinned", raw.pinned.is_some()),
        ];
        if let Some((field, _)) = left.iter().find(|(_, there)| *there) {
            return Err(format!("a step that does `{}` takes no `{field}`", name(verb)));
        }
        Ok(Self { action, id: raw.id, after: raw.after, proof: raw.proof })
    }
}

fn name(verb: Verb) -> String {
    match verb {
        Verb::PassOn => "pass-on".to_owned(),
        verb => format!("{verb:?}").to_lowercase(),
    }
}

impl From<Step> for Raw {
    fn from(step: Step) -> Self {
        let Step { action, id, after, proof } = step;
        let raw = match action {
            Action::Host { label, ns } => Self { label: Some(label), ns: Some(ns), ..Self::new(Verb::Host) },
            Action::Register { bytes } => Self { bytes: Some(bytes), ..Self::new(Verb::Register) },
            Action::Query => Self::new(Verb::Query),
            Action::Acquire => Self::new(Verb::Acquire),
            Action::Compute => Self::new(Verb::Compute),
            Action::Alloc { label, bytes, class, resident } => Self {
                label: Some(label),
                bytes: Some(bytes),
                class: Some(class),
                resident: resident.then_some(true),
                ..Self::new(Verb::Alloc)
            },
            Action::Copy { label, bytes, lane, pinned } => Self {
                label: Some(label),
                bytes: Some(bytes),
                lane: Some(lane),
                pinned: Some(pinned),
                ..Self::new(Verb::Copy)
            },
            Action::Record { label, lane } => {
                Self { label: Some(label), lane: Some(lane), ..Self::new(Verb::Record) }
            }
            Action::Wait { label, lane } => {
                Self { label: Some(label), lane: Some(lane), ..Self::new(Verb::Wait) }
            }
            Action::Kernel { label, ns, lane } => {
                Self { label: Some(label), ns: Some(ns), lane: Some(lane), ..Self::new(Verb::Kernel) }
            }
            Action::Note => Self::new(Verb::Note),
            Action::PassOn => Self::new(Verb::PassOn),
            Action::Sync => Self::new(Verb::Sync),
            Action::Trim => Self::new(Verb::Trim),
            Action::Free { label, lane } => Self {
                label: Some(label),
                lane: (lane != Lane::Compute).then_some(lane),
                ..Self::new(Verb::Free)
            },
            Action::Release => Self::new(Verb::Release),
            Action::Foreign { bytes } => Self { bytes: Some(bytes), ..Self::new(Verb::Foreign) },
        };
        Self { id, after, proof, ..raw }
    }
}
