//! The transforms on a simulated card: the values of the slices, the memory and the time of the full size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::{Arc, Mutex};

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::host::{self, Combine};
use prestage_ntt::{Chunked, Domain, Outside, Plan, Transform, Twiddles};
use prestage_transfer::{Lanes, Pinned};
use prestage_vram::{Buf, Bytes, Card, Device, Event, Nanos, Sim, SimConfig, Sink, Track, Worker};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const LOG_N: u32 = 10;
/// 2^10 values stand for 2^27.
const SCALE: u64 = 1 << 17;

#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

fn values(seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..1 << LOG_N).map(|_| Scalar::random(&mut rng)).collect()
}

fn open() -> (Sim, Arc<Recorder>) {
    let mut config = SimConfig { scale: SCALE, ..SimConfig::new(Card::preset("rtx-5070-ti-16g").unwrap()) };
    let recorder = Arc::new(Recorder::default());
    config.ledger.sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    (Sim::open(config).unwrap(), recorder)
}

fn up<'t>(lanes: &Lanes<'t, Sim>, label: &'static str, source: Pinned<Scalar>) -> Buf<'t, Sim, Scalar> {
    let place = lanes.upload.alloc(label, source.len()).unwrap();
    let (buf, uploading) = lanes.upload.upload(source, place).unwrap();
    uploading.wait().unwrap();
    buf
}

fn expected(domain: &Domain, shift: Scalar, scale: Scalar) -> Vec<Scalar> {
    let [mut a, b, c] = [1, 2, 3].map(|seed| {
        let mut x = values(seed);
        host::coset_evaluations(domain, &mut x, shift).unwrap();
        x
    });
    host::mul_sub_scale(&mut a, &b, &c, scale).unwrap();
    a
}

#[test]
fn a_quotient_is_right_and_costs_its_full_size() {
    let (sim, recorder) = open();
    let domain = Domain::new(1 << LOG_N, 7).unwrap();
    let (shift, scale) = (Scalar::from(7), Scalar::from(12_345));
    let plan = Plan::whole(domain.clone());
    let footprint = plan.footprint(&sim);
    assert_eq!(footprint.polynomial, Bytes::gib(4));
    assert_eq!(footprint.tables, Bytes::mib(3));

    let sources = [1, 2, 3].map(|seed| Pinned::from_slice(&sim, &values(seed)).unwrap());
    let slot = Pinned::filled(&sim, 1 << LOG_N, Scalar::ZERO).unwrap();
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    turn.phase("quotient");
    let lanes = Lanes::open(&turn).unwrap();
    let mut twiddles = Twiddles::for_turn(&lanes.compute, plan).unwrap();
    let mut labels = ["a", "b", "c"].into_iter();
    let [mut a, mut b, mut c] = sources.map(|source| up(&lanes, labels.next().unwrap(), source));
    for x in [&mut a, &mut b, &mut c] {
        twiddles.coset_evaluations(&lanes.compute, x, shift).unwrap();
    }
    twiddles.quotient(&lanes.compute, &mut a, &mut b, &mut c, scale).unwrap();
    let back = lanes.download.download(&mut a, 0..1 << LOG_N, slot).unwrap().wait().unwrap();
    assert!(back[..] == expected(&domain, shift, scale)[..]);
    drop((b, c));
    twiddles.transform(&lanes.compute, &mut a, &Transform::inverse().on_coset(shift)).unwrap();
    drop((a, twiddles));
    assert_eq!(turn.peaks().last(), Some(&("quotient", footprint.polynomial * 3 + footprint.tables)));
    drop(lanes);
    turn.release().unwrap();

    // Seven transforms of 2^27 points, each 27·2^26 butterflies of 26 ps and a launch.
    let events = recorder.0.lock().unwrap();
    let spans = |track| {
        events
            .iter()
            .filter_map(move |e| match e {
                Event::Span(span) if span.track == track => {
                    Some((span.name.as_ref(), span.end.since(span.start)))
                }
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    let transform = Nanos::new(27 * (1 << 26) * 26 / 1000);
    let kernels = spans(Track::Compute);
    let ntt: Nanos = kernels.iter().filter(|(name, _)| name.starts_with("ntt")).map(|(_, time)| *time).sum();
    let off = ntt.get().abs_diff(7 * transform.get());
    assert!(off < 1_000_000, "{ntt} for seven times {transform}");
    let uploads: Vec<_> = spans(Track::Upload).into_iter().map(|(_, time)| time.get() / 1_000_000).collect();
    assert_eq!(uploads, [81, 81, 81], "4 GiB at 53 GB/s");
}

#[test]
fn out_of_core_on_a_card_gives_the_same_values() {
    let (sim, recorder) = open();
    let domain = Domain::new(1 << LOG_N, 7).unwrap();
    let (shift, scale) = (Scalar::from(7), Scalar::from(12_345));
    let plan = Plan::chunked(domain.clone(), 8).unwrap();
    let footprint = plan.footprint(&sim);
    assert_eq!(footprint.slots, Bytes::gib(1));
    let mut outside = [2, 3].map(|seed| Pinned::from_slice(&sim, &values(seed)).unwrap());
    let a = Pinned::from_slice(&sim, &values(1)).unwrap();
    let slot = Pinned::filled(&sim, 1 << LOG_N, Scalar::ZERO).unwrap();
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    turn.phase("quotient");
    let lanes = Lanes::open(&turn).unwrap();
    let mut twiddles = Twiddles::for_turn(&lanes.compute, plan).unwrap();
    let mut a = up(&lanes, "a", a);
    twiddles.coset_evaluations(&lanes.compute, &mut a, shift).unwrap();
    let mut slots = Chunked::open(&lanes, &twiddles).unwrap();
    for (values, how) in outside.iter_mut().zip([Combine::Mul, Combine::SubScale(scale)]) {
        let values = Outside::locked(values);
        slots = slots.coset_evaluations(&lanes, &mut twiddles, values, shift, &mut a, how).unwrap();
    }
    drop(slots);
    let back = lanes.download.download(&mut a, 0..1 << LOG_N, slot).unwrap().wait().unwrap();
    assert!(back[..] == expected(&domain, shift, scale)[..]);
    let peak = footprint.polynomial + footprint.beside();
    assert_eq!(turn.peaks().last(), Some(&("quotient", peak)));
    drop((a, twiddles, lanes));
    turn.release().unwrap();

    // b and c go up three times and down twice.
    let moved = |track| -> Bytes {
        let events = recorder.0.lock().unwrap();
        let bytes = |e: &Event| match e {
            Event::Span(span) if span.track == track => Some(span.bytes),
            _ => None,
        };
        events.iter().filter_map(bytes).sum()
    };
    assert_eq!(moved(Track::Upload), Bytes::gib(4) * 7);
    assert_eq!(moved(Track::Download), Bytes::gib(4) * 5);
}
