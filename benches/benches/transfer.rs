//! Copies between host and device memory, by every way there is.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput};
use prestage_benches::{criterion, log_sizes, record, transfer};
use prestage_transfer::{Lanes, Pinned, Ring};
use prestage_vram::{Device, Host, HostConfig, Worker};

/// Words in a small copy: 4 KiB.
const SMALL: usize = 512;
/// Small copies that one iteration enqueues.
const MANY: usize = 1000;

fn copies(c: &mut Criterion, host: &Host) {
    let mut group = c.benchmark_group("transfer");
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let up = &lanes.upload;
    for log in log_sizes(10, &[12, 17, 21]) {
        let n = 1usize << log;
        group.throughput(Throughput::Bytes(8 * n as u64));
        group.bench_function(BenchmarkId::new("upload pinned", 8 * n), |b| {
            let source = Arc::new(Pinned::filled(host, n, 1u64).unwrap());
            let mut place = Some(up.alloc("x", n).unwrap());
            b.iter(|| {
                let (buf, upload) = up.upload(Arc::clone(&source), place.take().unwrap()).unwrap();
                upload.wait().unwrap();
                place = Some(buf.into_uninit());
            });
        });
        group.bench_function(BenchmarkId::new("upload plain", 8 * n), |b| {
            let source = Arc::new(vec![1u64; n]);
            let mut place = Some(up.alloc("x", n).unwrap());
            b.iter(|| {
                let (buf, upload) = up.upload(Arc::clone(&source), place.take().unwrap()).unwrap();
                upload.wait().unwrap();
                place = Some(buf.into_uninit());
            });
        });
        group.bench_function(BenchmarkId::new("upload by ring", 8 * n), |b| {
            let source = vec![1u64; n];
            let mut ring = Ring::open(host, 4, (n / 8).clamp(1, 1 << 16), 0u64).unwrap();
            let mut place = Some(up.alloc("x", n).unwrap());
            b.iter(|| {
                let buf = ring.upload(up, &source, place.take().unwrap()).unwrap();
                up.drain().unwrap();
                place = Some(buf.into_uninit());
            });
        });
        group.bench_function(BenchmarkId::new("download", 8 * n), |b| {
            let (mut buf, source) = up.upload(vec![1u64; n], up.alloc("x", n).unwrap()).unwrap();
            source.wait().unwrap();
            let mut slot = Some(Pinned::filled(host, n, 0u64).unwrap());
            b.iter(|| {
                let download = lanes.download.download(&mut buf, 0..n, slot.take().unwrap()).unwrap();
                slot = Some(download.wait().unwrap());
            });
        });
    }
    // What one copy costs besides its bytes.
    group.throughput(Throughput::Elements(MANY as u64));
    group.bench_function(BenchmarkId::new("small uploads", MANY), |b| {
        let source = Arc::new(Pinned::filled(host, SMALL, 1u64).unwrap());
        let mut buf = {
            let (buf, upload) = up.upload(vec![0u64; SMALL], up.alloc("x", SMALL).unwrap()).unwrap();
            upload.wait().unwrap();
            buf
        };
        b.iter(|| {
            let uploads: Vec<_> =
                (0..MANY).map(|_| up.upload_at(Arc::clone(&source), &mut buf, 0).unwrap()).collect();
            for upload in uploads {
                upload.wait().unwrap();
            }
        });
    });
    group.finish();
    drop(lanes);
    turn.release().unwrap();
}

fn main() {
    let mut criterion = criterion();
    let host = Host::open(HostConfig::default()).unwrap();
    copies(&mut criterion, &host);
    criterion.final_summary();
    record("transfer", |on| transfer(on, log_sizes(12, &[20])[0])).unwrap();
}
