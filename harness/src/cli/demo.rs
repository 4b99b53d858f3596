//! `prestage demo`: the main job with no input, and what a newcomer sees first.

use std::collections::BTreeMap;
use std::path::Path;

use prestage_groth16::{Assignment, Blinding, Libsnark, Options, Policy, Prover, ProvingKey, setup};
use prestage_vram::{WorkerId, host_work};
use rand_core::OsRng;
use serde::Serialize;

use super::args;
use super::device::{self, Opened};
use super::files;
use super::output::{Failure, Output};
use crate::circuits::{Circuit, squares};
use crate::session::{About, Run, prove_in_turn};
use crate::timeline::{ByCause, IdleCause, page, save, write_atomic};

/// The title of the page, and what its earlier versions are known by.
const TITLE: &str = "prestage demo";
/// Proofs per run: enough to see that one looks like the next.
const PROOFS: u8 = 3;

#[derive(Debug, Serialize)]
struct Answer {
    /// True only when every proof was verified and the two ways of staging gave equal proofs.
    verified: bool,
    proofs: u64,
    device: String,
    constraints: u64,
    /// Of the staged run; `runs` has both.
    wall_ns: u64,
    busy_ns: u64,
    idle_ns: ByCause,
    peak_bytes: u64,
    runs: [RunAnswer; 2],
    report: String,
}

#[derive(Debug, Serialize)]
struct RunAnswer {
    name: &'static str,
    policy: String,
    reason: String,
    proofs: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    peak_bytes: u64,
}

/// Runs the verb.
pub(super) fn run(args: &args::Demo, out: &mut Output) -> Result<(), Failure> {
    files::can_make(&args.out)?;
    let index = args.out.join("index.html");
    if std::fs::read_to_string(&index).is_ok_and(|page| !page.contains(TITLE)) {
        return Err(Failure::new(format!(
            "{}: some other page; choose another folder with --out",
            index.display()
        )));
    }
    let opened = device::open(&args.place)?;
    let circuit = squares(args.log_size, OsRng)?;
    out.line(format_args!("circuit: y = x^(2^{0}), {0} constraints", circuit.r1cs.n_constraints()));
    let key: ProvingKey<Libsnark> = {
        let _progress = out.progress("setup");
        setup(&circuit.r1cs)?
    };
    out.line(format_args!("device:  {}", opened.shown));
    let prover = Prover::new(&opened.device, key)?;

    let staged = prove(&opened, &prover, &circuit, "staged", Policy::Auto, args, out)?;
    let unstaged = prove(&opened, &prover, &circuit, "unstaged", Policy::None, args, out)?;
    if staged.proofs != unstaged.proofs {
        return Err(Failure::new(
            "the staged and the unstaged path gave different proofs under equal r and s",
        ));
    }
    out.line(format_args!(
        "proofs:  {PROOFS} staged and {PROOFS} unstaged, equal byte for byte under equal r and s, all verified\n"
    ));

    let runs = [("staged", &staged), ("unstaged", &unstaged)];
    for (name, run) in runs {
        save(&args.out, name, &run.report, &run.timeline)?;
    }
    let parts: Vec<_> = runs.iter().map(|(name, run)| (*name, &run.report, &run.timeline)).collect();
    write_atomic(&index, page(TITLE, &parts)?.as_bytes())?;
    table(&runs, out);
    if runs.iter().all(|(_, run)| run.report.times.percent(run.report.times.busy()) >= 90.0) {
        out.line(format_args!(
            "\nOn this device computing takes nearly all of the time. The faster the device, the more the rest counts:\n\
             staging moves the uploads beside the computing, and a turn ends before its proof is assembled."
        ));
    }
    out.line(format_args!("\nreport:  {}", shown(&index)));
    out.json(&answer(&opened, &circuit, (&staged, &unstaged), &index))
}

