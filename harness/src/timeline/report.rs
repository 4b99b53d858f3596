//! What a run came to, as a value that can be kept, read back and compared.
//!
//! Two rules are types here. A [`Report`] needs a [`Verified`], and only checking every proof makes one. Its
//! [`Times`] add up, busy + all causes = wall; a file in which they do not is not read.

use std::collections::BTreeMap;

use prestage_vram::{Bytes, Event, Level, Nanos, Span, Track};
use serde::{Deserialize, Serialize};

use super::{ByCause, Gap, Idle, IdleCause, Timeline, Times, Verified};
use crate::Error;

/// Thousandths of the wall that may stay unattributed; more is a failure of the harness.
pub const UNATTRIBUTED_PERMILLE: u64 = 20;

/// How many of the longest gaps a report names.
const LONGEST: usize = 10;

/// What a report is filed under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Which experiment: `demo staged`.
    pub scenario: String,
    /// On what: `host`, `sim:rtx-5070-ti-16g`, `cuda:0@16GiB`.
    pub device: String,
    /// What was proved.
    pub load: Load,
    /// The commit that was built.
    pub commit: String,
}

/// What was proved. Reports of different loads are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Name of the circuit or of the synthetic shape.
    pub circuit: String,
    /// Rows of its constraint system.
    pub constraints: u64,
    /// How many proofs make one job.
    pub partitions: u64,
}

/// The device's memory at one moment, in bytes, as [`prestage_vram::Level`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Sample {
    /// Since the first moment of the run.
    pub at_ns: u64,
    pub resident: u64,
    pub direct: u64,
    pub pooled: u64,
    pub retained: u64,
    pub usable: u64,
    pub budget: u64,
}

impl Sample {
    /// All that the account holds.
    #[must_use]
    pub fn used(&self) -> Bytes {
        [self.resident, self.direct, self.pooled, self.retained].into_iter().map(Bytes::new).sum()
    }
}

/// A refusal of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalNote {
    /// Since the first moment of the run.
    pub at_ns: u64,
    /// Who asked.
    pub worker: u32,
    /// In which phase.
    pub phase: String,
    /// For what.
    pub label: String,
    /// Bytes asked for.
    pub need_bytes: u64,
    /// Bytes that could have been granted.
    pub free_bytes: u64,
    /// The refusal in words, with every holder.
    pub message: String,
}

/// A plan, why it was taken, and for how many proofs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// `Full`, `AThenBc`, `Chunked(4)`, `None`.
    pub policy: String,
    /// Why.
    pub reason: String,
    /// For how many proofs.
    pub proofs: u64,
}

/// Peak memory of one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What the plan said.
    pub predicted_bytes: u64,
    /// What the ledger saw.
    pub measured_bytes: u64,
}

/// A column of the gap histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Gaps of at least this length.
    pub from_ns: u64,
    /// And shorter than this; none for the last.
    pub below_ns: Option<u64>,
    /// How many there are.
    pub gaps: u64,
    /// Their time by cause.
    pub idle_ns: ByCause,
}

/// One of the longest gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongGap {
    /// Since the first moment of the run.
    pub start_ns: u64,
    /// Since the first moment of the run.
    pub end_ns: u64,
    /// The cause of most of it.
    pub cause: IdleCause,
    /// All of it by cause.
    pub idle_ns: ByCause,
    /// What computed just before; none at the start of the run.
    pub before: Option<String>,
    /// What computed just after; none at the end of the run.
    pub after: Option<String>,
}

impl LongGap {
    /// How long it was.
    #[must_use]
    pub fn len(&self) -> Nanos {
        Nanos::new(self.end_ns).since(Nanos::new(self.start_ns))
    }

    /// Whether it has no length.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Nanos::ZERO
    }
}

/// What a run came to. Times are in nanoseconds since the first moment of the run, memory in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Scenario, device, load, commit.
    pub key: Key,
    /// How many proofs, all verified.
    #[serde(flatten)]
    pub verified: Verified,
    /// `wall_ns`, `busy_ns`, `held_ns`, `idle_ns`.
    #[serde(flatten)]
    pub times: Times,
    /// Proofs per minute of wall time, to a thousandth.
    pub proofs_per_minute: f64,
    /// The highest level of the account.
    pub peak_bytes: u64,
    /// Whatever else was set: workers, margin, seed, threads.
    pub parameters: BTreeMap<String, String>,
    /// The plans taken, in order of their first use.
    pub plans: Vec<Plan>,
    /// Peaks per phase.
    pub phases: Vec<Phase>,
    /// Every refusal.
    pub refusals: Vec<RefusalNote>,
    /// The ten longest gaps, the longest first.
    pub longest: Vec<LongGap>,
    /// Gaps by length, in powers of ten.
    pub histogram: Vec<Bin>,
    /// The account after each change.
    pub memory: Vec<Sample>,
    /// How many events were recorded.
    pub events: u64,
    /// What recording them cost, all threads together.
    pub recording_ns: u64,
}

