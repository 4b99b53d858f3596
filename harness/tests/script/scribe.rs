//! Every typed run can be written down, and its replay gives the same levels one after another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Libsnark, Options, Policy, Prover, setup};
use prestage_harness::circuits::squares;
use prestage_harness::scenario::{Scenario, Synthetic, Target, run};
use prestage_harness::script::{Replay, Scribe, Script};
use prestage_harness::session::About;
use prestage_harness::timeline::Recorder;
use prestage_vram::{
    Bytes, Card, Class, Device, Error, Host, HostConfig, Ledger, LedgerConfig, Level, Margin, Nanos, Sim,
    SimConfig, Track, Turn, Worker, WorkerId,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rand_core::OsRng;

struct Kept {
    scribe: Arc<Scribe>,
    recorder: Arc<Recorder>,
    config: LedgerConfig,
}

fn keep(config: LedgerConfig) -> Kept {
    let recorder = Arc::new(Recorder::new());
    let scribe = Arc::new(Scribe::new(recorder.clone()));
    let config = LedgerConfig { sink: scribe.clone(), ..config };
    Kept { scribe, recorder, config }
}

/// Writes the run down, reads it back and replays it: the levels must be those of the run.
fn same_levels(kept: &Kept, ledger: &Ledger) -> Replay {
    let levels: Vec<Level> = kept.recorder.take().memory().into_iter().map(|(_, level)| level).collect();
    let text = kept.scribe.script("run", ledger).to_toml().unwrap();
    let replay = Script::from_toml(&text).unwrap().replay(Card::preset("cascade-16g").unwrap());
    let replay = replay.unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(replay.failures.is_empty() && replay.refusals.is_empty(), "{:?}\n{text}", replay.refusals);
    let again = replay.levels();
    if let Some(at) = (0..levels.len().max(again.len())).find(|i| levels.get(*i) != again.get(*i)) {
        panic!("level {at}: {:?} in the run, {:?} in the replay\n{text}", levels.get(at), again.get(at));
    }
    assert_eq!((replay.peak, replay.level), (ledger.peak(), ledger.level()));
    replay
}

#[derive(Clone, Debug)]
enum Deed {
    Work { ms: u64 },
    Take { mib: u64, pooled: bool },
    Stay { mib: u64, pooled: bool },
    Drop { which: usize },
    Drain,
    Trim,
    Compute,
    Foreign { mib: u64 },
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => (0..20_u64).prop_map(|ms| Deed::Work { ms }),
        6 => (0..40_u64, any::<bool>()).prop_map(|(mib, pooled)| Deed::Take { mib, pooled }),
        1 => (0..8_u64, any::<bool>()).prop_map(|(mib, pooled)| Deed::Stay { mib, pooled }),
        4 => any::<usize>().prop_map(|which| Deed::Drop { which }),
        1 => Just(Deed::Drain),
        1 => Just(Deed::Trim),
        1 => Just(Deed::Compute),
        1 => (0..20_u64).prop_map(|mib| Deed::Foreign { mib }),
    ];
    vec(deed, 0..16)
}

