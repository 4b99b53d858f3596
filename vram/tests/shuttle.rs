//! Row P3 under random schedules: 2 to 4 workers prove under any policies on the real ledger and turns. The budget is
//! never exceeded, by the account or by the driver; no plan is refused; nobody waits for ever (which shuttle reports);
//! turns go in the order of asking; nothing is left over.
//!
//! `RUSTFLAGS="--cfg shuttle" cargo test -p prestage-vram --release --test shuttle -- --nocapture`
//!
//! The number of schedules is `PRESTAGE_INTERLEAVINGS` (20,000 without it); it is printed. A schedule that fails is printed
//! for `shuttle::replay`.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod checked;

use std::sync::{Arc, Mutex};

use checked::Model;
use prestage_vram::{Bytes, Change, Class, Device, Event, Sink, Track, Turn, Worker};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner, thread};

/// A polynomial, and the tables of the quotient.
const N: usize = 4;
const T: usize = 1;
/// Scratch of the H sum, beside a, and of the other sums.
const H: usize = 5;
const TAIL: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Full,
    AThenBc,
    Chunked,
    Unstaged,
}

impl Policy {
    const ALL: [Self; 4] = [Self::Full, Self::AThenBc, Self::Chunked, Self::Unstaged];

    /// What is staged, and what the quotient takes beside it.
    fn polynomials(self) -> (&'static [usize], &'static [usize]) {
        match self {
            Self::Full => (&[N, N, N], &[T]),
            Self::AThenBc => (&[N, N], &[T]),
            Self::Chunked => (&[N], &[T, N / 4, N / 4]),
            Self::Unstaged => (&[], &[N, N, T]),
        }
    }

    fn peak(self) -> usize {
        let (staged, beside) = self.polynomials();
        let quotient = staged.iter().chain(beside).sum::<usize>();
        quotient.max(N + H).max(TAIL)
    }
}

/// Who entered, in order, and whether the account ever went past its budget.
#[derive(Default)]
struct Watch(Mutex<Vec<u32>>);

impl Watch {
    fn entered(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Sink for Watch {
    fn emit(&self, event: Event) {
        match event {
            Event::Change { worker, change: Change::Enter, .. } => self.0.lock().unwrap().push(worker.0),
            Event::Level { label, level, .. } => {
                assert!(level.used() <= level.budget, "{label}: {} of {}", level.used(), level.budget);
            }
            Event::Refusal { refused, .. } => panic!("refused after planning: {refused}"),
            _ => {}
        }
    }
}

/// The device's part of a proof. Frees of a and of what the quotient took are the turn's own order of things.
fn proof(turn: &Turn<'_, Model>, policy: Policy) {
    let [up, compute] = [Track::Upload, Track::Compute].map(|track| turn.queue(track).unwrap());
    let bytes = |n: usize| Bytes::of::<u8>(n);
    let (staged, beside) = policy.polynomials();
    turn.promise(bytes(policy.peak()));
    let mut polynomials = Vec::new();
    for len in staged {
        let mut buf = turn.alloc_waiting::<u8>("staged", *len, Class::Pooled, &up).unwrap();
        buf.claim(&compute).unwrap();
        polynomials.push(buf);
    }
    turn.compute().unwrap();
    for len in beside {
        polynomials.push(turn.alloc::<u8>("quotient", *len, Class::Pooled, &compute).unwrap());
    }
    polynomials.truncate(1);
    turn.promise(bytes((N + H).max(TAIL)));
    let freed = turn.freed().unwrap();
    let scratch = turn.alloc::<u8>("msm scratch", H, Class::Pooled, &compute).unwrap();
    freed.pass_on().unwrap();
    drop((scratch, polynomials));
    turn.promise(bytes(TAIL));
    let freed = turn.freed().unwrap();
    let scratch = turn.alloc::<u8>("msm scratch", TAIL, Class::Pooled, &compute).unwrap();
    freed.pass_on().unwrap();
    drop(scratch);
}

/// One schedule: what the workers prove and on how large a card is drawn from the schedule's own seed.
fn workers(n: u32, ahead: bool) {
    let mut rng = thread_rng();
    let budget = rng.gen_range(N + H..=2 * (3 * N + T));
    let fit: Vec<_> = Policy::ALL.into_iter().filter(|policy| policy.peak() <= budget).collect();
    let watch = Arc::new(Watch::default());
    let device = Model::recorded(budget as u64, ahead, Arc::clone(&watch) as _);
    let proofs: Vec<Vec<Policy>> = (0..n)
        .map(|_| (0..rng.gen_range(1..=2)).map(|_| fit[rng.gen_range(0..fit.len())]).collect())
        .collect();
    let total = proofs.iter().map(Vec::len).sum::<usize>();
    let threads: Vec<_> = (0..n)
        .zip(proofs)
        .map(|(id, proofs)| {
            let (device, watch) = (Arc::clone(&device), Arc::clone(&watch));
            thread::spawn(move || {
                let mut worker = Worker::new(id);
                for policy in proofs {
                    // Whoever stands in line by now goes first.
                    let entered = watch.entered();
                    let ahead_of_me = device.ledger().in_line();
                    let turn = device.turn(&mut worker).unwrap();
                    let since = watch.0.lock().unwrap()[entered..].to_vec();
                    let mine = since.iter().position(|who| *who == id).unwrap();
                    assert!(mine >= ahead_of_me, "{ahead_of_me} stood in line, {mine} went first");
                    proof(&turn, policy);
                    turn.release().unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(watch.entered(), total);
    device.assert_empty();
}

fn run(scheduler: impl Scheduler + 'static, n: u32, ahead: bool) -> usize {
    Runner::new(scheduler, Config::default()).run(move || workers(n, ahead))
}

#[test]
fn p3_workers_of_every_policy_under_random_schedules() {
    let wanted = std::env::var("PRESTAGE_INTERLEAVINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let each = usize::div_ceil(wanted, 12);
    let mut schedules = 0;
    for n in 2..=4 {
        for ahead in [false, true] {
            schedules += run(RandomScheduler::new(each), n, ahead);
            // Few preemptions, at random places: what takes chance alone long to find.
            schedules += run(PctScheduler::new(3, each), n, ahead);
        }
    }
    assert!(schedules >= wanted, "{schedules}");
    println!("{schedules} schedules of 2 to 4 workers, the budget never exceeded, no deadlock");
}
