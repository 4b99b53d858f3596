//! The ledger against a model of it written naively, over random sequences of what several turns may do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use prestage_vram::{
    Buf, Bytes, Class, Device, Error, Host, HostConfig, LedgerConfig, Margin, Track, Turn, Worker,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::mem::MaybeUninit;

const BUDGET: u64 = 64;

#[derive(Clone, Debug)]
enum Step {
    Lease { bytes: u64, pooled: bool },
    Drop { which: usize },
    Drain,
    Trim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lease = (0..=BUDGET + 8, any::<bool>()).prop_map(|(bytes, pooled)| Step::Lease { bytes, pooled });
    let drop = any::<usize>().prop_map(|which| Step::Drop { which });
    vec(prop_oneof![4 => lease, 3 => drop, 1 => Just(Step::Drain), 1 => Just(Step::Trim)], 1..60)
}

/// What the account should say.
#[derive(Debug, Default)]
struct Model {
    direct: u64,
    pooled: u64,
    retained: u64,
    threshold: u64,
    peak: u64,
}

impl Model {
    fn used(&self) -> u64 {
        self.direct + self.pooled + self.retained
    }

    fn drain(&mut self) {
        while self.retained > 0 && self.pooled + self.retained > self.threshold {
            self.retained -= 1;
        }
    }

    fn fits(&self, bytes: u64, pooled: bool) -> bool {
        let reused = if pooled { bytes.min(self.retained) } else { 0 };
        self.used() + bytes - reused <= BUDGET
    }

    /// True when granted.
    fn lease(&mut self, bytes: u64, pooled: bool) -> bool {
        if bytes > BUDGET {
            return false;
        }
        if !self.fits(bytes, pooled) {
            self.retained = 0;
            if !self.fits(bytes, pooled) {
                return false;
            }
        }
        if pooled {
            self.retained -= bytes.min(self.retained);
            self.pooled += bytes;
        } else {
            self.direct += bytes;
        }
        self.peak = self.peak.max(self.used());
        true
    }

    fn release(&mut self, bytes: u64, pooled: bool) {
        if pooled {
            self.pooled -= bytes;
            self.retained += bytes;
        } else {
            self.direct -= bytes;
        }
    }
}

type Held<'t> = Vec<(Buf<'t, Host, MaybeUninit<u8>>, u64, bool)>;

