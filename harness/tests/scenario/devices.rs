//! Several devices on one queue of partitions: cards of unequal speed and size, and one that fails half-way.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use prestage_groth16::{Assignment, Blinding, Libsnark, Options, Policy, Proof, Prover};
use prestage_harness::scenario::{Ended, HostTime, On, Outcomes, Scenario, Target, dispense, run_on};
use prestage_harness::timeline::{
    Chapter, IdleCause, Part, Recorder, Report, Timeline, save_devices, svg_of, trace_of,
};
use prestage_vram::{
    Bytes, Card, Device, Event, Host, HostConfig, Ledger, LedgerConfig, Nanos, Op, Sim, Track,
};

use super::{SCALE, about, recorded, scenario, small, within_budget};

thread_local! {
    /// The partition that the calling thread proves, counted from 1.
    static PARTITION: Cell<u32> = const { Cell::new(0) };
}

/// Little enough for two workers to keep the fastest card busy.
fn brisk(workers: u32, partitions: u32) -> Scenario<'static> {
    let host = HostTime { prepare: Nanos::new(300_000_000), finish: Nanos::new(100_000_000) };
    Scenario { host, ..scenario(workers, partitions, Policy::Auto) }
}

pub(crate) const FLEETS: [&[&str]; 3] = [
    &["rtx-5070-ti-16g", "h200-141g"],
    &["rtx-4090-24g", "rtx-5070-ti-16g", "rtx-5070-ti-16g"],
    &["h100-80g", "rtx-5070-ti-16g", "h200-141g", "rtx-4090-24g"],
];

/// Cards on one clock, each with what its events go to.
pub(crate) fn open(cards: &[Card], change: impl Fn(usize, &mut LedgerConfig)) -> Vec<(Sim, Arc<Recorder>)> {
    let mut open: Vec<(Sim, Arc<Recorder>)> = Vec::new();
    for (i, card) in cards.iter().enumerate() {
        let (mut ledger, recorder) = recorded(card.margin, true);
        change(i, &mut ledger);
        let first = open.first().map(|(sim, _)| sim);
        let sim = Target::open_sim_beside(card.clone(), SCALE, ledger, first).unwrap();
        open.push((sim, recorder));
    }
    open
}

pub(crate) fn presets(names: &[&str]) -> Vec<Card> {
    names.iter().map(|name| Card::preset(name).unwrap()).collect()
}

pub(crate) fn provers(sims: &[(Sim, Arc<Recorder>)]) -> Vec<Prover<'_, Sim, Libsnark>> {
    let first = Prover::new(&sims[0].0, small().1.clone()).unwrap();
    let mut provers: Vec<_> = sims[1..].iter().map(|(sim, _)| first.beside(sim).unwrap()).collect();
    provers.insert(0, first);
    provers
}

fn assignment(
    prover: &Prover<'_, Sim, Libsnark>,
    partition: u32,
) -> Result<Assignment, prestage_groth16::Error> {
    PARTITION.set(partition + 1);
    let (circuit, _) = small();
    Assignment::new(prover, &circuit.r1cs, &circuit.witness)
}

fn prove(sims: &[(Sim, Arc<Recorder>)], wanted: &Scenario<'_>) -> Outcomes {
    prove_with(sims, wanted, assignment)
}

