//! `prestage demo`: the main job with no input, and what a newcomer sees first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use prestage_groth16::{Assignment, Blinding, Libsnark, Options, Policy, Prover, ProvingKey, setup};
use prestage_vram::{Bytes, WorkerId, host_work};
use rand_core::OsRng;
use serde::Serialize;

use super::card::{self, After, Before};
use super::device::{self, Opened, Place};
use super::files;
use super::output::{Failure, Output};
use super::replay::{about, headline};
use crate::circuits::{Circuit, squares};
use crate::session::{About, Run, prove_in_turn};
use crate::timeline::{
    ByCause, Chapter, IdleCause, Part, Report, csv, save, schedule, story, svg_of, write_atomic,
};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to prove
    #[command(flatten)]
    place: Place,
    /// Size of the circuit: 2^K rows, K from 4 to 20
    #[arg(long, default_value_t = 14, value_name = "K", value_parser = clap::value_parser!(u32).range(4..=20))]
    log_size: u32,
    /// Folder for the report page and its data
    #[arg(long, default_value = "prestage-demo", value_name = "DIR")]
    out: PathBuf,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

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
    /// Two workers on the simulated card.
    card: CardAnswer,
    report: String,
}

#[derive(Debug, Serialize)]
struct CardAnswer {
    device: String,
    /// A replay proves nothing, so that it has no times.
    before: BeforeAnswer,
    after: AfterAnswer,
}

#[derive(Debug, Serialize)]
struct BeforeAnswer {
    script: String,
    refused: Option<String>,
    refusals: u64,
    peak_bytes: u64,
}

#[derive(Debug, Serialize)]
struct AfterAnswer {
    proofs: u64,
    policy: String,
    refusals: u64,
    wall_ns: u64,
    busy_ns: u64,
    held_ns: u64,
    idle_ns: ByCause,
    peak_bytes: u64,
    proofs_per_minute: f64,
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
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    files::can_make(&args.out)?;
    let index = args.out.join("index.html");
    if std::fs::read_to_string(&index).is_ok_and(|page| !page.contains(TITLE)) {
        return Err(Failure::new(format!(
            "{}: some other page; choose another folder with --out",
            index.display()
        )));
    }
    let script = args.place.script.as_deref();
    files::can_write(&script.map(|p| ("--script", p)).into_iter().collect::<Vec<_>>(), &[])?;
    let opened = device::open_host(&args.place)?;
    let (before, after) = {
        let _progress = out.progress("two workers on a simulated card");
        (card::before()?, card::after(script.is_some())?)
    };
    tell(&before, &after, out);
    out.line(format_args!("\n2. Real proofs, on this machine\n"));
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
    save(&args.out, "after", &after.report, &after.timeline)?;
    if let (Some(path), Some(script)) = (script, &after.script) {
        write_atomic(path, script.to_toml()?.as_bytes())?;
    }
    pages(&args.out, &index, &before, &after, &runs)?;
    table(&runs, out);
    if runs.iter().all(|(_, run)| run.report.times.percent(run.report.times.busy()) >= 90.0) {
        out.line(format_args!(
            "\nOn this device computing takes nearly all of the time. The faster the device, the more the rest counts:\n\
             staging moves the uploads beside the computing, and a turn ends before its proof is assembled."
        ));
    }
    out.line(format_args!("\nreport:  {}", shown(&index)));
    out.json(&answer(&opened, &circuit, (&staged, &unstaged), (&before, &after), &index))?;
    // In virtual time nothing comes from outside: whatever is not recorded is the harness's own fault.
    after.report.complaint().map_or(Ok(()), |complaint| Err(Failure::new(complaint)))
}

