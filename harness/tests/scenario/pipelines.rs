//! Workers on the simulated 16 GiB card at PoRep scale.

use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Policy, Prover};
use prestage_harness::scenario::{Ended, HostTime, Scenario, dispense, run};
use prestage_harness::timeline::{Timeline, csv, trace};
use prestage_vram::{
    Bytes, Cost, Cpu, Device, Event, Host, HostConfig, Nanos, Span, Track, Work, WorkerId, host_work,
};

use super::{about, card, no_host_time, open, prove, recorded, scenario, small, spans, within_budget};

const USABLE: Bytes = Bytes::mib(14_643);
const BUDGET: Bytes = Bytes::mib(14_131);
const POLYNOMIAL: Bytes = Bytes::mib(4_096);

fn refusals(timeline: &Timeline) -> usize {
    timeline.events().iter().filter(|e| matches!(e, Event::Refusal { .. })).count()
}

#[test]
fn p1_thirty_proofs_of_one_worker() {
    let (sim, recorder) = open(card(USABLE), false);
    let outcome = prove(&sim, &recorder, &scenario(1, 30, Policy::Auto));
    let report = outcome.report.unwrap();
    assert_eq!((report.verified.proofs(), outcome.failed.len(), outcome.stopped), (30, 0, 0));
    assert_eq!(report.plans.len(), 1);
    assert_eq!((report.plans[0].policy.as_str(), report.plans[0].proofs), ("full", 30));
    assert_eq!(refusals(&outcome.timeline), 0);
    assert!(sim.ledger().peak() <= BUDGET, "{}", sim.ledger().peak());
    assert!(sim.ledger().peak() >= Bytes::mib(12_288));
    within_budget(&outcome.timeline);
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
    assert!(report.complaint().is_none(), "{:?}", report.complaint());
}

#[test]
fn p2_two_workers_never_stage_two_sets() {
    let rate = |workers| {
        let (sim, recorder) = open(card(USABLE), workers > 1);
        let outcome = prove(&sim, &recorder, &scenario(workers, 10, Policy::Auto));
        let report = outcome.report.unwrap();
        assert_eq!((report.verified.proofs(), refusals(&outcome.timeline)), (10, 0));
        assert!(report.plans.iter().all(|plan| plan.policy == "full"));
        within_budget(&outcome.timeline);
        assert!(sim.ledger().peak() <= BUDGET, "two sets would be 24 GiB");
        report.proofs_per_minute
    };
    let (one, two) = (rate(1), rate(2));
    assert!(two >= 1.3 * one, "{two} and {one} proofs per minute");
}

/// Row P6 at full size: each transform begins once its own upload has ended, not the next one's, and memory for all three
/// is asked for, and their uploads enqueued, before the first has ended.
#[test]
fn p6_each_transform_waits_for_its_own_upload_only() {
    let (sim, recorder) = open(card(USABLE), false);
    let timeline = prove(&sim, &recorder, &scenario(1, 3, Policy::Full)).timeline;
    let turns = spans(&timeline, Track::Held);
    assert_eq!(turns.len(), 3);
    for turn in &turns {
        let named = |track, name: &str| {
            let mut all = spans(&timeline, track).into_iter();
            all.find(|s| s.name == name && turn.start <= s.start && s.end <= turn.end).unwrap()
        };
        let uploads = ["a", "b", "c"].map(|x| named(Track::Upload, &format!("upload {x}")));
        let transforms = ["a", "b", "c"].map(|x| named(Track::Compute, &format!("ntt {x}")));
        for (i, (upload, transform)) in uploads.iter().zip(&transforms).enumerate() {
            assert!(transform.start >= upload.end, "{} before its upload", transform.name);
            let next = uploads.get(i + 1);
            assert!(next.is_none_or(|next| transform.start < next.end), "{} waits for more", transform.name);
        }
        let waits = timeline.events().iter().filter(|event| {
            matches!(event, Event::Wait { start, .. } if (turn.start..uploads[0].end).contains(start))
        });
        // The first wait is for the results of work that is enqueued behind all three.
        let enqueued = named(Track::Memory, "allocate c").end;
        assert!(enqueued < uploads[0].end, "the host blocked");
        for wait in waits {
            assert!(matches!(wait, Event::Wait { start, .. } if *start >= enqueued), "{wait:?}");
        }
    }
}