fn prove_with(
    sims: &[(Sim, Arc<Recorder>)],
    wanted: &Scenario<'_>,
    assignment: impl Fn(&Prover<'_, Sim, Libsnark>, u32) -> Result<Assignment, prestage_groth16::Error> + Sync,
) -> Outcomes {
    let provers = provers(sims);
    let on: Vec<_> =
        provers.iter().zip(sims).map(|(prover, (_, recorder))| On { prover, recorder }).collect();
    let abouts = sims.iter().map(|(sim, _)| about(sim.name())).collect();
    run_on(&on, wanted, assignment, abouts, &AtomicBool::new(false)).unwrap()
}

/// When each partition was taken from the queue, over all devices.
fn taken(outcomes: &Outcomes) -> Vec<Nanos> {
    let spans = outcomes.devices.iter().flat_map(|done| done.timeline.on(Track::Host));
    spans.filter(|span| span.name.starts_with("prepare")).map(|span| span.start).collect()
}

#[test]
fn t2_every_device_is_accounted_for_and_none_idles_while_partitions_wait() {
    for names in FLEETS {
        let sims = open(&presets(names), |_, _| {});
        let n = u32::try_from(names.len()).unwrap();
        let outcomes = prove(&sims, &brisk(2, 8 * n));
        assert_eq!((outcomes.proofs(), outcomes.stopped), (8 * names.len(), 0), "{names:?}");
        assert!(outcomes.failed.is_empty(), "{:?}", outcomes.failed);
        let last = taken(&outcomes).into_iter().max().unwrap();
        for (done, name) in outcomes.devices.iter().zip(names) {
            assert!(done.lost.is_none() && done.proofs.len() >= 2, "{names:?}: {name} took too few");
            let report = done.report.as_ref().unwrap();
            let (times, idle) = (&report.times, done.timeline.idle());
            assert_eq!(times.wall(), times.busy() + times.idle().total(), "{name}");
            assert_eq!(report.complaint(), None, "{name}");
            // Once it has begun, and while a partition waits, it idles for its own copies alone, as a card alone does.
            let started = done.timeline.on(Track::Compute).map(|span| span.start).min().unwrap();
            let waiting = idle.gaps.iter().filter(|gap| gap.start() >= started && gap.start() < last);
            let unused: Nanos = waiting
                .flat_map(|gap| &gap.pieces)
                .filter(|piece| !matches!(piece.cause, IdleCause::Transfer | IdleCause::Alloc))
                .map(|piece| piece.end.since(piece.start))
                .sum();
            let all = last.since(started);
            assert!(
                unused.get() * 200 < all.get(),
                "{names:?}: {name} had nothing to do for {unused} of {all}"
            );
            within_budget(&done.timeline);
        }
        // All begin together.
        let firsts: Vec<_> = outcomes.devices.iter().map(|done| done.timeline.extent().0).collect();
        assert!(firsts.windows(2).all(|pair| pair[0] == pair[1]), "{firsts:?}");
        for (sim, _) in &sims {
            assert_eq!((sim.ledger().level().used(), sim.ledger().in_line()), (Bytes::ZERO, 0));
        }
    }
}

#[test]
fn faster_devices_take_more_partitions_and_two_equal_ones_halve_the_time() {
    let count = |names: &[&str], partitions| {
        let sims = open(&presets(names), |_, _| {});
        let outcomes = prove(&sims, &brisk(2, partitions));
        let proofs: Vec<_> = outcomes.devices.iter().map(|done| done.proofs.len()).collect();
        (proofs, outcomes.wall())
    };
    let (proofs, _) = count(&["rtx-5070-ti-16g", "h200-141g"], 40);
    assert!(proofs[1] > proofs[0] && proofs[0] + proofs[1] == 40, "{proofs:?}");
    let (_, one) = count(&["rtx-5070-ti-16g"], 40);
    let (halves, two) = count(&["rtx-5070-ti-16g", "rtx-5070-ti-16g"], 40);
    assert_eq!(halves, [20, 20]);
    assert!(two.get() * 19 <= one.get() * 10, "{two} on two cards, {one} on one");
}

/// Proofs of partitions 0 to 9 under blinding that is theirs, on these cards.
fn blinded(sims: &[(Sim, Arc<Recorder>)]) -> Vec<(usize, Proof)> {
    let provers = provers(sims);
    let devices: Vec<_> = sims.iter().map(|(sim, _)| sim).collect();
    let ended = dispense(
        &devices,
        2,
        10,
        &AtomicBool::new(false),
        |on, worker, partition| {
            let assignment = assignment(&provers[on], partition)?;
            let seed = [u8::try_from(partition).unwrap(); 32];
            let options = Options::default().insecure_blinding(Blinding::insecure_from_seed(seed)?);
            Ok::<_, prestage_groth16::Error>(provers[on].prove(worker, &assignment, &options)?.proof)
        },
        |on, _| devices[on].ledger().healthy().is_err(),
    );
    let proof = |end| match end {
        Ended::Done(on, proof) => (on, proof),
        other => panic!("{other:?}"),
    };
    ended.into_iter().map(proof).collect()
}

/// Three cards of which the second fails for good in the middle of its third partition.
fn one_fails() -> Vec<(Sim, Arc<Recorder>)> {
    let own: Arc<OnceLock<Ledger>> = Arc::default();
    let seen = Mutex::new(BTreeMap::<u32, u32>::new());
    let there = Arc::clone(&own);
    let faults = move |op| {
        if PARTITION.get() == 0 {
            return false;
        }
        let mut seen = seen.lock().unwrap();
        let launches = seen.entry(PARTITION.get()).or_default();
        *launches += u32::from(op == Op::Launch);
        let middle = op == Op::Launch && *launches == 4 && seen.len() == 3;
        if middle {
            there.get().unwrap().poison("it fell off the bus");
        }
        middle
    };
    let faults: Arc<dyn Fn(Op) -> bool + Send + Sync> = Arc::new(faults);
    let cards = presets(&["rtx-5070-ti-16g", "rtx-5070-ti-16g", "h200-141g"]);
    let sims = open(&cards, |i, ledger| ledger.faults = (i == 1).then(|| Arc::clone(&faults)));
    own.set(sims[1].0.ledger().clone()).unwrap();
    sims
}

#[test]
fn f3_a_device_that_fails_for_good_leaves_its_partitions_to_the_others() {
    let sims = one_fails();
    let outcomes = prove(&sims, &scenario(2, 16, Policy::Auto));
    assert!(outcomes.failed.is_empty() && outcomes.stopped == 0, "{:?}", outcomes.failed);
    let mut all: Vec<_> = outcomes.devices.iter().flat_map(|done| &done.proofs).map(|(n, _)| *n).collect();
    all.sort_unstable();
    assert_eq!(all, (1..=16).collect::<Vec<_>>(), "every partition is proved once");
    let lost: Vec<_> = outcomes.devices.iter().map(|done| done.lost.as_deref()).collect();
    assert!(lost[0].is_none() && lost[2].is_none());
    assert!(lost[1].unwrap().contains("it fell off the bus"), "{lost:?}");
    assert_eq!(outcomes.devices[1].proofs.len(), 2);
    for (sim, _) in &sims {
        assert_eq!((sim.ledger().level().used(), sim.ledger().in_line()), (Bytes::ZERO, 0), "{}", sim.name());
    }
    // What it had begun is the next that anyone takes, and its proofs are the same.
    let alone = blinded(&open(&presets(&["rtx-5070-ti-16g"]), |_, _| {}));
    let shared = blinded(&one_fails());
    assert!(alone.iter().zip(&shared).all(|((_, a), (_, b))| a == b));
}

#[test]
fn f3_with_the_last_device_the_rest_fails() {
    let sims = open(&presets(&["rtx-5070-ti-16g", "h200-141g"]), |_, _| {});
    let outcomes = prove_with(&sims, &scenario(2, 6, Policy::Auto), |prover, partition| {
        prover.device().ledger().poison("no power");
        assignment(prover, partition)
    });
    assert_eq!((outcomes.proofs(), outcomes.failed.len(), outcomes.stopped), (0, 6, 0));
    assert!(outcomes.failed.iter().all(|failed| failed.error.contains("no power")), "{:?}", outcomes.failed);
    let numbers: Vec<_> = outcomes.failed.iter().map(|failed| failed.partition).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn proofs_do_not_depend_on_where_they_are_made() {
    let alone: Vec<_> = blinded(&open(&presets(&["rtx-5070-ti-16g"]), |_, _| {}));
    for names in FLEETS {
        let shared = blinded(&open(&presets(names), |_, _| {}));
        assert!(alone.iter().zip(&shared).all(|((_, a), (_, b))| a == b), "{names:?}");
        let devices = (0..names.len()).filter(|n| shared.iter().any(|(on, _)| on == n)).count();
        assert_eq!(devices, names.len(), "every card has made a proof");
    }
}

#[test]
fn t3_two_runs_on_several_cards_give_the_same_trace() {
    let traced = || {
        let sims = open(&presets(FLEETS[1]), |_, _| {});
        let outcomes = prove(&sims, &scenario(2, 9, Policy::Auto));
        let runs: Vec<_> =
            outcomes.devices.iter().map(|done| (done.report.as_ref().unwrap(), &done.timeline)).collect();
        trace_of(&runs)
    };
    let text = traced();
    assert_eq!(text, traced());
    // A group of lanes for each card, and one for its workers.
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| (event["pid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(names.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert!(names[4].1.starts_with("device sim:") && names[5].1.starts_with("workers of sim:"), "{names:?}");
}

/// Host devices in real time: one clock, one account of page-locked memory, the key's points locked once.
#[test]
fn cpu_devices_share_a_clock_and_the_pinned_account() {
    let (circuit, key) = small();
    let (ledger, recorder) = recorded(Bytes::mib(512), true);
    let first = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    let (ledger, other) = recorded(Bytes::mib(512), true);
    let ledger = LedgerConfig { beside: Some(first.ledger().clone()), ..ledger };
    let second = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    let (a, b) = (first.now(), second.now());
    assert!(b >= a && b.since(a) < Nanos::new(1_000_000_000), "{a} {b}");
    assert!(first.ledger().locked().bytes() == second.ledger().locked().bytes());
    let one = Prover::new(&first, key.clone()).unwrap();
    let two = one.beside(&second).unwrap();
    assert!(first.ledger().locked().bytes() == second.ledger().locked().bytes());
    let on = [On { prover: &one, recorder: &recorder }, On { prover: &two, recorder: &other }];
    let make =
        |prover: &Prover<'_, Host, Libsnark>, _| Assignment::new(prover, &circuit.r1cs, &circuit.witness);
    let abouts = vec![about("host (1)"), about("host (2)")];
    let outcomes =
        run_on(&on, &scenario(2, 12, Policy::Auto), make, abouts, &AtomicBool::new(false)).unwrap();
    assert_eq!((outcomes.proofs(), outcomes.failed.len()), (12, 0));
    assert!(outcomes.devices.iter().all(|done| !done.proofs.is_empty()));
}

#[test]
fn several_devices_are_drawn_on_one_clock_and_their_reports_are_kept() {
    let sims = open(&presets(FLEETS[0]), |_, _| {});
    let outcomes = prove(&sims, &scenario(2, 6, Policy::Auto));
    let shown: Vec<(&Report, &Timeline)> =
        outcomes.devices.iter().map(|done| (done.report.as_ref().unwrap(), &done.timeline)).collect();
    let folder = tempfile::tempdir().unwrap();
    let saved = save_devices(folder.path(), "run", "Six of them.", &shown).unwrap();
    let page = std::fs::read_to_string(&saved.page).unwrap();
    assert!(page.contains("<h2>Devices</h2>") && page.contains("Six of them."));
    for number in 1..=2 {
        let text = std::fs::read_to_string(folder.path().join(format!("run-{number}.json"))).unwrap();
        let (report, timeline) = Report::with_timeline(&text).unwrap();
        assert_eq!(report.times, shown[number - 1].0.times);
        assert_eq!(timeline.extent().0, Nanos::ZERO);
    }
    // Unequal numbers of proofs are no comparison, but they are two devices.
    let parts: Vec<_> = shown
        .iter()
        .map(|&(report, timeline)| Part::Run { name: &report.key.device, report, timeline })
        .collect();
    let chapter = Chapter { heading: Some("Both"), words: "", parts: &parts, devices: true };
    let drawn = svg_of(&chapter).unwrap();
    assert!(drawn.contains("sim:rtx-5070-ti-16g") && drawn.contains("sim:h200-141g"));
    if outcomes.devices[0].proofs.len() != outcomes.devices[1].proofs.len() {
        assert!(svg_of(&Chapter { devices: false, ..chapter }).is_err());
    }
    assert!(
        outcomes.devices.iter().all(|done| done
            .timeline
            .events()
            .iter()
            .any(|e| matches!(e, Event::Level { .. })))
    );
}
