//! Partitions from one queue, proved by any number of workers on one device or on several.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use prestage_groth16::{Assignment, Blinding, Opened, Options, Policy, Proof, Proved, Prover, Reduction};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, Device, Nanos, Worker, host_work};

use super::{Crew, Ended, HostTime, dispense};
use crate::Error;
use crate::session::{About, COMMIT};
use crate::timeline::{Key, Load, Recorder, Report, Timeline, Verified, per_minute};

/// How partitions are proved.
#[derive(Clone, Copy, Debug)]
pub struct Scenario<'o> {
    /// Workers, each with a thread of its own.
    pub workers: u32,
    /// Partitions, given out in order.
    pub partitions: u32,
    /// How a, b and c come to the device.
    pub policy: Policy,
    /// What the host's part takes on simulated cards, where nothing takes time unless it says so.
    pub host: HostTime,
    /// What the proofs of the one witness must be besides valid, where the trapdoor of the key is known. The blinding
    /// scalars are then those of the partition's number, so such proofs hide nothing.
    pub opened: Option<&'o Opened>,
}

impl Scenario<'_> {
    /// How the partition of this number, counted from 1, is proved.
    pub(super) fn options(&self, partition: u32) -> Result<Options, prestage_groth16::Error> {
        let options = Options::default().policy(self.policy);
        match self.opened {
            Some(_) => Ok(options.insecure_blinding(known_blinding(partition)?)),
            None => Ok(options),
        }
    }
}

/// A partition without a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which, counted from 1.
    pub partition: u32,
    /// Why.
    pub error: String,
}

/// What became of the partitions on one device.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What the proved ones came to; none when there is no proof.
    pub report: Option<Report>,
    /// What happened.
    pub timeline: Timeline,
    /// The proofs, with the number of their partition, counted from 1.
    pub proofs: Vec<(u32, Proof)>,
    /// The partitions that failed.
    pub failed: Vec<Failed>,
    /// The partitions that were not begun or not finished because of the stop.
    pub stopped: u32,
}

/// What became of the partitions on several devices.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcomes {
    /// What each device did, in their order. Timelines begin at one moment.
    pub devices: Vec<Done>,
    /// The partitions that failed, on whatever device.
    pub failed: Vec<Failed>,
    /// The partitions that were not begun or not finished because of the stop.
    pub stopped: u32,
}

/// What one device of several did.
#[derive(Debug)]
#[non_exhaustive]
pub struct Done {
    /// What its proofs came to; none when it made none.
    pub report: Option<Report>,
    /// What happened on it.
    pub timeline: Timeline,
    /// Its proofs, with the number of their partition, counted from 1.
    pub proofs: Vec<(u32, Proof)>,
    /// Why it was given no more partitions while others were: it failed for good, or a proof did not fit its memory.
    pub lost: Option<String>,
}

impl Outcomes {
    /// From the first moment of the run to the last, on any device.
    #[must_use]
    pub fn wall(&self) -> Nanos {
        let extents = || self.devices.iter().map(|done| done.timeline.extent()).filter(|(a, b)| a != b);
        let first = extents().map(|(first, _)| first).min().unwrap_or_default();
        extents().map(|(_, last)| last).max().unwrap_or_default().since(first)
    }

    /// How many proofs were made, all of them verified.
    #[must_use]
    pub fn proofs(&self) -> usize {
        self.devices.iter().map(|done| done.proofs.len()).sum()
    }

    /// Proofs per minute of wall time, on all devices together.
    #[must_use]
    pub fn proofs_per_minute(&self) -> f64 {
        per_minute(self.proofs() as u64, self.wall())
    }
}

/// A device of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct On<'p, 'd, D: Device, R: Reduction> {
    /// The key, made ready for it.
    pub prover: &'p Prover<'d, D, R>,
    /// Where its events go.
    pub recorder: &'p Recorder,
}

