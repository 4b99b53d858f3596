//! Forward transforms, natural order on both sides: prestage, bellperson, arkworks.
#![allow(missing_docs, clippy::unwrap_used)]

use ark_bls12_381::Fr;
use ark_poly::{EvaluationDomain as _, Radix2EvaluationDomain};
use bellperson::domain::EvaluationDomain;
use criterion::{BenchmarkId, Criterion, Throughput};
use ec_gpu_gen::threadpool::Worker;
use prestage_benches::{criterion, log_sizes, scalars};
use prestage_ntt::{Domain, LIBSNARK_GENERATOR, Transform, host};
use prestage_peers::convert;

fn transforms(c: &mut Criterion) {
    let mut group = c.benchmark_group("peers ntt");
    for log in log_sizes(8, &[14, 16, 18]) {
        let n = 1usize << log;
        let input = scalars(n, 0);
        let domain = Domain::new(n, LIBSNARK_GENERATOR).unwrap();
        let forward = Transform::forward();
        let mut expected = input.clone();
        host::transform(&domain, &mut expected, &forward).unwrap();
        group.throughput(Throughput::Elements(n as u64));

        group.bench_function(BenchmarkId::new("prestage", log), |b| {
            let mut values = input.clone();
            b.iter(|| host::transform(&domain, &mut values, &forward).unwrap());
        });
        group.bench_function(BenchmarkId::new("bellperson", log), |b| {
            let worker = Worker::new();
            let mut values = EvaluationDomain::from_coeffs(input.clone()).unwrap();
            values.fft(&worker, &mut None).unwrap();
            assert_eq!(values.as_ref(), expected);
            b.iter(|| values.fft(&worker, &mut None).unwrap());
        });
        group.bench_function(BenchmarkId::new("arkworks", log), |b| {
            let domain = Radix2EvaluationDomain::<Fr>::new(n).unwrap();
            let mut values = convert::scalars(&input);
            domain.fft_in_place(&mut values);
            assert_eq!(values.iter().map(convert::scalar_from).collect::<Vec<_>>(), expected);
            b.iter(|| domain.fft_in_place(&mut values));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    transforms(&mut criterion);
    criterion.final_summary();
}