fn prove(
    opened: &Opened,
    prover: &Prover<'_, prestage_vram::Host, Libsnark>,
    circuit: &Circuit,
    name: &'static str,
    policy: Policy,
    args: &args::Demo,
    out: &Output,
) -> Result<Run, Failure> {
    let _progress = out.progress("proving");
    // Equal proofs can be seen only under known blinding: these proofs are for looking at.
    let options = (0..PROOFS)
        .map(|i| {
            Ok(Options::default().policy(policy).insecure_blinding(Blinding::insecure_from_seed([i; 32])?))
        })
        .collect::<Result<Vec<_>, prestage_groth16::Error>>()?;
    drop(opened.recorder.take());
    let assignment = host_work(&opened.device, WorkerId(0), "evaluate a, b, c", || {
        Assignment::new(prover, &circuit.r1cs, &circuit.witness)
    })?;
    let about = About {
        scenario: format!("demo, {name}"),
        device: opened.name.clone(),
        circuit: format!("square-2^{}", args.log_size),
        constraints: circuit.r1cs.n_constraints() as u64,
        parameters: BTreeMap::from([
            ("workers".into(), "1".into()),
            ("margin".into(), args.place.margin.to_string()),
        ]),
    };
    Ok(prove_in_turn(prover, &assignment, &options, &opened.recorder, about)?)
}

/// Where the time went, in both runs side by side. Each column sums to its wall.
fn table(runs: &[(&'static str, &Run)], out: &mut Output) {
    let row = |label: &str, cells: Vec<String>| {
        format!("{label:<22}{}", cells.iter().map(|c| format!("{c:>22}")).collect::<String>())
    };
    let times = |f: &dyn Fn(&Run) -> prestage_vram::Nanos| -> Vec<String> {
        runs.iter()
            .map(|(_, run)| {
                let t = f(run);
                format!("{:.1} ms {:>6.1} %", t.as_ms(), run.report.times.percent(t))
            })
            .collect()
    };
    out.line(format_args!("{}", row("", runs.iter().map(|(name, _)| (*name).to_owned()).collect())));
    out.line(format_args!("{}", row("computing", times(&|run| run.report.times.busy()))));
    for cause in IdleCause::ALL {
        let label = format!("idle: {}", cause.name());
        out.line(format_args!("{}", row(&label, times(&|run| run.report.times.idle().get(cause)))));
    }
    out.line(format_args!("{}", row("wall = all of these", times(&|run| run.report.times.wall()))));
    let peaks =
        runs.iter().map(|(_, run)| prestage_vram::Bytes::new(run.report.peak_bytes).to_string()).collect();
    out.line(format_args!("{}", row("device memory, peak", peaks)));
    let rates = runs.iter().map(|(_, run)| format!("{:.1}", run.report.proofs_per_minute)).collect();
    out.line(format_args!("{}", row("proofs per minute", rates)));
}

fn answer(opened: &Opened, circuit: &Circuit, (staged, unstaged): (&Run, &Run), index: &Path) -> Answer {
    let runs = [("staged", staged), ("unstaged", unstaged)].map(|(name, run)| RunAnswer {
        name,
        policy: run.plan.policy().to_string(),
        reason: run.plan.reason().to_owned(),
        proofs: run.report.verified.proofs(),
        wall_ns: run.report.times.wall().get(),
        busy_ns: run.report.times.busy().get(),
        held_ns: run.report.times.held().get(),
        idle_ns: *run.report.times.idle(),
        peak_bytes: run.report.peak_bytes,
    });
    let first = &staged.report;
    Answer {
        verified: true,
        proofs: runs.iter().map(|run| run.proofs).sum(),
        device: opened.name.clone(),
        constraints: circuit.r1cs.n_constraints() as u64,
        wall_ns: first.times.wall().get(),
        busy_ns: first.times.busy().get(),
        idle_ns: *first.times.idle(),
        peak_bytes: first.peak_bytes,
        report: shown(index),
        runs,
    }
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
