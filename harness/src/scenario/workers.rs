//! Workers that take jobs from one queue, on one device or on several.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use prestage_vram::{Device, Host, Recorded, Sim, Worker, WorkerId};

/// A device that can be used from several threads, in its own kind of time, which devices opened beside it share.
pub trait Crew: Device {
    /// Runs `work` on `n` threads, numbered from 0, and returns what each of them returns.
    fn crew<R: Send>(&self, n: u32, work: impl Fn(WorkerId) -> R + Sync) -> Vec<thread::Result<R>>;

    /// What a profiler recorded of the work since the last call; nothing where none is asked to.
    ///
    /// # Errors
    /// [`prestage_vram::Error::NoCupti`].
    fn records(&self) -> Result<Vec<Recorded>, prestage_vram::Error> {
        Ok(Vec::new())
    }
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

    fn records(&self) -> Result<Vec<Recorded>, prestage_vram::Error> {
        Self::records(self)
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
pub enum Ended<T, E> {
    /// The device of this number did it.
    Done(usize, T),
    /// It failed in this way.
    Failed(E),
    /// It panicked, in these words. Its worker went on.
    Panicked(String),
    /// It was not begun: the stop came first, or no worker could be started.
    NotBegun,
}

/// Jobs that wait, the first first. One that comes back from a device that failed has its error with it.
type Waiting<E> = Mutex<VecDeque<(u32, Option<E>)>>;

/// Gives the jobs `0..jobs` out in order to whichever of the workers is free, `workers` on each device, until all are given out
/// or `stop` is set. Jobs are told the number of their device. Returns how each ended, in order.
///
/// A job that fails or panics stops nobody. A device of whose failure `unfit` says that it is the device's is given no more jobs
/// while there is another, and the job that it failed is the next for whoever is free.
///
/// Devices keep one time: those after the first were opened beside it.
pub fn dispense<D: Crew, T: Send, E: Send>(
    devices: &[&D],
    workers: u32,
    jobs: u32,
    stop: &AtomicBool,
    job: impl Fn(usize, &mut Worker, u32) -> Result<T, E> + Sync,
    unfit: impl Fn(usize, &E) -> bool + Sync,
) -> Vec<Ended<T, E>> {
    let mut ended: Vec<Ended<T, E>> = (0..jobs).map(|_| Ended::NotBegun).collect();
    let Some(first) = devices.first() else { return ended };
    let waiting: Waiting<E> = Mutex::new((0..jobs).map(|number| (number, None)).collect());
    let take = || lock(&waiting).pop_front();
    let lost: Vec<AtomicBool> = devices.iter().map(|_| AtomicBool::new(false)).collect();
    let left = || lost.iter().filter(|lost| !lost.load(Ordering::SeqCst)).count();
    let alive = || left() > 0;
    let n = u32::try_from(devices.len()).unwrap_or(u32::MAX);
    loop {
        let before = (lock(&waiting).len(), left());
        let seats = workers.saturating_mul(n).min(u32::try_from(before.0).unwrap_or(u32::MAX));
        let done = first.crew(seats, |WorkerId(seat)| {
            let (on, id) = ((seat % n) as usize, seat / n);
            let (mut worker, mut done) = (Worker::new(id), Vec::new());
            let Some(lost) = lost.get(on) else { return done };
            let over = || stop.load(Ordering::SeqCst) || (lost.load(Ordering::SeqCst) && alive());
            while !over() {
                let Some((number, _)) = take() else { break };
                // What a panic leaves behind is the job's own; turn, memory and lanes are given back on the way out.
                let outcome = catch_unwind(AssertUnwindSafe(|| job(on, &mut worker, number)));
                done.push(match outcome {
                    Ok(Ok(value)) => (number, Ended::Done(on, value)),
                    Ok(Err(error)) => {
                        if unfit(on, &error) {
                            lost.store(true, Ordering::SeqCst);
                            if alive() {
                                lock(&waiting).push_front((number, Some(error)));
                                break;
                            }
                        }
                        (number, Ended::Failed(error))
                    }
                    Err(panic) => (number, Ended::Panicked(words(panic.as_ref()))),
                });
            }
            done
        });
        for (number, how) in done.into_iter().flatten().flatten() {
            if let Some(place) = ended.get_mut(number as usize) {
                *place = how;
            }
        }
        // A job may come back when the others have gone home. Where no worker could be started nothing changes.
        let after = (lock(&waiting).len(), left());
        if after.0 == 0 || after.1 == 0 || after == before || stop.load(Ordering::SeqCst) {
            break;
        }
    }
    for (number, error) in lock(&waiting).drain(..) {
        if let (Some(place), Some(error)) = (ended.get_mut(number as usize), error) {
            *place = Ended::Failed(error);
        }
    }
    ended
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of a job does not hold it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}