impl Report {
    /// The report of a run whose proofs all verify.
    #[must_use]
    pub fn new(key: Key, verified: Verified, timeline: &Timeline) -> Self {
        let idle = timeline.idle();
        let times = Times::from(&idle);
        let first = idle.first;
        let memory = samples(timeline, first);
        Self {
            key,
            verified,
            times,
            proofs_per_minute: per_minute(verified.proofs(), times.wall()),
            peak_bytes: peak(&memory),
            parameters: BTreeMap::new(),
            plans: Vec::new(),
            phases: Vec::new(),
            refusals: refusals(timeline, first),
            longest: longest(timeline, &idle),
            histogram: histogram(&idle.gaps),
            memory,
            events: timeline.events().len() as u64,
            recording_ns: timeline.overhead().get(),
        }
    }

    pub(super) fn account(&self) -> Account<'_> {
        Account::new(&self.memory, &self.refusals, self.times.wall())
    }

    /// Adds a parameter of the run.
    pub fn parameter(&mut self, name: impl Into<String>, value: impl std::fmt::Display) -> &mut Self {
        self.parameters.insert(name.into(), format!("{value}"));
        self
    }

    /// Adds the plan of one proof and why it was taken.
    pub fn plan(&mut self, policy: impl Into<String>, reason: impl Into<String>) -> &mut Self {
        let (policy, reason) = (policy.into(), reason.into());
        match self.plans.iter_mut().find(|p| p.policy == policy && p.reason == reason) {
            Some(plan) => plan.proofs += 1,
            None => self.plans.push(Plan { policy, reason, proofs: 1 }),
        }
        self
    }

    /// Adds a phase's peak as the plan said and as the ledger saw it; of several proofs the highest are kept.
    pub fn phase(&mut self, name: impl Into<String>, predicted: Bytes, measured: Bytes) -> &mut Self {
        let (name, predicted_bytes, measured_bytes) = (name.into(), predicted.get(), measured.get());
        match self.phases.iter_mut().find(|p| p.name == name) {
            Some(phase) => {
                phase.predicted_bytes = phase.predicted_bytes.max(predicted_bytes);
                phase.measured_bytes = phase.measured_bytes.max(measured_bytes);
            }
            None => self.phases.push(Phase { name, predicted_bytes, measured_bytes }),
        }
        self
    }

    /// What is wrong with the harness itself, if anything: too much idle time that no event explains.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let (lost, wall) = (self.times.idle().unattributed, self.times.wall().get());
        (u128::from(lost) * 1000 > u128::from(wall) * u128::from(UNATTRIBUTED_PERMILLE)).then(|| {
            format!(
                "no recorded event explains {} of idle time, {:.1} % of the wall (at most {} % may be left open): \
                 the harness fails to record something",
                Nanos::new(lost),
                self.times.percent(Nanos::new(lost)),
                UNATTRIBUTED_PERMILLE / 10
            )
        })
    }

    /// Whether this report and another measure the same thing: equal loads, equally many proofs.
    ///
    /// # Errors
    /// [`Error::Incomparable`] with what differs.
    pub fn comparable(&self, other: &Self) -> Result<(), Error> {
        let (a, b) = (&self.key.load, &other.key.load);
        let pairs = [
            ("the circuit", a.circuit.clone(), b.circuit.clone()),
            ("the number of constraints", a.constraints.to_string(), b.constraints.to_string()),
            ("the number of partitions", a.partitions.to_string(), b.partitions.to_string()),
            ("the number of proofs", self.verified.proofs().to_string(), other.verified.proofs().to_string()),
        ];
        match pairs.into_iter().find(|(_, left, right)| left != right) {
            Some((what, left, right)) => Err(Error::Incomparable { what, left, right }),
            None => Ok(()),
        }
    }

    /// Whether the times, gaps and rates are those of these spans and waits, and the peak that of the memory.
    pub(super) fn follows_from(&self, timeline: &Timeline) -> Result<(), Error> {
        let again = Self::new(self.key.clone(), self.verified, timeline);
        let equal = [
            ("its times", self.times == again.times),
            ("its gaps", self.longest == again.longest && self.histogram == again.histogram),
            ("its proofs per minute", self.proofs_per_minute.to_bits() == again.proofs_per_minute.to_bits()),
            ("its peak", self.peak_bytes == peak(&self.memory)),
        ];
        equal.into_iter().find(|(_, same)| !same).map_or(Ok(()), |(what, _)| Err(Error::Tampered { what }))
    }

    /// The report as JSON, indented.
    ///
    /// # Errors
    /// None in practice: every field has a form in JSON.
    pub fn to_json(&self) -> Result<String, Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`Error::Report`] for anything else, for unverified proofs, and for times that do not add up.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(text)?)
    }
}