fn one_turn(sim: &Sim, turn: &Turn<'_, Sim>, deeds: &[Deed]) -> Result<(), Error> {
    let queue = turn.queue(Track::Compute)?;
    let (mut held, mut stays) = (Vec::new(), Vec::new());
    let class = |pooled| if pooled { Class::Pooled } else { Class::Direct };
    for deed in deeds {
        // Refusals are part of it: what is refused changes nothing.
        match *deed {
            Deed::Work { ms } => sim.elapse(Nanos::new(ms * 1_000_000)),
            Deed::Take { mib, pooled } => {
                held.extend(turn.alloc_charged::<u8>("x", 1, Bytes::mib(mib), class(pooled), &queue).ok());
            }
            Deed::Stay { mib, pooled } => {
                let bytes = Bytes::mib(mib);
                stays.extend(
                    turn.alloc_resident_charged::<u8>(sim, "s", 1, bytes, class(pooled), &queue).ok(),
                );
            }
            Deed::Drop { which } if !held.is_empty() => drop(held.swap_remove(which % held.len())),
            Deed::Drop { .. } => drop(stays.pop()),
            Deed::Drain => turn.drain()?,
            Deed::Trim => drop(turn.trim()?),
            Deed::Compute => turn.compute()?,
            // The account learns of it before the next grant: one that the card could not fill would be left out.
            Deed::Foreign { mib } if !sim.ledger().config().ahead => {
                sim.set_foreign(Bytes::mib(mib));
                turn.trim()?;
            }
            Deed::Foreign { .. } => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_typed_schedule_on_a_simulated_card(
        workers in vec(vec(deeds(), 1..4), 1..4),
        ahead in any::<bool>(),
        threshold in prop_oneof![Just(0), 0..64_u64, Just(u64::MAX)],
        margin in 0..8_u64,
    ) {
        let mut card = Card::preset("cascade-16g").unwrap();
        (card.capacity, card.context) = (Bytes::mib(100), Bytes::mib(4));
        let kept = keep(LedgerConfig {
            margin: Margin::Fixed(Bytes::mib(margin)),
            threshold: Bytes::mib(threshold),
            ahead,
            ..LedgerConfig::default()
        });
        let sim = Sim::open(SimConfig { card, scale: 1, ledger: kept.config.clone() }).unwrap();
        let results = sim.workers(u32::try_from(workers.len()).unwrap(), |id| {
            let mut worker = Worker::new(id.0);
            for deeds in &workers[id.0 as usize] {
                let turn = sim.turn(&mut worker)?;
                one_turn(&sim, &turn, deeds)?;
                turn.release()?;
            }
            Ok::<(), Error>(())
        });
        for result in results {
            result.unwrap().unwrap();
        }
        same_levels(&kept, sim.ledger());
    }
}

/// The real prover on the CPU: two workers, each policy.
#[test]
fn typed_proofs_on_the_cpu() {
    let circuit = squares(5, OsRng).unwrap();
    let kept = keep(LedgerConfig::default());
    let host = Host::open(HostConfig { capacity: Bytes::gib(1), ledger: kept.config.clone() }).unwrap();
    let prover = Prover::<_, Libsnark>::new(&host, setup(&circuit.r1cs).unwrap()).unwrap();
    let assignment = Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap();
    std::thread::scope(|scope| {
        for id in 0..2 {
            let (prover, assignment) = (&prover, &assignment);
            scope.spawn(move || {
                let mut worker = Worker::new(id);
                for policy in [Policy::Full, Policy::AThenBc, Policy::None] {
                    prover.prove(&mut worker, assignment, &Options::default().policy(policy)).unwrap();
                }
            });
        }
    });
    drop(prover);
    let replay = same_levels(&kept, host.ledger());
    assert!(replay.peak > Bytes::ZERO && replay.levels().len() > 20);
    assert_eq!(replay.timeline.on(Track::Held).count(), 6, "a turn per proof");
    assert_eq!(replay.timeline.workers(), [WorkerId(0), WorkerId(1)]);
}

/// Two workers that stage ahead on a simulated card: what one frees, the other has before the first has ended.
#[test]
fn typed_proofs_that_stage_ahead_on_a_card() {
    for (name, policy) in [
        ("rtx-5070-ti-16g", Policy::Auto),
        ("cascade-16g", Policy::Auto),
        ("rtx-5070-ti-16g", Policy::AThenBc),
    ] {
        let porep = Synthetic::named("porep-32g").unwrap();
        let circuit = porep.realise(7, 0).unwrap();
        let card = Card::preset(name).unwrap();
        let margin = Margin::Fixed(card.margin);
        let threshold = card.pool_threshold;
        let kept = keep(LedgerConfig { margin, threshold, ahead: true, ..LedgerConfig::default() });
        let sim = Target::open_sim(card, 1 << 20, kept.config.clone()).unwrap();
        let prover = Prover::<_, Libsnark>::new(&sim, setup(&circuit.r1cs).unwrap()).unwrap();
        let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
        let wanted = Scenario { workers: 2, partitions: 5, policy, host: porep.host(), opened: None };
        let about = About {
            scenario: "test".into(),
            device: name.into(),
            circuit: "porep-32g".into(),
            constraints: 1,
            parameters: BTreeMap::new(),
        };
        // The levels come from a recorder beside the one that the run empties.
        let beside = Arc::new(Recorder::new());
        let stop = AtomicBool::new(false);
        let outcome = run(&prover, &wanted, assignment, &beside, about, &stop).unwrap();
        assert_eq!((outcome.proofs.len(), outcome.failed.len()), (5, 0));
        same_levels(&kept, sim.ledger());
    }
}
