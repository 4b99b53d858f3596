//! Row P7, and that batches agree with the sum as a whole at every cut.

use crate::common::{Known, random};
use crate::spy::{Spy, Step};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Group;
use prestage_msm::{Affine, Batches, Compact, Error, Msm, Place, Points, Scalars, Slots, batched, msm};
use prestage_transfer::{Lanes, Pinned};
use prestage_vram::{Bytes, Cause, Device, Event, Host, HostConfig, LedgerConfig, Sink, Track, Worker};
use std::sync::{Arc, Mutex};

fn host() -> Host {
    Host::open(HostConfig::default()).unwrap()
}

/// The sum through batches of at most `batch`, its scalars on the device or streamed from the host. Also checks
/// that the ledger's peak is the footprint to the byte, and that nothing stays.
pub(crate) fn sum<D: Msm, A: Affine>(
    device: &D,
    bases: &[A],
    scalars: &[Scalar],
    batch: usize,
    place: Place,
) -> A::Curve {
    let slots = Slots::<A>::open(device, 2).unwrap();
    let bases = Points::from(bases.to_vec());
    let batches = Batches::new(device, bases.len(), batch);
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let sum = match place {
        Place::Host => {
            turn.phase("sum");
            let scalars = Scalars::host(Compact::new(device, scalars).unwrap());
            batched(&lanes, "x", &bases, scalars, &batches, &slots).unwrap()
        }
        Place::Device => {
            let buf = lanes.upload.alloc("scalars", scalars.len()).unwrap();
            let (mut buf, upload) = lanes.upload.upload(scalars.to_vec(), buf).unwrap();
            turn.phase("sum");
            let sum = batched(&lanes, "x", &bases, Scalars::device(&mut buf), &batches, &slots).unwrap();
            // As after H: the coefficients go while the last batch runs.
            drop((buf, upload));
            sum
        }
    };
    // Handed back already: what the pool retains, the next sum on these lanes may take.
    assert_eq!(device.ledger().level().pooled, Bytes::ZERO);
    let held = if place == Place::Device { Bytes::of::<Scalar>(scalars.len()) } else { Bytes::ZERO };
    let peak = turn.peaks().iter().find(|p| p.0 == "sum").map_or(Bytes::ZERO, |p| p.1);
    assert_eq!(peak, held + batches.footprint::<A, _>(device, place));
    let sum = sum.finish().unwrap();
    assert_eq!(slots.free(), 2);
    drop(lanes);
    turn.release().unwrap();
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
    sum
}

#[test]
fn p7_waits_only_for_the_previous_batch() {
    use Step::{Batch, Waited};
    for (count, expected) in [
        (1, vec![Batch(0), Waited(0)]),
        (2, vec![Batch(0), Batch(1), Waited(0), Waited(1)]),
        (3, vec![Batch(0), Batch(1), Waited(0), Batch(2), Waited(1), Waited(2)]),
    ] {
        assert_eq!(steps(count, count), expected);
    }
    let steps = steps(8, 7);
    assert_eq!(steps[..2], [Batch(0), Batch(1)]);
    for i in 0..7 {
        let at = |step| steps.iter().position(|s| *s == step).unwrap();
        assert!(at(Waited(i)) > at(Batch(i + 1)), "{steps:?}");
        assert!(i == 6 || at(Waited(i)) < at(Batch(i + 2)), "{steps:?}");
    }
    // The last wait, and no other, is that of `finish`.
    assert_eq!(steps.len(), 2 * 8 - 1);
}

/// What the device was asked for while a sum ran in `count` batches; `before` of the waits come before `finish`.
fn steps(count: usize, finished: usize) -> Vec<Step> {
    let spy = Spy::open();
    let n = 40 * count;
    let known = Known::<G1Affine>::new(n, 7);
    let scalars = random(n, 7);
    let slots = Slots::open(&spy, 2).unwrap();
    let mut worker = Worker::new(0);
    let turn = spy.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let bases = Points::from(known.bases.clone());
    let batches = Batches::new(&spy, n, 40);
    assert_eq!(batches.count(), count);
    let compact = Scalars::host(Compact::new(&spy, &scalars).unwrap());
    let deferred = batched(&lanes, "h", &bases, compact, &batches, &slots).unwrap();
    let enqueued = spy.steps();
    assert_eq!(enqueued.len(), 2 * count - 1);
    assert_eq!(deferred.finish().unwrap(), known.sum(&scalars));
    let all = spy.steps();
    assert_eq!(all.last(), Some(&Step::Waited(count - 1)));
    if finished == count { all } else { enqueued }
}

