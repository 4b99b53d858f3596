//! Rows of whole pipelines on an NVIDIA card. The large circuit has 2^20 rows, the small one 2^8, both of PoRep proportions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use prestage_groth16::{
    Assignment, DeviceFootprints, Libsnark, Options, Plan, Policy, Prover, ProvingKey, Residency,
    setup_insecure_from_seed,
};
use prestage_harness::circuits::Circuit;
use prestage_harness::scenario::{Crew, Ended, HostTime, Outcome, Scenario, dispense, run};
use prestage_harness::timeline::{Recorder, Timeline};
use prestage_vram::conformance::{OnCuda, Subject, run as on_card};
use prestage_vram::cuda::{Cuda, CudaConfig, cupti};
use prestage_vram::{Bytes, Class, Device, Event, LedgerConfig, Margin, Nanos, Track, WorkerId, host_work};

use super::{about, no_host_time, porep, recorded, small, spans, within_budget};

const LOG: u32 = 20;

fn on_a_card(name: &str, test: impl FnOnce()) {
    on_card(&OnCuda, name, |_| test());
}

/// The large circuit and its key, made once.
fn large() -> &'static (Circuit, ProvingKey<Libsnark>) {
    static LARGE: OnceLock<(Circuit, ProvingKey<Libsnark>)> = OnceLock::new();
    LARGE.get_or_init(|| {
        let start = std::time::Instant::now();
        let circuit = porep().realise(LOG, 1).unwrap();
        let key = setup_insecure_from_seed(&circuit.r1cs, [7; 32]).unwrap();
        println!("circuit and key of 2^{LOG} rows: {:.1?}", start.elapsed());
        (circuit, key)
    })
}

/// Margin 0.
fn ledger(ahead: bool) -> (LedgerConfig, Arc<Recorder>) {
    recorded(Bytes::ZERO, ahead)
}

