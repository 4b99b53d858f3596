//! The transforms on a device: equal to those of slices, within the memory that the plan states.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::host::{self, Combine};
use prestage_ntt::{Chunked, Domain, Error, Ntt, Order, Outside, Plan, Transform, Twiddles};
use prestage_transfer::{Lane, Lanes, Pinned, Ring};
use prestage_vram::{
    Buf, Bytes, Device, Event, Host, HostConfig, LedgerConfig, Op, Sink, Track, Turn, Worker,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

fn values(n: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| Scalar::random(&mut rng)).collect()
}

fn open() -> Host {
    Host::open(HostConfig::default()).unwrap()
}

fn up<'t, D: Ntt>(lane: &Lane<'t, D>, label: &'static str, v: &[Scalar]) -> Buf<'t, D, Scalar> {
    let (buf, uploading) = lane.upload(v.to_vec(), lane.alloc(label, v.len()).unwrap()).unwrap();
    uploading.wait().unwrap();
    buf
}

fn down<D: Ntt>(turn: &Turn<'_, D>, lane: &Lane<'_, D>, buf: &mut Buf<'_, D, Scalar>) -> Vec<Scalar> {
    let into = Pinned::filled(turn.device(), buf.len(), Scalar::ZERO).unwrap();
    lane.download(buf, 0..buf.len(), into).unwrap().wait().unwrap().to_vec()
}

/// What the slices compute: a, b and c on the coset, and their quotient.
fn quotient(d: &Domain, abc: &[Vec<Scalar>; 3], shift: Scalar, scale: Scalar) -> Vec<Scalar> {
    let [a, b, c] = abc.clone().map(|mut x| {
        host::coset_evaluations(d, &mut x, shift).unwrap();
        x
    });
    let mut h = a;
    host::mul_sub_scale(&mut h, &b, &c, scale).unwrap();
    h
}

/// Every step over domains of these sizes, with tables for the coset and without.
fn every_step_equals_the_slices<D: Ntt>(device: &D, domains: &[(u32, u64)]) {
    let mut worker = Worker::new(0);
    for (&(log_size, generator), coset) in domains.iter().flat_map(|d| [(d, false), (d, true)]) {
        let d = Domain::new(1 << log_size, generator).unwrap();
        let shift = Scalar::from(7);
        let plan = Plan::whole(d.clone());
        let plan = if coset { plan.on_coset(shift) } else { plan };
        let scale = Scalar::from(12_345);
        let abc = [1, 2, 3].map(|seed| values(d.size(), seed));
        let expected = quotient(&d, &abc, shift, scale);
        let mut coefficients = expected.clone();
        host::coset_coefficients(&d, &mut coefficients, shift).unwrap();

        let turn = device.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let mut twiddles = Twiddles::for_turn(&lanes.compute, plan).unwrap();
        let [mut a, mut b, mut c] = abc.each_ref().map(|x| up(&lanes.upload, "x", x));
        for x in [&mut a, &mut b, &mut c] {
            twiddles.coset_evaluations(&lanes.compute, x, shift).unwrap();
        }
        twiddles.quotient(&lanes.compute, &mut a, &mut b, &mut c, scale).unwrap();
        assert!(down(&turn, &lanes.download, &mut a) == expected, "2^{log_size}");
        let t = Transform::inverse().on_coset(shift);
        twiddles.transform(&lanes.compute, &mut a, &t).unwrap();
        assert!(down(&turn, &lanes.download, &mut a) == coefficients, "2^{log_size}");
        // b and c are as they were; combined one after the other they give the same.
        drop(a);
        let mut a = up(&lanes.upload, "a", &abc[0]);
        twiddles.coset_evaluations(&lanes.compute, &mut a, shift).unwrap();
        twiddles.combine(&lanes.compute, &mut a, &mut b, Combine::Mul).unwrap();
        twiddles.combine(&lanes.compute, &mut a, &mut c, Combine::SubScale(scale)).unwrap();
        assert!(down(&turn, &lanes.download, &mut a) == expected, "2^{log_size}");
        for input in [Order::Natural, Order::Reversed] {
            for output in [Order::Natural, Order::Reversed] {
                for transform in [Transform::forward(), Transform::inverse()] {
                    for t in [transform, transform.on_coset(shift), transform.on_coset(scale)] {
                        let t = t.from(input).to(output);
                        let mut expected = abc[0].clone();
                        host::transform(&d, &mut expected, &t).unwrap();
                        let mut x = up(&lanes.upload, "x", &abc[0]);
                        twiddles.transform(&lanes.compute, &mut x, &t).unwrap();
                        assert!(down(&turn, &lanes.download, &mut x) == expected, "2^{log_size} {t:?}");
                    }
                }
            }
        }
        drop((a, b, c, twiddles, lanes));
        turn.release().unwrap();
    }
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
}

