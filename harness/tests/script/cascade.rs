//! Rows C1 to C6: how the original ran out of memory, and what cures it.

use prestage_harness::script::{Outcome, Replay, Script};
use prestage_vram::{Bytes, Card, Error, WorkerId};

/// What the original's author assumed.
const LITTLE: &str = "0.36GiB";
/// What its code takes.
const MUCH: &str = "4659MiB";
const USABLE: Bytes = Bytes::mib(14_848);

fn replay(name: &str, set: &[(&str, &str)]) -> Replay {
    let mut script = Script::named(name).unwrap();
    for (name, value) in set {
        script.set(name, *value).unwrap();
    }
    let replay = script.replay(Card::preset("cascade-16g").unwrap()).unwrap();
    assert_eq!((replay.level.usable, replay.level.budget), (USABLE, USABLE));
    replay
}

/// Label, worker, proof, need and free of the first refusal.
fn first(replay: &Replay) -> (&'static str, WorkerId, Option<u32>, Bytes, Bytes) {
    let first = &replay.refusals[0];
    let refused = &first.refused;
    assert_eq!(refused.worker, first.worker);
    (refused.label, first.worker, first.proof, refused.need, refused.free)
}

fn passes(replay: &Replay) {
    assert!(replay.refusals.is_empty() && replay.failures.is_empty(), "{:?}", replay.refusals);
    assert!(!replay.proofs.is_empty());
    assert!(replay.proofs.values().all(|outcome| matches!(outcome, Outcome::Passed)), "{:?}", replay.proofs);
    assert_eq!(replay.level.used(), replay.level.retained, "all is freed");
}

#[test]
fn c1_memory_taken_before_the_lock() {
    for scratch in [LITTLE, MUCH] {
        let replay = replay("c1", &[("msm_scratch", scratch)]);
        let refused = ("a", WorkerId(1), Some(1), Bytes::gib(4), USABLE - Bytes::gib(12));
        assert_eq!(first(&replay), refused);
        let words = replay.refusals[0].refused.to_string();
        assert!(words.starts_with("refused 4.00 GiB for a (worker 1, no turn): free 2.50"), "{words}");
        assert!(words.ends_with("held: a 4.00 (worker 0), bc 8.00 (worker 0)"), "{words}");
        assert!(matches!(replay.proofs[&0], Outcome::Passed), "worker 0 goes on: {:?}", replay.proofs);
        assert!(matches!(replay.proofs[&1], Outcome::Refused(_)));
        assert_eq!((replay.refusals.len(), replay.peak), (1, Bytes::gib(12)));
    }
}

#[test]
fn c2_memory_freed_after_the_turn() {
    let little = replay("c2", &[("msm_scratch", LITTLE)]);
    let scratch: Bytes = LITTLE.parse().unwrap();
    let free = USABLE - Bytes::gib(8) - Bytes::gib(4) - scratch;
    assert_eq!(first(&little), ("bc", WorkerId(1), Some(1), Bytes::gib(8), free));
    assert!(matches!(little.proofs[&0], Outcome::Passed));
    let held: Vec<_> = little.refusals[0].refused.held.iter().map(|h| (h.label, h.worker)).collect();
    assert_eq!(held, [("bc", Some(WorkerId(0))), ("a", Some(WorkerId(1)))]);

    let much = replay("c2", &[("msm_scratch", MUCH)]);
    let refused = ("msm scratch", WorkerId(0), Some(0), Bytes::mib(4659), USABLE - Bytes::gib(12));
    assert_eq!(first(&much), refused);
}

#[test]
fn c3_memory_freed_at_the_end_of_the_turn() {
    for workers in ["1", "2"] {
        let little = replay("c3", &[("msm_scratch", LITTLE), ("workers", workers)]);
        passes(&little);
        assert_eq!(little.peak, Bytes::gib(12) + LITTLE.parse().unwrap());
        let much = replay("c3", &[("msm_scratch", MUCH), ("workers", workers)]);
        let refused = ("msm scratch", WorkerId(0), Some(0), Bytes::mib(4659), USABLE - Bytes::gib(12));
        assert_eq!(first(&much), refused);
    }
}

#[test]
fn c4_the_pool_keeps_what_a_direct_allocation_needs() {
    for (workers, second) in [("1", 0), ("2", 1)] {
        passes(&replay("c4", &[("msm_scratch", LITTLE), ("workers", workers)]));
        let much = replay("c4", &[("workers", workers)]);
        let free = Bytes::mib(14_848 - 4096 - 4659);
        assert_eq!(first(&much), ("bc", WorkerId(second), Some(1), Bytes::gib(8), free));
        assert!(matches!(much.proofs[&0], Outcome::Passed));
        let refused = &much.refusals[0].refused;
        assert_eq!(
            refused.to_string(),
            format!(
                "refused 8.00 GiB for bc (worker {second}, turn): free 5.95, margin 0.00, retained 4.55; \
                 held: a 4.00 (worker {second})"
            )
        );
        assert_eq!(much.peak, Bytes::gib(12));
    }
}

#[test]
fn c5_a_trim_or_a_threshold_of_zero_cures_it() {
    for workers in ["1", "2"] {
        // Trim on refusal; trim on refusal with nothing kept; nothing kept and no second chance.
        for (name, threshold) in [("c5", "keep"), ("c5", "0"), ("c4", "0")] {
            let set = [("workers", workers), ("pool_threshold", threshold), ("msm_scratch", LITTLE)];
            passes(&replay(name, &set));
            let much = replay(name, &set[..2]);
            passes(&much);
            assert_eq!(much.peak, Bytes::gib(12));
            let kept = if threshold == "0" { Bytes::ZERO } else { Bytes::mib(4659) };
            assert_eq!(much.level.retained, kept);
        }
    }
}

/// That the typed pipeline opens the card again and proves the rest is tested with the scenarios.
#[test]
fn c6_a_sticky_card_fails_every_later_step() {
    for (workers, second) in [("1", 0), ("2", 1)] {
        let replay = replay("c6", &[("workers", workers)]);
        let free = Bytes::mib(14_848 - 4096 - 4659);
        assert_eq!(first(&replay), ("bc", WorkerId(second), Some(1), Bytes::gib(8), free));
        let words = replay.refusals[0].refused.to_string();
        assert!(
            words.contains("the driver says: out of memory: 8.00 GiB asked for, 5.95 GiB free"),
            "{words}"
        );
        assert_eq!(replay.refusals.len(), 1, "nothing is even asked for any more");
        assert!(replay.poisoned);
        // Every step of proof 1 after the refusal, and every step of proof 2.
        let steps = 31;
        assert_eq!(replay.failures.len(), steps - 5 + steps);
        for failure in &replay.failures {
            assert!(matches!(failure.error, Error::Poisoned { .. }), "{failure:?}");
        }
        assert!(matches!(replay.proofs[&0], Outcome::Passed));
        assert!(matches!(replay.proofs[&1], Outcome::Refused(_)));
        assert!(matches!(replay.proofs[&2], Outcome::Failed(_)));
    }
    let mut script = Script::named("c6").unwrap();
    script.set("msm_scratch", LITTLE).unwrap();
    passes(&script.replay(Card::preset("cascade-16g").unwrap()).unwrap());
}