/// The first half of the story, for a terminal.
fn tell(before: &Before, after: &After, out: &mut Output) {
    let report = &after.report;
    let (busy, wall) = (report.times.percent(report.times.busy()), report.times.wall());
    out.line(format_args!(
        "1. Two workers share a 16 GiB card, and each proof takes 12 GiB of it (simulated)\n"
    ));
    out.line(format_args!("before, as the original did: {}", headline(&before.replay)));
    if let Some(first) = before.replay.refusals.first() {
        out.line(format_args!("  at {}: {}", first.at, first.refused));
    }
    out.line(format_args!("  {}", before.script.story));
    out.line(format_args!(
        "after, as prestage does: {} of {} proofs verified, {} refusals, peak {} of {}",
        report.verified.proofs(),
        report.key.load.partitions,
        report.refusals.len(),
        Bytes::new(report.peak_bytes),
        before.replay.level.budget,
    ));
    out.line(format_args!(
        "  The card computes {busy:.1} % of {wall}, {:.1} proofs per minute: memory is planned before it is taken, b and c \
         are gone when the quotient is there, and while one worker computes the other stages.",
        report.proofs_per_minute
    ));
}

/// Writes the page, and before and after as pictures of their own.
fn pages(
    folder: &Path,
    index: &Path,
    before: &Before,
    after: &After,
    runs: &[(&'static str, &Run)],
) -> Result<(), Failure> {
    let (says, what) = (headline(&before.replay), about(&before.script, &after.report.key.device));
    let parts = [
        Part::Schedule {
            name: "Before, as the original did",
            headline: &says,
            about: &what,
            timeline: &before.replay.timeline,
        },
        Part::Run { name: "After, as prestage does", report: &after.report, timeline: &after.timeline },
    ];
    let card = Chapter {
        heading: Some("Two workers, one 16 GiB card, 12 GiB per proof"),
        words: "A simulated card at the size of a 32 GiB proof of replication. Before, a request for memory is refused \
                and its worker stops. After, every request was planned for: nothing is refused, and while one worker \
                computes, the next proof is staged beside it.",
        parts: &parts,
        devices: false,
    };
    write_atomic(&folder.join("before.svg"), schedule(&says, &what, &before.replay.timeline)?.as_bytes())?;
    write_atomic(&folder.join("before.csv"), csv(&before.replay.timeline).as_bytes())?;
    write_atomic(&folder.join("before-after.svg"), svg_of(&card)?.as_bytes())?;
    let here: Vec<Part<'_>> = runs
        .iter()
        .map(|&(name, run)| Part::Run { name, report: &run.report, timeline: &run.timeline })
        .collect();
    let chapters = [
        card,
        Chapter {
            heading: Some("Real proofs on this machine"),
            words: "One worker, the CPU as the device, each proof with its polynomials staged and unstaged.",
            parts: &here,
            devices: false,
        },
    ];
    Ok(write_atomic(index, story(TITLE, &chapters)?.as_bytes())?)
}

fn prove(
    opened: &Opened<prestage_vram::Host>,
    prover: &Prover<'_, prestage_vram::Host, Libsnark>,
    circuit: &Circuit,
    name: &'static str,
    policy: Policy,
    args: &Args,
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
    let peaks = runs.iter().map(|(_, run)| Bytes::new(run.report.peak_bytes).to_string()).collect();
    out.line(format_args!("{}", row("device memory, peak", peaks)));
    let rates = runs.iter().map(|(_, run)| format!("{:.1}", run.report.proofs_per_minute)).collect();
    out.line(format_args!("{}", row("proofs per minute", rates)));
}

fn card_answer(before: &Before, after: &Report) -> CardAnswer {
    let replay = &before.replay;
    CardAnswer {
        device: after.key.device.clone(),
        before: BeforeAnswer {
            script: before.script.name.clone(),
            refused: replay.refusals.first().map(|first| first.refused.to_string()),
            refusals: replay.refusals.len() as u64,
            peak_bytes: replay.peak.get(),
        },
        after: AfterAnswer {
            proofs: after.verified.proofs(),
            policy: after.plans.first().map_or_else(String::new, |plan| plan.policy.clone()),
            refusals: after.refusals.len() as u64,
            wall_ns: after.times.wall().get(),
            busy_ns: after.times.busy().get(),
            held_ns: after.times.held().get(),
            idle_ns: *after.times.idle(),
            peak_bytes: after.peak_bytes,
            proofs_per_minute: after.proofs_per_minute,
        },
    }
}

fn answer(
    opened: &Opened<prestage_vram::Host>,
    circuit: &Circuit,
    (staged, unstaged): (&Run, &Run),
    (before, after): (&Before, &After),
    index: &Path,
) -> Answer {
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
        card: card_answer(before, &after.report),
        runs,
    }
}

fn shown(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
