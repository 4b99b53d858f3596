//! Plays a script: one thread per worker, whatever does its steps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prestage_vram::{Bytes, Device, Error, Level, Nanos, Refused, Worker, WorkerId};

use super::plan::{Act, Plan};
use super::{OnRefusal, ScriptError};
use crate::scenario::Crew;
use crate::timeline::{Recorder, Timeline};

/// A request for memory that was refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// When.
    pub at: Nanos,
    /// Who asked.
    pub worker: WorkerId,
    /// For which proof.
    pub proof: Option<u32>,
    /// Which of the worker's steps.
    pub step: usize,
    /// Label, need, free and every holder.
    pub refused: Arc<Refused>,
}

/// A step that failed in another way.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// When.
    pub at: Nanos,
    /// Whose step.
    pub worker: WorkerId,
    /// Of which proof.
    pub proof: Option<u32>,
    /// Which of the worker's steps.
    pub step: usize,
    /// What it was to do.
    pub action: String,
    /// What went wrong.
    pub error: Error,
}

/// How a proof of a script ended.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// Its worker stopped before.
    #[default]
    NotReached,
    /// All its steps were done.
    Passed,
    /// A request for memory was refused first.
    Refused(Refusal),
    /// Something else failed first.
    Failed(Failure),
}

/// How a script went.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Replay {
    /// Every refusal, the first one first.
    pub refusals: Vec<Refusal>,
    /// Every other failure, the first one first.
    pub failures: Vec<Failure>,
    /// How each proof ended.
    pub proofs: BTreeMap<u32, Outcome>,
    /// The highest level of the account.
    pub peak: Bytes,
    /// The account at the end.
    pub level: Level,
    /// When the last worker ended.
    pub end: Nanos,
    /// Whether the card failed for good.
    pub poisoned: bool,
    /// All that happened.
    pub timeline: Timeline,
}

impl Replay {
    /// The levels of the account, one after another.
    #[must_use]
    pub fn levels(&self) -> Vec<Level> {
        self.timeline.memory().into_iter().map(|(_, level)| level).collect()
    }
}

#[derive(Debug, Default)]
struct Proof {
    left: usize,
    outcome: Outcome,
}

#[derive(Debug, Default)]
struct Progress {
    /// Steps done, per worker; all of them once it has stopped.
    done: Vec<usize>,
    proofs: BTreeMap<u32, Proof>,
    refusals: Vec<Refusal>,
    failures: Vec<Failure>,
    /// Steps that waited for others when nobody could go on.
    stuck: Vec<(WorkerId, usize)>,
}

/// Does the steps of one worker.
pub(super) trait Player {
    /// What it never freed.
    type Held;

    /// Does one step.
    fn act(&mut self, act: &Act) -> Result<(), Error>;

    /// Frees what it holds, as a program does that unwinds.
    fn unwind(&mut self);

    /// Gives the turn back.
    fn end(self) -> Self::Held;
}

/// What the workers know of each other.
struct Shared<'r, D> {
    device: &'r D,
    progress: Mutex<Progress>,
}

impl<D: Device> Shared<'_, D> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many steps of the worker are done.
    fn done(&self, worker: usize, steps: usize) {
        if let Some(done) = self.lock().done.get_mut(worker) {
            *done = steps;
        }
        self.device.ledger().wake();
    }

    /// False when the other step will not be done any more.
    fn wait(&self, (worker, step): (usize, usize)) -> bool {
        let done = || self.lock().done.get(worker).is_none_or(|done| *done > step);
        self.device.block(&mut || done());
        done()
    }
}

/// The turns of a worker borrow it for as long as they live, so that nobody takes two: here each has one of its own.
pub(super) type Seats<'t> = std::slice::IterMut<'t, Worker>;

/// Makes the player of a worker, on a device that was opened for the script.
pub(super) trait Stage<'d>: Sync {
    /// What the workers hold memory of.
    type Device: Crew;
    /// What the players never freed.
    type Held: Send;

    fn device(&self) -> &'d Self::Device;

    /// A player for the worker, who takes a seat for each turn.
    fn player<'t>(&self, id: WorkerId, seats: Seats<'t>) -> impl Player<Held = Self::Held>
    where
        'd: 't;
}

