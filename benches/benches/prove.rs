//! Proofs on the CPU, and what comes before one: loading a key, evaluating the constraints.
//!
//! Sizes are 2^10 and 2^14 rows; others by `PRESTAGE_LOG_SIZES=16,18`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::LazyCell;

use criterion::{BenchmarkId, Criterion, Throughput};
use prestage_benches::{CIRCUITS, criterion, log_sizes, prove, record, rng};
use prestage_groth16::format::{PointChecks, params, zkey};
use prestage_groth16::{
    Assignment, Circom, Libsnark, Options, Policy, Prover, ProvingKey, Reduction, setup_insecure_from_seed,
};
use prestage_harness::circuits::{Circuit, squares};
use prestage_vram::{Host, HostConfig, Worker};

fn key<R: Reduction>(circuit: &Circuit) -> ProvingKey<R> {
    setup_insecure_from_seed(&circuit.r1cs, [0; 32]).unwrap()
}

/// From an assignment to a verified proof.
fn proofs<R: Reduction>(c: &mut Criterion, host: &Host, log: u32) {
    let mut group = c.benchmark_group("prove");
    for (name, make) in CIRCUITS {
        let circuit = LazyCell::new(|| make(log).unwrap());
        let prover = LazyCell::new(|| Prover::<_, R>::new(host, key(&circuit)).unwrap());
        group.throughput(Throughput::Elements(1 << log));
        for policy in [Policy::Full, Policy::None] {
            let id = BenchmarkId::new(format!("{name} {} {policy}", R::NAME), log);
            group.bench_function(id, |b| {
                let assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap();
                let (mut worker, options) = (Worker::new(0), Options::default().policy(policy));
                b.iter(|| prover.prove(&mut worker, &assignment, &options).unwrap());
            });
        }
        group.bench_function(BenchmarkId::new(format!("{name} {} assignment", R::NAME), log), |b| {
            b.iter(|| Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap());
        });
    }
    group.finish();
}

/// Keys from bytes: every point tested, or none.
fn keys(c: &mut Criterion) {
    let mut group = c.benchmark_group("load");
    let checks = [("checked", PointChecks::Full), ("unchecked", PointChecks::Unchecked)];
    for log in log_sizes(8, &[12, 14]) {
        let bytes = LazyCell::new(|| {
            let mut bytes = Vec::new();
            params::write(&mut bytes, &key::<Libsnark>(&squares(log, rng(0)).unwrap())).unwrap().unwrap();
            bytes
        });
        group.throughput(Throughput::Elements(1 << log));
        for (name, checks) in checks {
            group.bench_function(BenchmarkId::new(format!("params {name}"), log), |b| {
                b.iter(|| params::read(&bytes, checks).unwrap());
            });
        }
    }
    // The key of snarkjs for 2^10 rows.
    let bytes = include_bytes!("../../groth16/tests/fixtures/sq10/circuit.zkey");
    group.throughput(Throughput::Elements(1 << 10));
    for (name, checks) in checks {
        group.bench_function(BenchmarkId::new(format!("zkey {name}"), 10), |b| {
            b.iter(|| zkey::read(bytes, checks).unwrap());
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    let host = Host::open(HostConfig::default()).unwrap();
    for log in log_sizes(8, &[10, 14]) {
        proofs::<Libsnark>(&mut criterion, &host, log);
        proofs::<Circom>(&mut criterion, &host, log);
    }
    keys(&mut criterion);
    criterion.final_summary();
    record("prove", |on| prove(on, log_sizes(10, &[14])[0])).unwrap();
}
