//! Row F6: what a reader allocates is bounded by the size of the file, whatever the lengths in it say. The
//! allocator of this test program counts, so its tests run one after the other, in one function.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use prestage_groth16::format::{PointChecks, ark, json, params, r1cs, wtns, zkey};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; counting touches two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes allocated at most at one time while `run` runs, beyond those before.
fn peak(run: impl FnOnce()) -> usize {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    run();
    PEAK.load(Ordering::Relaxed) - before
}

fn fixture(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures", name].iter().collect();
    std::fs::read(path).unwrap()
}

fn read(name: &str, bytes: &[u8]) {
    // Whether it is read or refused is for other tests.
    match name.rsplit('.').next().unwrap() {
        "zkey" => drop(zkey::read(bytes, PointChecks::Unchecked)),
        "params" => drop(params::read(bytes, PointChecks::Unchecked)),
        "wtns" => drop(wtns::read(bytes)),
        "r1cs" => drop(r1cs::read(bytes)),
        "bin" => drop(ark::read(bytes, PointChecks::Unchecked)),
        _ if name.contains("public") => drop(json::read_public(bytes)),
        _ if name.contains("vkey") => drop(json::read_verifying_key(bytes)),
        _ => drop(json::read_proof(bytes)),
    }
}

#[test]
fn f6_memory_is_bounded_by_the_file() {
    /// Threads' own stacks and queues, and whatever the test harness prints meanwhile.
    const FIXED: usize = 1 << 20;
    // Start the thread pool and what else is made once.
    read("sq10/circuit.zkey", &fixture("sq10/circuit.zkey"));

    let manifest = String::from_utf8(fixture("bad/manifest.tsv")).unwrap();
    let bad = manifest.lines().skip(1).map(|line| format!("bad/{}", line.split('\t').next().unwrap()));
    let good = ["sq10/circuit.zkey", "sq10/circuit.r1cs", "sapling/output.r1cs", "manypublic/public.json"];
    let good = good.into_iter().chain(["manypublic/vkey.json", "ark_sq10/pk_uncompressed.bin"]);
    for name in bad.chain(good.map(String::from)) {
        let bytes = fixture(&name);
        let peak = peak(|| read(&name, &bytes));
        assert!(peak <= 3 * bytes.len() + FIXED, "{name}: {peak} for {}", bytes.len());
    }

    // Every 32-bit word of each header in turn says 2^32 − 1.
    for (name, length) in [
        ("boundary_full/circuit.zkey", 1200),
        ("boundary_full/circuit.r1cs", 400),
        ("boundary_full/witness.wtns", 90),
        ("bellman_sq10/sq10.params", 1100),
        ("ark_sq10/pk_uncompressed.bin", 1100),
    ] {
        let bytes = fixture(name);
        for at in (0..length).step_by(4) {
            let mut bad = bytes.clone();
            bad[at..at + 4].fill(0xff);
            let peak = peak(|| read(name, &bad));
            assert!(peak <= 3 * bytes.len() + FIXED, "{name}, word at {at}: {peak}");
        }
    }

    // Text: the smallest items that JSON can hold, and numbers and nesting without end.
    let many = format!("[{}\"1\"]", "\"1\",".repeat(200_000));
    let long = format!("[\"{}\"]", "9".repeat(1 << 20));
    let deep = "[".repeat(1 << 20);
    for text in [many, long, deep] {
        for name in ["public.json", "vkey.json", "proof.json"] {
            let peak = peak(|| read(name, text.as_bytes()));
            assert!(peak <= 30 * text.len() + FIXED, "{name}: {peak} for {}", text.len());
        }
    }
}
