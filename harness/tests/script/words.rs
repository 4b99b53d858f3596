//! What is a script and what is none; what replays do beside the cascade.

use prestage_harness::script::{OnRefusal, Outcome, SCRIPTS, Script};
use prestage_vram::{Bytes, Card, Nanos, Track};

fn card() -> Card {
    Card::preset("cascade-16g").unwrap()
}

/// A script of one worker with these steps.
fn one(steps: &str) -> Script {
    Script::from_toml(&format!("name = \"test\"\n[[worker]]\nsteps = [{steps}]\n")).unwrap()
}

fn refused(steps: &str) -> String {
    one(steps).check().unwrap_err().to_string()
}

#[test]
fn the_scripts_that_ship_are_scripts_and_survive_being_written() {
    for (name, source) in SCRIPTS {
        let script = Script::from_toml(source).unwrap();
        assert_eq!(script.name, *name);
        assert!(!script.story.is_empty());
        script.check().unwrap();
        assert_eq!(Script::from_toml(&script.to_toml().unwrap()).unwrap(), script, "{name}");
        assert_eq!(Script::named(name).unwrap(), script);
        assert_eq!(Script::named(name.split('-').next().unwrap()).unwrap(), script);
    }
    let words = Script::named("c9").unwrap_err().to_string();
    assert!(words.contains("c1-before-the-lock"), "{words}");
    assert!(Script::named("").is_err());
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    for (steps, words) in [
        (r#"{ do = "release" }"#, "worker 0, step 0: it holds no turn"),
        (r#"{ do = "compute" }"#, "worker 0, step 0: it holds no turn"),
        (r#"{ do = "acquire" }, { do = "acquire" }"#, "worker 0, step 1: it holds the turn already"),
        (r#"{ do = "free", label = "a" }"#, "worker 0, step 0: it holds no `a`"),
        (
            r#"{ do = "alloc", label = "a", bytes = 1 }, { do = "alloc", label = "a", bytes = 1 }"#,
            "worker 0, step 1: it holds a `a` already",
        ),
        (r#"{ do = "wait", label = "m" }"#, "worker 0, step 0: it has recorded no mark `m`"),
        (
            r#"{ do = "alloc", label = "a", bytes = "lots" }"#,
            "worker 0, step 0: `lots` is no amount and no name in [set]",
        ),
        (r#"{ do = "query", after = "1.x" }"#, "worker 0, step 0: no step is called `1.x` (write worker.id)"),
        (
            r#"{ do = "query", id = "x", after = "0.x" }"#,
            "worker 0, step 0: it would wait for itself or for a later step of its own worker",
        ),
        (
            r#"{ do = "query", id = "x" }, { do = "query", id = "x" }"#,
            "worker 0, step 1: another step of this worker is called `x`",
        ),
        (
            r#"{ do = "copy", label = "a", bytes = 1, lane = "compute" }"#,
            "worker 0, step 0: copies go on the lane `upload` or `download`",
        ),
    ] {
        assert_eq!(refused(steps), words);
    }
    for (text, words) in [
        ("name = \"x\"", "the number of workers must be from 1 to 64, not 0"),
        (
            "name = \"x\"\n[deal]\nworkers = 0\nproofs = 1\nsteps = []",
            "the number of workers must be from 1 to 64, not 0",
        ),
        (
            "name = \"x\"\n[deal]\nworkers = 1\nproofs = 99999\nsteps = []",
            "the number of proofs must be from 1 to 4096, not 99999",
        ),
        (
            "name = \"x\"\n[[worker]]\nsteps = []\n[deal]\nworkers = 1\nproofs = 1\nsteps = []",
            "deal: a script has either [deal] or [[worker]]",
        ),
    ] {
        assert_eq!(Script::from_toml(text).unwrap().check().unwrap_err().to_string(), words);
    }
    for bad in [
        r#"{ do = "dance" }"#,
        r#"{ do = "kernel", label = "x" }"#,
        r#"{ do = "query", bytes = 1 }"#,
        r#"{ do = "query", afer = "0.x" }"#,
        r#"{ do = "alloc", bytes = 1 }"#,
    ] {
        assert!(Script::from_toml(&format!("name = \"x\"\n[[worker]]\nsteps = [{bad}]")).is_err(), "{bad}");
    }
    let words = Script::named("c1").unwrap().set("scratch", "1GiB").unwrap_err().to_string();
    assert!(words.contains("msm_scratch"), "{words}");
}

/// Host work, copies and kernels take their time, marks order lanes, `after` orders workers.
#[test]
fn time_is_virtual_and_ordered() {
    let script = Script::from_toml(
        r#"
name = "order"
[[worker]]
steps = [
    { do = "host", label = "prepare", ns = 1_000_000 },
    { do = "register", bytes = "1GiB" },
    { do = "acquire" },
    { do = "query" },
    { do = "alloc", label = "a", bytes = "1GiB" },
    { do = "copy", label = "upload a", bytes = "1GiB" },
    { do = "record", label = "there" },
    { do = "wait", label = "there" },
    { do = "kernel", label = "ntt", ns = 5_000_000 },
    { do = "copy", label = "result", bytes = 144, lane = "download", pinned = false },
    { do = "free", label = "a" },
    { do = "sync" },
    { do = "trim" },
    { do = "release", id = "over" },
]
[[worker]]
steps = [{ do = "host", label = "late", ns = 1, after = "0.over" }]
"#,
    )
    .unwrap();
    let replay = script.replay(card()).unwrap();
    assert!(replay.refusals.is_empty() && replay.failures.is_empty() && replay.proofs.is_empty());
    let find = |track, name: &str| replay.timeline.on(track).find(|s| s.name == name).unwrap().clone();
    let (upload, ntt) = (find(Track::Upload, "upload a"), find(Track::Compute, "ntt"));
    assert_eq!(ntt.end.since(ntt.start), Nanos::new(5_000_000));
    assert!(ntt.start >= upload.end, "{ntt:?} {upload:?}");
    assert_eq!(find(Track::Host, "register").end.since(Nanos::new(1_000_000)), Nanos::new(50_010_000));
    assert!(find(Track::Download, "result").bytes == Bytes::new(144));
    let held = find(Track::Held, "turn");
    assert_eq!(find(Track::Host, "late").start, held.end);
    assert_eq!(replay.end, held.end + Nanos::new(1));
    let pooled: Vec<_> =
        replay.levels().iter().map(|l| (l.pooled.get() >> 30, l.retained.get() >> 30)).collect();
    assert_eq!(pooled, [(1, 0), (0, 1), (0, 0)]);
}

#[test]
fn other_processes_come_and_go() {
    let steps = r#"
    { do = "foreign", bytes = "12GiB" }, { do = "acquire" },
    { do = "alloc", label = "a", bytes = "4GiB", proof = 7 }, { do = "release" }"#;
    let mut script = one(steps);
    let replay = script.replay(card()).unwrap();
    assert_eq!(replay.refusals[0].refused.free, Bytes::mib(2560));
    assert!(matches!(&replay.proofs[&7], Outcome::Refused(r) if r.step == 2));
    assert_eq!(replay.level.used(), Bytes::ZERO);
    // Whoever goes on regardless ends his turn as ever.
    script.on_refusal = OnRefusal::Continue;
    let replay = script.replay(card()).unwrap();
    assert_eq!((replay.refusals.len(), replay.failures.len()), (1, 0));
}

/// A worker that stops keeps nobody waiting: neither for its turn nor for its steps.
#[test]
fn a_worker_that_stops_holds_nobody_up() {
    let script = Script::from_toml(
        r#"
name = "stops"
[[worker]]
steps = [
    { do = "acquire" },
    { do = "alloc", label = "a", bytes = "15GiB" },
    { do = "query", id = "never" },
    { do = "free", label = "a" },
    { do = "release" },
]
[[worker]]
steps = [
    { do = "acquire", after = "0.never" },
    { do = "alloc", label = "kept", bytes = "1GiB", class = "direct" },
    { do = "release" },
]
"#,
    )
    .unwrap();
    let replay = script.replay(card()).unwrap();
    assert_eq!((replay.refusals.len(), replay.failures.len(), replay.poisoned), (1, 0, false));
    assert_eq!(replay.level.direct, Bytes::gib(1), "what was never freed is still held at the end");
}

/// Two workers that wait for each other are found out.
#[test]
fn a_circle_of_waits_ends() {
    let script = Script::from_toml(
        r#"
name = "circle"
[[worker]]
steps = [{ do = "query", after = "1.y" }, { do = "query", id = "x" }]
[[worker]]
steps = [{ do = "query", after = "0.x" }, { do = "query", id = "y" }]
"#,
    )
    .unwrap();
    let replay = script.replay(card()).unwrap();
    assert!(replay.poisoned && !replay.failures.is_empty());
}

#[test]
fn the_same_replay_is_the_same() {
    let script = Script::named("c2").unwrap();
    let events = || format!("{:?}", script.replay(card()).unwrap().timeline.events());
    assert_eq!(events(), events());
}
