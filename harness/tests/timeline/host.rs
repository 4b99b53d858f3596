//! A real run: the CPU as a device, two workers, copies beside computation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use prestage_harness::timeline::{Recorder, Report, page, png};
use prestage_vram::{Bytes, Class, Device, Host, HostConfig, LedgerConfig, Op, Track, Worker, host_work};

use crate::synthetic::{key, verified};

fn spin(ms: u64) {
    let end = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn prove(host: &Host, id: u32) {
    let mut worker = Worker::new(id);
    for _ in 0..2 {
        host_work(host, worker.id(), "witness", || spin(8));
        let turn = host.turn(&mut worker).unwrap();
        let (copies, kernels) = (turn.queue(Track::Upload).unwrap(), turn.queue(Track::Compute).unwrap());
        let buffer = turn.alloc::<u64>("a", 1 << 20, Class::Pooled, &kernels).unwrap();
        let mut marks = Vec::new();
        for name in ["upload a", "upload b"] {
            // SAFETY: the job touches no memory.
            unsafe { host.submit(&copies, Op::Copy, name, Bytes::mib(8), || spin(4)) }.unwrap();
            marks.push(host.record(&copies).unwrap());
        }
        for (mark, name) in marks.iter().zip(["ntt a", "ntt b"]) {
            let start = host.now();
            host.synchronise(mark).unwrap();
            turn.waited(prestage_vram::Cause::Transfer, start, host.now());
            // SAFETY: the job touches no memory.
            unsafe { host.submit(&kernels, Op::Launch, name, Bytes::ZERO, || spin(6)) }.unwrap();
        }
        drop(buffer);
        turn.release().unwrap();
        host_work(host, worker.id(), "assemble", || spin(3));
    }
}

#[test]
fn t2_a_run_on_the_cpu_adds_up() {
    let recorder = Arc::new(Recorder::new());
    let ledger = LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() };
    let host = Host::open(HostConfig { capacity: Bytes::gib(1), ledger }).unwrap();
    std::thread::scope(|scope| {
        for id in 0..2 {
            let host = &host;
            scope.spawn(move || prove(host, id));
        }
    });
    let timeline = recorder.take();
    let report = Report::new(key("host"), verified(4), &timeline);
    let times = report.times;
    assert_eq!(times.busy() + times.idle().total(), times.wall());
    assert!(times.busy().as_ms() >= 48.0, "8 kernels of 6 ms: {}", times.busy());
    assert!(times.idle().transfer > 0 && times.held() > times.busy());
    assert_eq!(report.peak_bytes, 8 << 20);
    assert!(report.recording_ns > 0 && report.recording_ns < times.wall().get() / 50);
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("host.png"), png(&report, &timeline).unwrap()).unwrap();
    std::fs::write(folder.join("host.html"), page("Host", &[("host", &report, &timeline)]).unwrap()).unwrap();
    // The next timeline starts empty, with the account as it stood.
    let next = recorder.take();
    assert!(next.events().is_empty());
    assert_eq!(next.memory().last().map(|(_, l)| l.pooled), timeline.memory().last().map(|(_, l)| l.pooled));
}
