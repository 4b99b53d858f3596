//! Workers that take jobs from one queue.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use prestage_vram::{Device, Host, Sim, Worker, WorkerId};

/// A device that can be used from several threads, in its own kind of time.
pub trait Crew: Device {
    /// Runs `work` on `n` threads, numbered from 0, and returns what each of them returns.
    fn crew<R: Send>(&self, n: u32, work: impl Fn(WorkerId) -> R + Sync) -> Vec<thread::Result<R>>;
}

impl Crew for Host {
    fn crew<R: Send>(&self, n: u32, work: impl Fn(WorkerId) -> R + Sync) -> Vec<thread::Result<R>> {
        threads(n, &work)
    }
}

#[cfg(feature = "cuda")]
impl Crew for prestage_vram::cuda::Cuda {
    fn crew<R: Send>(&self, n: u32, work: impl Fn(WorkerId) -> R + Sync) -> Vec<thread::Result<R>> {
        threads(n, &work)
    }
}

fn threads<R: Send>(n: u32, work: &(impl Fn(WorkerId) -> R + Sync)) -> Vec<thread::Result<R>> {
    thread::scope(|scope| {
        let spawn = |id| {
            let builder = thread::Builder::new().name(format!("worker {id}"));
            builder.spawn_scoped(scope, move || work(WorkerId(id)))
        };
        let threads: Vec<_> = (0..n).map(spawn).collect();
        threads.into_iter().map(|thread| thread.map_err(|e| Box::new(e) as _)?.join()).collect()
    })
}

impl Crew for Sim {
    fn crew<R: Send>(&self, n: u32, work: impl Fn(WorkerId) -> R + Sync) -> Vec<thread::Result<R>> {
        self.workers(n, work)
    }
}

/// How a job ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// It returned.
    Done(T),
    /// It panicked, in these words. Its worker went on.
    Panicked(String),
    /// It was not begun: the stop came first, or its worker could not be started.
    NotBegun,
}

/// Gives the jobs `0..jobs` out in order to whichever of `workers` workers is free, until all are given out or `stop` is
/// set. A job that fails or panics stops nobody. Returns how each ended, in order.
pub fn dispense<D: Crew, T: Send>(
    device: &D,
    workers: u32,
    jobs: u32,
    stop: &AtomicBool,
    job: impl Fn(&mut Worker, u32) -> T + Sync,
) -> Vec<Ended<T>> {
    let next = AtomicU32::new(0);
    let done = device.crew(workers.min(jobs), |id| {
        let mut worker = Worker::new(id.0);
        let mut done = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= jobs {
                break;
            }
            // What a panic leaves behind is the job's own; turn, memory and lanes are given back on the way out.
            let ended = catch_unwind(AssertUnwindSafe(|| job(&mut worker, number)));
            done.push((number, ended.map_or_else(|e| Ended::Panicked(words(e.as_ref())), Ended::Done)));
        }
        done
    });
    let mut ended: Vec<Ended<T>> = (0..jobs).map(|_| Ended::NotBegun).collect();
    for (number, how) in done.into_iter().flatten().flatten() {
        if let Some(place) = ended.get_mut(number as usize) {
            *place = how;
        }
    }
    ended
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