#[test]
fn p7_equals_synchronising_every_batch() {
    let host = host();
    let known = Known::<G1Affine>::new(960, 70);
    let scalars = random(960, 71);
    let expected = known.sum(&scalars);
    for count in [1, 2, 3, 8] {
        let batch = 960 / count;
        for place in [Place::Host, Place::Device] {
            assert_eq!(sum(&host, &known.bases, &scalars, batch, place), expected);
        }
        // One sum for each batch, finished before the next begins.
        let synchronised: <G1Affine as group::prime::PrimeCurveAffine>::Curve = (0..count)
            .map(|i| i * batch..(i + 1) * batch)
            .map(|part| sum(&host, &known.bases[part.clone()], &scalars[part], batch, Place::Host))
            .sum();
        assert_eq!(synchronised, expected);
    }
}

#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Sink for Log {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

/// In the record: batches run one after the other with nothing between them that they wait for on the host, and each
/// span carries its name.
#[test]
fn p7_record_names_the_batches() {
    let log = Arc::new(Log::default());
    let sink: Arc<dyn Sink> = log.clone();
    let ledger = LedgerConfig { sink, ..LedgerConfig::default() };
    let host = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    let known = Known::<G1Affine>::new(3000, 72);
    let scalars = random(3000, 73);
    assert_eq!(sum(&host, &known.bases, &scalars, 1000, Place::Host), known.sum(&scalars));
    let events = log.0.lock().unwrap();
    let spans: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Span(span) if span.track == Track::Compute => Some(span),
            _ => None,
        })
        .collect();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_ref()).collect();
    assert_eq!(names, ["msm x 1/3", "msm x 2/3", "msm x 3/3"]);
    assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start));
    // The host stood still for results alone.
    for event in events.iter() {
        if let Event::Wait { cause, start, end, .. } = event {
            assert!(
                start <= end && matches!(cause, Cause::Transfer | Cause::Sync | Cause::Turn),
                "{event:?}"
            );
        }
    }
}

fn every_cut<A: Affine>(n: usize) {
    let host = host();
    let mut known = Known::<A>::new(n, 74);
    known.infinity(n / 2);
    let mut scalars = random(n, 75);
    for i in (0..n).step_by(3) {
        scalars[i] = if i % 2 == 0 { Scalar::ONE } else { Scalar::ZERO };
    }
    for batch in [0, 1, 2, 3, n / 3, n / 2, n - 1, n, n + 1, usize::MAX] {
        if batch < 2 && n > 40 {
            continue;
        }
        for place in [Place::Host, Place::Device] {
            assert_eq!(sum(&host, &known.bases, &scalars, batch, place), known.sum(&scalars), "{batch}");
        }
    }
}

#[test]
fn m2_every_cut_into_batches() {
    every_cut::<G1Affine>(30);
    every_cut::<G2Affine>(20);
    every_cut::<G1Affine>(700);
}

#[test]
fn f008_empty_sum_takes_nothing() {
    let host = host();
    for place in [Place::Host, Place::Device] {
        let batches = Batches::new(&host, 0, 100);
        assert_eq!((batches.count(), batches.range(0), batches.range(9)), (0, 0..0, 0..0));
        assert_eq!(batches.footprint::<G2Affine, _>(&host, place), Bytes::ZERO);
        assert!(bool::from(sum::<_, G1Affine>(&host, &[], &[], 100, place).is_identity()));
    }
}

/// H has one point less than the domain has coefficients under one of the reductions: a part of a buffer.
#[test]
fn device_ranges_are_summed_where_they_lie() {
    let host = host();
    let n = 1 << 10;
    let known = Known::<G1Affine>::new(n - 1, 76);
    let scalars = random(n, 77);
    let slots = Slots::<G1Affine>::open(&host, 0).unwrap();
    let bases = Points::from(Arc::<[G1Affine]>::from(known.bases.clone()));
    let batches = Batches::new(&host, n - 1, 300);
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let buf = lanes.upload.alloc("h", n).unwrap();
    let pinned = Pinned::from_slice(&host, &scalars).unwrap();
    let (mut buf, _upload) = lanes.upload.upload(pinned, buf).unwrap();
    for range in [0..n - 1, 1..n] {
        let part = Scalars::device_range(&mut buf, range.clone()).unwrap();
        let deferred = batched(&lanes, "h", &bases, part, &batches, &slots).unwrap();
        assert_eq!(deferred.finish().unwrap(), known.sum(&scalars[range]));
    }
    assert!(matches!(Scalars::device_range(&mut buf, 1..n + 1), Err(Error::Device(_))));
    let all = batched(&lanes, "h", &bases, Scalars::device(&mut buf), &batches, &slots);
    assert!(matches!(all, Err(Error::LengthMismatch { bases, scalars }) if (bases, scalars) == (n - 1, n)));
    let wrong = Batches::new(&host, n, 300);
    let part = Scalars::device_range(&mut buf, 1..n).unwrap();
    let refused = batched(&lanes, "h", &bases, part, &wrong, &slots);
    assert!(matches!(refused, Err(Error::LongerThanPlanned { .. })));
}