#[test]
fn p5_of_the_polynomials_only_a_is_live_when_the_sums_begin() {
    let (sim, recorder) = open(card(USABLE), false);
    let outcome = prove(&sim, &recorder, &scenario(1, 2, Policy::Full));
    let mut before = Bytes::ZERO;
    let mut seen = 0;
    let mut first = false;
    for event in outcome.timeline.events() {
        let Event::Level { label, level, .. } = event else { continue };
        let live = level.pooled + level.direct;
        if label == "a" && live > before {
            first = true;
        }
        if label == "msm scratch" && first {
            assert_eq!(before, POLYNOMIAL);
            (seen, first) = (seen + 1, false);
        }
        before = live;
    }
    assert_eq!(seen, 2);
}

/// Preparation 1.3 s, the card 3.3 s, epilogue 0.7 s, ten partitions, through the queue of the scenarios.
#[test]
fn p8_two_workers_keep_the_card_busy() {
    let ms = |n: u64| Nanos::new(n * 1_000_000);
    for (workers, wall) in [(1, 53_000), (2, 35_000)] {
        let (ledger, recorder) = recorded(Bytes::ZERO, false);
        let mut free = card(USABLE);
        free.launch_ns = 0;
        let sim = prestage_harness::scenario::Target::open_sim(free, 1, ledger).unwrap();
        let ended = dispense(
            &[&sim],
            workers,
            10,
            &AtomicBool::new(false),
            |_, worker, _| {
                let id = worker.id();
                host_work(&sim, id, "prepare", || sim.elapse(ms(1300)));
                let turn = sim.turn(worker)?;
                let queue = turn.queue(Track::Compute)?;
                let work = Work::launch("proof", Bytes::ZERO);
                // SAFETY: the job touches no memory.
                unsafe { sim.perform(&queue, work, move || Cost::Time(ms(3300))) }?;
                turn.release()?;
                host_work(&sim, id, "finish", || sim.elapse(ms(700)));
                Ok::<(), prestage_vram::Error>(())
            },
            |_, _| false,
        );
        assert!(ended.iter().all(|end| matches!(end, Ended::Done(0, ()))));
        assert_eq!(sim.now(), ms(wall), "{workers} workers");
        let kernels = spans(&recorder.take(), Track::Compute);
        if workers == 2 {
            assert!(kernels.windows(2).all(|pair| pair[0].end == pair[1].start), "no gap after the start");
        }
    }
}

#[test]
fn p9_preparation_outside_the_turn_and_device_work_inside() {
    let (sim, recorder) = open(card(USABLE), true);
    let timeline = prove(&sim, &recorder, &scenario(2, 6, Policy::Auto)).timeline;
    let held = spans(&timeline, Track::Held);
    assert_eq!(held.len(), 6);
    let inside = |worker: WorkerId, start, end| {
        held.iter().any(|turn| turn.worker == worker && turn.start <= start && end <= turn.end)
    };
    for span in timeline.spans() {
        let within = inside(span.worker, span.start, span.end);
        match span.track {
            Track::Host => {
                let apart = |t: &&prestage_vram::Span| t.worker == span.worker;
                let overlaps = |t: &prestage_vram::Span| t.start < span.end && span.start < t.end;
                assert!(!held.iter().filter(apart).any(overlaps), "{} inside a turn", span.name);
            }
            Track::Memory | Track::Upload | Track::Download | Track::Compute => {
                assert!(within, "{} outside of its worker's turn", span.name);
            }
            _ => {}
        }
    }
}

#[test]
fn p12_the_next_partition_is_staged_beside_the_running_one() {
    let host = no_host_time();
    let with = {
        let (sim, recorder) = open(prestage_vram::Card::preset("rtx-5070-ti-16g").unwrap(), true);
        let run = Scenario { workers: 2, partitions: 6, policy: Policy::Auto, host, opened: None };
        let outcome = prove(&sim, &recorder, &run);
        assert_eq!(outcome.proofs.len(), 6);
        assert_eq!(refusals(&outcome.timeline), 0, "the running proof is never refused because of it");
        assert!(outcome.report.unwrap().plans.iter().all(|plan| plan.policy == "full"));
        within_budget(&outcome.timeline);
        outcome.timeline
    };
    // The next partition's upload of a starts while the current one is past its quotient and still computes.
    let quotients = spans(&with, Track::Compute).into_iter().filter(|k| k.name == "quotient");
    let past: Vec<_> = quotients.map(|k| k.end).collect();
    let held = spans(&with, Track::Held);
    let copies = spans(&with, Track::Upload);
    // Beside a turn that computes it comes in pieces: the first counts.
    let first = |turn: &Span| {
        let of_turn = |u: &&Span| u.name == "upload a" && u.worker == turn.worker && u.start >= turn.start;
        copies.iter().filter(of_turn).map(|u| u.start).min().unwrap()
    };
    let mut uploads: Vec<_> = held.iter().map(first).collect();
    uploads.sort();
    assert_eq!((past.len(), uploads.len(), held.len()), (6, 6, 6));
    let mut ends: Vec<_> = held.iter().map(|turn| turn.end).collect();
    ends.sort();
    for (current, upload) in uploads.iter().skip(1).enumerate() {
        assert!(*upload >= past[current], "partition {}: room for it came early", current + 2);
        assert!(*upload < ends[current], "partition {} is staged beside the one before", current + 2);
    }
}

