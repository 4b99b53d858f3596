//! The provers one after another on the same statements and keys. For paired repetitions see `side_by_side`.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, Throughput};
use prestage_benches::{CIRCUITS, criterion, log_sizes};
use prestage_groth16::Blinding;
use prestage_peers::{Keys, Kind, Statement};
use prestage_vram::{Host, HostConfig};

fn provers(c: &mut Criterion) {
    let host = Host::open(HostConfig::default()).unwrap();
    let blinding = Blinding::insecure_from_seed([1; 32]).unwrap();
    for (name, circuit) in CIRCUITS {
        let mut group = c.benchmark_group(format!("peers prove {name}"));
        for log in log_sizes(6, &[14]) {
            let keys = Keys::new(&Statement::from(circuit(log).unwrap()));
            group.throughput(Throughput::Elements(1 << log));
            for kind in Kind::ALL {
                group.bench_function(BenchmarkId::new(kind.name(), log), |b| {
                    let prover = kind.ready(&host, &keys).unwrap();
                    b.iter(|| prover.prove(&blinding).unwrap());
                });
            }
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = criterion();
    provers(&mut criterion);
    criterion.final_summary();
}
