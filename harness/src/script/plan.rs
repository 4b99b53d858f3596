//! A script made ready: proofs dealt out, amounts known, every step possible where it stands.

use std::collections::{BTreeMap, BTreeSet};

use prestage_vram::{Bytes, Class};

use super::step::{Action, Amount, Lane, Step};
use super::{OnRefusal, Script, ScriptError, names};

/// More workers than that are no schedule of a card.
const WORKERS: u64 = 64;
const PROOFS: u64 = 4096;

/// What each worker does.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) on_refusal: OnRefusal,
    pub(super) workers: Vec<Vec<Todo>>,
}

/// One step, ready to be done.
#[derive(Debug)]
pub(super) struct Todo {
    pub(super) act: Act,
    pub(super) proof: Option<u32>,
    /// Worker and step to wait for.
    pub(super) after: Option<(usize, usize)>,
}

/// As [`Action`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Host { label: &'static str, ns: u64 },
    Register { bytes: Bytes },
    Query,
    Acquire,
    Compute,
    Alloc { label: &'static str, bytes: Bytes, class: Class, resident: bool },
    Copy { label: &'static str, bytes: Bytes, lane: Lane, pinned: bool },
    Record { label: &'static str, lane: Lane },
    Wait { label: &'static str, lane: Lane },
    Kernel { label: &'static str, ns: u64, lane: Lane },
    Note,
    PassOn,
    Sync,
    Trim,
    Free { label: &'static str, lane: Lane },
    Release,
    Foreign { bytes: Bytes },
}

impl Act {
    /// In words, for messages.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Host { label, .. } => format!("host work `{label}`"),
            Self::Register { bytes } => format!("register {bytes}"),
            Self::Query => "query".into(),
            Self::Acquire => "acquire".into(),
            Self::Compute => "compute".into(),
            Self::Alloc { label, .. } => format!("alloc {label}"),
            Self::Copy { label, .. } => format!("copy {label}"),
            Self::Record { label, .. } => format!("record {label}"),
            Self::Wait { label, .. } => format!("wait for {label}"),
            Self::Kernel { label, .. } => format!("kernel {label}"),
            Self::Note => "note".into(),
            Self::PassOn => "pass on".into(),
            Self::Sync => "sync".into(),
            Self::Trim => "trim".into(),
            Self::Free { label, .. } => format!("free {label}"),
            Self::Release => "release".into(),
            Self::Foreign { .. } => "foreign".into(),
        }
    }
}

fn place(worker: usize, step: usize) -> String {
    format!("worker {worker}, step {step}")
}

impl Plan {
    pub(super) fn of(script: &Script) -> Result<Self, ScriptError> {
        let lists = dealt(script)?;
        let mut ids = BTreeMap::new();
        for (w, steps) in lists.iter().enumerate() {
            for (s, step) in steps.iter().enumerate() {
                if let Some(id) = &step.id
                    && ids.insert(format!("{w}.{id}"), (w, s)).is_some()
                {
                    let reason = format!("another step of this worker is called `{id}`");
                    return Err(ScriptError::Step { place: place(w, s), reason });
                }
            }
        }
        let mut workers = Vec::with_capacity(lists.len());
        for (w, steps) in lists.iter().enumerate() {
            let mut state = Walk::default();
            let mut todo = Vec::with_capacity(steps.len());
            for (s, step) in steps.iter().enumerate() {
                let act = act(&step.action, &script.set, || place(w, s))?;
                state.step(&act).map_err(|reason| ScriptError::Step { place: place(w, s), reason })?;
                let after = match &step.after {
                    None => None,
                    Some(name) => Some(*ids.get(name).ok_or_else(|| ScriptError::Step {
                        place: place(w, s),
                        reason: format!("no step is called `{name}` (write worker.id)"),
                    })?),
                };
                if after.is_some_and(|(other, at)| other == w && at >= s) {
                    let reason = "it would wait for itself or for a later step of its own worker".to_owned();
                    return Err(ScriptError::Step { place: place(w, s), reason });
                }
                todo.push(Todo { act, proof: step.proof, after });
            }
            workers.push(todo);
        }
        Ok(Self { on_refusal: script.on_refusal, workers })
    }
}

/// A list of steps per worker.
fn dealt(script: &Script) -> Result<Vec<Vec<Step>>, ScriptError> {
    let range = |what, value: u64, most| match value {
        n if (1..=most).contains(&n) => Ok(n),
        value => Err(ScriptError::Range { what, value, most }),
    };
    let Some(deal) = &script.deal else {
        range("the number of workers", script.worker.len() as u64, WORKERS)?;
        return Ok(script.worker.iter().map(|worker| worker.steps.clone()).collect());
    };
    let whole = |reason: &str| ScriptError::Step { place: "deal".into(), reason: reason.into() };
    if !script.worker.is_empty() {
        return Err(whole("a script has either [deal] or [[worker]]"));
    }
    if deal.steps.iter().any(|step| step.id.is_some() || step.after.is_some() || step.proof.is_some()) {
        return Err(whole("steps that are dealt out have no `id`, `after` or `proof`"));
    }
    let count = |amount: &Amount, what: &'static str| amount.bytes(&script.set, || what.into());
    let n = range("the number of workers", count(&deal.workers, "deal.workers")?.get(), WORKERS)?;
    let proofs = range("the number of proofs", count(&deal.proofs, "deal.proofs")?.get(), PROOFS)?;
    let proofs = u32::try_from(proofs).unwrap_or(u32::MAX);
    let one = |w: u64| {
        let mine = (0..proofs).filter(move |p| u64::from(*p) % n == w);
        let steps = |p| deal.steps.iter().cloned().map(move |step| Step { proof: Some(p), ..step });
        mine.flat_map(steps).collect()
    };
    Ok((0..n).map(one).collect())
}

fn act(
    action: &Action,
    set: &BTreeMap<String, Amount>,
    place: impl Fn() -> String,
) -> Result<Act, ScriptError> {
    let bytes = |amount: &Amount| amount.bytes(set, &place);
    Ok(match action {
        Action::Host { label, ns } => Act::Host { label: names::label(label), ns: *ns },
        Action::Register { bytes: n } => Act::Register { bytes: bytes(n)? },
        Action::Query => Act::Query,
        Action::Acquire => Act::Acquire,
        Action::Compute => Act::Compute,
        Action::Alloc { label, bytes: n, class, resident } => Act::Alloc {
            label: names::label(label),
            bytes: bytes(n)?,
            class: (*class).into(),
            resident: *resident,
        },
        Action::Copy { label, bytes: n, lane, pinned } => {
            Act::Copy { label: names::label(label), bytes: bytes(n)?, lane: *lane, pinned: *pinned }
        }
        Action::Record { label, lane } => Act::Record { label: names::label(label), lane: *lane },
        Action::Wait { label, lane } => Act::Wait { label: names::label(label), lane: *lane },
        Action::Kernel { label, ns, lane } => {
            Act::Kernel { label: names::label(label), ns: *ns, lane: *lane }
        }
        Action::Note => Act::Note,
        Action::PassOn => Act::PassOn,
        Action::Sync => Act::Sync,
        Action::Trim => Act::Trim,
        Action::Free { label, lane } => Act::Free { label: names::label(label), lane: *lane },
        Action::Release => Act::Release,
        Action::Foreign { bytes: n } => Act::Foreign { bytes: bytes(n)? },
    })
}

/// What a worker holds on the way through its steps.
#[derive(Debug, Default)]
struct Walk {
    turn: bool,
    live: BTreeSet<&'static str>,
    marks: BTreeSet<&'static str>,
}

impl Walk {
    fn step(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Acquire if self.turn => return Err("it holds the turn already".into()),
            Act::Acquire => self.turn = true,
            Act::Release | Act::Compute | Act::Note | Act::PassOn if !self.turn => {
                return Err("it holds no turn".into());
            }
            Act::Release => self.turn = false,
            Act::Alloc { label, .. } if !self.live.insert(label) => {
                return Err(format!("it holds a `{label}` already"));
            }
            Act::Free { label, .. } if !self.live.remove(label) => {
                return Err(format!("it holds no `{label}`"));
            }
            Act::Record { label, .. } => {
                self.marks.insert(label);
            }
            Act::Wait { label, .. } if !self.marks.contains(label) => {
                return Err(format!("it has recorded no mark `{label}`"));
            }
            Act::Copy { lane: Lane::Compute, .. } => {
                return Err("copies go on the lane `upload` or `download`".into());
            }
            _ => {}
        }
        Ok(())
    }
}
