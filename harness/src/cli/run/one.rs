//! The answer of `run` on one device.

use std::time::Duration;

use prestage_vram::{Bytes, Nanos};
use serde::Serialize;

use super::work::Load;
use super::{Args, FailedPartition, PICTURES, Seat, no_proof, of};
use crate::cli::output::{Failure, Output};
use crate::cli::written;
use crate::host_memory;
use crate::scenario::{Crew, Done, Outcomes, Took};
use crate::timeline::{ByCause, Plan, Report, save};

/// Virtual time in which no figure of a card makes sense any more: a hundred years.
const LONGEST: Nanos = Nanos::new(100 * 365 * 86_400 * 1_000_000_000);
#[derive(Debug, Serialize)]
struct Answer {
    verified: bool,
    proofs: u64,
    partitions: u32,
    workers: u32,
    device: String,
    shape: String,
    policy: String,
    reason: String,
    plans: Vec<Plan>,
    refusals: u64,
    failed: Vec<FailedPartition>,
    stopped: u32,
    peak_bytes: u64,
    capacity_bytes: u64,
    context_bytes: u64,
    margin_bytes: u64,
    budget_bytes: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    proofs_per_minute: f64,
    /// On real devices, where it takes what it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Making>,
    /// What the times are by, where it is not event pairs or the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
    /// Why the exit status is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How a synthetic load was made, and what it took.
#[derive(Clone, Copy, Debug, Serialize)]
struct Making {
    circuit_ns: u64,
    key_ns: u64,
    opened_ns: u64,
    /// Making the key ready for the device: page-locking its points.
    ready_ns: u64,
    /// The most host memory that was resident by the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_peak_bytes: Option<u64>,
}

impl Making {
    fn new(took: Took, ready: Duration) -> Self {
        let Took { circuit, key, opened } = took;
        let [circuit_ns, key_ns, opened_ns, ready_ns] =
            [circuit, key, opened, ready].map(|took| Nanos::from(took).get());
        let host_peak_bytes = host_memory::peak_resident().map(Bytes::get);
        Self { circuit_ns, key_ns, opened_ns, ready_ns, host_peak_bytes }
    }
}

/// Says what became of the partitions, and saves the report.
pub(super) fn answer<D: Crew>(
    args: &Args,
    seat: &Seat<D>,
    load: &Load,
    ready: Duration,
    outcomes: Outcomes,
    out: &mut Output,
) -> Result<(), Failure> {
    let ledger = seat.device.ledger();
    written::write(args.script.as_deref(), seat.scribe.as_deref(), &load.name, ledger)?;
    let Outcomes { devices, failed, stopped } = outcomes;
    let done = devices.into_iter().next();
    let Some(Done { report: Some(report), timeline, .. }) = done else { return Err(no_proof(&failed)) };
    let saved = args.out.as_deref().map(|folder| save(folder, PICTURES, &report, &timeline)).transpose()?;
    let page = saved.map(|saved| saved.page.display().to_string());
    let (reading, level) = (ledger.reading(), ledger.level());
    let plan = report.plans.first();
    let proofs = report.verified.proofs();
    let wrong = match failed.len() {
        0 if stopped > 0 => Some(format!("stopped: {proofs} of {} partitions proved", args.partitions)),
        0 if report.times.wall() >= LONGEST => {
            Some("the card's figures give durations past all clocks".to_owned())
        }
        // Whatever else is right, an account of time with a hole in it is not.
        0 => report.complaint(),
        n => Some(format!("{n} of {} partitions failed", args.partitions)),
    };
    let answer = Answer {
        verified: true,
        proofs,
        partitions: args.partitions,
        workers: args.workers,
        device: report.key.device.clone(),
        shape: report.key.load.circuit.clone(),
        policy: plan.map_or_else(String::new, |p| p.policy.clone()),
        reason: plan.map_or_else(String::new, |p| p.reason.clone()),
        plans: report.plans.clone(),
        refusals: report.refusals.len() as u64,
        failed: FailedPartition::all(&failed),
        stopped,
        peak_bytes: report.peak_bytes,
        capacity_bytes: reading.capacity.get(),
        context_bytes: reading.context.get(),
        margin_bytes: ledger.margin().get(),
        budget_bytes: level.budget.get(),
        wall_ns: report.times.wall().get(),
        busy_ns: report.times.busy().get(),
        held_ns: report.times.held().get(),
        idle_ns: *report.times.idle(),
        proofs_per_minute: report.proofs_per_minute,
        load: load.took.map(|took| Making::new(took, ready)),
        times: report.parameters.get("times").cloned(),
        report: page,
        error: wrong.clone(),
    };
    show(&answer, &report, out);
    out.json(&answer)?;
    if let Some(first) = failed.first() {
        out.note(format_args!("partition {}: {}", first.partition, first.error));
    }
    wrong.map_or(Ok(()), |wrong| Err(Failure::new(wrong)))
}

fn show(answer: &Answer, report: &Report, out: &mut Output) {
    let Answer { proofs, partitions, shape, device, workers, .. } = answer;
    out.line(format_args!(
        "{shape} on {device}: {proofs} of {partitions} proofs by {}, all verified",
        of(*workers, "worker")
    ));
    for plan in &answer.plans {
        let proofs = of(plan.proofs, "proof");
        out.line(format_args!("plan:    {} ({proofs}): {}", plan.policy, plan.reason));
    }
    let bytes = Bytes::new;
    out.line(format_args!(
        "memory:  peak {} of a budget of {} (capacity {} - context {} - margin {}); {} refusals",
        bytes(answer.peak_bytes),
        bytes(answer.budget_bytes),
        bytes(answer.capacity_bytes),
        bytes(answer.context_bytes),
        bytes(answer.margin_bytes),
        answer.refusals
    ));
    if let Some(Making { circuit_ns, key_ns, opened_ns, ready_ns, host_peak_bytes }) = answer.load {
        let took = Nanos::new;
        let peak =
            host_peak_bytes.map_or_else(String::new, |peak| format!("; host memory peak {}", bytes(peak)));
        out.line(format_args!(
            "load:    circuit in {}, key in {}, logarithms of its proofs in {}, made ready in {}{peak}",
            took(circuit_ns),
            took(key_ns),
            took(opened_ns),
            took(ready_ns)
        ));
    }
    if let Some(times) = &answer.times {
        out.line(format_args!("times:   {times}"));
    }
    out.line(format_args!("rate:    {:.1} proofs per minute\n", answer.proofs_per_minute));
    out.line(format_args!("{}", report.table()));
    if let Some(page) = &answer.report {
        out.line(format_args!("\nreport:  {page}"));
    }
}