/// Proves partitions on one device. Each is prepared by `assignment`, which gets its number from 0, outside of the turn; what
/// the stages need is done inside it; assembly and verification follow after it. While one worker computes, the next stages as
/// far as memory allows, where the device's ledger was opened for that.
///
/// A partition that fails, by an error or a panic, stops no other. Once `stop` is set, workers end at the next point between
/// two stages and nothing stays on the device.
///
/// # Errors
/// [`Error::Unverified`] when a proof does not verify against the key, or is another than the trapdoor's: then nothing is said
/// about times. [`Error::Device`] when a profiler that was asked for fails.
pub fn run<D: Ntt + Msm + Crew, R: Reduction>(
    prover: &Prover<'_, D, R>,
    scenario: &Scenario<'_>,
    assignment: impl Fn(u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    recorder: &Recorder,
    about: About,
    stop: &AtomicBool,
) -> Result<Outcome, Error> {
    let of = |_: &Prover<'_, D, R>, number| assignment(number);
    let Outcomes { devices, failed, stopped } =
        run_on(&[On { prover, recorder }], scenario, of, vec![about], stop)?;
    let Some(Done { report, timeline, proofs, .. }) = devices.into_iter().next() else {
        return Err(Error::NoProofs);
    };
    Ok(Outcome { report, timeline, proofs, failed, stopped })
}

/// The blinding scalars of a partition whose proof is known beforehand, counted from 1.
fn known_blinding(partition: u32) -> Result<Blinding, prestage_groth16::Error> {
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&partition.to_le_bytes());
    Blinding::insecure_from_seed(seed)
}

/// Whether the trapdoor gives this proof for the partition, counted from 1.
pub(super) fn is_known(opened: &Opened, partition: u32, proof: &Proof) -> bool {
    known_blinding(partition).is_ok_and(|blinding| opened.proof(&blinding) == *proof)
}

