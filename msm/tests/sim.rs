//! Sums on a simulated card: the values of the slices, the memory and the time of the full size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::{Arc, Mutex};

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use prestage_msm::{
    Affine, Batches, Compact, Msm, Place, Points, Resident, Scalars, Slots, batched, naive, to_affine_batch,
};
use prestage_transfer::Lanes;
use prestage_vram::{Bytes, Card, Device, Event, Sim, SimConfig, Sink, Span, Track, Worker};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const N: usize = 1 << 9;
/// 2^9 terms stand for 2^26.
const SCALE: u64 = 1 << 17;

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Recorder {
    fn spans(&self, track: Track) -> Vec<Span> {
        let one = |event: &Event| match event {
            Event::Span(span) if span.track == track => Some(span.clone()),
            _ => None,
        };
        self.0.lock().unwrap().iter().filter_map(one).collect()
    }
}

fn open() -> (Sim, Arc<Recorder>) {
    let mut config = SimConfig { scale: SCALE, ..SimConfig::new(Card::preset("h200-141g").unwrap()) };
    let recorder = Arc::new(Recorder::default());
    config.ledger.sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    (Sim::open(config).unwrap(), recorder)
}

/// An eighth ones, an eighth others, the rest zero.
fn scalars() -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let scalar = |i| match i % 8 {
        0 => Scalar::ONE,
        1 => Scalar::random(&mut rng),
        _ => Scalar::ZERO,
    };
    (0..N).map(scalar).collect()
}

fn bases<A: Affine>() -> Vec<A> {
    let curve: Vec<_> = (1..=N as u64).map(|k| A::generator() * Scalar::from(k)).collect();
    to_affine_batch(&curve)
}

/// Sums on the card, checks value and footprint, and returns the kernels.
fn sum<A: Affine>(count: usize) -> Vec<Span> {
    let (sim, recorder) = open();
    let (scalars, bases) = (scalars(), bases::<A>());
    let expected = naive::msm(&bases, &scalars).unwrap();
    let slots = Slots::<A>::open(&sim, 2).unwrap();
    let batches = Batches::new(&sim, N, N.div_ceil(count));
    assert_eq!(batches.count(), count);
    let footprint = batches.footprint::<A, _>(&sim, Place::Host);
    let compact = Compact::new(&sim, &scalars).unwrap();
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    turn.phase("sum");
    let lanes = Lanes::open(&turn).unwrap();
    let points = Points::from(bases);
    let deferred = batched(&lanes, "l", &points, Scalars::host(compact), &batches, &slots).unwrap();
    assert_eq!(deferred.finish().unwrap(), expected);
    assert_eq!(turn.peaks().last(), Some(&("sum", footprint)));
    drop(lanes);
    turn.release().unwrap();
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);

    let streamed: Bytes = recorder
        .spans(Track::Upload)
        .iter()
        .filter(|span| span.name.starts_with("stream"))
        .map(|span| span.bytes)
        .sum();
    assert_eq!(streamed, Bytes::of::<A>(N) * SCALE, "every base comes up the link once");
    let kernels = recorder.spans(Track::Compute);
    assert_eq!(kernels.len(), count);
    kernels
}

#[test]
fn sums_in_g1_are_right_and_cost_their_full_size() {
    for count in [1, 2, 8] {
        let wall: u64 = sum::<G1Affine>(count).iter().map(|span| span.end.since(span.start).get()).sum();
        // 2^23 terms through windows at 3.45 ns and 2^23 ones at 0.545 ns, 2^26 scalars at 17 ps, 4.105 ms a batch; and yet
        // never less than 2^26 bases take on the link.
        let work = (1u64 << 23) * (3900 + 1000) / 1000 + (1 << 26) * 17 / 1000 + 4_105_000 * count as u64;
        let link = (96u64 << 26) * 10 / 555;
        let most = work.max(link);
        assert!(wall + 100 >= most && wall < most + most / 20, "{count} batches: {wall}, not {most} ns");
    }
}

/// Bases that stay on the card take the link once, and no slots.
#[test]
fn bases_that_stay_take_the_time_of_the_kernels() {
    let (sim, recorder) = open();
    let (scalars, points) = (scalars(), Points::from(bases::<G1Affine>()));
    let expected = naive::msm(points.host(), &scalars).unwrap();
    let slots = Slots::open(&sim, 2).unwrap();
    let batches = Batches::new(&sim, N, N / 2).resident();
    let compact = Compact::new(&sim, &scalars).unwrap();
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let resident = Resident::upload(&points, &sim, &lanes.upload, "points").unwrap();
    for _ in 0..3 {
        turn.phase("sum");
        let scalars = Scalars::host(compact.clone());
        let sum = batched(&lanes, "l", &resident, scalars, &batches, &slots).unwrap();
        assert_eq!(sum.finish().unwrap(), expected);
    }
    let footprint = batches.footprint::<G1Affine, _>(&sim, Place::Host);
    assert_eq!(turn.peaks().last(), Some(&("sum", footprint)));
    assert!(footprint < Batches::new(&sim, N, N / 2).footprint::<G1Affine, _>(&sim, Place::Host));
    assert_eq!(sim.ledger().level().resident, Bytes::of::<G1Affine>(N) * SCALE);
    let sum = batched(&lanes, "l", &points, Scalars::host(compact), &batches, &slots);
    assert!(matches!(sum, Err(prestage_msm::Error::LongerThanPlanned { .. })), "slots were not planned for");
    drop((resident, sum, lanes));
    turn.release().unwrap();
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
    let points = |span: &&Span| span.name.starts_with("stream") || span.name.contains("points");
    let uploads = recorder.spans(Track::Upload);
    assert_eq!(uploads.iter().filter(points).count(), 1);
    let kernels: u64 =
        recorder.spans(Track::Compute).iter().map(|span| span.end.since(span.start).get()).sum();
    let work = 3 * ((1u64 << 23) * (3900 + 1000) / 1000 + (1 << 26) * 17 / 1000 + 4_105_000 * 2);
    assert!(kernels + 100 >= work && kernels < work + work / 20, "{kernels}, not {work} ns");
}

#[test]
fn sums_in_g2_are_right_and_cost_more() {
    let wall = |spans: &[Span]| spans.iter().map(|span| span.end.since(span.start).get()).sum::<u64>();
    assert!(wall(&sum::<G2Affine>(2)) > 3 * wall(&sum::<G1Affine>(2)) / 2);
}

/// What a card's scratch is charged: at full size, whatever the sum here takes, and never less for longer sums.
#[test]
fn scratch_is_charged_at_full_size() {
    let (sim, _) = open();
    let mut last = [Bytes::ZERO; 2];
    for len in 0..200 {
        let plan = sim.plan(len);
        let now = [
            sim.scratch_charge::<G1Affine>(&plan, Place::Host),
            sim.scratch_charge::<G2Affine>(&plan, Place::Host),
        ];
        assert!(now[0] >= last[0] && now[1] >= last[1], "{len}");
        last = now;
    }
    let whole = sim.scratch_charge::<G1Affine>(&sim.plan(N), Place::Host);
    assert!(whole > Bytes::gib(1) && whole < Bytes::gib(3), "{whole} for 2^26 terms");
}