fn play(host: &Host, turn: &Turn<'_, Host>, steps: &[Step], model: &mut Model) -> Result<(), TestCaseError> {
    let queue = turn.queue(Track::Compute).unwrap();
    let mut held: Held<'_> = Vec::new();
    for step in steps {
        match *step {
            Step::Lease { bytes, pooled } => {
                let class = if pooled { Class::Pooled } else { Class::Direct };
                let len = usize::try_from(bytes).unwrap();
                let granted = match turn.alloc("x", len, class, &queue) {
                    Ok(buffer) => {
                        held.push((buffer, bytes, pooled));
                        true
                    }
                    Err(Error::Refused(refused)) => {
                        prop_assert_eq!(refused.held.len(), held.len());
                        prop_assert_eq!(
                            refused.free.get(),
                            BUDGET - model.used().min(BUDGET)
                                + if refused.never { 0 } else { model.retained }
                        );
                        false
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                };
                prop_assert_eq!(granted, model.lease(bytes, pooled));
            }
            Step::Drop { which } if !held.is_empty() => {
                let (buffer, bytes, pooled) = held.swap_remove(which % held.len());
                drop(buffer);
                model.release(bytes, pooled);
            }
            Step::Drop { .. } => {}
            Step::Drain => {
                turn.drain().unwrap();
                model.drain();
            }
            Step::Trim => {
                let before = model.retained;
                prop_assert_eq!(turn.trim().unwrap().get(), before);
                model.retained = 0;
            }
        }
        let level = host.ledger().level();
        prop_assert_eq!(
            (level.direct.get(), level.pooled.get(), level.retained.get()),
            (model.direct, model.pooled, model.retained),
            "after {:?}",
            step
        );
        prop_assert!(level.used() <= level.budget, "the budget is never exceeded");
        prop_assert_eq!(host.ledger().peak().get(), model.peak);
    }
    for (buffer, bytes, pooled) in held {
        drop(buffer);
        model.release(bytes, pooled);
    }
    model.drain();
    Ok(())
}

fn open(threshold: Bytes, ahead: bool) -> Host {
    let margin = Margin::Fixed(Bytes::new(8));
    let ledger = LedgerConfig { margin, threshold, ahead, ..LedgerConfig::default() };
    Host::open(HostConfig { capacity: Bytes::new(BUDGET + 8), ledger }).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn b034_the_account_equals_a_naive_model(turns in vec(steps(), 1..4), threshold in 0..100u64) {
        let host = open(Bytes::new(threshold), false);
        let mut model = Model { threshold, ..Model::default() };
        let mut worker = Worker::new(0);
        for steps in &turns {
            let turn = host.turn(&mut worker).unwrap();
            play(&host, &turn, steps, &mut model)?;
            turn.release().unwrap();
            prop_assert_eq!(host.ledger().level().used().get(), model.retained, "only what the pool may keep is left");
        }
        let turn = host.turn(&mut worker).unwrap();
        turn.trim().unwrap();
        turn.release().unwrap();
        prop_assert_eq!(host.ledger().level().used(), Bytes::ZERO);
    }

    /// Two turns side by side: whatever the one that stages does, the one that computes gets what it was promised.
    #[test]
    fn a_promise_holds_whatever_is_staged_beside_it(
        promise in 0..=BUDGET,
        chunks in vec((0..=BUDGET, any::<bool>(), any::<bool>()), 1..20),
        ahead in vec((0..=BUDGET, any::<bool>(), any::<bool>()), 1..20),
        threshold in prop_oneof![Just(0u64), 1..100u64],
    ) {
        let host = open(Bytes::new(threshold), true);
        let (mut w1, mut w2) = (Worker::new(1), Worker::new(2));
        let first = host.turn(&mut w1).unwrap();
        first.promise(Bytes::new(promise));
        first.compute().unwrap();
        let second = host.turn(&mut w2).unwrap();
        second.promise(Bytes::new(BUDGET));
        let q1 = first.queue(Track::Compute).unwrap();
        let q2 = second.queue(Track::Upload).unwrap();
        let class = |pooled| if pooled { Class::Pooled } else { Class::Direct };
        let (mut mine, mut staged): (Held<'_>, Held<'_>) = (Vec::new(), Vec::new());
        for i in 0..chunks.len().max(ahead.len()) {
            if let Some(&(bytes, pooled, give_back)) = ahead.get(i) {
                if give_back && !staged.is_empty() {
                    staged.remove(0);
                }
                let len = usize::try_from(bytes).unwrap();
                if let Ok(buffer) = second.alloc("s", len, class(pooled), &q2) {
                    staged.push((buffer, bytes, pooled));
                }
            }
            if let Some(&(bytes, pooled, free)) = chunks.get(i) {
                if free && !mine.is_empty() {
                    mine.remove(0);
                }
                let live: u64 = mine.iter().map(|(_, bytes, _)| bytes).sum();
                let bytes = bytes.min(promise - live);
                let len = usize::try_from(bytes).unwrap();
                let granted = first.alloc("m", len, class(pooled), &q1);
                prop_assert!(granted.is_ok(), "{bytes} of a promise of {promise}, {live} live: {:?}", granted.err());
                mine.push((granted.unwrap(), bytes, pooled));
            }
            let level = host.ledger().level();
            prop_assert!(level.used() <= level.budget);
        }
        drop((mine, staged));
        first.release().unwrap();
        second.compute().unwrap();
        second.trim().unwrap();
        second.release().unwrap();
        prop_assert_eq!(host.ledger().level().used(), Bytes::ZERO);
    }
}
