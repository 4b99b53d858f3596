//! `prestage run` on several devices: one queue of partitions, a report of each device and of all together.

use std::sync::Arc;

use prestage_groth16::{AnyKey, Assignment, Opened, Prover, Reduction};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Error, LedgerConfig, Margin};
use serde::Serialize;

use super::output::{Failure, Output};
use super::run::{Args, FailedPartition, PICTURES, Work, about, interrupt, of};
use crate::scenario::{Crew, HostTime, On, Outcomes, Scenario, Target, Targets, run_on_opened};
use crate::timeline::{ByCause, Recorder, Report, Timeline, save_devices};

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
    proofs: usize,
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

/// An open device.
struct Seat<D> {
    name: String,
    device: D,
    recorder: Arc<Recorder>,
}

/// Runs the verb on more than one device.
pub(super) fn run(args: &Args, targets: Targets, work: Work, out: &mut Output) -> Result<(), Failure> {
    if args.script.is_some() {
        return Err(Failure::new("--script is the schedule of one device: leave it out, or name one device"));
    }
    match targets {
        Targets::Host(hosts) => {
            let seats = open(
                args,
                hosts,
                |_| Margin::default(),
                |config, ledger, _| Target::open_host(config, ledger),
            )?;
            on(args, &seats, work, out)
        }
        Targets::Sim(cards) => {
            let scale = args.scale.unwrap_or(work.scale);
            let seats = open(
                args,
                cards,
                |card| Margin::Fixed(card.margin),
                |card, ledger, first| Target::open_sim_beside(card.clone(), scale, ledger, first),
            )?;
            on(args, &seats, work, out)
        }
        #[cfg(feature = "cuda")]
        Targets::Cuda(cards) => {
            let seats = open(
                args,
                cards,
                |_| Margin::default(),
                |config, ledger, _| Target::open_cuda(config, ledger),
            )?;
            on(args, &seats, work, out)
        }
    }
}

/// Opens the devices beside the first. Devices of one name are numbered.
fn open<C, D: Crew>(
    args: &Args,
    configs: Vec<(String, C)>,
    margin: impl Fn(&C) -> Margin,
    open: impl Fn(&C, LedgerConfig, Option<&D>) -> Result<D, Error>,
) -> Result<Vec<Seat<D>>, Failure> {
    let names: Vec<_> = configs.iter().map(|(name, _)| name.clone()).collect();
    let mut seats: Vec<Seat<D>> = Vec::with_capacity(configs.len());
    for (i, (name, config)) in configs.into_iter().enumerate() {
        let first = seats.first().map(|seat| &seat.device);
        let recorder = Arc::new(Recorder::new());
        let ledger = LedgerConfig {
            margin: args.margin.unwrap_or_else(|| margin(&config)),
            ahead: args.ahead == "on" && args.workers > 1,
            sink: recorder.clone(),
            beside: first.map(|device| device.ledger().clone()),
            ..LedgerConfig::default()
        };
        let device = open(&config, ledger, first).map_err(|e| Failure::at(&name, &e))?;
        let alike = |names: &[String]| names.iter().filter(|other| **other == name).count();
        let name = match alike(&names) {
            1 => name,
            _ => format!("{name} ({})", alike(names.get(..=i).unwrap_or_default())),
        };
        seats.push(Seat { name, device, recorder });
    }
    Ok(seats)
}

fn on<D: Ntt + Msm + Crew>(
    args: &Args,
    seats: &[Seat<D>],
    work: Work,
    out: &mut Output,
) -> Result<(), Failure> {
    let Work { name, rows, host, key, r1cs, witness, opened, .. } = work;
    let opened = opened.as_ref();
    let load = (name.as_str(), rows, host);
    match (key, &r1cs) {
        (AnyKey::Circom(key), None) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::from_key(prover, &witness);
            proved(
                args,
                seats,
                &provers(args, seats, |device| Prover::new(device, key))?,
                load,
                make,
                opened,
                out,
            )
        }
        (AnyKey::Circom(key), Some(r1cs)) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::new(prover, r1cs, &witness);
            proved(
                args,
                seats,
                &provers(args, seats, |device| Prover::new(device, key))?,
                load,
                make,
                opened,
                out,
            )
        }
        (AnyKey::Libsnark(key), Some(r1cs)) => {
            let make = |prover: &Prover<'_, D, _>, _| Assignment::new(prover, r1cs, &witness);
            proved(
                args,
                seats,
                &provers(args, seats, |device| Prover::new(device, key))?,
                load,
                make,
                opened,
                out,
            )
        }
        (AnyKey::Libsnark(_), None) => Err(Failure::new("this kind of key needs its circuit: --r1cs")),
    }
}

