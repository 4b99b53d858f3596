//! Points that go through a ring on their way to a device.

use crate::common::{Known, random};
use crate::faults::Fault;
use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use prestage_msm::{
    Affine, Batches, Compact, Error, Msm, PointRings, Points, Resident, Scalars, Slots, batched, point_rings,
};
use prestage_transfer::{Lanes, Rings};
use prestage_vram::{
    Bytes, Card, Device, Event, Host, HostConfig, LedgerConfig, Op, Sim, SimConfig, Sink, Span, Track, Worker,
};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<Span>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        if let Event::Span(span) = event {
            self.0.lock().unwrap().push(span);
        }
    }
}

impl Recorder {
    pub(crate) fn take(&self, track: Track, name: &str) -> Vec<Span> {
        let mut spans = self.0.lock().unwrap();
        spans.extract_if(.., |span| span.track == track && span.name.starts_with(name)).collect()
    }
}

/// Bytes of a slot: no multiple of a point.
const SLOT: usize = 1000;

fn rings(device: &impl Msm) -> PointRings {
    Rings::open(device, 1, 3, SLOT, MaybeUninit::new(0)).unwrap()
}

/// Uploads points that stay, and sums over them.
fn kept<D: Msm, A: Affine>(device: &D, points: &Points<A>, scalars: &[Scalar]) -> Result<A::Curve, Error> {
    let slots = Slots::<A>::open(device, 2)?;
    let batches = Batches::new(device, points.len(), points.len()).resident();
    let compact = Compact::new(device, scalars)?;
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    let lanes = Lanes::open(&turn)?;
    let resident = Resident::upload(points, device, &lanes.upload, "points")?;
    let sum = batched(&lanes, "x", &resident, Scalars::host(compact), &batches, &slots)?.finish()?;
    drop((resident, lanes));
    turn.release()?;
    Ok(sum)
}

fn through_a_ring<D: Msm, A: Affine>(open: impl Fn(LedgerConfig) -> D) {
    let recorder = Arc::new(Recorder::default());
    let device = open(LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() });
    let n = 200;
    let (known, scalars) = (Known::<A>::new(n, 31), random(n, 32));
    let rings = rings(&device);
    let points = Points::from(known.bases.clone()).through(&rings);
    for round in 0..2 {
        assert_eq!(kept(&device, &points, &scalars).unwrap(), known.sum(&scalars), "{round}");
        let pieces = (n * size_of::<A>()).div_ceil(SLOT);
        assert_eq!(recorder.take(Track::Host, "fill points").len(), pieces);
        let copies = recorder.take(Track::Upload, "stream points");
        let bytes = copies.iter().map(|span| span.bytes).sum::<Bytes>();
        assert_eq!((copies.len(), bytes), (pieces, Bytes::of::<A>(n) * device.scale()));
        assert!(rings.take(&device).is_some_and(|ring| rings.give_back(ring).is_ok()));
    }
    // Another user has it: the points come up all the same.
    let taken = rings.take(&device);
    assert_eq!(kept(&device, &points, &scalars).unwrap(), known.sum(&scalars));
    assert!(taken.is_some() && recorder.take(Track::Host, "fill points").is_empty());
    // Memory that is page-locked needs none.
    drop(taken);
    let locked = points.locked(&device).unwrap();
    assert_eq!(kept(&device, &locked, &scalars).unwrap(), known.sum(&scalars));
    assert!(recorder.take(Track::Host, "fill points").is_empty());
    drop((locked, rings));
    assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
}

fn host(ledger: LedgerConfig) -> Host {
    Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap()
}

#[test]
fn points_that_stay_come_through_a_ring() {
    let sim = |ledger| {
        let card = Card::preset("h200-141g").unwrap();
        Sim::open(SimConfig { scale: 1 << 10, ledger, ..SimConfig::new(card) }).unwrap()
    };
    through_a_ring::<_, G1Affine>(host);
    through_a_ring::<_, G2Affine>(host);
    through_a_ring::<_, G1Affine>(sim);
    through_a_ring::<_, G2Affine>(sim);
}

/// Row F1: whatever fails, the ring is there for the next user, and nothing else is held.
#[test]
fn f1_a_ring_survives_every_failure() {
    let n = 60;
    let (known, scalars) = (Known::<G1Affine>::new(n, 33), random(n, 34));
    for kind in [Op::Allocate, Op::Copy, Op::Mark] {
        let mut failures = 0;
        for nth in 0.. {
            let (device, fault) = Fault::on_host(kind, nth);
            let rings = rings(&device);
            let locked = device.ledger().locked().bytes();
            let points = Points::from(known.bases.clone()).through(&rings);
            let (outcome, operations): (Result<G1Projective, _>, _) =
                fault.during(|| kept(&device, &points, &scalars));
            match outcome {
                Ok(sum) => assert_eq!(sum, known.sum(&scalars), "{kind} {nth}"),
                Err(error) => {
                    failures += 1;
                    assert!(matches!(error, Error::Device(_)), "{kind} {nth}: {error}");
                }
            }
            assert_eq!(device.ledger().level().used(), Bytes::ZERO, "{kind} {nth}");
            assert_eq!(device.ledger().locked().bytes(), locked, "{kind} {nth}: the ring is kept");
            assert_eq!(kept(&device, &points, &scalars).unwrap(), known.sum(&scalars), "{kind} {nth}");
            if operations <= nth {
                break;
            }
        }
        assert!(failures >= 2, "{kind}: {failures}");
    }
}

#[test]
fn a_ring_is_no_longer_than_what_goes_through_it() {
    let device = host(LedgerConfig::default());
    let page = Bytes::of::<u8>(prestage_transfer::page_size());
    let small = point_rings(&device, page).unwrap();
    assert_eq!(device.ledger().locked().bytes(), page * 4);
    drop(small);
    let large = point_rings(&device, Bytes::gib(50)).unwrap();
    assert_eq!(device.ledger().locked().bytes(), Bytes::mib(64));
    drop(large);
    let refusing = host(LedgerConfig { pinned: Bytes::ZERO, ..LedgerConfig::default() });
    let none = point_rings(&refusing, Bytes::gib(50)).unwrap();
    assert!(none.take(&refusing).is_none(), "none could be pinned");
}
