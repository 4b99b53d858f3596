//! Sums on an NVIDIA card against the logarithms of their points.

use crate::batches::sum;
use crate::common::{Known, random};
use crate::rings::Recorder;
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use prestage_msm::{Affine, Batches, Compact, Msm, Place, Points, Scalars, Slots, batched, point_rings};
use prestage_transfer::Lanes;
use prestage_vram::conformance::{OnCuda, Subject, run};
use prestage_vram::cuda::Cuda;
use prestage_vram::{Bytes, Device, LedgerConfig, Span, Track, Worker};
use rayon::prelude::*;
use std::sync::Arc;

pub(crate) fn on_a_card(name: &str, test: impl FnOnce(&Cuda)) {
    run(&OnCuda, name, |on| {
        let card = on.open(Bytes::gib(16), LedgerConfig::default());
        card.prepare().unwrap();
        test(&card);
    });
}

fn check<A: Affine>(card: &Cuda, known: &Known<A>, scalars: &[Scalar], what: &str) {
    let (n, expected) = (scalars.len(), known.sum(scalars));
    for place in [Place::Host, Place::Device] {
        for batch in [n, n.div_ceil(3)] {
            let got = sum(card, &known.bases, scalars, batch.max(1), place);
            assert_eq!(got, expected, "{} {what}, {n} terms in batches of {batch}, {place:?}", A::NAME);
        }
    }
}

fn lengths<A: Affine>(card: &Cuda, lengths: &[usize]) {
    for &n in lengths {
        let known = Known::<A>::new(n, n as u64);
        check(card, &known, &random(n, 3), "random");
    }
}

#[test]
fn m2_lengths_in_g1() {
    on_a_card("m2_lengths_in_g1", |card| {
        lengths::<G1Affine>(
            card,
            &[1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 300, 600, 1023, 4095, 4097, 70_000, 300_000],
        );
    });
}

#[test]
fn m2_lengths_in_g2() {
    on_a_card("m2_lengths_in_g2", |card| {
        lengths::<G2Affine>(card, &[1, 2, 3, 33, 64, 600, 4097, 40_000]);
    });
}

/// More than one chunk of bases.
#[test]
fn m2_a_long_sum_streams_its_bases() {
    on_a_card("m2_a_long_sum_streams_its_bases", |card| {
        let n = (1 << 22) + 700_001;
        let known = Known::<G1Affine>::new(n, 9);
        let scalars: Vec<_> = (0..n as u64)
            .map(|i| match i % 10 {
                0..5 => Scalar::ZERO,
                5..9 => Scalar::ONE,
                _ => Scalar::from(i).square() * Scalar::from(0x9e37_79b9_7f4a_7c15),
            })
            .collect();
        for place in [Place::Host, Place::Device] {
            assert_eq!(sum(card, &known.bases, &scalars, n, place), known.sum(&scalars), "{place:?}");
        }
    });
}

/// A card whose spans are recorded.
fn recorded(name: &str, test: impl FnOnce(&Cuda, &Recorder)) {
    run(&OnCuda, name, |on| {
        let recorder = Arc::new(Recorder::default());
        let ledger = LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() };
        let card = on.open(Bytes::gib(16), ledger);
        card.prepare().unwrap();
        test(&card, &recorder);
    });
}

fn streamed<A: Affine>(card: &Cuda, points: &Points<A>, scalars: &Compact, batch: usize) -> A::Curve {
    let slots = Slots::<A>::open(card, 2).unwrap();
    let batches = Batches::new(card, points.len(), batch);
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let sum = batched(&lanes, "x", points, Scalars::host(scalars.clone()), &batches, &slots).unwrap();
    let sum = sum.finish().unwrap();
    drop(lanes);
    turn.release().unwrap();
    sum
}

/// Ordinary memory through a ring, page-locked memory, and ordinary memory through the driver's slots: the same sum, each base once
/// on the link, and the first chunk's kernels under way before the last bases are.
#[test]
fn bases_come_up_through_a_ring() {
    recorded("bases_come_up_through_a_ring", |card, recorder| {
        through_a_ring::<G1Affine>(card, recorder, (1 << 23) + 12_345);
        through_a_ring::<G2Affine>(card, recorder, (1 << 22) + 12_345);
    });
}

/// The link does not stand still between the batches of a sum.
#[test]
fn the_next_batch_comes_up_while_one_computes() {
    recorded("the_next_batch_comes_up_while_one_computes", |card, recorder| {
        let (batch, n) = (1 << 20, 3 << 20);
        let (known, scalars) = (Known::<G1Affine>::repeated(n, 1 << 12, 8), spread(n));
        let compact = Compact::new(card, &scalars).unwrap();
        let expected = known.sum(&scalars);
        let points = card.hold(Points::from(known.bases)).unwrap();
        // The first time each kernel is loaded at its launch, which waits for those before.
        for _ in 0..2 {
            recorder.take(Track::Upload, "");
            recorder.take(Track::Compute, "");
            assert_eq!(streamed(card, &points, &compact, batch), expected);
        }
        let first = |spans: Vec<Span>| spans.iter().map(|span| span.start).min().unwrap();
        for number in 1..3 {
            let bases = first(recorder.take(Track::Upload, &format!("stream msm x {}/3", number + 1)));
            let reduce = recorder.take(Track::Compute, &format!("msm x {number}/3 reduce"));
            assert!(bases < first(reduce), "batch {number} ends before the next comes up");
        }
    });
}