/// Sums in flight at once: results are collected in any order.
#[test]
fn b013_sums_in_both_groups_at_once() {
    let host = host();
    let (g1, g2) = (Known::<G1Affine>::new(900, 78), Known::<G2Affine>::new(900, 79));
    let scalars = random(900, 80);
    let compact = Compact::new(&host, &scalars).unwrap();
    let (slots1, slots2) = (Slots::open(&host, 4).unwrap(), Slots::open(&host, 2).unwrap());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let others = Lanes::open(&turn).unwrap();
    let batches = Batches::new(&host, 900, 250);
    let (bases1, bases2) = (Points::from(g1.bases.clone()), Points::from(g2.bases.clone()));
    for _ in 0..5 {
        let shared = || Scalars::host(compact.clone());
        let first = batched(&lanes, "a", &bases1, shared(), &batches, &slots1).unwrap();
        let second = batched(&others, "b2", &bases2, shared(), &batches, &slots2).unwrap();
        let third = batched(&lanes, "b1", &bases1, shared(), &batches, &slots1).unwrap();
        assert_eq!(third.finish().unwrap(), g1.sum(&scalars));
        assert_eq!(second.finish().unwrap(), g2.sum(&scalars));
        assert_eq!(first.finish().unwrap(), g1.sum(&scalars));
    }
    assert_eq!((slots1.free(), slots2.free()), (4, 2));
}

/// Measured peak = estimate at every number of batches; `sum` compares them to the byte.
#[test]
fn b009_estimate_is_the_measured_peak() {
    let host = host();
    let known = Known::<G1Affine>::new(1 << 12, 81);
    let scalars = random(1 << 12, 82);
    let expected = msm(&known.bases, &scalars).unwrap();
    let mut last = Bytes::MAX;
    for count in [1, 16, 128] {
        let batch = (1 << 12) / count;
        let estimate = Batches::new(&host, 1 << 12, batch).footprint::<G1Affine, _>(&host, Place::Host);
        assert!(estimate < last);
        last = estimate;
        assert_eq!(sum(&host, &known.bases, &scalars, batch, Place::Host), expected);
    }
}

/// Under a falling budget the sum runs in more batches, to the same result.
#[test]
fn b010_batches_rise_as_the_budget_falls() {
    let n = 1 << 14;
    let known = Known::<G1Affine>::new(n, 83);
    let scalars = random(n, 84);
    let expected = known.sum(&scalars);
    // What a batch takes grows with the threads of the machine: the budgets are its own, each half of the one before.
    let cut = |host: &Host, log| Batches::new(host, n, n >> log);
    let takes = |host: &Host, b: &Batches| b.footprint::<G1Affine, _>(host, Place::Host);
    let all = self::host();
    let mut capacity = takes(&all, &cut(&all, 0));
    let mut counts = Vec::new();
    while let Some(batches) = (0..14).map(|log| cut(&all, log)).find(|b| takes(&all, b) <= capacity) {
        let ledger =
            LedgerConfig { margin: prestage_vram::Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() };
        let host = Host::open(HostConfig { capacity, ledger }).unwrap();
        assert_eq!(sum(&host, &known.bases, &scalars, batches.batch(), Place::Host), expected);
        assert!(host.scratch::<G1Affine>(batches.plan(), Place::Host) <= capacity);
        counts.push(batches.count());
        capacity = Bytes::new(capacity.get() / 2);
    }
    assert!(counts.is_sorted() && counts.first() < counts.last(), "{counts:?}");
}

/// Points that are page-locked count in the account for as long as any clone of them lives, and sums over them are the same.
#[test]
fn locked_points_are_counted_and_unlocked() {
    let host = host();
    let known = Known::<G1Affine>::new(5000, 85);
    let scalars = random(5000, 86);
    let points = Points::from(known.bases.clone()).locked(&host).unwrap();
    assert!(points.is_locked());
    let locked = host.ledger().locked().bytes();
    assert!(locked >= Bytes::of::<G1Affine>(5000), "{locked}");
    let clone = points.clone();
    drop(points);
    assert_eq!(host.ledger().locked().bytes(), locked);
    assert_eq!(msm(clone.host(), &scalars).unwrap(), known.sum(&scalars));
    drop(clone);
    assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO);

    let ledger = LedgerConfig { pinned: Bytes::kib(8), ..LedgerConfig::default() };
    let little = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    assert!(!Points::from(known.bases).locked(&little).unwrap().is_locked(), "used as they are");
}