#[test]
fn t3_two_runs_give_the_same_trace() {
    for workers in [1, 2, 3] {
        let traced = || {
            let (sim, recorder) = open(card(USABLE), workers > 1);
            let outcome = prove(&sim, &recorder, &scenario(workers, 6, Policy::Auto));
            let mut report = outcome.report.unwrap();
            // The one figure that is this machine's.
            report.recording_ns = 0;
            (csv(&outcome.timeline), trace(&report, &outcome.timeline), report)
        };
        assert_eq!(traced(), traced(), "{workers} workers");
    }
}

#[test]
fn l10_measured_peaks_are_the_planned_ones() {
    let policies = [Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::Chunked(8), Policy::None];
    for policy in policies {
        for ahead in [false, true] {
            let (sim, recorder) = open(card(USABLE), ahead);
            let report = prove(&sim, &recorder, &scenario(2, 4, policy)).report.unwrap();
            assert_eq!(report.phases.len(), 7, "{policy}");
            for phase in &report.phases {
                assert_eq!(
                    phase.predicted_bytes, phase.measured_bytes,
                    "{policy}, {}, ahead {ahead}",
                    phase.name
                );
            }
        }
    }
}

/// Another process takes 3 GiB between partitions 1 and 2, and gives them back after.
#[test]
fn l12_another_process_takes_memory_for_a_while() {
    let (sim, recorder) = open(card(USABLE), false);
    let (circuit, key) = small();
    let prover = Prover::new(&sim, key.clone()).unwrap();
    let assignment = |partition| {
        sim.set_foreign(if partition == 1 { Bytes::gib(3) } else { Bytes::ZERO });
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness)
    };
    let scenario = scenario(1, 4, Policy::Auto);
    let outcome =
        run(&prover, &scenario, assignment, &recorder, about("sim"), &AtomicBool::new(false)).unwrap();
    let report = outcome.report.unwrap();
    assert_eq!((report.verified.proofs(), refusals(&outcome.timeline)), (4, 0));
    let plans: Vec<_> = report.plans.iter().map(|p| (p.policy.as_str(), p.proofs)).collect();
    assert_eq!(plans, [("full", 3), ("a-then-bc", 1)]);
    // 14,643 − 3,072 − 512 MiB.
    let reason = &report.plans[1].reason;
    assert!(reason.contains("full needs 12.") && reason.contains("10.80 GiB"), "{reason}");
    // It is partition 2 whose b and c share a slot, and no other.
    let turns = spans(&outcome.timeline, Track::Held);
    let share: Vec<bool> = turns
        .iter()
        .map(|turn| {
            outcome.timeline.events().iter().any(|event| {
                matches!(event, Event::Level { at, label, .. }
                    if label == "bc" && (turn.start..turn.end).contains(at))
            })
        })
        .collect();
    assert_eq!(share, [false, true, false, false]);
}

/// The same scenario on the CPU, in real time.
#[test]
fn l10_workers_on_the_cpu_hold_what_was_planned() {
    let (ledger, recorder) = recorded(Bytes::mib(512), true);
    let host = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    let (circuit, key) = small();
    let prover = Prover::new(&host, key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    let wanted =
        Scenario { workers: 3, partitions: 9, policy: Policy::Auto, host: HostTime::default(), opened: None };
    let outcome =
        run(&prover, &wanted, assignment, &recorder, about("host"), &AtomicBool::new(false)).unwrap();
    let report = outcome.report.unwrap();
    assert_eq!((report.verified.proofs(), outcome.failed.len()), (9, 0));
    for phase in &report.phases {
        assert_eq!(phase.predicted_bytes, phase.measured_bytes, "{}", phase.name);
    }
    within_budget(&outcome.timeline);
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
}
