//! Plays a script: one thread per worker, in virtual time.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prestage_vram::sim::{SimMark, SimQueue, Unruled, Wanted};
use prestage_vram::{
    Buf, Bytes, Cost, Cpu, Device, Error, Level, LockedPages, Nanos, Refused, Sim, SimConfig, Turn, Work,
    Worker, WorkerId, host_work,
};

use super::plan::{Act, Plan};
use super::step::Lane;
use super::{OnRefusal, ScriptError};
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

/// What the workers know of each other.
struct Shared<'r> {
    sim: &'r Sim,
    progress: Mutex<Progress>,
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many steps of the worker are done.
    fn done(&self, worker: usize, steps: usize) {
        if let Some(done) = self.lock().done.get_mut(worker) {
            *done = steps;
        }
        self.sim.ledger().wake();
    }

    /// False when the other step will not be done any more.
    fn wait(&self, (worker, step): (usize, usize)) -> bool {
        let done = || self.lock().done.get(worker).is_none_or(|done| *done > step);
        self.sim.block(&mut || done());
        done()
    }
}

/// Plays the plan on a card that is opened for it.
pub(super) fn run(plan: &Plan, config: SimConfig, recorder: &Recorder) -> Result<Replay, ScriptError> {
    let sim = Sim::open(config)?;
    let mut progress = Progress { done: vec![0; plan.workers.len()], ..Progress::default() };
    for proof in plan.workers.iter().flatten().filter_map(|todo| todo.proof) {
        progress.proofs.entry(proof).or_default().left += 1;
    }
    let shared = Shared { sim: &sim, progress: Mutex::new(progress) };
    let n = u32::try_from(plan.workers.len()).unwrap_or(u32::MAX);
    let results = sim.workers(n, |id| play(&shared, plan, id));
    let (level, peak, end) = (sim.ledger().level(), sim.ledger().peak(), sim.now());
    let timeline = recorder.take();
    for result in results {
        match result {
            // What was never freed was held until now.
            Ok(held) => drop(held),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let poisoned = sim.ledger().healthy().is_err();
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

type Memory<'s> = BTreeMap<&'static str, Buf<'s, Sim, MaybeUninit<u8>>>;

/// Plays one worker. Returns what it never freed.
fn play<'s>(shared: &Shared<'s>, plan: &Plan, id: WorkerId) -> Memory<'s> {
    let index = usize::try_from(id.0).unwrap_or(usize::MAX);
    let steps = plan.workers.get(index).map_or(&[][..], Vec::as_slice);
    let turns = steps.iter().filter(|todo| matches!(todo.act, Act::Acquire)).count();
    // Turns borrow their worker for as long as they live, so that nobody takes two: here each has one of its own.
    let mut seats: Vec<Worker> = (0..turns).map(|_| Worker::new(id.0)).collect();
    let mut player = Player {
        sim: shared.sim,
        id,
        trim: plan.on_refusal == OnRefusal::Trim,
        unruled: shared.sim.unruled(id),
        seats: seats.iter_mut(),
        turn: None,
        lanes: BTreeMap::new(),
        memory: BTreeMap::new(),
        marks: BTreeMap::new(),
        locked: Vec::new(),
    };
    for (step, todo) in steps.iter().enumerate() {
        if let Some(other) = todo.after
            && !shared.wait(other)
        {
            shared.lock().stuck.push((id, step));
        }
        let result = player.act(&todo.act);
        let at = shared.sim.now();
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
            player.memory.clear();
            break;
        }
        shared.done(index, step + 1);
    }
    let held = player.end();
    shared.done(index, usize::MAX);
    held
}

struct Player<'s, 't> {
    sim: &'s Sim,
    id: WorkerId,
    trim: bool,
    unruled: Unruled<'s>,
    seats: std::slice::IterMut<'t, Worker>,
    turn: Option<Turn<'t, Sim>>,
    lanes: BTreeMap<Lane, SimQueue>,
    memory: Memory<'s>,
    marks: BTreeMap<&'static str, SimMark>,
    locked: Vec<LockedPages>,
}

