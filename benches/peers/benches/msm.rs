//! Sums over G1: prestage, blst, taceo's and arkworks' algebra, on the same points and scalars.
#![allow(missing_docs, clippy::unwrap_used)]

use ark_ec::{CurveGroup, VariableBaseMSM};
use blst::{MultiPoint, blst_p1_affine};
use blstrs::{G1Affine, Scalar};
use criterion::{BenchmarkId, Criterion, Throughput};
use ff::PrimeField;
use group::Curve;
use prestage_benches::{Progression, bits, criterion, log_sizes, scalars};
use prestage_peers::convert;

fn sums(c: &mut Criterion) {
    for (name, load) in [("uniform", scalars as fn(usize, u64) -> Vec<Scalar>), ("witness", bits)] {
        let mut group = c.benchmark_group(format!("peers msm {name}"));
        for log in log_sizes(8, &[14, 16]) {
            let n = 1usize << log;
            let bases = Progression::<G1Affine>::new(n, 0);
            let load = load(n, 1);
            let expected = bases.sum(&load).to_affine();
            group.throughput(Throughput::Elements(n as u64));

            group.bench_function(BenchmarkId::new("prestage", log), |b| {
                let sum = || prestage_msm::msm(&bases.points, &load).unwrap();
                assert_eq!(sum().to_affine(), expected);
                b.iter(sum);
            });
            // Scalars as integers are made inside, as the others make them.
            group.bench_function(BenchmarkId::new("blst", log), |b| {
                let points: Vec<blst_p1_affine> = bases.points.iter().map(|p| *p.as_ref()).collect();
                let sum = || {
                    let bytes: Vec<u8> = load.iter().flat_map(Scalar::to_repr).collect();
                    points.mult(&bytes, 255)
                };
                let point = sum();
                assert_eq!(
                    G1Affine::from(blstrs::G1Projective::from_raw_unchecked(
                        point.x.into(),
                        point.y.into(),
                        point.z.into()
                    )),
                    expected
                );
                b.iter(sum);
            });
            let (points, load) =
                (bases.points.iter().map(convert::g1).collect::<Vec<_>>(), convert::scalars(&load));
            group.bench_function(BenchmarkId::new("taceo", log), |b| {
                let sum = || taceo_ark_algebra::msm::msm_unchecked(&points, &load);
                assert_eq!(convert::g1_from(&sum().into_affine()), expected);
                b.iter(sum);
            });
            group.bench_function(BenchmarkId::new("arkworks", log), |b| {
                let sum = || ark_bls12_381::G1Projective::msm_unchecked(&points, &load);
                assert_eq!(convert::g1_from(&sum().into_affine()), expected);
                b.iter(sum);
            });
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = criterion();
    sums(&mut criterion);
    criterion.final_summary();
}
