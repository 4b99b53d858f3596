//! Simulated cards that were fitted to runs on a real one give those runs, phase by phase.

use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Policy, Prover};
use prestage_harness::scenario::{HostTime, Scenario, Target, run};
use prestage_harness::timeline::Timeline;
use prestage_msm::Threads;
use prestage_vram::{Bytes, Card, Nanos, Span, Track};

use super::{about, porep, recorded, scenario, spans};

/// Milliseconds from a phase's first kernel to its last.
type Phases = [(&'static str, f64); 6];

/// Of docs/results/2026-11-30-porep-32g-h200.md, points streamed. The fit is to all but A and B in G1.
const STREAMED: Phases = [
    ("quotient", 325.3),
    ("msm h", 1895.0),
    ("msm l", 315.2),
    ("msm a", 299.6),
    ("msm b1", 78.3),
    ("msm b2", 197.6),
];
/// And of all four partitions.
const WALL_MS: f64 = 53_814.0;
/// Of docs/results/2026-12-01-porep-32g-h200.md, points that stay. The fit is to all but A and B in G1.
const RESIDENT: Phases = [
    ("quotient", 213.7),
    ("msm h", 527.2),
    ("msm l", 103.0),
    ("msm a", 104.5),
    ("msm b1", 28.6),
    ("msm b2", 66.6),
];
/// Rows of the circuit that stands for 2^27 of them, as a power of two.
const LOG: u32 = 10;

fn near(what: &str, predicted: f64, measured: f64) {
    let ratio = predicted / measured;
    assert!((ratio - 1.0).abs() < 0.15, "{what}: {predicted:.1} ms, measured {measured} ms");
}

/// Runs partitions on a card, the host's part of each taking so long, and compares each phase of each but the first.
fn phases_are_near(
    card: Card,
    (workers, partitions): (u32, u32),
    host: HostTime,
    measured: &Phases,
) -> Timeline {
    let made = porep().make(LOG, &Threads).unwrap();
    let (ledger, recorder) = recorded(Bytes::mib(512), true);
    let sim = Target::open_sim(card, 1 << (27 - LOG), ledger).unwrap();
    let prover = Prover::new(&sim, made.key).unwrap();
    let assignment = |_| Assignment::new(&prover, &made.circuit.r1cs, &made.circuit.witness);
    let wanted = Scenario { host, opened: Some(&made.opened), ..scenario(workers, partitions, Policy::Auto) };
    let stop = AtomicBool::new(false);
    let outcome = run(&prover, &wanted, assignment, &recorder, about("sim"), &stop).unwrap();

    let timeline = outcome.timeline;
    let (turns, kernels) = (spans(&timeline, Track::Held), spans(&timeline, Track::Compute));
    assert_eq!(turns.len(), partitions as usize);
    for (phase, measured) in measured {
        let of_phase = |span: &Span| match *phase {
            "quotient" => !span.name.starts_with("msm"),
            _ => span.name.starts_with(phase),
        };
        let length = |turn: &Span| {
            let inside = |span: &&Span| {
                span.worker == turn.worker
                    && turn.start <= span.start
                    && span.end <= turn.end
                    && of_phase(span)
            };
            let all: Vec<&Span> = kernels.iter().filter(inside).collect();
            let first = all.iter().map(|span| span.start).min().unwrap();
            all.iter().map(|span| span.end).max().unwrap().since(first).as_ms()
        };
        // The first waits for points that stay.
        turns.iter().skip(1).for_each(|turn| near(phase, length(turn), *measured));
    }
    timeline
}

fn ms(n: u64) -> Nanos {
    Nanos::new(n * 1_000_000)
}

#[test]
fn the_fitted_card_gives_each_phase_of_the_measured_run_within_15_per_cent() {
    let text = include_str!("../../../docs/results/2026-11-30-porep-32g-h200-card.toml");
    // Small enough that points are streamed, as they were, and large enough for the next partition beside the current one.
    let card = Card { capacity: Bytes::gib(25), ..Card::from_toml(text).unwrap() };
    let host = HostTime { prepare: ms(20_506), finish: ms(1_712) };
    let (first, last) = phases_are_near(card, (2, 4), host, &STREAMED).extent();
    near("the whole", last.since(first).as_ms(), WALL_MS);
}

#[test]
fn the_preset_gives_each_phase_of_the_measured_run_within_15_per_cent() {
    let host = HostTime { prepare: ms(1_930), finish: ms(3) };
    phases_are_near(Card::preset("h200-141g").unwrap(), (3, 10), host, &RESIDENT);
}
