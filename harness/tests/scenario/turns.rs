//! Row P9: what is done inside the turn and what outside, seen by every operation of a device; and row T3 for the command.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use prestage_groth16::{Assignment, Policy, Prover};
use prestage_harness::scenario::run;
use prestage_vram::{Bytes, Change, Event, Host, LedgerConfig, Locked, Margin, Op, Sim, Sink};

use super::{Opens, about, recorded, scenario, small};

thread_local! {
    /// Whether the worker on this thread has the turn, and what was pinned when it was first seen there.
    static INSIDE: Cell<Option<Option<Bytes>>> = const { Cell::new(None) };
}

/// Looks at everything that a device is asked for, and on which side of the turn.
#[derive(Default)]
struct Watch {
    seen: Mutex<HashMap<String, u32>>,
    wrong: Mutex<Vec<String>>,
    /// Set where nobody else prepares meanwhile: what is pinned does not change inside a turn.
    locked: OnceLock<Locked>,
}

impl Watch {
    fn see(&self, what: String, right: bool) {
        if !right {
            self.wrong.lock().unwrap().push(what.clone());
        }
        *self.seen.lock().unwrap().entry(what).or_default() += 1;
    }

    fn operation(&self, op: Op) {
        let inside = INSIDE.get();
        self.see(op.to_string(), inside.is_some() == (op != Op::Register));
        if let (Some(first), Some(locked)) = (inside, self.locked.get()) {
            let now = locked.bytes();
            self.see("pinned memory".into(), first.is_none_or(|first| first == now));
            INSIDE.set(Some(Some(first.unwrap_or(now))));
        }
    }
}

impl Sink for Watch {
    fn emit(&self, event: Event) {
        let Event::Change { change, .. } = event else { return };
        match change {
            Change::Enter => INSIDE.set(Some(None)),
            Change::Leave => INSIDE.set(None),
            Change::Read(_) => self.see("query".into(), INSIDE.get().is_some()),
            Change::Trim => self.see("trim".into(), INSIDE.get().is_some()),
            Change::Take { .. } | Change::Give { .. } => self.see("lease".into(), INSIDE.get().is_some()),
            _ => {}
        }
    }
}

fn watched<D: Opens>(workers: u32, policy: Policy, between: impl Fn(&D, u32) + Sync) -> HashMap<String, u32> {
    let (circuit, key) = small();
    let watch = Arc::new(Watch::default());
    let observer = Arc::clone(&watch);
    let observe = move |op| {
        observer.operation(op);
        false
    };
    let ledger = LedgerConfig {
        margin: Margin::Fixed(Bytes::mib(512)),
        ahead: workers > 1,
        sink: Arc::clone(&watch) as _,
        faults: Some(Arc::new(observe)),
        ..LedgerConfig::default()
    };
    let device = D::opened(ledger);
    if workers == 1 {
        watch.locked.set(device.ledger().locked().clone()).unwrap();
    }
    let prover = Prover::new(&device, key.clone()).unwrap();
    let inside = AtomicBool::new(false);
    let assignment = |partition| {
        inside.fetch_or(INSIDE.get().is_some(), Ordering::SeqCst);
        between(&device, partition);
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
    };
    let (_, recorder) = recorded(Bytes::ZERO, false);
    let wanted = scenario(workers, 4, policy);
    let outcome =
        run(&prover, &wanted, assignment, &recorder, about("device"), &AtomicBool::new(false)).unwrap();
    assert_eq!((outcome.proofs.len(), outcome.failed.len()), (4, 0), "{:?}", outcome.failed);
    assert!(!inside.into_inner(), "prepared inside a turn");
    let wrong = watch.wrong.lock().unwrap().clone();
    assert!(wrong.is_empty(), "{}, {policy}, {workers} workers: {wrong:?}", device.name());
    watch.seen.lock().unwrap().clone()
}

#[test]
fn p9_registration_outside_and_query_allocation_upload_inside() {
    // `Chunked` too: the copies of b and c that its transforms use up are made before the turn.
    for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None] {
        for workers in [1, 2] {
            // A reading that changes is told; the card's is made to change before each turn.
            let on_card =
                watched::<Sim>(workers, policy, |sim, n| sim.set_foreign(Bytes::mib(1 + u64::from(n))));
            let on_cpu = watched::<Host>(workers, policy, |_, _| ());
            assert!(on_card["query"] > 0);
            for seen in [on_card, on_cpu] {
                for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane] {
                    assert!(seen[&op.to_string()] > 0, "{op}");
                }
                assert!(seen["lease"] > 0 && (workers > 1 || seen["pinned memory"] > 0));
            }
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn p9_registration_outside_and_allocation_inside_on_an_nvidia_card() {
    use prestage_vram::cuda::Cuda;
    prestage_vram::conformance::run(&prestage_vram::conformance::OnCuda, "p9", |_| {
        for policy in [Policy::Full, Policy::AThenBc, Policy::None] {
            for workers in [1, 2] {
                let seen = watched::<Cuda>(workers, policy, |_, _| ());
                for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark, Op::Lane] {
                    assert!(seen[&op.to_string()] > 0, "{op}");
                }
            }
        }
    });
}

/// Two processes write the same bytes: traces, data and pictures of ten partitions by two workers.
#[test]
fn t3_the_command_writes_the_same_trace_twice() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["first", "second"].map(|name| {
        let out = folder.path().join(name);
        let ran = Command::new(env!("CARGO_BIN_EXE_prestage"))
            .args([
                "run",
                "--shape",
                "porep-32g",
                "--log-domain",
                "8",
                "--workers",
                "2",
                "--partitions",
                "10",
            ])
            .args(["--device", "sim:rtx-5070-ti-16g", "--json", "--out"])
            .arg(&out)
            .env("PRESTAGE_CACHE_DIR", folder.path().join("cache"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        written(&out)
    });
    let [first, second] = files;
    let names: Vec<_> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.iter().any(|name| name.ends_with(".trace.json")), "{names:?}");
    for ((name, one), (same, other)) in first.iter().zip(&second) {
        assert!(name == same && !one.is_empty());
        // The report and the page of it say what the recording itself cost on this machine.
        if name.ends_with(".trace.json") || name.ends_with(".csv") || name.ends_with(".svg") {
            assert!(one == other, "{name} differs");
        }
    }
    assert_eq!(first.len(), second.len());
}

/// Every file of a folder, by name.
fn written(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}