/// Plays the plan.
pub(super) fn run<'d, S: Stage<'d>>(
    plan: &Plan,
    stage: &S,
    recorder: &Recorder,
) -> Result<Replay, ScriptError> {
    let device = stage.device();
    let mut progress = Progress { done: vec![0; plan.workers.len()], ..Progress::default() };
    for proof in plan.workers.iter().flatten().filter_map(|todo| todo.proof) {
        progress.proofs.entry(proof).or_default().left += 1;
    }
    let shared = Shared { device, progress: Mutex::new(progress) };
    let n = u32::try_from(plan.workers.len()).unwrap_or(u32::MAX);
    let results = device.crew(n, |id| play(&shared, plan, id, stage));
    let (level, peak, end) = (device.ledger().level(), device.ledger().peak(), device.now());
    let timeline = recorder.take();
    for result in results {
        match result {
            // What was never freed was held until now.
            Ok(held) => drop(held),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let poisoned = device.ledger().healthy().is_err();
    let Progress { proofs, refusals, failures, mut stuck, .. } =
        shared.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A card that has failed ends waits as well, but that is told.
    if !stuck.is_empty() && refusals.is_empty() && failures.is_empty() {
        stuck.sort();
        let waits = stuck.iter().map(|(worker, step)| format!("step {step} of {worker}")).collect::<Vec<_>>();
        return Err(ScriptError::Stuck { waits: waits.join(", ") });
    }
    let proofs = proofs.into_iter().map(|(number, proof)| (number, proof.outcome)).collect();
    Ok(Replay { refusals, failures, proofs, peak, level, end, poisoned, timeline })
}

/// Plays one worker. Returns what it never freed.
fn play<'d, S: Stage<'d>>(shared: &Shared<'d, S::Device>, plan: &Plan, id: WorkerId, stage: &S) -> S::Held {
    let index = usize::try_from(id.0).unwrap_or(usize::MAX);
    let steps = plan.workers.get(index).map_or(&[][..], Vec::as_slice);
    let turns = steps.iter().filter(|todo| matches!(todo.act, Act::Acquire)).count();
    let mut seats: Vec<Worker> = (0..turns).map(|_| Worker::new(id.0)).collect();
    let mut player = stage.player(id, seats.iter_mut());
    for (step, todo) in steps.iter().enumerate() {
        if let Some(other) = todo.after
            && !shared.wait(other)
        {
            shared.lock().stuck.push((id, step));
        }
        let result = player.act(&todo.act);
        let at = shared.device.now();
        let failed = result.is_err();
        {
            let mut progress = shared.lock();
            let progress = &mut *progress;
            let (worker, proof) = (id, todo.proof);
            let outcome = match result {
                Ok(()) => None,
                Err(Error::Refused(refused)) => {
                    let refusal = Refusal { at, worker, proof, step, refused };
                    progress.refusals.push(refusal.clone());
                    Some(Outcome::Refused(refusal))
                }
                Err(error) => {
                    let failure = Failure { at, worker, proof, step, action: todo.act.words(), error };
                    progress.failures.push(failure.clone());
                    Some(Outcome::Failed(failure))
                }
            };
            if let Some(state) = proof.and_then(|number| progress.proofs.get_mut(&number)) {
                state.left -= 1;
                match outcome {
                    Some(outcome) if matches!(state.outcome, Outcome::NotReached) => state.outcome = outcome,
                    None if state.left == 0 && matches!(state.outcome, Outcome::NotReached) => {
                        state.outcome = Outcome::Passed;
                    }
                    _ => {}
                }
            }
        }
        if failed && plan.on_refusal != OnRefusal::Continue {
            player.unwind();
            break;
        }
        shared.done(index, step + 1);
    }
    let held = player.end();
    shared.done(index, usize::MAX);
    held
}
