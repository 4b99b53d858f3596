//! Row P3: whatever the interleaving, the budget holds, nobody waits for ever, and turns go in the order of asking.
//!
//! The number of interleavings is `PRESTAGE_INTERLEAVINGS` (300 without it); it is printed.

use std::env;
use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Policy, Prover};
use prestage_harness::scenario::{Ended, HostTime, Scenario, dispense, run};
use prestage_harness::timeline::Timeline;
use prestage_vram::{
    Bytes, Cause, Class, Cost, Cpu, Device, Event, Nanos, Sim, Track, Turn, Work, Worker, host_work,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{about, card, open, small, within_budget};

fn cases(default: u32) -> u32 {
    env::var("PRESTAGE_INTERLEAVINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Turns were granted in the order in which they were asked for.
fn first_come_first_served(timeline: &Timeline) {
    let asked = |turn: &prestage_vram::Span| {
        let waits = timeline.events().iter().filter_map(|event| match event {
            Event::Wait { worker, cause: Cause::Turn, start, end } if *worker == turn.worker => {
                (*end == turn.start).then_some(*start)
            }
            _ => None,
        });
        waits.min().unwrap_or(turn.start)
    };
    let mut turns: Vec<_> = timeline.on(Track::Held).map(|turn| (asked(turn), turn.start)).collect();
    turns.sort();
    assert!(turns.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{turns:?}");
}

/// One proof's use of memory: what it stages, the quotient's tables, and its sums.
#[derive(Clone, Debug)]
struct Proof {
    prepare: u64,
    pieces: Vec<u64>,
    sums: Vec<u64>,
    kernel: u64,
}

fn proof() -> impl Strategy<Value = Proof> {
    let mib = 1u64..=40;
    (0u64..50, prop::collection::vec(mib.clone(), 1..=3), prop::collection::vec(mib, 1..=4), 1u64..20)
        .prop_map(|(prepare, pieces, sums, kernel)| Proof { prepare, pieces, sums, kernel })
}

fn one(sim: &Sim, worker: &mut Worker, proof: &Proof) -> Result<(), prestage_vram::Error> {
    let ms = |n: u64| Nanos::new(n * 1_000_000);
    host_work(sim, worker.id(), "prepare", || sim.elapse(ms(proof.prepare)));
    let turn = sim.turn(worker)?;
    device_part(sim, &turn, proof)?;
    turn.release()
}

fn device_part(sim: &Sim, turn: &Turn<'_, Sim>, proof: &Proof) -> Result<(), prestage_vram::Error> {
    let ms = |n: u64| Nanos::new(n * 1_000_000);
    let (up, compute) = (turn.queue(Track::Upload)?, turn.queue(Track::Compute)?);
    let staged: u64 = proof.pieces.iter().sum();
    let kept = proof.pieces[0];
    let sums = proof.sums.iter().map(|sum| kept + sum).max().unwrap_or(0);
    turn.promise(Bytes::mib(staged.max(sums)));
    let mut polynomials = Vec::new();
    for piece in &proof.pieces {
        // A mebibyte is a byte here.
        let len = usize::try_from(*piece).unwrap();
        let mut buf = turn.alloc_waiting::<u8>("piece", len, Class::Pooled, &up)?;
        let cost = Cost::Upload { bytes: buf.charge(), pinned: true };
        // SAFETY: the job touches no memory.
        unsafe { sim.perform(&up, Work::copy("upload", buf.charge()), move || cost) }?;
        buf.claim(&compute)?;
        polynomials.push(buf);
    }
    turn.compute()?;
    let kernel = |name: &'static str, n: u64| {
        // SAFETY: the job touches no memory.
        unsafe { sim.perform(&compute, Work::launch(name, Bytes::ZERO), move || Cost::Time(ms(n))) }
    };
    kernel("quotient", proof.kernel)?;
    polynomials.truncate(1);
    for (i, sum) in proof.sums.iter().enumerate() {
        let rest = proof.sums[i..].iter().map(|sum| kept + sum).max().unwrap_or(0);
        turn.promise(Bytes::mib(rest));
        let freed = turn.freed()?;
        let len = usize::try_from(*sum).unwrap();
        let scratch = turn.alloc::<u8>("scratch", len, Class::Pooled, &compute)?;
        kernel("sum", proof.kernel)?;
        freed.pass_on()?;
        drop(scratch);
    }
    Ok(())
}

#[test]
fn p3_any_interleaving_of_turns_keeps_the_budget() {
    let cases = cases(300);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    // The largest proof fits: 120 MiB.
    let proofs = prop::collection::vec(proof(), 4..12);
    let any = (2u32..=4, any::<bool>(), 160u64..400, 1u64..30, proofs);
    let outcome = runner.run(&any, |(workers, ahead, budget, resident, proofs)| {
        let (ledger, recorder) = super::recorded(Bytes::ZERO, ahead);
        let card = card(Bytes::mib(budget + resident));
        let sim = prestage_harness::scenario::Target::open_sim(card, 1 << 20, ledger).unwrap();
        // Key points and tables, which outlive every turn.
        let mut first = Worker::new(0);
        let turn = sim.turn(&mut first).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let len = usize::try_from(resident).unwrap();
        let key = turn.alloc_resident::<u8>(&sim, "key", len, Class::Direct, &queue).unwrap();
        turn.release().unwrap();
        drop(recorder.take());
        let jobs = u32::try_from(proofs.len()).unwrap();
        let ended = dispense(
            &[&sim],
            workers,
            jobs,
            &AtomicBool::new(false),
            |_, worker, job| one(&sim, worker, &proofs[job as usize]),
            |_, _| false,
        );
        for (job, end) in ended.iter().enumerate() {
            prop_assert!(matches!(end, Ended::Done(0, ())), "job {job}: {end:?}");
        }
        let timeline = recorder.take();
        within_budget(&timeline);
        first_come_first_served(&timeline);
        prop_assert_eq!(timeline.on(Track::Held).count(), proofs.len());
        let level = sim.ledger().level();
        prop_assert_eq!((level.used(), level.resident), (key.charge(), Bytes::mib(resident)));
        prop_assert_eq!((sim.usage().direct, sim.usage().pooled), (Bytes::mib(resident), Bytes::ZERO));
        drop(key);
        prop_assert_eq!((sim.ledger().level().used(), sim.usage().direct), (Bytes::ZERO, Bytes::ZERO));
        Ok(())
    });
    outcome.unwrap();
    println!("{cases} interleavings, the budget never exceeded, no deadlock");
}

/// The same with real proofs under every policy.
#[test]
fn p3_real_proofs_of_every_policy_keep_the_budget() {
    let cases = cases(300) / 25;
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let policy = prop_oneof![
        3 => Just(Policy::Auto),
        1 => Just(Policy::AThenBc),
        1 => Just(Policy::Chunked(4)),
        1 => Just(Policy::None),
    ];
    let any = (2u32..=4, any::<bool>(), 9_000u64..30_000, policy, prop::array::uniform4(0u64..3_000));
    let (circuit, key) = small();
    let outcome = runner.run(&any, |(workers, ahead, usable, policy, delays)| {
        let (sim, recorder) = open(card(Bytes::mib(usable)), ahead);
        let prover = Prover::new(&sim, key.clone()).unwrap();
        let assignment = |partition: u32| {
            sim.elapse(Nanos::new(delays[partition as usize % 4] * 1_000_000));
            Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
        };
        let wanted = Scenario { workers, partitions: 5, policy, host: HostTime::default(), opened: None };
        let stop = AtomicBool::new(false);
        let outcome = run(&prover, &wanted, assignment, &recorder, about("sim"), &stop).unwrap();
        prop_assert_eq!(outcome.proofs.len(), 5, "{:?}", outcome.failed);
        within_budget(&outcome.timeline);
        first_come_first_served(&outcome.timeline);
        let refused = outcome.timeline.events().iter().any(|e| matches!(e, Event::Refusal { .. }));
        prop_assert!(!refused, "refused after planning");
        // Points of the key stay where there is room.
        let level = sim.ledger().level();
        prop_assert_eq!(level.used(), level.resident);
        drop(prover);
        prop_assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
        Ok(())
    });
    outcome.unwrap();
}
