//! Partitions one after another, each proved by all devices at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use blstrs::Scalar;
use prestage_groth16::{Assignment, Error as ProofError, JointProof, Proof, Prover, Reduction, Share};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, Device, Event, Nanos, Span, Track, Worker, WorkerId};

use super::run::{begin, chain, end, is_known, untold};
use super::workers::words;
use super::{Crew, Done, Failed, On, Outcomes, Scenario};
use crate::Error;
use crate::session::About;
use crate::timeline::{Report, Verified};

/// A proof, with the values that it is verified for.
struct Proved {
    partition: u32,
    proof: Proof,
    public: Vec<Scalar>,
}

/// Proves partitions one after another, each on all devices at once: the first computes the quotient, and the terms of the sums
/// go to whichever device is free ([`JointProof`]). For the time that one proof takes; for proofs per minute use
/// [`super::run_on`]. A device has one worker, whatever the scenario says, and `assignment` is told the first device that is there.
///
/// A device that fails for good, or whose memory is too small for a proof, takes no further part, and the proof that it was at is
/// completed by the others; with the last one the rest fails. A proof counts as the device's that computed the quotient, and is in
/// the report of each that had a part in it.
///
/// # Errors
/// As [`super::run_on`].
pub fn run_joint<D: Ntt + Msm + Crew, R: Reduction>(
    devices: &[On<'_, '_, D, R>],
    scenario: &Scenario<'_>,
    assignment: impl Fn(&Prover<'_, D, R>, u32) -> Result<Assignment, ProofError> + Sync,
    mut abouts: Vec<About>,
    stop: &AtomicBool,
) -> Result<Outcomes, Error> {
    begin(devices)?;
    let provers: Vec<_> = devices.iter().map(|on| on.prover).collect();
    let mut lost: Vec<Option<String>> = vec![None; devices.len()];
    let mut proved: Vec<(usize, Proved)> = Vec::new();
    let mut shares: Vec<Vec<(u32, Vec<Share>)>> = devices.iter().map(|_| Vec::new()).collect();
    let (mut failed, mut stopped) = (Vec::new(), 0);
    let mut why = String::new();
    let mut partitions = 1..=scenario.partitions;
    let mut next = partitions.next();
    while let Some(partition) = next {
        for (lost, prover) in lost.iter_mut().zip(&provers) {
            if lost.is_none()
                && let Err(failed) = prover.device().ledger().healthy()
            {
                why = chain(&failed);
                *lost = Some(why.clone());
            }
        }
        let there: Vec<_> = (0..provers.len()).filter(|i| lost[*i].is_none()).collect();
        let set: Vec<_> = there.iter().map(|i| provers[*i]).collect();
        let Some(&first) = there.first() else {
            failed.push(Failed { partition, error: why.clone() });
            next = partitions.next();
            continue;
        };
        if stop.load(Ordering::SeqCst) {
            stopped += 1;
            next = partitions.next();
            continue;
        }
        let (outcome, parts) = one(&set, scenario, &assignment, partition, stop);
        if outcome.is_err() && parts.is_empty() && set[0].device().ledger().healthy().is_err() {
            // It failed while the partition was prepared for it: the others have not begun.
            continue;
        }
        next = partitions.next();
        let mut leader = first;
        for (i, part) in there.into_iter().zip(parts) {
            match part {
                Ok(part) => {
                    if part.iter().any(|share| share.policy.is_some()) {
                        leader = i;
                    }
                    shares[i].push((partition, part));
                }
                Err(Unfit { error, for_good }) => {
                    why.clone_from(&error);
                    lost[i] = for_good.then_some(error);
                }
            }
        }
        match outcome {
            Ok(done) => proved.push((leader, done)),
            // Each device has said why.
            Err(ProofError::Unfinished) if stop.load(Ordering::SeqCst) => stopped += 1,
            Err(ProofError::Unfinished) => failed.push(Failed { partition, error: why.clone() }),
            Err(error) => failed.push(Failed { partition, error: chain(&error) }),
        }
    }
    let timelines = end(devices, &mut abouts)?;
    let mut done = Vec::with_capacity(devices.len());
    let parts = shares.into_iter().zip(timelines).zip(abouts).zip(lost);
    for (i, (((shares, timeline), about), lost)) in parts.enumerate() {
        let took_part = |done: &Proved| {
            shares.iter().any(|(partition, part)| *partition == done.partition && !part.is_empty())
        };
        let its: Vec<_> = proved.iter().map(|(_, done)| done).filter(|done| took_part(done)).collect();
        let report = match its.is_empty() {
            true => None,
            false => {
                let verified = Verified::check(&its, |Proved { partition, proof, public }| {
                    scenario.opened.is_none_or(|opened| is_known(opened, *partition, proof))
                        && provers[i].verifier().verify(public, proof).unwrap_or(false)
                })?;
                let mut report = untold(verified, &timeline, about);
                shares.iter().flat_map(|(_, part)| part).for_each(|share| describe(&mut report, share));
                Some(report)
            }
        };
        let led = proved.iter().filter(|(leader, _)| *leader == i);
        let proofs = led.map(|(_, done)| (done.partition, done.proof)).collect();
        done.push(Done { report, timeline, proofs, lost });
    }
    Ok(Outcomes { devices: done, failed, stopped })
}

/// Why a device did not complete its part.
struct Unfit {
    error: String,
    /// Another proof would fare no better.
    for_good: bool,
}

/// How a device's part in a proof ended: what it did in each of its turns.
type Part = Result<Vec<Share>, Unfit>;

/// One partition on all of these devices, and the part that each had in it; no parts where they have not begun.
fn one<D: Ntt + Msm + Crew, R: Reduction>(
    set: &[&Prover<'_, D, R>],
    scenario: &Scenario<'_>,
    assignment: &(impl Fn(&Prover<'_, D, R>, u32) -> Result<Assignment, ProofError> + Sync),
    partition: u32,
    stop: &AtomicBool,
) -> (Result<Proved, ProofError>, Vec<Part>) {
    let first = set[0];
    let options = match scenario.options(partition) {
        Ok(options) => options,
        Err(e) => return (Err(e), Vec::new()),
    };
    let devices: Vec<_> = set.iter().map(|prover| prover.device()).collect();
    let prepared = for_all(&devices, &format!("prepare {partition}"), || {
        first.device().elapse(scenario.host.prepare);
        assignment(first, partition - 1)
    });
    let assignment = match prepared {
        Ok(assignment) => assignment,
        Err(e) => return (Err(e), Vec::new()),
    };
    let joint = for_all(&devices, &format!("pin for {partition}"), || {
        JointProof::new(first, &assignment, &options, set.len())
    });
    let joint = match joint {
        Ok(joint) => joint,
        Err(e) => return (Err(e), Vec::new()),
    };
    let seats = u32::try_from(set.len()).unwrap_or(u32::MAX);
    let called = first.device().now();
    let ends = first.device().crew(seats, |WorkerId(seat)| {
        let prover = set[seat as usize];
        // A thread takes its time to start.
        host_span(prover.device(), format!("begin {partition}"), called);
        joint.work(prover, &mut Worker::new(0), seat == 0, &|| stop.load(Ordering::SeqCst))
    });
    let part = |(prover, end): (&&Prover<'_, D, R>, std::thread::Result<Result<_, ProofError>>)| match end {
        Ok(Ok(shares)) => Ok(shares),
        Ok(Err(error)) => Err(match prover.device().ledger().healthy() {
            Err(failed) => Unfit { error: chain(&failed), for_good: true },
            Ok(()) => Unfit { error: chain(&error), for_good: error.is_out_of_memory() },
        }),
        Err(panic) => Err(Unfit { error: words(panic.as_ref()), for_good: false }),
    };
    let parts = set.iter().zip(ends).map(part).collect();
    let proof = for_all(&devices, &format!("assemble, verify {partition}"), || {
        first.device().elapse(scenario.host.finish);
        joint.finish(first)
    });
    let public = assignment.public().to_vec();
    for_all(&devices, &format!("free {partition}"), || drop(assignment));
    (proof.map(|proof| Proved { partition, proof, public }), parts)
}

/// Does host work that all of these devices wait for.
fn for_all<D: Device, T>(devices: &[&D], name: &str, work: impl FnOnce() -> T) -> T {
    let start = devices.first().map(|device| device.now()).unwrap_or_default();
    let value = work();
    devices.iter().for_each(|device| host_span(*device, name.to_owned(), start));
    value
}

/// Records that the host worked for a device from `start` until now.
fn host_span(device: &impl Device, name: String, start: Nanos) {
    let (name, end, bytes) = (name.into(), device.now(), Bytes::ZERO);
    let span = Span { track: Track::Host, worker: WorkerId(0), name, start, end, bytes };
    device.ledger().emit(Event::Span(span));
}

/// Adds what a device did in one turn.
fn describe(report: &mut Report, share: &Share) {
    let policy = share.policy.map_or_else(|| "sums alone".to_owned(), |policy| policy.to_string());
    report.plan(policy, share.reason.as_str());
    let peaks: BTreeMap<_, _> = share.peaks.iter().copied().collect();
    for phase in &share.phases {
        if let Some(peak) = peaks.get(phase.name) {
            report.phase(phase.name, phase.peak, *peak);
        }
    }
}
