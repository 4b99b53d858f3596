//! Two workers share the CPU as a device, with copies ahead of the kernels and without; writes a page with both.
//!
//! `cargo run --release -p prestage-harness --example timeline [FOLDER]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prestage_harness::timeline::{Key, Load, Recorder, Report, Timeline, Verified, page, write_atomic};
use prestage_vram::{
    Bytes, Cause, Class, Device, Host, HostConfig, LedgerConfig, Op, Track, Worker, host_work,
};

const WORKERS: u32 = 2;
const PROOFS: u32 = 3;

/// Stands for work of that length.
fn spin(ms: u64) {
    let end = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// One worker's proofs. Staged, all copies are handed over before the first kernel; unstaged, each is awaited first.
fn work(host: &Host, id: u32, staged: bool) -> Result<(), prestage_vram::Error> {
    let mut worker = Worker::new(id);
    for _ in 0..PROOFS {
        host_work(host, worker.id(), "witness", || spin(25));
        let turn = host.turn(&mut worker)?;
        let (copies, kernels) = (turn.queue(Track::Upload)?, turn.queue(Track::Compute)?);
        let polynomials = turn.alloc::<u64>("a b c", 3 << 20, Class::Pooled, &kernels)?;
        let mut marks = Vec::new();
        for (copy, kernel) in [("upload a", "ntt a"), ("upload b", "ntt b"), ("upload c", "ntt c")] {
            // SAFETY: the job touches no memory.
            unsafe { host.submit(&copies, Op::Copy, copy, Bytes::mib(8), || spin(8)) }?;
            let mark = host.record(&copies)?;
            if staged {
                marks.push((mark, kernel));
            } else {
                turn.waited_for(host, &mark)?;
                // SAFETY: the job touches no memory.
                unsafe { host.submit(&kernels, Op::Launch, kernel, Bytes::ZERO, || spin(10)) }?;
                let start = host.now();
                host.drain(&kernels)?;
                turn.waited(Cause::Sync, start, host.now());
            }
        }
        for (mark, kernel) in marks {
            host.wait(&kernels, &mark)?;
            // SAFETY: the job touches no memory.
            unsafe { host.submit(&kernels, Op::Launch, kernel, Bytes::ZERO, || spin(10)) }?;
        }
        drop(polynomials);
        let scratch = turn.alloc::<u64>("msm scratch", 1 << 20, Class::Pooled, &kernels)?;
        for name in ["msm h", "msm l", "msm a"] {
            // SAFETY: the job touches no memory.
            unsafe { host.submit(&kernels, Op::Launch, name, Bytes::ZERO, || spin(15)) }?;
        }
        drop(scratch);
        turn.release()?;
        host_work(host, worker.id(), "assemble", || spin(10));
    }
    Ok(())
}

/// Waits for a mark and records why.
trait WaitedFor {
    fn waited_for(&self, host: &Host, mark: &prestage_vram::HostMark) -> Result<(), prestage_vram::Error>;
}

impl WaitedFor for prestage_vram::Turn<'_, Host> {
    fn waited_for(&self, host: &Host, mark: &prestage_vram::HostMark) -> Result<(), prestage_vram::Error> {
        let start = host.now();
        host.synchronise(mark)?;
        self.waited(Cause::Transfer, start, host.now());
        Ok(())
    }
}

fn run(staged: bool) -> Result<(Report, Timeline), Box<dyn Error>> {
    let recorder = Arc::new(Recorder::new());
    let ledger = LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() };
    let host = Host::open(HostConfig { capacity: Bytes::gib(1), ledger })?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|id| {
                let host = &host;
                scope.spawn(move || work(host, id, staged))
            })
            .collect();
        workers.into_iter().try_for_each(|w| w.join().unwrap_or(Ok(())))
    })?;
    let timeline = recorder.take();
    // Real runs verify real proofs here.
    let verified = Verified::check(0..WORKERS * PROOFS, |_| true)?;
    let key = Key {
        scenario: if staged { "staged" } else { "unstaged" }.into(),
        device: "host".into(),
        load: Load { circuit: "sleep".into(), constraints: 1, partitions: 1 },
        commit: "none".into(),
    };
    let mut report = Report::new(key, verified, &timeline);
    report.parameter("workers", WORKERS);
    Ok((report, timeline))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let (staged, a) = run(true)?;
    let (unstaged, b) = run(false)?;
    let path = folder.join("timeline.html");
    let html =
        page("Copies ahead of the kernels, or not", &[("staged", &staged, &a), ("unstaged", &unstaged, &b)])?;
    write_atomic(&path, html.as_bytes())?;
    println!("staged: busy {:.1} %", staged.times.percent(staged.times.busy()));
    println!("unstaged: busy {:.1} %", unstaged.times.percent(unstaged.times.busy()));
    println!("wrote {}", path.display());
    Ok(())
}