/// The key made ready for each device; its points are shared.
fn provers<'s, D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    seats: &'s [Seat<D>],
    first: impl FnOnce(&'s D) -> Result<Prover<'s, D, R>, prestage_groth16::Error>,
) -> Result<Vec<Prover<'s, D, R>>, Failure> {
    let Some((seat, others)) = seats.split_first() else { return Err(Failure::new("no device is named")) };
    let first = first(&seat.device).map_err(|e| Failure::at(&seat.name, &e))?;
    let mut provers = vec![first.keeping(args.resident)];
    for seat in others {
        let prover = provers[0].beside(&seat.device).map_err(|e| Failure::at(&seat.name, &e))?;
        provers.push(prover);
    }
    Ok(provers)
}

fn proved<D: Ntt + Msm + Crew, R: Reduction>(
    args: &Args,
    seats: &[Seat<D>],
    provers: &[Prover<'_, D, R>],
    (circuit, rows, host): (&str, u64, HostTime),
    assignment: impl Fn(&Prover<'_, D, R>, u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
    opened: Option<&Opened>,
    out: &mut Output,
) -> Result<(), Failure> {
    let Some(first) = provers.first() else { return Err(Failure::new("no device is named")) };
    let policy = args.policy.of(first)?;
    let scenario = Scenario { workers: args.workers, partitions: args.partitions, policy, host };
    let on: Vec<_> =
        provers.iter().zip(seats).map(|(prover, seat)| On { prover, recorder: &seat.recorder }).collect();
    let n = seats.len();
    let workers = format!("{} on each of {n} devices", of(args.workers, "worker"));
    let abouts = seats
        .iter()
        .map(|seat| about(args, circuit, rows, &seat.device, seat.name.clone(), &workers))
        .collect();
    let stop = interrupt();
    let outcomes = {
        let _progress = out.progress("proving; Ctrl-C ends between two stages and reports");
        run_on_opened(&on, &scenario, assignment, opened, abouts, &stop)?
    };
    answer(args, seats, circuit, &outcomes, out)
}

fn answer<D: Crew>(
    args: &Args,
    seats: &[Seat<D>],
    circuit: &str,
    outcomes: &Outcomes,
    out: &mut Output,
) -> Result<(), Failure> {
    let Outcomes { devices, failed, stopped, .. } = outcomes;
    let proofs = outcomes.proofs();
    if proofs == 0 {
        let why = failed.first().map_or_else(
            || "stopped before the first proof".to_owned(),
            |first| format!("no partition was proved; the first failed: {}", first.error),
        );
        return Err(Failure::new(why));
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
        "{} by {} in {}: {rate:.1} proofs per minute.",
        of(proofs as u64, "proof"),
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
    show(&answer, &words, outcomes, out);
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

fn device(name: &str, done: &crate::scenario::Done) -> Device {
    let idle = done.timeline.idle();
    let report = done.report.as_ref();
    Device {
        device: name.to_owned(),
        proofs: done.proofs.len(),
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

fn show(answer: &Answer, words: &str, outcomes: &Outcomes, out: &mut Output) {
    out.line(format_args!("{}: {words} All verified.", answer.shape));
    for (device, done) in answer.devices.iter().zip(&outcomes.devices) {
        let Some(report) = &done.report else {
            out.line(format_args!("\n{}: no proof", device.device));
            continue;
        };
        out.line(format_args!("\n{}: {}", device.device, of(device.proofs as u64, "proof")));
        for plan in &report.plans {
            out.line(format_args!("plan: {} ({}): {}", plan.policy, of(plan.proofs, "proof"), plan.reason));
        }
        out.line(format_args!("{}", report.table()));
    }
    if let Some(page) = &answer.report {
        out.line(format_args!("\nreport:  {page}"));
    }
}
