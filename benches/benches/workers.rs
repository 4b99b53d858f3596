//! Staged and unstaged proofs by one to three workers on simulated cards, in virtual time.
//!
//! The last of the targets, so that `cargo bench` ends with where its page is.
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::OnceCell;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use prestage_benches::{Case, Mode, Outcome, Partitions, cases, criterion, output_folder, save};

/// Rows of the circuit that is really proved, as an exponent of two, and partitions per scenario: as `prestage run`.
const USUAL: (u32, u32) = (10, 10);
/// The same in a test run.
const QUICK: (u32, u32) = (6, 4);

fn wall(outcome: &Outcome) -> Duration {
    Duration::from_nanos(outcome.report.times.wall().get())
}

/// Measures every scenario that was asked for, and keeps its first run in `kept`.
fn scenarios(c: &mut Criterion, partitions: &Partitions, count: u32, kept: &[(Case, OnceCell<Outcome>)]) {
    let mut group = c.benchmark_group("workers");
    group.throughput(Throughput::Elements(count.into())).sampling_mode(SamplingMode::Flat);
    // Criterion reckons in real time how often to run, and complains below twice per sample: there is time enough for that.
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(10));
    for (case, first) in kept {
        let id = BenchmarkId::new(format!("{}-{}", case.card, case.way), case.workers);
        group.bench_function(id, |b| {
            b.iter_custom(|n| {
                let run = partitions.prove(case).unwrap();
                let time = wall(&run);
                assert_eq!(time, wall(first.get_or_init(|| run)), "{case} took another time than before");
                // Every run takes the same virtual time, so one of them says how long n take.
                time * u32::try_from(n).unwrap()
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    let mode = Mode::current();
    let (log, count) = if mode == Mode::Test { QUICK } else { USUAL };
    let partitions = Partitions::porep(log, count).unwrap();
    let kept: Vec<_> = cases().into_iter().map(|case| (case, OnceCell::new())).collect();
    scenarios(&mut criterion, &partitions, count, &kept);
    criterion.final_summary();
    if mode == Mode::List {
        return;
    }
    // A page is complete, whatever was measured.
    let runs: Vec<(Case, Outcome)> = kept
        .into_iter()
        .map(|(case, run)| {
            let run = run.into_inner().unwrap_or_else(|| partitions.prove(&case).unwrap());
            (case, run)
        })
        .collect();
    let page = save(&output_folder().join("workers"), &runs).unwrap();
    let proofs: u64 = runs.iter().map(|(_, run)| run.report.verified.proofs()).sum();
    println!(
        "workers: {} scenarios, {proofs} proofs verified, side by side in {}",
        runs.len(),
        page.display()
    );
}
