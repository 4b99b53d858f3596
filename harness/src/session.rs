//! A run on one device from start to report: open it with a recorder, prove, verify, say where the time went.

use std::collections::BTreeMap;
use std::sync::Arc;

use prestage_groth16::{Assignment, Options, Plan, Proof, Prover, Reduction};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, LedgerConfig, Margin, Recorded, Worker};

use crate::Error;
use crate::scenario::Crew;
use crate::timeline::{Key, Load, Recorder, Report, Timeline, Verified};

/// The commit that this was built from, or the version where there is no repository.
pub const COMMIT: &str = env!("PRESTAGE_COMMIT");

/// A ledger that sends its events to a new recorder.
#[must_use]
pub fn recorded(margin: Margin) -> (LedgerConfig, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::new());
    (LedgerConfig { margin, sink: recorder.clone(), ..LedgerConfig::default() }, recorder)
}

/// What to say about a run besides its times.
#[derive(Clone, Debug)]
pub struct About {
    /// Which experiment.
    pub scenario: String,
    /// On what, as it was asked for.
    pub device: String,
    /// The circuit's name.
    pub circuit: String,
    /// Rows of its constraint system.
    pub constraints: u64,
    /// Settings that are worth a line.
    pub parameters: BTreeMap<String, String>,
}

impl About {
    /// Times what has records by them, and says so.
    pub(crate) fn timed(&mut self, timeline: &mut Timeline, records: &[Recorded]) {
        if !records.is_empty() {
            let agreement = timeline.time_by_records(records);
            self.parameters.insert("times".to_owned(), agreement.to_string());
        }
    }
}

/// Proofs made one after another on one device, and where the time went.
#[derive(Debug)]
pub struct Run {
    /// The proofs, in order.
    pub proofs: Vec<Proof>,
    /// The plan of the last one.
    pub plan: Plan,
    /// What it came to.
    pub report: Report,
    /// What happened.
    pub timeline: Timeline,
}

/// Makes one proof per element of `options` of the same assignment with one worker, verifies each, and takes the
/// timeline since the recorder was last emptied.
///
/// # Errors
/// What the prover says; [`Error::Unverified`] when a proof does not verify.
pub fn prove_in_turn<D: Ntt + Msm + Crew, R: Reduction>(
    prover: &Prover<'_, D, R>,
    assignment: &Assignment,
    options: &[Options],
    recorder: &Recorder,
    mut about: About,
) -> Result<Run, Error> {
    let mut worker = Worker::new(0);
    let mut proved = Vec::with_capacity(options.len());
    for options in options {
        proved.push(prover.prove(&mut worker, assignment, options)?);
    }
    let mut timeline = recorder.take();
    about.timed(&mut timeline, &prover.device().records()?);
    let public = assignment.public();
    let verified = Verified::check(&proved, |p| prover.verifier().verify(public, &p.proof).unwrap_or(false))?;
    let load = Load { circuit: about.circuit, constraints: about.constraints, partitions: verified.proofs() };
    let key = Key { scenario: about.scenario, device: about.device, load, commit: COMMIT.to_owned() };
    let mut report = Report::new(key, verified, &timeline);
    report.parameters = about.parameters;
    for p in &proved {
        report.plan(p.plan.policy().to_string(), p.plan.reason());
        for phase in p.plan.phases() {
            let measured =
                p.peaks.iter().find(|(name, _)| *name == phase.name).map_or(Bytes::ZERO, |(_, bytes)| *bytes);
            report.phase(phase.name, phase.peak, measured);
        }
    }
    let Some(plan) = proved.last().map(|p| p.plan.clone()) else { return Err(Error::NoProofs) };
    Ok(Run { proofs: proved.into_iter().map(|p| p.proof).collect(), plan, report, timeline })
}
