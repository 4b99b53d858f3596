//! Rows C1 to C5 on a real card with as much free memory as the model's: what its driver grants and refuses, with and without
//! a synchronisation, beside the model's verdict. The account is not asked. Prints a table; durations are a tenth of the
//! scripts'.

use prestage_harness::script::{OnRefusal, Outcome, Replay, Script};
use prestage_vram::conformance::{OnCuda, run};
use prestage_vram::{Bytes, Card};

const LITTLE: &str = "0.36GiB";
const MUCH: &str = "4659MiB";
const PACE: u64 = 10;

/// The label of the first refused request; `None` where all proofs passed. Whose it is depends on which of two workers takes
/// the first turn.
type Verdict = Option<&'static str>;

fn verdict(replay: &Replay) -> Verdict {
    assert!(replay.failures.is_empty() && !replay.poisoned, "{:?}", replay.failures);
    match replay.refusals.first() {
        Some(first) => Some(first.refused.label),
        None => {
            assert!(replay.proofs.values().all(|outcome| matches!(outcome, Outcome::Passed)));
            None
        }
    }
}

fn words(replay: &Replay) -> String {
    match replay.refusals.first() {
        Some(first) => format!(
            "{} of proof {} refused, {:.2} GiB free, {:.2} kept",
            first.refused.label,
            first.proof.unwrap_or(0),
            first.refused.free.as_gib(),
            first.refused.retained.as_gib()
        ),
        None => format!("passes, peak {:.2} GiB", replay.peak.as_gib()),
    }
}

fn card() -> Card {
    Card::preset("cascade-16g").unwrap()
}

/// What the model says of the script as it is, and the driver for each answer to a refusal: none, synchronise, trim.
fn row(name: &str, set: &[(&str, &str)]) -> (Verdict, [Verdict; 3]) {
    let mut script = Script::named(name).unwrap();
    for (name, value) in set {
        script.set(name, *value).unwrap();
    }
    let what: Vec<_> = set.iter().map(|(name, value)| format!("{name} {value}")).collect();
    judge(&script, &format!("{name}, {}", what.join(", ")))
}

fn judge(script: &Script, what: &str) -> (Verdict, [Verdict; 3]) {
    let model = script.replay(card()).unwrap();
    let driver = [OnRefusal::Fail, OnRefusal::Sync, OnRefusal::Trim].map(|on_refusal| {
        let script = Script { on_refusal, ..script.clone() };
        script.replay_on_driver(card(), PACE).unwrap()
    });
    let [plain, sync, trim] = driver.each_ref().map(words);
    println!("| {what} | {} | {plain} | {sync} | {trim} |", words(&model));
    (verdict(&model), driver.each_ref().map(verdict))
}

#[test]
fn c1_c5_the_cascade_on_the_real_driver() {
    run(&OnCuda, "c1_c5", |_| {
        println!(
            "\n| script | model | driver, asked once | … again after a synchronisation | … after a trim |"
        );
        println!("|---|---|---|---|---|");
        // What is held is held: no synchronisation helps.
        for scratch in [LITTLE, MUCH] {
            let (model, driver) = row("c1", &[("msm_scratch", scratch)]);
            assert_eq!((model, driver), (Some("a"), [model; 3]));
        }
        for (name, workers) in [("c2", "2"), ("c3", "1"), ("c3", "2")] {
            for scratch in [LITTLE, MUCH] {
                let (model, driver) = row(name, &[("msm_scratch", scratch), ("workers", workers)]);
                assert_eq!(driver, [model; 3], "{name}, {scratch}, {workers} workers");
                assert_eq!(model.is_none(), (name, scratch) == ("c3", LITTLE));
            }
        }
        for workers in ["1", "2"] {
            assert_eq!(row("c4", &[("msm_scratch", LITTLE), ("workers", workers)]), (None, [None; 3]));
            // Drivers differ in whether a direct allocation may have what the pool keeps: as found. A trim cures it.
            let (model, driver) = row("c4", &[("msm_scratch", MUCH), ("workers", workers)]);
            assert_eq!(model, Some("bc"));
            assert!(driver.iter().all(|verdict| verdict.is_none() || *verdict == model), "{driver:?}");
            assert_eq!(driver[2], None);
            // C5.
            for (name, threshold) in [("c5", "keep"), ("c5", "0"), ("c4", "0")] {
                for scratch in [LITTLE, MUCH] {
                    let set = [("msm_scratch", scratch), ("workers", workers), ("pool_threshold", threshold)];
                    let (model, driver) = row(name, &set);
                    assert_eq!((model, driver[2]), (None, None));
                }
            }
        }
        pool();
    });
}

/// What is in the pool and free, but not yet in fact: the work before the free still runs.
fn pool() {
    for threshold in ["0", "keep"] {
        let text = format!(
            r#"
            name = "pool"
            [set]
            pool_threshold = "{threshold}"
            [card]
            pool_threshold = "pool_threshold"
            [[worker]]
            steps = [
                {{ do = "acquire" }},
                {{ do = "alloc", label = "pooled", bytes = "12GiB", proof = 0 }},
                {{ do = "kernel", label = "work", ns = 500_000_000, proof = 0 }},
                {{ do = "free", label = "pooled", proof = 0 }},
                {{ do = "alloc", label = "direct", bytes = "12GiB", class = "direct", proof = 0 }},
                {{ do = "free", label = "direct", proof = 0 }},
                {{ do = "release", proof = 0 }},
            ]
            "#
        );
        let script = Script::from_toml(&text).unwrap();
        let (_, driver) =
            judge(&script, &format!("freed to the pool, then direct, pool_threshold {threshold}"));
        assert_eq!(driver[2], None, "after a synchronisation and a trim it is there");
    }
}

#[test]
fn a_synchronisation_alone_does_not_cure_the_model() {
    let mut script = Script::named("c4").unwrap();
    script.on_refusal = OnRefusal::Sync;
    let replay = script.replay(card()).unwrap();
    assert_eq!(verdict(&replay), Some("bc"));
    assert_eq!(replay.refusals[0].refused.retained, Bytes::mib(4659));
}