fn prove(
    card: &Cuda,
    recorder: &Recorder,
    (circuit, key): &(Circuit, ProvingKey<Libsnark>),
    (workers, partitions): (u32, u32),
) -> Outcome {
    let prover = Prover::new(card, key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    let wanted = Scenario { workers, partitions, policy: Policy::Auto, host: no_host_time(), opened: None };
    run(&prover, &wanted, assignment, recorder, about("cuda"), &AtomicBool::new(false)).unwrap()
}

fn refusals(timeline: &Timeline) -> usize {
    timeline.events().iter().filter(|e| matches!(e, Event::Refusal { .. })).count()
}

/// The least budget under which `policy` is planned.
fn need(card: &Cuda, key: &ProvingKey<Libsnark>, policy: Policy) -> Bytes {
    let prover = Prover::new(card, key.clone()).unwrap();
    let footprints = DeviceFootprints::new(card, prover.domain());
    let fits =
        |budget| Plan::new(prover.shape(), &footprints, policy, Bytes::new(budget), Bytes::ZERO).is_ok();
    let (mut least, mut most) = (0, Bytes::gib(16).get());
    assert!(fits(most));
    while least + 1 < most {
        let middle = least.midpoint(most);
        if fits(middle) { most = middle } else { least = middle }
    }
    Bytes::new(most)
}

/// Rows P1, P2, P3 and L10 with no more than a staged set to grant: nothing is refused after planning, the account stays
/// within the budget, all proofs verify, and what was measured is what was planned.
#[test]
fn p1_p2_p3_l10_a_card_that_is_just_large_enough() {
    on_a_card("p1_p2_p3_l10", || {
        let (_, key) = small();
        let full = need(&OnCuda.open(Bytes::gib(16), ledger(false).0), key, Policy::Full);
        for (workers, partitions) in [(1, 30), (2, 20), (3, 20), (4, 20)] {
            let (ledger, recorder) = ledger(workers > 1);
            let card = OnCuda.open(full, ledger);
            let outcome = prove(&card, &recorder, small(), (workers, partitions));
            let report = outcome.report.unwrap();
            assert_eq!((report.verified.proofs(), outcome.failed.len()), (u64::from(partitions), 0));
            assert_eq!(refusals(&outcome.timeline), 0, "{workers} workers");
            assert!(report.plans.iter().all(|plan| plan.policy == "full"), "{:?}", report.plans);
            assert!(card.ledger().peak() <= full, "{} of {full}", card.ledger().peak());
            within_budget(&outcome.timeline);
            for phase in &report.phases {
                assert_eq!(phase.predicted_bytes, phase.measured_bytes, "{}", phase.name);
            }
            let ledger = card.ledger();
            assert_eq!((ledger.level().used(), ledger.in_line()), (Bytes::ZERO, 0));
            assert_eq!(card.pool().unwrap(), (Bytes::ZERO, Bytes::ZERO), "the pool has given all back");
        }
    });
}

/// Rows T2 and P6, two workers with the large circuit: the account of time has no hole, and no transform begins before its
/// upload has ended.
#[test]
fn t2_p6_the_account_of_time_is_whole() {
    on_a_card("t2_p6", || {
        let (ledger, recorder) = ledger(true);
        let card = OnCuda.open(Bytes::gib(16), ledger);
        let outcome = prove(&card, &recorder, large(), (2, 6));
        let report = outcome.report.unwrap();
        println!("{}", report.table());
        assert_eq!(report.verified.proofs(), 6);
        let idle = outcome.timeline.idle();
        assert_eq!(idle.wall(), idle.busy + idle.by_cause.total());
        assert!(report.complaint().is_none(), "{:?}", report.complaint());
        let held = spans(&outcome.timeline, Track::Held);
        assert_eq!(held.len(), 6);
        for turn in &held {
            for x in ["a", "b", "c"] {
                let of = |track, name: String| {
                    let mine = spans(&outcome.timeline, track).into_iter();
                    mine.filter(|s| s.name == name && s.worker == turn.worker)
                        .filter(|s| turn.start <= s.start && s.end <= turn.end)
                        .collect::<Vec<_>>()
                };
                let (uploads, transforms) =
                    (of(Track::Upload, format!("upload {x}")), of(Track::Compute, format!("ntt {x}")));
                assert!(!uploads.is_empty() && !transforms.is_empty(), "{x}");
                let there = uploads.iter().map(|s| s.end).max().unwrap();
                // Events of two queues are told by one clock, to half a microsecond each.
                assert!(transforms.iter().all(|s| s.start + Nanos::new(2_000) >= there), "ntt {x} is early");
            }
        }
    });
}

/// A turn with one kernel that lasts that long.
fn busy_turn(
    card: &Cuda,
    worker: &mut prestage_vram::Worker,
    time: Nanos,
) -> Result<(), prestage_vram::Error> {
    let turn = card.turn(worker)?;
    OnCuda.busy(card, &turn.queue(Track::Compute)?, time);
    turn.release()
}

/// Row P8 in real time, a twentieth of its durations.
#[test]
fn p8_two_workers_keep_the_card_busy() {
    on_a_card("p8", || {
        let ms = |n: u64| Nanos::new(n * 1_000_000);
        let sleep = |n: u64| std::thread::sleep(std::time::Duration::from_millis(n));
        for (workers, wall) in [(1, 2_650), (2, 1_750)] {
            let (ledger, recorder) = ledger(false);
            let card = OnCuda.open(Bytes::gib(1), ledger);
            // Loads the kernel.
            busy_turn(&card, &mut prestage_vram::Worker::new(9), ms(1)).unwrap();
            drop(recorder.take());
            let start = card.now();
            let job = |_, worker: &mut prestage_vram::Worker, _| {
                let id = worker.id();
                host_work(&card, id, "prepare", || sleep(65));
                busy_turn(&card, worker, ms(165))?;
                host_work(&card, id, "finish", || sleep(35));
                Ok::<(), prestage_vram::Error>(())
            };
            let ended = dispense(&[&card], workers, 10, &AtomicBool::new(false), job, |_, _| false);
            assert!(ended.iter().all(|end| matches!(end, Ended::Done(_, ()))));
            let took = card.now().since(start);
            println!("{workers} workers: {took}");
            assert!(took >= ms(wall) && took < ms(wall + wall / 20), "{workers} workers: {took}");
            let kernels = spans(&recorder.take(), Track::Compute);
            assert_eq!(kernels.len(), 10);
            if workers == 2 {
                let gaps = kernels.windows(2).map(|pair| pair[1].start.since(pair[0].end));
                assert!(gaps.max().unwrap() < ms(5), "a gap after the start");
            }
        }
    });
}

/// Time by name on the device's tracks, in nanoseconds, and in how many spans.
fn by_name(timeline: &Timeline) -> BTreeMap<(Track, String), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for span in timeline.spans() {
        if matches!(span.track, Track::Compute | Track::Upload | Track::Download) {
            let (time, spans) = sums.entry((span.track, span.name.to_string())).or_insert((0, 0));
            *time += span.end.since(span.start).get();
            *spans += 1;
        }
    }
    sums
}