impl<'s: 't, 't> Player<'s, 't> {
    /// Gives the turn back. Returns what is still held.
    fn end(mut self) -> Memory<'s> {
        drop(self.turn.take());
        self.memory
    }

    fn lane(&mut self, lane: Lane) -> Result<SimQueue, Error> {
        if let Some(queue) = self.lanes.get(&lane) {
            return Ok(queue.clone());
        }
        let queue = match &self.turn {
            Some(turn) => turn.queue(lane.track())?,
            None => self.sim.queue(lane.track(), self.id)?,
        };
        self.lanes.insert(lane, queue.clone());
        Ok(queue)
    }

    fn perform(&mut self, lane: Lane, work: Work, cost: Cost) -> Result<(), Error> {
        let queue = self.lane(lane)?;
        // SAFETY: the job touches no memory.
        unsafe { self.sim.perform(&queue, work, move || cost) }
    }

    fn act(&mut self, act: &Act) -> Result<(), Error> {
        let sim = self.sim;
        if let Act::Host { label, ns } = act {
            host_work(sim, self.id, *label, || sim.elapse(Nanos::new(*ns)));
            return Ok(());
        }
        sim.ledger().healthy()?;
        match *act {
            Act::Host { .. } => {}
            Act::Register { bytes } => {
                self.locked.push(sim.ledger().locked().reserve(bytes)?);
                let cost = sim.card().memory.register.of(bytes);
                host_work(sim, self.id, "register", || sim.elapse(cost));
            }
            Act::Query => sim.ledger().refresh(sim.reading()?),
            Act::Acquire => self.acquire()?,
            Act::Compute => {
                if let Some(turn) = &self.turn {
                    turn.compute()?;
                }
            }
            Act::Alloc { label, bytes, class, resident } => {
                let queue = self.lane(Lane::Compute)?;
                let wanted = Wanted { label, bytes, class, resident, trim: self.trim };
                let buf = self.unruled.alloc(self.turn.as_ref(), &wanted, &queue)?;
                self.memory.insert(label, buf);
            }
            Act::Copy { label, bytes, lane, pinned } => {
                let cost = match lane {
                    Lane::Download => Cost::Download { bytes, pinned },
                    Lane::Compute | Lane::Upload => Cost::Upload { bytes, pinned },
                };
                self.perform(lane, Work::copy(label, bytes), cost)?;
            }
            Act::Record { label, lane } => {
                let queue = self.lane(lane)?;
                self.marks.insert(label, sim.record(&queue)?);
            }
            Act::Wait { label, lane } => {
                let queue = self.lane(lane)?;
                // A mark that could not be recorded holds nobody up.
                if let Some(mark) = self.marks.get(label) {
                    sim.wait(&queue, mark)?;
                }
            }
            Act::Kernel { label, ns, lane } => {
                self.perform(lane, Work::launch(label, Bytes::ZERO), Cost::Time(Nanos::new(ns)))?;
            }
            Act::Note => {
                if let Some(turn) = &self.turn {
                    self.unruled.note(turn);
                }
            }
            Act::PassOn => {
                if let Some(turn) = &self.turn {
                    self.unruled.pass_on(turn, &self.lanes.values().collect::<Vec<_>>())?;
                }
            }
            Act::Sync => self.settle()?,
            Act::Trim => drop(self.unruled.trim()?),
            Act::Free { label, lane } => {
                let queue = self.lane(lane)?;
                // What could not be allocated is not there to be freed.
                if let Some(mut buf) = self.memory.remove(label) {
                    buf.claim(&queue)?;
                }
            }
            Act::Release => {
                self.lanes.clear();
                if let Some(turn) = self.turn.take() {
                    turn.release()?;
                }
            }
            Act::Foreign { bytes } => sim.set_foreign(bytes),
        }
        Ok(())
    }

    fn acquire(&mut self) -> Result<(), Error> {
        let Some(seat) = self.seats.next() else { return Ok(()) };
        let turn = self.sim.turn(seat)?;
        self.turn = Some(turn);
        // What was enqueued before comes first.
        for (lane, before) in std::mem::take(&mut self.lanes) {
            let queue = self.lane(lane)?;
            self.sim.wait(&queue, &self.sim.record(&before)?)?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        match &self.turn {
            Some(turn) => turn.drain(),
            None => self.unruled.drain(None, &self.lanes.values().collect::<Vec<_>>()),
        }
    }
}
