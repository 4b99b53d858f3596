//! What sums take on an NVIDIA card, beside the published times of another library on the same model. Only with the
//! environment variable `PRESTAGE_DEVICE_TIMES` set: prints a table, and checks each sum.

use std::sync::{Arc, Mutex};

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use prestage_msm::{Affine, Batches, Msm, Points, Scalars, Slots, batched};
use prestage_transfer::Lanes;
use prestage_vram::conformance::{OnCuda, run};
use prestage_vram::cuda::{Cuda, CudaConfig};
use prestage_vram::{Device, Event, LedgerConfig, Sink, Span, Track, Worker};
use rayon::prelude::*;

use crate::common::Known;

/// sppark on one H200, ms, everything resident (`KERNELS`' table of the same day): size, G1, G2.
const PEER: [(u32, Option<f64>, Option<f64>); 6] = [
    (16, Some(6.4), Some(9.2)),
    (18, Some(18.9), None),
    (20, Some(19.9), Some(46.7)),
    (22, Some(52.7), Some(137.0)),
    (24, Some(153.7), Some(446.0)),
    (26, Some(556.0), None),
];

#[derive(Default)]
struct Spans(Mutex<Vec<Span>>);

impl Sink for Spans {
    fn emit(&self, event: Event) {
        if let Event::Span(span) = event {
            self.0.lock().unwrap().push(span);
        }
    }
}

/// Times in milliseconds: kernels alone, and from the first copy of points or kernel to the last.
struct Took {
    busy: f64,
    wall: f64,
}

#[allow(clippy::cast_precision_loss)]
fn took(spans: &[Span]) -> Took {
    let ms = |ns: u64| ns as f64 / 1e6;
    let mine = spans.iter().filter(|s| matches!(s.track, Track::Compute | Track::Upload));
    let (first, last) = (mine.clone().map(|s| s.start).min(), mine.clone().map(|s| s.end).max());
    let compute = mine.filter(|s| s.track == Track::Compute).map(|s| s.end.since(s.start).get());
    Took { busy: ms(compute.sum()), wall: ms(last.unwrap().since(first.unwrap()).get()) }
}

/// The median of five (three of the longest) of a sum whose points are page-locked and whose scalars are on the card.
fn time<A: Affine>(card: &Cuda, spans: &Spans, known: Known<A>, scalars: &[Scalar]) -> Took {
    let n = scalars.len();
    let expected = known.sum(scalars);
    let slots = Slots::<A>::open(card, 2).unwrap();
    let points = card.hold(Points::from(known.bases)).unwrap();
    let batches = Batches::new(card, n, n);
    let mut times = Vec::new();
    for _ in 0..if n > 1 << 22 { 4 } else { 6 } {
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let buf = lanes.upload.alloc("scalars", n).unwrap();
        let (mut buf, upload) = lanes.upload.upload(scalars.to_vec(), buf).unwrap();
        upload.wait().unwrap();
        turn.drain().unwrap();
        spans.0.lock().unwrap().clear();
        let sum = batched(&lanes, "x", &points, Scalars::device(&mut buf), &batches, &slots).unwrap();
        let sum = sum.finish().unwrap();
        turn.drain().unwrap();
        assert_eq!(sum, expected, "{} of {n}", A::NAME);
        times.push(took(&spans.0.lock().unwrap()));
        drop((buf, lanes));
        turn.release().unwrap();
    }
    // The first one takes the scratch of the driver.
    times.remove(0);
    times.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    times.swap_remove(times.len() / 2)
}

/// Points of 2^16 logarithms, over and over.
fn points<A: Affine>(log: u32) -> Known<A> {
    Known::repeated(1 << log, 1 << log.min(16), 8)
}

/// Scalars of all 255 bits.
fn spread(log: u32) -> Vec<Scalar> {
    let seed = [Scalar::from(0x9e37_79b9).square().square().square(), Scalar::from(3).pow_vartime([200])];
    (0..1u64 << log).into_par_iter().map(|i| seed[0] * Scalar::from(i) + seed[1]).collect()
}

#[test]
fn times_of_sums() {
    if std::env::var_os("PRESTAGE_DEVICE_TIMES").is_none() {
        println!("times_of_sums skipped: PRESTAGE_DEVICE_TIMES is not set");
        return;
    }
    run(&OnCuda, "times_of_sums", |_| {
        let spans = Arc::new(Spans::default());
        let ledger = LedgerConfig { sink: spans.clone(), ..LedgerConfig::default() };
        let card = Cuda::open(CudaConfig { ledger, ..CudaConfig::default() }).unwrap();
        card.prepare().unwrap();
        println!(
            "\n| sum | kernels, ms | with points from page-locked memory, ms | sppark, resident, ms | kernels / sppark |"
        );
        println!("|---|---|---|---|---|");
        let line = |group: &str, log: u32, took: Took, peer: f64| {
            let Took { busy, wall } = took;
            println!("| {group} 2^{log} | {busy:.2} | {wall:.2} | {peer:.1} | {:.2} |", busy / peer);
        };
        for (log, g1, g2) in PEER {
            if let Some(peer) = g1 {
                line("G1", log, time::<G1Affine>(&card, &spans, points(log), &spread(log)), peer);
            }
            if let Some(peer) = g2 {
                line("G2", log, time::<G2Affine>(&card, &spans, points(log), &spread(log)), peer);
            }
        }
        skewed(&card, &spans);
    });
}

/// Row M3's times: told beside those of scalars of all bits.
fn skewed(card: &Cuda, spans: &Spans) {
    const LOG: u32 = 20;
    println!("\n| G1 2^{LOG} | kernels, ms | / all bits |\n|---|---|---|");
    let all = |scalar: Scalar| vec![scalar; 1 << LOG];
    let mut bits = None;
    let one_point = || Known::<G1Affine>::repeated(1 << LOG, 1, 8);
    let cases = [
        ("all bits", points(LOG), spread(LOG)),
        ("all -1", points(LOG), all(-Scalar::ONE)),
        ("all equal", points(LOG), all(spread(1)[1])),
        ("one bucket", points(LOG), (0..1 << LOG).map(|i| Scalar::from(5 + i % 2)).collect()),
        ("one point", one_point(), spread(LOG)),
    ];
    for (what, known, scalars) in cases {
        let Took { busy, .. } = time(card, spans, known, &scalars);
        let bits = *bits.get_or_insert(busy);
        println!("| {what} | {busy:.2} | {:.2} |", busy / bits);
    }
}