/// CUPTI's records and pairs of events agree within 2 % on the same run: busy in all, and each kind of work that matters.
#[test]
fn t2_records_and_event_pairs_agree_on_whole_proofs() {
    on_a_card("t2_cupti", || {
        if let Err(why) = cupti() {
            println!("t2_cupti skipped: {why}");
            return;
        }
        let (circuit, key) = large();
        let (ledger, recorder) = ledger(true);
        let card = Cuda::open(CudaConfig { records: true, ledger, ..CudaConfig::default() }).unwrap();
        let prover = Prover::new(&card, key.clone()).unwrap();
        let prove = |id: WorkerId| {
            let mut worker = prestage_vram::Worker::new(id.0);
            let assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap();
            for _ in 0..3 {
                // Verified by the prover.
                prover.prove(&mut worker, &assignment, &Options::default()).unwrap();
            }
        };
        card.crew(1, prove).into_iter().for_each(|done| done.unwrap());
        drop((card.records().unwrap(), recorder.take()));
        card.crew(2, prove).into_iter().for_each(|done| done.unwrap());
        let mut timeline = recorder.take();
        let events = by_name(&timeline);
        let agreement = timeline.time_by_records(&card.records().unwrap());
        println!("{agreement}; kernels and copies ran {} in all", agreement.ran);
        let records = by_name(&timeline);
        let busy = (agreement.by_events.get(), agreement.by_records.get());
        assert!(busy.0.abs_diff(busy.1) <= busy.0 / 50, "{agreement}");
        for (what, (by_events, spans)) in &events {
            let (by_records, _) = records[what];
            println!(
                "{} {}: {spans} spans, {by_events} ns by events, {by_records} by records",
                what.0.name(),
                what.1
            );
            // On an idle lane the first event passes at once, and the host still hands over what follows it: some 50 µs.
            let slack = if by_events / spans < 1_000_000 { 60_000 * spans } else { 0 };
            let apart = by_events.abs_diff(by_records);
            assert!(apart <= by_events / 50 + slack, "{}: {by_events} and {by_records}", what.1);
        }
        assert!(agreement.spans > 100 && agreement.records > agreement.spans);
    });
}

/// A process that takes what it is told of the card.
struct Helper {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Helper {
    fn start(test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env("PRESTAGE_CHILD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut helper = Self { child, to, from };
        helper.expect("open");
        helper
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim() != word {
            line.clear();
            assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the helper has ended");
        }
    }

    fn take(&mut self, bytes: Bytes) {
        writeln!(self.to.as_mut().unwrap(), "{}", bytes.get()).unwrap();
        self.expect("taken");
    }

    fn end(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// What the process does.
    fn play() {
        let say = |word: &str| {
            println!("\n{word}");
            std::io::stdout().flush().unwrap();
        };
        let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() };
        let card = Cuda::open(CudaConfig { ledger, ..CudaConfig::default() }).unwrap();
        let mut worker = prestage_vram::Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        say("open");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        let taken = turn.alloc::<u8>("taken", line.trim().parse().unwrap(), Class::Direct, &queue).unwrap();
        say("taken");
        std::io::stdin().read_line(&mut line).unwrap();
        drop(taken);
        turn.release().unwrap();
    }
}

/// Another process takes some 3 GiB between partitions 1 and 2, and gives them back after: what is left is too little for three
/// polynomials and enough for two.
#[test]
fn l12_another_process_takes_memory_for_a_while() {
    if std::env::var_os("PRESTAGE_CHILD").is_some() {
        return Helper::play();
    }
    on_a_card("l12", || {
        let (circuit, key) = large();
        let probe = OnCuda.open(Bytes::gib(16), ledger(false).0);
        let (full, less) = (need(&probe, key, Policy::Full), need(&probe, key, Policy::AThenBc));
        drop(probe);
        assert!(less + Bytes::mib(16) <= full, "{less} and {full}: nothing lies between them");
        // The pool takes memory of the driver in pieces of up to 32 MiB: the margin is for that.
        let margin = Bytes::mib(64);
        let (ledger, recorder) = recorded(margin, false);
        let ballast = Some(full + Bytes::gib(4));
        let card = Cuda::open(CudaConfig { ballast, ledger, ..CudaConfig::default() }).unwrap();
        let prover = Prover::new(&card, key.clone()).unwrap().keeping(Residency::None);
        let helper = Mutex::new(None::<Helper>);
        let assignment = |partition| {
            let mut helper = helper.lock().unwrap();
            if partition == 1 {
                let mut other = Helper::start("nvidia::l12_another_process_takes_memory_for_a_while");
                let left = Bytes::new(full.get().midpoint(less.get()));
                let take = card.reading().unwrap().usable() - margin - left;
                println!("full {full}, a-then-bc {less}: another process takes {take}, {left} are left");
                other.take(take);
                *helper = Some(other);
            } else if let Some(other) = helper.take() {
                other.end();
            }
            Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
        };
        let wanted = Scenario {
            workers: 1,
            partitions: 4,
            policy: Policy::Auto,
            host: HostTime::default(),
            opened: None,
        };
        let outcome =
            run(&prover, &wanted, assignment, &recorder, about("cuda"), &AtomicBool::new(false)).unwrap();
        let report = outcome.report.unwrap();
        assert_eq!((report.verified.proofs(), outcome.failed.len()), (4, 0), "{:?}", outcome.failed);
        assert_eq!(refusals(&outcome.timeline), 0);
        // Plans of one policy differ in the budget that they name.
        let mut plans = BTreeMap::new();
        for plan in &report.plans {
            *plans.entry(plan.policy.as_str()).or_insert(0) += plan.proofs;
            assert!(plan.policy == "full" || plan.reason.contains("full needs"), "{}", plan.reason);
        }
        assert_eq!(plans, BTreeMap::from([("full", 3), ("a-then-bc", 1)]));
    });
}
