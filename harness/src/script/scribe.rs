//! Writes down the script of a typed run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prestage_vram::{Bytes, Change, Class, Event, Ledger, Sink, WorkerId};

use super::step::{Action, Amount, Lane, MemoryClass, Step};
use super::{CardChanges, OnRefusal, Script, WorkerScript};

/// Keeps what workers do to the account of a device, and passes all events on.
///
/// The script has every grant, free, synchronisation, passing on, trim and turn of the run, in their order: where the next one was
/// another worker's, that step has an `after`. It has no work and no times. Requests that were refused are left out: they
/// changed nothing. So are grants that the device could not fill and that were given back at once.
///
/// ```
/// use std::sync::Arc;
/// use prestage_harness::script::Scribe;
/// use prestage_vram::{Card, Class, Device, Host, HostConfig, LedgerConfig, NoSink, Track, Worker};
///
/// let scribe = Arc::new(Scribe::new(Arc::new(NoSink)));
/// let ledger = LedgerConfig { sink: scribe.clone(), ..LedgerConfig::default() };
/// let host = Host::open(HostConfig { ledger, ..HostConfig::default() })?;
/// let mut worker = Worker::new(0);
/// let turn = host.turn(&mut worker)?;
/// let queue = turn.queue(Track::Compute)?;
/// drop(turn.alloc::<u64>("a", 1 << 10, Class::Pooled, &queue)?);
/// turn.release()?;
///
/// let script = scribe.script("one buffer", host.ledger());
/// let replay = script.replay(Card::preset("cascade-16g")?)?;
/// assert_eq!((replay.peak, replay.levels().len()), (host.ledger().peak(), 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Scribe {
    then: Arc<dyn Sink>,
    kept: Mutex<Vec<(WorkerId, Change)>>,
}

impl fmt::Debug for Scribe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scribe").field("changes", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Sink for Scribe {
    fn emit(&self, event: Event) {
        if let Event::Change { worker, change, .. } = &event {
            self.lock().push((*worker, *change));
        }
        self.then.emit(event);
    }
}