#[test]
fn every_step_on_a_device_equals_the_slices() {
    every_step_equals_the_slices(&open(), &[(0, 7), (3, 5), (9, 7), (12, 5)]);
}

/// One proof's quotient out of core: b, then c, through the same two slots.
fn out_of_core<D: Ntt>(
    device: &D,
    d: &Domain,
    chunks: usize,
    abc: &[Vec<Scalar>; 3],
    piece: Option<usize>,
) -> Vec<Scalar> {
    let (shift, scale) = (Scalar::from(7), Scalar::from(5));
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    turn.phase("quotient");
    let lanes = Lanes::open(&turn).unwrap();
    let plan = Plan::chunked(d.clone(), chunks).unwrap();
    let footprint = plan.footprint(device);
    let mut twiddles = Twiddles::for_turn(&lanes.compute, plan).unwrap();
    let mut a = up(&lanes.upload, "a", &abc[0]);
    twiddles.coset_evaluations(&lanes.compute, &mut a, shift).unwrap();
    let mut rings = piece.map(|piece| [(); 2].map(|()| Ring::open(device, 2, piece, Scalar::ZERO).unwrap()));
    let mut slots = Chunked::open(&lanes, &twiddles).unwrap();
    for (x, how) in [(&abc[1], Combine::Mul), (&abc[2], Combine::SubScale(scale))] {
        let mut x = x.clone();
        let x = match &mut rings {
            None => Outside::locked(&mut x),
            Some([up, down]) => Outside::pageable(&mut x, up, down),
        };
        slots = slots.coset_evaluations(&lanes, &mut twiddles, x, shift, &mut a, how).unwrap();
    }
    let h = down(&turn, &lanes.download, &mut a);
    drop((slots, a, twiddles, lanes));
    // L10: the prediction is the peak.
    let peak = turn.peaks().into_iter().find(|(phase, _)| *phase == "quotient").unwrap().1;
    assert_eq!(peak, footprint.polynomial + footprint.tables + footprint.slots);
    turn.release().unwrap();
    assert!(h == quotient(d, abc, shift, scale), "{chunks} chunks of {}", d.size());
    h
}

