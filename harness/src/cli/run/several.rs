//! The answer of `run` on several devices: of each, and of all together.

use serde::Serialize;

use super::{Args, FailedPartition, PICTURES, Seat, Split, no_proof, of};
use crate::cli::output::{Failure, Output};
use crate::scenario::{Crew, Done, Outcomes};
use crate::timeline::{ByCause, Report, Timeline, save_devices};

#[derive(Debug, Serialize)]
struct Answer {
    verified: bool,
    proofs: usize,
    partitions: u32,
    workers: u32,
    shape: String,
    devices: Vec<Device>,
    failed: Vec<FailedPartition>,
    stopped: u32,
    wall_ns: u64,
    proofs_per_minute: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
    /// Why the exit status is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What one device did. Times are those from the first moment of the run to its own last one.
#[derive(Debug, Serialize)]
struct Device {
    device: String,
    /// Proofs that it made; of those that devices made together, those whose quotient it computed.
    proofs: usize,
    /// Proofs that it had a part in.
    part_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    refusals: usize,
    peak_bytes: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    /// Why it was given no more partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

/// Says what became of the partitions, and saves the report.
pub(super) fn answer<D: Crew>(
    args: &Args,
    seats: &[Seat<D>],
    circuit: &str,
    outcomes: &Outcomes,
    out: &mut Output,
) -> Result<(), Failure> {
    let Outcomes { devices, failed, stopped, .. } = outcomes;
    let proofs = outcomes.proofs();
    if proofs == 0 {
        return Err(no_proof(failed));
    }
    let wrong = match failed.len() {
        0 if *stopped > 0 => Some(format!("stopped: {proofs} of {} partitions proved", args.partitions)),
        0 => devices.iter().find_map(|done| done.report.as_ref().and_then(Report::complaint)),
        n => Some(format!("{n} of {} partitions failed", args.partitions)),
    };
    let rate = outcomes.proofs_per_minute();
    let shown: Vec<(&Report, &Timeline)> =
        devices.iter().filter_map(|done| Some((done.report.as_ref()?, &done.timeline))).collect();
    let words = format!(
        "{}{} by {} in {}: {rate:.1} proofs per minute.",
        of(proofs as u64, "proof"),
        if args.split == Split::Sums { ", each" } else { "" },
        of(shown.len() as u64, "device"),
        outcomes.wall()
    );
    let saved =
        args.out.as_deref().map(|folder| save_devices(folder, PICTURES, &words, &shown)).transpose()?;
    let answer = Answer {
        verified: true,
        proofs,
        partitions: args.partitions,
        workers: args.workers,
        shape: circuit.to_owned(),
        devices: seats.iter().zip(devices).map(|(seat, done)| device(&seat.name, done)).collect(),
        failed: FailedPartition::all(failed),
        stopped: *stopped,
        wall_ns: outcomes.wall().get(),
        proofs_per_minute: rate,
        report: saved.map(|saved| saved.page.display().to_string()),
        error: wrong.clone(),
    };
    show(args, &answer, &words, outcomes, out);
    out.json(&answer)?;
    for device in &answer.devices {
        if let Some(why) = &device.lost {
            out.note(format_args!("{} was given up, the others went on: {why}", device.device));
        }
    }
    if let Some(first) = failed.first() {
        out.note(format_args!("partition {}: {}", first.partition, first.error));
    }
    wrong.map_or(Ok(()), |wrong| Err(Failure::new(wrong)))
}

fn device(name: &str, done: &Done) -> Device {
    let idle = done.timeline.idle();
    let report = done.report.as_ref();
    Device {
        device: name.to_owned(),
        proofs: done.proofs.len(),
        part_in: report.map_or(0, |r| r.verified.proofs()),
        policy: report.and_then(|r| r.plans.first()).map(|plan| plan.policy.clone()),
        refusals: report.map_or(0, |r| r.refusals.len()),
        peak_bytes: report.map_or(0, |r| r.peak_bytes),
        wall_ns: idle.wall().get(),
        busy_ns: idle.busy.get(),
        held_ns: idle.held.get(),
        idle_ns: idle.by_cause,
        lost: done.lost.clone(),
    }
}

fn show(args: &Args, answer: &Answer, words: &str, outcomes: &Outcomes, out: &mut Output) {
    out.line(format_args!("{}: {words} All verified.", answer.shape));
    for (device, done) in answer.devices.iter().zip(&outcomes.devices) {
        let Some(report) = &done.report else {
            out.line(format_args!("\n{}: no proof", device.device));
            continue;
        };
        let its = match args.split {
            Split::Partitions => of(device.proofs as u64, "proof"),
            Split::Sums => format!("its part of {}", of(device.part_in, "proof")),
        };
        out.line(format_args!("\n{}: {its}", device.device));
        for plan in &report.plans {
            out.line(format_args!("plan: {} ({}): {}", plan.policy, of(plan.proofs, "proof"), plan.reason));
        }
        out.line(format_args!("{}", report.table()));
    }
    if let Some(page) = &answer.report {
        out.line(format_args!("\nreport:  {page}"));
    }
}