impl Scribe {
    /// A scribe that passes every event on to `then`.
    #[must_use]
    pub fn new(then: Arc<dyn Sink>) -> Self {
        Self { then, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(WorkerId, Change)>> {
        // Pushing cannot leave the list half-changed, so a panic elsewhere does not spoil it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The script of all that has happened since the device with this account was opened.
    #[must_use]
    pub fn script(&self, name: &str, ledger: &Ledger) -> Script {
        let changes = self.lock().clone();
        let (reading, config) = (ledger.reading(), ledger.config());
        let card = CardChanges {
            capacity: Some(reading.capacity.into()),
            context: Some(reading.context.into()),
            margin: Some(ledger.margin().into()),
            pool_threshold: Some(match config.threshold {
                Bytes::MAX => Amount::from("keep"),
                bytes => bytes.into(),
            }),
            out_of_memory: None,
            ahead: config.ahead,
        };
        let mut writer = Writer::new(&changes);
        for (at, (worker, change)) in changes.iter().enumerate() {
            writer.change(&changes, at, worker.0, change);
        }
        Script {
            name: name.to_owned(),
            story: String::new(),
            on_refusal: OnRefusal::Fail,
            set: BTreeMap::new(),
            card,
            worker: writer.workers.into_values().map(|steps| WorkerScript { steps }).collect(),
            deal: None,
        }
    }
}

struct Writer {
    workers: BTreeMap<u32, Vec<Step>>,
    /// Workers count from 0 in scripts, without holes.
    number: BTreeMap<u32, usize>,
    /// Whose step came last.
    last: Option<u32>,
    /// Labels of live leases by number, and whose they are.
    live: BTreeMap<u64, (u32, String)>,
    /// Grants that the device could not fill.
    unfilled: BTreeSet<u64>,
    /// Changes that an earlier step stands for as well.
    covered: BTreeSet<usize>,
    foreign: Bytes,
}

impl Writer {
    fn new(changes: &[(WorkerId, Change)]) -> Self {
        let ids: BTreeSet<u32> = changes.iter().map(|(worker, _)| worker.0).collect();
        let unfilled = changes.iter().filter_map(|(_, change)| match change {
            Change::Give { lease, backed: false } => Some(*lease),
            _ => None,
        });
        Self {
            workers: ids.iter().map(|id| (*id, Vec::new())).collect(),
            number: ids.iter().enumerate().map(|(index, id)| (*id, index)).collect(),
            last: None,
            live: BTreeMap::new(),
            unfilled: unfilled.collect(),
            covered: BTreeSet::new(),
            foreign: Bytes::ZERO,
        }
    }

    fn change(&mut self, changes: &[(WorkerId, Change)], at: usize, worker: u32, change: &Change) {
        if self.covered.contains(&at) {
            return;
        }
        match *change {
            Change::Enter => self.step(worker, Action::Acquire),
            Change::Compute => self.step(worker, Action::Compute),
            Change::Leave => self.step(worker, Action::Release),
            Change::Trim => self.step(worker, Action::Trim),
            Change::Note => {
                // Synchronising notes by itself.
                let later = changes.get(at + 1..).unwrap_or_default().iter();
                let ends = |change: &&Change| matches!(change, Change::PassOn | Change::Drain);
                let mut own = later.filter(|(other, _)| other.0 == worker).map(|(_, change)| change);
                if own.find(ends) == Some(&Change::PassOn) {
                    self.step(worker, Action::Note);
                }
            }
            Change::PassOn => self.step(worker, Action::PassOn),
            Change::Drain => {
                // Releasing synchronises first.
                let next = (at + 1..changes.len()).find(|i| changes[*i].0.0 == worker);
                let leaves = next.filter(|i| changes[*i].1 == Change::Leave);
                self.covered.extend(leaves);
                self.step(worker, if leaves.is_some() { Action::Release } else { Action::Sync });
            }
            Change::Take { lease, label, bytes, class, resident } if !self.unfilled.contains(&lease) => {
                let label = self.free_label(worker, label);
                self.live.insert(lease, (worker, label.clone()));
                let class = match class {
                    Class::Direct => MemoryClass::Direct,
                    _ => MemoryClass::Pooled,
                };
                self.step(worker, Action::Alloc { label, bytes: bytes.into(), class, resident });
            }
            Change::Give { lease, .. } => {
                if let Some((worker, label)) = self.live.remove(&lease) {
                    self.step(worker, Action::Free { label, lane: Lane::Compute });
                }
            }
            Change::Read(reading) if reading.foreign != self.foreign => {
                self.foreign = reading.foreign;
                self.foreign_before(worker, reading.foreign);
            }
            _ => {}
        }
    }

    /// A label that this worker holds no memory under.
    fn free_label(&self, worker: u32, label: &str) -> String {
        let taken = |name: &str| self.live.values().any(|(w, l)| *w == worker && l == name);
        if !taken(label) {
            return label.to_owned();
        }
        let mut n = 2_u32;
        loop {
            let name = format!("{label} {n}");
            if !taken(&name) {
                return name;
            }
            n = n.saturating_add(1);
        }
    }

    fn step(&mut self, worker: u32, action: Action) {
        let after = self.last.filter(|last| *last != worker).and_then(|last| {
            let number = *self.number.get(&last)?;
            let steps = self.workers.get_mut(&last)?;
            let count = steps.len();
            let step = steps.last_mut()?;
            let id = step.id.get_or_insert_with(|| format!("s{count}"));
            Some(format!("{number}.{id}"))
        });
        let Some(steps) = self.workers.get_mut(&worker) else { return };
        steps.push(Step { after, ..action.into() });
        self.last = Some(worker);
    }

    /// The device learned of it in the last turn or trim, so it was so before.
    fn foreign_before(&mut self, worker: u32, bytes: Bytes) {
        let Some(steps) = self.workers.get_mut(&worker) else { return };
        let asked = |step: &Step| matches!(step.action, Action::Acquire | Action::Trim);
        let Some(at) = steps.iter().rposition(asked) else { return };
        let after = steps[at].after.take();
        steps.insert(at, Step { after, ..Action::Foreign { bytes: bytes.into() }.into() });
    }
}
