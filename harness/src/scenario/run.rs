//! Partitions from one queue, proved by any number of workers on one device.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use prestage_groth16::{Assignment, Options, Policy, Proof, Proved, Prover, Reduction};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, host_work};

use super::{Crew, Ended, HostTime, dispense};
use crate::Error;
use crate::session::{About, COMMIT};
use crate::timeline::{Key, Load, Recorder, Report, Timeline, Verified};

/// How partitions are proved.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Workers, each with a thread of its own.
    pub workers: u32,
    /// Partitions, given out in order.
    pub partitions: u32,
    /// How a, b and c come to the device.
    pub policy: Policy,
    /// What the host's part takes on simulated cards, where nothing takes time unless it says so.
    pub host: HostTime,
}

/// A partition without a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which, counted from 1.
    pub partition: u32,
    /// Why.
    pub error: String,
}

/// What became of the partitions.
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

/// Proves partitions. Each is prepared by `assignment`, which gets its number from 0, outside of the turn; what the stages
/// need is done inside it; assembly and verification follow after it. While one worker computes, the next stages as far as
/// memory allows, where the device's ledger was opened for that.
///
/// A partition that fails, by an error or a panic, stops no other. Once `stop` is set, workers end at the next point between
/// two stages and nothing stays on the device.
///
/// # Errors
/// [`Error::Unverified`] when a proof does not verify against the key: then nothing is said about times.
pub fn run<D: Ntt + Msm + Crew, R: Reduction>(
    prover: &Prover<'_, D, R>,
    scenario: &Scenario,
    assignment: impl Fn(u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    recorder: &Recorder,
    about: About,
    stop: &AtomicBool,
) -> Result<Outcome, Error> {
    let device = prover.device();
    let options = Options::default().policy(scenario.policy);
    // The account of time begins with the first partition.
    drop(recorder.take());
    let ended = dispense(device, scenario.workers, scenario.partitions, stop, |worker, number| {
        let id = worker.id();
        let assignment = host_work(device, id, format!("prepare {}", number + 1), || {
            device.elapse(scenario.host.prepare);
            assignment(number)
        })?;
        let computed = prover.compute(worker, &assignment, &options, &|| stop.load(Ordering::SeqCst))?;
        let proved = host_work(device, id, format!("assemble, verify {}", number + 1), || {
            device.elapse(scenario.host.finish);
            computed.finish(prover)
        })?;
        let public = assignment.public().to_vec();
        // Unlocking host memory takes its time, and on a card it waits for work.
        host_work(device, id, format!("free {}", number + 1), || drop(assignment));
        Ok((proved, public))
    });
    let timeline = recorder.take();

    let (mut proved, mut failed, mut stopped) = (Vec::new(), Vec::new(), 0);
    for (partition, ended) in (1..).zip(ended) {
        match ended {
            Ended::Done(Ok((done, public))) => proved.push((partition, done, public)),
            Ended::Done(Err(prestage_groth16::Error::Stopped { .. })) | Ended::NotBegun => stopped += 1,
            Ended::Done(Err(e)) => failed.push(Failed { partition, error: chain(&e) }),
            Ended::Panicked(error) => failed.push(Failed { partition, error }),
        }
    }
    let report = match proved.is_empty() {
        true => None,
        false => {
            let verified = Verified::check(&proved, |(_, done, public)| {
                prover.verifier().verify(public, &done.proof).unwrap_or(false)
            })?;
            Some(report(verified, proved.iter().map(|(_, done, _)| done), &timeline, about))
        }
    };
    let proofs = proved.into_iter().map(|(partition, done, _)| (partition, done.proof)).collect();
    Ok(Outcome { report, timeline, proofs, failed, stopped })
}

fn report<'p>(
    verified: Verified,
    proved: impl Iterator<Item = &'p Proved>,
    timeline: &Timeline,
    about: About,
) -> Report {
    let load = Load { circuit: about.circuit, constraints: about.constraints, partitions: verified.proofs() };
    let key = Key { scenario: about.scenario, device: about.device, load, commit: COMMIT.to_owned() };
    let mut report = Report::new(key, verified, timeline);
    report.parameters = about.parameters;
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

/// The error and what caused it.
fn chain(error: &dyn std::error::Error) -> String {
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