fn through_a_ring<A: Affine>(card: &Cuda, recorder: &Recorder, n: usize) {
    let (known, scalars) = (Known::<A>::repeated(n, 1 << 12, 8), spread(n));
    let expected = known.sum(&scalars);
    let compact = Compact::new(card, &scalars).unwrap();
    let rings = point_rings(card, Bytes::of::<A>(n)).unwrap();
    let plain = Points::from(known.bases);
    let ringed = plain.clone().through(&rings);
    let locked = card.hold(plain.clone()).unwrap();
    for (how, points) in [("ring", &ringed), ("locked", &locked), ("plain", &plain), ("ring again", &ringed)]
    {
        assert_eq!(streamed(card, points, &compact, n), expected, "{how}");
        let copies = recorder.take(Track::Upload, "stream msm x");
        let fills = recorder.take(Track::Host, "fill msm x");
        let kernels = recorder.take(Track::Compute, "msm x");
        let bytes = copies.iter().map(|span| span.bytes).sum::<Bytes>();
        assert_eq!(bytes, Bytes::of::<A>(n), "{how}: each base once");
        assert_eq!(fills.is_empty(), !how.starts_with("ring"), "{how}");
        let last = copies.iter().map(|span| span.end).max().unwrap();
        let first = kernels.iter().map(|span| span.start).min().unwrap();
        assert!(first < last, "{how}: kernels wait for all bases");
    }
}

/// Scalars of all 255 bits, made fast.
fn spread(n: usize) -> Vec<Scalar> {
    let seed = random(2, 6);
    (0..n as u64).into_par_iter().map(|i| seed[0] * Scalar::from(i) + seed[1]).collect()
}

/// The largest sums: points of 2^18 logarithms, each many times, against the sum of the logarithms.
#[test]
fn m2_the_largest_sums() {
    on_a_card("m2_the_largest_sums", |card| {
        let one = |place: Place, n: usize| {
            let (known, scalars) = (Known::<G1Affine>::repeated(n, 1 << 18, 8), spread(n));
            let start = std::time::Instant::now();
            assert_eq!(sum(card, &known.bases, &scalars, n, place), known.sum(&scalars), "G1, {n}");
            println!("G1, {n} terms with copies of all inputs: {:.1?}", start.elapsed());
        };
        one(Place::Host, 1 << 24);
        one(Place::Device, (1 << 24) - 1);
        one(Place::Device, 1 << 26);
        let n = (1 << 23) + 1;
        let (known, scalars) = (Known::<G2Affine>::repeated(n, 1 << 16, 8), spread(n));
        assert_eq!(sum(card, &known.bases, &scalars, n, Place::Host), known.sum(&scalars), "G2, {n}");
    });
}

fn skewed<A: Affine>(card: &Cuda, n: usize) {
    let mut known = Known::<A>::new(n, 4);
    for i in (0..n).step_by(7) {
        known.infinity(i);
    }
    for i in (3..n).step_by(11) {
        known.copy(1, i);
    }
    for i in (5..n).step_by(13) {
        known.negate(2, i);
    }
    let power = |k: u64| Scalar::from(2).pow_vartime([k]);
    type Edge = (&'static str, fn(usize) -> Scalar);
    let edges: [Edge; 6] = [
        ("zeros", |_| Scalar::ZERO),
        ("ones", |_| Scalar::ONE),
        ("minus ones", |_| -Scalar::ONE),
        ("equal", |_| Scalar::from(0x1234_5678_9abc)),
        ("one bucket", |i| Scalar::from(5 + (i % 2) as u64)),
        ("edges", |i| match i % 4 {
            0 => -Scalar::ONE,
            1 => Scalar::ONE,
            2 => Scalar::from(2).pow_vartime([(i % 255) as u64]),
            _ => Scalar::from(2).pow_vartime([(i % 255) as u64]) - Scalar::ONE,
        }),
    ];
    for (what, scalar) in edges {
        let scalars: Vec<_> = (0..n).map(scalar).collect();
        check(card, &known, &scalars, what);
    }
    let halves: Vec<_> =
        (0..n).map(|i| if i % 2 == 0 { Scalar::ONE } else { power(i as u64 % 250) }).collect();
    check(card, &known, &halves, "half ones");
}

#[test]
fn m3_m5_edges_and_skew() {
    on_a_card("m3_m5_edges_and_skew", |card| {
        skewed::<G1Affine>(card, 20_000);
        skewed::<G2Affine>(card, 3_000);
    });
}
