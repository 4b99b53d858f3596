//! The Sapling Spend statement under the key of its ceremony: the key from bytes, and proofs by prestage and bellperson.
#![allow(missing_docs, clippy::unwrap_used)]

use bellperson::groth16::{Parameters, create_random_proof};
use blstrs::Bls12;
use criterion::{Criterion, Throughput};
use prestage_benches::{Mode, criterion};
use prestage_groth16::format::{PointChecks, params};
use prestage_groth16::{Assignment, Options, Prover};
use prestage_peers::{R1csCircuit, Statement, spend};
use prestage_vram::{Host, HostConfig, Worker};
use rand_core::OsRng;

fn keys(c: &mut Criterion, file: &[u8]) {
    let mut group = c.benchmark_group("peers spend key");
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("prestage, checked", |b| b.iter(|| params::read(file, PointChecks::Full).unwrap()));
    group.bench_function("prestage, unchecked", |b| {
        b.iter(|| params::read(file, PointChecks::Unchecked).unwrap());
    });
    group.bench_function("bellperson, unchecked", |b| {
        b.iter(|| Parameters::<Bls12>::read(file, false).unwrap());
    });
    // Half a minute each, so not in test runs.
    if Mode::current() == Mode::Measure {
        group.bench_function("bellperson, checked", |b| {
            b.iter(|| Parameters::<Bls12>::read(file, true).unwrap());
        });
    }
    group.finish();
}

fn proofs(c: &mut Criterion, file: &[u8]) {
    let mut group = c.benchmark_group("peers spend");
    let statement = Statement::from(spend::statement().unwrap());
    group.throughput(Throughput::Elements(statement.r1cs().n_constraints() as u64));
    group.bench_function("prestage", |b| {
        let host = Host::open(HostConfig::default()).unwrap();
        let key = params::read(file, PointChecks::Unchecked).unwrap().value;
        let prover = Prover::new(&host, key.with_r1cs(statement.r1cs()).unwrap()).unwrap();
        let (mut worker, options) = (Worker::new(0), Options::default());
        b.iter(|| {
            let assignment = Assignment::new(&prover, statement.r1cs(), statement.witness()).unwrap();
            prover.prove(&mut worker, &assignment, &options).unwrap()
        });
    });
    group.bench_function("bellperson", |b| {
        let parameters = Parameters::<Bls12>::read(file, false).unwrap();
        let circuit = R1csCircuit::assigned(&statement);
        b.iter(|| create_random_proof::<Bls12, _, _, _>(circuit.clone(), &parameters, &mut OsRng).unwrap());
    });
    group.finish();
}

fn main() {
    let mut criterion = criterion();
    if Mode::current() != Mode::List {
        let file = spend::parameters();
        keys(&mut criterion, &file);
        proofs(&mut criterion, &file);
    }
    criterion.final_summary();
}
