//! Sums over slices in host memory.
#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::LazyCell;

use blstrs::{G1Affine, G2Affine, Scalar};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use group::{Group, GroupEncoding};
use prestage_benches::{Progression, bits, criterion, log_sizes, msm, record, scalars};
use prestage_msm::Affine;

fn sums<A: Affine>(group: &mut BenchmarkGroup<'_, WallTime>, log: u32)
where
    A::Curve: Group<Scalar = Scalar> + GroupEncoding,
{
    let n = 1usize << log;
    let bases = LazyCell::new(|| Progression::<A>::new(n, 0));
    group.throughput(Throughput::Elements(n as u64));
    for (name, load) in [("uniform", scalars as fn(usize, u64) -> _), ("witness", bits)] {
        group.bench_function(BenchmarkId::new(format!("{} {name}", A::NAME), log), |b| {
            let load: Vec<Scalar> = load(n, 1);
            let sum = || prestage_msm::msm(&bases.points, &load).unwrap();
            assert_eq!(sum(), bases.sum(&load));
            b.iter(sum);
        });
    }
}

fn groups(c: &mut Criterion) {
    let mut group = c.benchmark_group("msm");
    for log in log_sizes(10, &[10, 14, 16]) {
        sums::<G1Affine>(&mut group, log);
        sums::<G2Affine>(&mut group, log);
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    groups(&mut criterion);
    criterion.final_summary();
    record("msm", |on| msm(on, log_sizes(10, &[16])[0])).unwrap();
}
