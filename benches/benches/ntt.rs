//! Transforms of slices in host memory.
#![allow(missing_docs, clippy::unwrap_used)]

use blstrs::Scalar;
use criterion::{BenchmarkId, Criterion, Throughput};
use prestage_benches::{criterion, log_sizes, ntt, record, scalars};
use prestage_ntt::{Domain, LIBSNARK_GENERATOR, Order, Transform, host};

fn transforms(c: &mut Criterion) {
    let mut group = c.benchmark_group("ntt");
    let shift = Scalar::from(LIBSNARK_GENERATOR);
    let ways = [
        ("forward", Transform::forward()),
        ("forward, reversed", Transform::forward().to(Order::Reversed)),
        ("inverse", Transform::inverse()),
        ("coset inverse", Transform::inverse().on_coset(shift)),
    ];
    for log in log_sizes(10, &[10, 14, 18, 20]) {
        let n = 1usize << log;
        let domain = Domain::new(n, LIBSNARK_GENERATOR).unwrap();
        group.throughput(Throughput::Elements(n as u64));
        for (name, way) in &ways {
            group.bench_with_input(BenchmarkId::new(*name, log), way, |b, way| {
                let mut values = scalars(n, 0);
                b.iter(|| host::transform(&domain, &mut values, way).unwrap());
            });
        }
        group.bench_function(BenchmarkId::new("coset evaluations", log), |b| {
            let mut values = scalars(n, 0);
            b.iter(|| host::coset_evaluations(&domain, &mut values, shift).unwrap());
        });
        group.bench_function(BenchmarkId::new("pointwise quotient", log), |b| {
            let (mut a, [x, y]) = (scalars(n, 0), [1, 2].map(|stream| scalars(n, stream)));
            b.iter(|| host::mul_sub_scale(&mut a, &x, &y, shift).unwrap());
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    transforms(&mut criterion);
    criterion.final_summary();
    record("ntt", |on| ntt(on, log_sizes(10, &[16])[0])).unwrap();
}
