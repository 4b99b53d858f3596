//! Any program of a few workers: the trace does not depend on the machine, and account and driver never disagree.

use proptest::prelude::*;

use prestage_vram::{Buf, Bytes, Card, Class, Cost, Device, Error, Sim, Track, Turn, Worker};

use super::{enqueue, ms, open};

#[derive(Clone, Debug)]
enum Step {
    Elapse(u64),
    Take(u64, Class),
    /// Takes from the pool, in line where it has to.
    Wait(u64),
    Free(usize),
    Upload(u64, bool),
    Kernel(u64),
    /// The upload lane waits for the compute lane.
    Order,
    Drain,
    Trim,
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(Class::Direct), Just(Class::Pooled)];
    prop_oneof![
        (0..50u64).prop_map(Step::Elapse),
        (1..9u64, class).prop_map(|(n, class)| Step::Take(n, class)),
        (1..9u64).prop_map(Step::Wait),
        any::<usize>().prop_map(Step::Free),
        (1..500u64, any::<bool>()).prop_map(|(n, pinned)| Step::Upload(n, pinned)),
        (0..50u64).prop_map(Step::Kernel),
        Just(Step::Order),
        Just(Step::Drain),
        Just(Step::Trim),
    ]
}

/// Steps outside and inside of the turns of one worker.
type Program = Vec<(u64, Vec<Step>)>;

fn take_turn(sim: &Sim, turn: &Turn<'_, Sim>, steps: &[Step]) -> Result<(), Error> {
    let (compute, up) = (turn.queue(Track::Compute)?, turn.queue(Track::Upload)?);
    let mut held: Vec<Buf<'_, Sim, _>> = Vec::new();
    turn.compute()?;
    for step in steps {
        let taken = match *step {
            Step::Elapse(n) => {
                sim.elapse(ms(n));
                continue;
            }
            Step::Take(gib, class) => turn.alloc_charged::<u8>("take", 1, Bytes::gib(gib), class, &compute),
            Step::Wait(mib) => turn.alloc_waiting::<u8>("wait", 1 << mib, Class::Pooled, &up),
            Step::Free(i) => {
                if !held.is_empty() {
                    drop(held.swap_remove(i % held.len()));
                }
                continue;
            }
            Step::Upload(mib, pinned) => {
                enqueue(sim, &up, "upload", Cost::Upload { bytes: Bytes::mib(mib), pinned });
                continue;
            }
            Step::Kernel(n) => {
                enqueue(sim, &compute, "kernel", Cost::Time(ms(n)));
                continue;
            }
            Step::Order => {
                let mark = sim.record(&compute)?;
                sim.wait(&up, &mark)?;
                continue;
            }
            Step::Drain => {
                turn.drain()?;
                continue;
            }
            Step::Trim => {
                turn.trim()?;
                continue;
            }
        };
        match taken {
            Ok(buf) => held.push(buf),
            // Refused by the account, never by the driver behind its back.
            Err(Error::Refused(refused)) => assert!(refused.driver.is_none(), "{refused}"),
            Err(other) => return Err(other),
        }
        let (level, usage) = (sim.ledger().level(), sim.usage());
        assert!(level.used() <= level.budget);
        assert_eq!((level.direct, level.pooled), (usage.direct, usage.pooled));
        assert!(usage.retained <= level.retained, "the driver has nothing that the account does not know of");
    }
    Ok(())
}

fn run(programs: &[Program], threshold: Bytes, ahead: bool) -> String {
    let card = Card::preset("cascade-16g").unwrap();
    let (sim, recorder) = open(card, 1 << 20, |ledger| {
        ledger.threshold = threshold;
        ledger.ahead = ahead;
    });
    let results = sim.workers(u32::try_from(programs.len()).unwrap(), |id| {
        let mut worker = Worker::new(id.0);
        for (pause, steps) in &programs[id.0 as usize] {
            sim.elapse(ms(*pause));
            let turn = sim.turn(&mut worker)?;
            take_turn(&sim, &turn, steps)?;
            turn.release()?;
        }
        Ok::<(), Error>(())
    });
    for result in results {
        match result {
            Ok(outcome) => outcome.unwrap(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    let level = sim.ledger().level();
    assert_eq!(level.used(), level.retained);
    recorder.trace()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t3_any_program_has_one_trace(
        programs in prop::collection::vec(
            prop::collection::vec((0..100u64, prop::collection::vec(step(), 0..12)), 1..4),
            1..4,
        ),
        keep in any::<bool>(),
        ahead in any::<bool>(),
    ) {
        let threshold = if keep { Bytes::MAX } else { Bytes::ZERO };
        let first = run(&programs, threshold, ahead);
        prop_assert!(first == run(&programs, threshold, ahead), "two runs differ");
    }
}