fn chunked_equals_the_slices<D: Ntt>(device: &D, domains: &[(u32, u64)]) {
    for &(log_size, generator) in domains {
        let d = Domain::new(1 << log_size, generator).unwrap();
        let abc = [4, 5, 6].map(|seed| values(d.size(), seed + u64::from(log_size)));
        for log_chunks in 1..=(log_size / 2).min(6) {
            out_of_core(device, &d, 1 << log_chunks, &abc, None);
        }
        out_of_core(device, &d, 2, &abc, Some(100));
    }
    assert_eq!(device.ledger().level().used(), Bytes::ZERO);
    assert_eq!(device.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn chunked_equals_the_slices_and_keeps_to_its_footprint() {
    chunked_equals_the_slices(&open(), &[(2, 7), (4, 5), (7, 7), (12, 5), (13, 7)]);
}

#[cfg(feature = "cuda")]
mod on_a_card {
    use super::{Spans, chunked_equals_the_slices, down, every_step_equals_the_slices, up, values};
    use blstrs::Scalar;
    use ff::Field;
    use prestage_ntt::naive::evaluate;
    use prestage_ntt::{Domain, Ntt, Order, Plan, Transform, Twiddles};
    use prestage_transfer::Lanes;
    use prestage_vram::conformance::{OnCuda, Subject, run};
    use prestage_vram::cuda::{Cuda, CudaConfig};
    use prestage_vram::{Bytes, Device as _, LedgerConfig, Track, Worker};
    use rayon::prelude::*;
    use std::sync::Arc;

    fn on_a_card(name: &str, test: impl FnOnce(&Cuda)) {
        run(&OnCuda, name, |on| {
            let card = on.open(Bytes::gib(8), LedgerConfig::default());
            card.prepare().unwrap();
            test(&card);
        });
    }

    #[test]
    fn m1_every_step_equals_the_slices() {
        let domains: Vec<_> = (0..=18).flat_map(|log| [(log, 7), (log, 5)]).collect();
        on_a_card("m1_every_step", |card| every_step_equals_the_slices(card, &domains));
    }

    /// Too large to compare with the slices: values at two points by Horner's rule, and there and back.
    fn large(card: &Cuda, log: u32, generator: u64, modes: &[(bool, Order)]) {
        let (seed, n) = (values(2, u64::from(log)), 1 << log);
        let x: Vec<Scalar> = (1..=n).into_par_iter().map(|i| seed[0] * Scalar::from(i) + seed[1]).collect();
        let d = Domain::new(x.len(), generator).unwrap();
        let piece = x.len() >> 10;
        let at = |point: Scalar| -> Scalar {
            let step = point.pow_vartime([piece as u64]);
            let pieces = x.par_chunks(piece).enumerate();
            pieces.map(|(i, part)| evaluate(part, point) * step.pow_vartime([i as u64])).sum()
        };
        let shift = Scalar::from(7);
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let mut twiddles = Twiddles::for_turn(&lanes.compute, Plan::whole(d.clone())).unwrap();
        let mut buf = up(&lanes.upload, "x", &x);
        for &(coset, order) in modes {
            let on = |t: Transform| if coset { t.on_coset(shift) } else { t };
            twiddles.transform(&lanes.compute, &mut buf, &on(Transform::forward()).to(order)).unwrap();
            let y = down(&turn, &lanes.download, &mut buf);
            for index in [1, x.len() / 3 * 2] {
                let place = match order {
                    Order::Natural => index,
                    Order::Reversed => index.reverse_bits() >> (usize::BITS - log),
                };
                let point = d.element(index) * if coset { shift } else { Scalar::ONE };
                assert_eq!(y[place], at(point), "2^{log}, coset {coset}, {order:?}");
            }
            twiddles.transform(&lanes.compute, &mut buf, &on(Transform::inverse()).from(order)).unwrap();
            assert!(down(&turn, &lanes.download, &mut buf) == x, "2^{log}, coset {coset}, {order:?}, back");
        }
        drop((buf, twiddles, lanes));
        turn.release().unwrap();
    }

    /// All four modes to 2^22; above that those of the quotient, one each of the largest.
    #[test]
    fn m1_large_domains_at_random_points_and_back() {
        on_a_card("m1_large", |card| {
            let quotient = [(false, Order::Reversed), (true, Order::Natural)];
            let others = [(true, Order::Reversed), (false, Order::Natural)];
            for log in [20, 22] {
                for generator in [5, 7] {
                    large(card, log, generator, &[quotient, others].concat());
                }
            }
            large(card, 24, 7, &quotient);
            large(card, 26, 7, &quotient[..1]);
            large(card, 27, 5, &quotient[1..]);
        });
    }

    /// sppark on one H200, natural to reversed and natural to natural, ms, resident (`KERNELS`' table of the same day).
    const PEER: [(u32, f64, f64); 7] = [
        (16, 0.025, 0.029),
        (18, 0.067, 0.077),
        (20, 0.259, 0.278),
        (22, 1.05, 1.12),
        (24, 4.43, 4.73),
        (26, 20.9, 23.9),
        (27, 42.3, 44.4),
    ];

    /// What transforms take, by the card's events, as a table. Only with `PRESTAGE_DEVICE_TIMES` set.
    #[test]
    #[allow(clippy::cast_precision_loss)]
    fn times_of_transforms() {
        if std::env::var_os("PRESTAGE_DEVICE_TIMES").is_none() {
            println!("times_of_transforms skipped: PRESTAGE_DEVICE_TIMES is not set");
            return;
        }
        run(&OnCuda, "times_of_transforms", |_| {
            let spans = Arc::new(Spans::default());
            let ledger = LedgerConfig { sink: spans.clone(), ..LedgerConfig::default() };
            let card = Cuda::open(CudaConfig { ledger, ..CudaConfig::default() }).unwrap();
            card.prepare().unwrap();
            println!("\n| transform | ours, ms | sppark, ms | ours / sppark |\n|---|---|---|---|");
            for (log, reversed, natural) in PEER {
                let d = Domain::new(1 << log, 7).unwrap();
                let mut worker = Worker::new(0);
                let turn = card.turn(&mut worker).unwrap();
                let lanes = Lanes::open(&turn).unwrap();
                let mut twiddles = Twiddles::for_turn(&lanes.compute, Plan::whole(d.clone())).unwrap();
                let mut x = up(&lanes.upload, "x", &vec![Scalar::from(3); d.size()]);
                for (order, peer) in [(Order::Reversed, reversed), (Order::Natural, natural)] {
                    let t = Transform::forward().to(order);
                    turn.drain().unwrap();
                    spans.0.lock().unwrap().clear();
                    for _ in 0..9 {
                        twiddles.transform(&lanes.compute, &mut x, &t).unwrap();
                    }
                    turn.drain().unwrap();
                    let kept = spans.0.lock().unwrap();
                    let compute = kept.iter().filter(|s| s.track == Track::Compute);
                    let mut ns: Vec<_> = compute.map(|s| s.end.since(s.start).get()).collect();
                    assert_eq!(ns.len(), 9);
                    ns.sort_unstable();
                    let ours = ns[4] as f64 / 1e6;
                    println!(
                        "| 2^{log}, natural to {order:?} | {ours:.3} | {peer:.3} | {:.2} |",
                        ours / peer
                    );
                }
                drop((x, twiddles, lanes));
                turn.release().unwrap();
            }
        });
    }

    #[test]
    fn m1_chunked_equals_the_slices() {
        let domains = [(2, 7), (4, 5), (7, 7), (12, 5), (13, 7), (16, 5), (18, 7)];
        on_a_card("m1_chunked", |card| chunked_equals_the_slices(card, &domains));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn chunked_equals_the_slices_for_any_shape(
        log_size in 2u32..12, log_chunks in 1u32..7, seed in any::<u64>(), five in any::<bool>(),
    ) {
        let d = Domain::new(1 << log_size, if five { 5 } else { 7 }).unwrap();
        let abc = [0, 1, 2].map(|i| values(d.size(), seed ^ i));
        let chunks = 1 << log_chunks.min(log_size / 2);
        out_of_core(&open(), &d, chunks, &abc, (seed % 3 == 0).then_some(64));
    }
}

#[test]
fn resident_tables_serve_turn_after_turn() {
    let host = open();
    let d = Domain::new(1 << 8, 7).unwrap();
    let plan = Plan::chunked(d.clone(), 4).unwrap();
    let mut tables = None;
    for id in 0..3 {
        let mut worker = Worker::new(id);
        let turn = host.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let twiddles = match &mut tables {
            Some(twiddles) => twiddles,
            none => none.insert(Twiddles::resident(&lanes.compute, &host, plan.clone()).unwrap()),
        };
        let x = values(d.size(), u64::from(id));
        let mut buf = up(&lanes.upload, "x", &x);
        let t = Transform::forward().to(Order::Reversed);
        twiddles.transform(&lanes.compute, &mut buf, &t).unwrap();
        let mut y = x;
        host::transform(&d, &mut y, &t).unwrap();
        assert!(down(&turn, &lanes.download, &mut buf) == y);
        drop((buf, lanes));
        turn.release().unwrap();
        let held = tables.as_ref().unwrap().bytes();
        assert_eq!(held, plan.footprint(&host).tables);
        assert_eq!(host.ledger().level().used(), held);
    }
    drop(tables);
    assert_eq!(host.ledger().level().resident, Bytes::ZERO);
}

/// Row L5's figures, and the bound on the tables.
#[test]
fn footprint_is_known_before_anything_runs() {
    let host = open();
    let d = Domain::new(1 << 27, 7).unwrap();
    let whole = Plan::whole(d.clone()).footprint(&host);
    assert_eq!(whole.polynomial.get(), 4_294_967_296);
    assert_eq!(whole.slots, Bytes::ZERO);
    for (chunks, slots) in [(2, 4096), (4, 2048), (8, 1024), (16, 512), (64, 128)] {
        let f = Plan::chunked(d.clone(), chunks).unwrap().footprint(&host);
        assert_eq!(f.slots, Bytes::mib(slots));
        assert!(f.tables >= whole.tables && f.tables <= Bytes::mib(32), "{}", f.tables);
    }
    for chunks in [0, 1, 3, 12, 128, 1 << 20] {
        let plan = Plan::chunked(d.clone(), chunks);
        assert!(matches!(plan, Err(Error::Chunks { chunks: c, .. }) if c == chunks), "{plan:?}");
    }
    let small = Domain::new(1 << 5, 7).unwrap();
    assert!(Plan::chunked(small.clone(), 4).is_ok());
    assert!(matches!(Plan::chunked(small, 8), Err(Error::Chunks { chunks: 8, size: 32 })));
}

#[test]
fn wrong_buffers_are_typed_errors() {
    let host = open();
    let mut worker = Worker::new(0);
    let d = Domain::new(16, 7).unwrap();
    let turn = host.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let mut twiddles = Twiddles::for_turn(&lanes.compute, Plan::whole(d.clone())).unwrap();
    let mut short = up(&lanes.upload, "short", &values(8, 1));
    let mut right = up(&lanes.upload, "right", &values(16, 1));
    let t = Transform::forward();
    assert!(matches!(
        twiddles.transform(&lanes.compute, &mut short, &t),
        Err(Error::Length { expected: 16, got: 8 })
    ));
    assert!(matches!(
        twiddles.combine(&lanes.compute, &mut right, &mut short, Combine::Mul),
        Err(Error::Length { expected: 16, got: 8 })
    ));
    let zero = t.on_coset(Scalar::ZERO);
    assert!(matches!(twiddles.transform(&lanes.compute, &mut right, &zero), Err(Error::ZeroShift)));
    assert!(matches!(Chunked::open(&lanes, &twiddles), Err(Error::Whole)));
    // Slots of one plan with the tables of another.
    let four = Plan::chunked(d.clone(), 4).unwrap();
    let two = Plan::chunked(d, 2).unwrap();
    let slots = {
        let twiddles = Twiddles::for_turn(&lanes.compute, four).unwrap();
        Chunked::open(&lanes, &twiddles).unwrap()
    };
    let mut twiddles = Twiddles::for_turn(&lanes.compute, two).unwrap();
    let mut x = values(16, 2);
    let outcome = slots.coset_evaluations(
        &lanes,
        &mut twiddles,
        Outside::locked(&mut x),
        Scalar::from(7),
        &mut right,
        Combine::Mul,
    );
    assert!(matches!(outcome, Err(Error::Chunks { chunks: 4, size: 16 })), "{outcome:?}");
}

/// Keeps the spans.
#[derive(Default)]
struct Spans(Mutex<Vec<prestage_vram::Span>>);

impl Sink for Spans {
    fn emit(&self, event: Event) {
        if let Event::Span(span) = event {
            self.0.lock().unwrap().push(span);
        }
    }
}

/// The host blocks for no chunk of a pass but the one before the last: uploads run beside the computation.
#[test]
fn chunks_are_uploaded_while_others_are_computed() {
    let spans = Arc::new(Spans::default());
    let ledger = LedgerConfig { sink: spans.clone(), ..LedgerConfig::default() };
    let host = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
    let d = Domain::new(1 << 12, 7).unwrap();
    let abc = [7, 8, 9].map(|seed| values(d.size(), seed));
    out_of_core(&host, &d, 8, &abc, None);
    let spans = spans.0.lock().unwrap();
    let count =
        |track: Track, name: &str| spans.iter().filter(|s| s.track == track && s.name == name).count();
    // Two polynomials: each in two passes of 8 x 8 pieces and one of 8 rows.
    assert_eq!(count(Track::Compute, "ntt columns in"), 16);
    assert_eq!(count(Track::Compute, "ntt row"), 16);
    assert_eq!(count(Track::Compute, "ntt columns out"), 16);
    assert_eq!(count(Track::Compute, "combine chunk"), 16);
    let moved = |track: Track| -> Bytes {
        let copies = spans.iter().filter(|s| s.track == track && s.name.contains("slot"));
        copies.map(|s| s.bytes).sum()
    };
    assert_eq!(moved(Track::Upload), Bytes::of::<Scalar>(2 * 3 * d.size()));
    assert_eq!(moved(Track::Download), Bytes::of::<Scalar>(2 * 2 * d.size()));
}

/// F1 at this level: whichever operation fails, the outcome is an error and nothing stays behind.
#[test]
fn a_failure_at_any_operation_leaves_nothing_behind() {
    let d = Domain::new(1 << 6, 7).unwrap();
    let mut failures = 0;
    for op in [Op::Allocate, Op::Copy, Op::Launch, Op::Mark] {
        for nth in 0..40 {
            // Counts down once armed.
            let left = Arc::new(AtomicI64::new(i64::MAX));
            let counter = left.clone();
            let faults = Arc::new(move |o: Op| o == op && counter.fetch_sub(1, Ordering::SeqCst) == 0);
            let ledger = LedgerConfig { faults: Some(faults), ..LedgerConfig::default() };
            let host = Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap();
            let mut x = values(d.size(), 1);
            let mut worker = Worker::new(0);
            let turn = host.turn(&mut worker).unwrap();
            let lanes = Lanes::open(&turn).unwrap();
            let mut a = up(&lanes.upload, "a", &values(d.size(), 2));
            left.store(nth, Ordering::SeqCst);
            let outcome = (|| {
                let mut twiddles = Twiddles::for_turn(&lanes.compute, Plan::chunked(d.clone(), 4)?)?;
                let slots = Chunked::open(&lanes, &twiddles)?;
                let (shift, how) = (Scalar::from(7), Combine::Mul);
                slots
                    .coset_evaluations(&lanes, &mut twiddles, Outside::locked(&mut x), shift, &mut a, how)
                    .map(drop)
            })();
            // A device that refuses an allocation is synchronised and asked again, so that one goes well.
            assert_eq!(outcome.is_err(), op != Op::Allocate && left.load(Ordering::SeqCst) < 0, "{op} {nth}");
            failures += usize::from(outcome.is_err());
            drop((a, lanes));
            let _ = turn.release();
            assert_eq!(host.ledger().level().used(), Bytes::ZERO, "{op} {nth}");
        }
    }
    assert!(failures > 60, "{failures}");
}