/// Proves partitions on several devices, as [`run`] does on one: each has its own ledger, turn and workers, and takes the next
/// partition when it is free. `assignment` is told whose device will prove. `abouts` says of each device what its report
/// is of.
///
/// A device that fails for good, or whose memory is too small for a proof, is given no more partitions, and those that it had
/// are proved by the others; with the last one the rest fails.
///
/// # Errors
/// As [`run`].
pub fn run_on<D: Ntt + Msm + Crew, R: Reduction>(
    devices: &[On<'_, '_, D, R>],
    scenario: &Scenario<'_>,
    assignment: impl Fn(&Prover<'_, D, R>, u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    mut abouts: Vec<About>,
    stop: &AtomicBool,
) -> Result<Outcomes, Error> {
    begin(devices)?;
    let provers: Vec<_> = devices.iter().map(|on| on.prover).collect();
    let hardware: Vec<_> = provers.iter().map(|prover| prover.device()).collect();
    let prove = |on: usize, worker: &mut Worker, number: u32| {
        let prover = provers[on];
        let (device, id) = (prover.device(), worker.id());
        let assignment = host_work(device, id, format!("prepare {}", number + 1), || {
            device.elapse(scenario.host.prepare);
            assignment(prover, number)
        })?;
        let options = scenario.options(number + 1)?;
        let computed = prover.compute(worker, &assignment, &options, &|| stop.load(Ordering::SeqCst))?;
        let proved = host_work(device, id, format!("assemble, verify {}", number + 1), || {
            device.elapse(scenario.host.finish);
            computed.finish(prover)
        })?;
        let public = assignment.public().to_vec();
        // Unlocking host memory takes its time, and on a card it waits for work.
        host_work(device, id, format!("free {}", number + 1), || drop(assignment));
        Ok::<_, prestage_groth16::Error>((proved, public))
    };
    let lost: Vec<_> = devices.iter().map(|_| OnceLock::new()).collect();
    // Another device may be healthy, or larger.
    let unfit = |on: usize, error: &prestage_groth16::Error| {
        let why = match hardware[on].ledger().healthy() {
            Err(failed) => Some(chain(&failed)),
            Ok(()) => error.is_out_of_memory().then(|| chain(error)),
        };
        why.map(|why| lost[on].get_or_init(|| why)).is_some()
    };
    let ended = dispense(&hardware, scenario.workers, scenario.partitions, stop, prove, unfit);
    let timelines = end(devices, &mut abouts)?;

    let mut proved: Vec<Vec<_>> = devices.iter().map(|_| Vec::new()).collect();
    let (mut failed, mut stopped) = (Vec::new(), 0);
    for (partition, ended) in (1..).zip(ended) {
        match ended {
            Ended::Done(on, (done, public)) => proved[on].push((partition, done, public)),
            Ended::Failed(prestage_groth16::Error::Stopped { .. }) | Ended::NotBegun => stopped += 1,
            Ended::Failed(e) => failed.push(Failed { partition, error: chain(&e) }),
            Ended::Panicked(error) => failed.push(Failed { partition, error }),
        }
    }
    let mut done = Vec::with_capacity(devices.len());
    for ((((prover, proved), timeline), about), lost) in
        provers.into_iter().zip(proved).zip(timelines).zip(abouts).zip(lost)
    {
        let report = match proved.is_empty() {
            true => None,
            false => {
                let verified = Verified::check(&proved, |(partition, done, public)| {
                    scenario.opened.is_none_or(|opened| is_known(opened, *partition, &done.proof))
                        && prover.verifier().verify(public, &done.proof).unwrap_or(false)
                })?;
                Some(report(verified, proved.iter().map(|(_, done, _)| done), &timeline, about))
            }
        };
        let proofs = proved.into_iter().map(|(partition, done, _)| (partition, done.proof)).collect();
        done.push(Done { report, timeline, proofs, lost: lost.into_inner() });
    }
    Ok(Outcomes { devices: done, failed, stopped })
}

/// Begins the account of time, which what came before is no part of.
pub(super) fn begin<D: Ntt + Msm + Crew, R: Reduction>(devices: &[On<'_, '_, D, R>]) -> Result<(), Error> {
    for on in devices {
        drop((on.prover.device().records()?, on.recorder.take()));
    }
    Ok(())
}

/// What happened on the devices, which have one clock, since [`begin`]: timelines from the first moment of any.
pub(super) fn end<D: Ntt + Msm + Crew, R: Reduction>(
    devices: &[On<'_, '_, D, R>],
    abouts: &mut [About],
) -> Result<Vec<Timeline>, Error> {
    let mut timelines: Vec<_> = devices.iter().map(|on| on.recorder.take()).collect();
    for ((on, timeline), about) in devices.iter().zip(&mut timelines).zip(abouts) {
        about.timed(timeline, &on.prover.device().records()?);
    }
    let used = timelines.iter().map(Timeline::extent).filter(|(first, last)| first != last);
    Ok(match used.map(|(first, _)| first).min() {
        Some(first) => timelines.into_iter().map(|timeline| timeline.from(first)).collect(),
        None => timelines,
    })
}

fn report<'p>(
    verified: Verified,
    proved: impl Iterator<Item = &'p Proved>,
    timeline: &Timeline,
    about: About,
) -> Report {
    let mut report = untold(verified, timeline, about);
    for done in proved {
        report.plan(done.plan.policy().to_string(), done.plan.reason());
        let peaks: BTreeMap<_, _> = done.peaks.iter().copied().collect();
        for phase in done.plan.phases() {
            let measured = peaks.get(phase.name).copied().unwrap_or(Bytes::ZERO);
            report.phase(phase.name, phase.peak, measured);
        }
    }
    report
}

/// A report of these proofs, before anything is said of their plans.
pub(super) fn untold(verified: Verified, timeline: &Timeline, about: About) -> Report {
    let load = Load { circuit: about.circuit, constraints: about.constraints, partitions: verified.proofs() };
    let key = Key { scenario: about.scenario, device: about.device, load, commit: COMMIT.to_owned() };
    let mut report = Report::new(key, verified, timeline);
    report.parameters = about.parameters;
    report
}

/// The error and what caused it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = cause.source();
    }
    words
}