/// What the picture of the memory needs to know.
#[derive(Clone, Copy)]
pub(super) struct Account<'a> {
    pub(super) memory: &'a [Sample],
    pub(super) refusals: &'a [RefusalNote],
    pub(super) peak_bytes: u64,
    pub(super) wall: Nanos,
}

impl<'a> Account<'a> {
    pub(super) fn new(memory: &'a [Sample], refusals: &'a [RefusalNote], wall: Nanos) -> Self {
        Self { memory, refusals, peak_bytes: peak(memory), wall }
    }
}

fn peak(memory: &[Sample]) -> u64 {
    memory.iter().map(|s| s.used().get()).max().unwrap_or(0)
}

/// The account after each change, since `first`.
pub(super) fn samples(timeline: &Timeline, first: Nanos) -> Vec<Sample> {
    let sample = |(at, level): (Nanos, Level)| Sample {
        at_ns: at.since(first).get(),
        resident: level.resident.get(),
        direct: level.direct.get(),
        pooled: level.pooled.get(),
        retained: level.retained.get(),
        usable: level.usable.get(),
        budget: level.budget.get(),
    };
    timeline.memory().into_iter().map(sample).collect()
}

/// To a thousandth, so that the number survives its decimal form.
pub(crate) fn per_minute(proofs: u64, wall: Nanos) -> f64 {
    let minutes = wall.as_ms() / 60e3;
    #[allow(clippy::cast_precision_loss)]
    let proofs = proofs as f64;
    if minutes > 0.0 { (1e3 * proofs / minutes).round() / 1e3 } else { 0.0 }
}

/// Every refusal, since `first`.
pub(super) fn refusals(timeline: &Timeline, first: Nanos) -> Vec<RefusalNote> {
    let notes = timeline.events().iter().filter_map(|event| match event {
        Event::Refusal { at, refused } => Some(RefusalNote {
            at_ns: at.since(first).get(),
            worker: refused.worker.0,
            phase: refused.phase.to_owned(),
            label: refused.label.to_owned(),
            need_bytes: refused.need.get(),
            free_bytes: refused.free.get(),
            message: refused.to_string(),
        }),
        _ => None,
    });
    notes.collect()
}

/// The longest gaps, the earlier one of equals first, with what computed around them.
fn longest(timeline: &Timeline, idle: &Idle) -> Vec<LongGap> {
    let mut gaps: Vec<&Gap> = idle.gaps.iter().collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.len()));
    gaps.truncate(LONGEST);
    let name = |span: &Span| format!("{} ({})", span.name, span.worker);
    // Empty spans do not end a gap, so they are no neighbours either.
    let around = |at: Nanos, side: fn(&Span) -> Nanos| {
        timeline.on(Track::Compute).find(|s| s.end > s.start && side(s) == at).map(name)
    };
    gaps.into_iter()
        .map(|gap| LongGap {
            start_ns: gap.start().since(idle.first).get(),
            end_ns: gap.end().since(idle.first).get(),
            cause: gap.by_cause().main().unwrap_or(IdleCause::Unattributed),
            idle_ns: gap.by_cause(),
            before: around(gap.start(), |s| s.end),
            after: around(gap.end(), |s| s.start),
        })
        .collect()
}

/// Columns from below 10 µs to 1 s and above, in powers of ten.
fn histogram(gaps: &[Gap]) -> Vec<Bin> {
    let edges: Vec<u64> = (4..=9).map(|e| 10u64.pow(e)).collect();
    let starts = std::iter::once(0).chain(edges.iter().copied());
    let ends = edges.iter().copied().map(Some).chain(std::iter::once(None));
    starts
        .zip(ends)
        .map(|(from_ns, below_ns)| {
            let mut bin = Bin { from_ns, below_ns, gaps: 0, idle_ns: ByCause::default() };
            for gap in gaps {
                let len = gap.len().get();
                if len >= from_ns && below_ns.is_none_or(|end| len < end) {
                    bin.gaps += 1;
                    gap.by_cause().iter().for_each(|(cause, time)| bin.idle_ns.add(cause, time));
                }
            }
            bin
        })
        .collect()
}
