//! Copies on a card. Without a driver these tests say that they were skipped; with `PRESTAGE_REQUIRE_CUDA` set they fail then.
//! The binary runs on a machine without Rust.
#![cfg(feature = "cuda")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

mod common;

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Recorder, data};
use prestage_transfer::{Lane, Lanes, Pinned, Ring, Shared, registered};
use prestage_vram::conformance::{OnCuda, Subject, run};
use prestage_vram::cuda::{Cuda, CudaConfig};
use prestage_vram::{Buf, Bytes, Class, Device, LedgerConfig, Nanos, Track, Work, Worker};
use rayon::prelude::*;

mod contract {
    use prestage_vram::conformance::OnCuda;

    prestage_transfer::conformance!(OnCuda);
}

/// Runs a test on the card, or says why not.
fn on_card(name: &str, test: impl FnOnce()) {
    run(&OnCuda, name, |_| test());
}

fn recorded() -> (Cuda, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let ledger = LedgerConfig { sink: recorder.clone(), ..LedgerConfig::default() };
    (Cuda::open(CudaConfig { ledger, ..CudaConfig::default() }).unwrap(), recorder)
}

const A_WHILE: Nanos = Nanos::new(100_000_000);

#[allow(clippy::cast_precision_loss)]
fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / time.as_nanos() as f64
}

/// The best rate of some runs, in bytes per nanosecond.
fn best(bytes: usize, mut run: impl FnMut()) -> f64 {
    let mut rates = [0.0; 5];
    for rate_of_run in &mut rates {
        let start = Instant::now();
        run();
        *rate_of_run = rate(bytes, start.elapsed());
    }
    rates.into_iter().fold(0.0, f64::max)
}

#[test]
fn p6_work_on_each_polynomial_waits_for_its_own_mark_only() {
    on_card("p6", || {
        let (card, recorder) = recorded();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let n = 1 << 20;
        let source = Arc::new(Pinned::from_slice(&card, &data(n)).unwrap());
        let slots = [0; 3].map(|_| Pinned::filled(&card, n, 0u64).unwrap());
        let bufs = ["a", "b", "c"].map(|label| lanes.upload.alloc::<u64>(label, n).unwrap());
        OnCuda.busy(&card, lanes.upload.queue(), Nanos::new(1));
        turn.drain().unwrap();

        let start = Instant::now();
        let mut uploads = bufs.map(|buf| {
            let upload = lanes.upload.upload(Arc::clone(&source), buf).unwrap();
            OnCuda.busy(&card, lanes.upload.queue(), A_WHILE);
            upload
        });
        assert!(start.elapsed() < Duration::from_millis(90), "the host blocked between three uploads");
        let mut results = Vec::new();
        for ((buf, _), slot) in uploads.iter_mut().zip(slots) {
            results.push(lanes.download.download(buf, 0..n, slot).unwrap());
        }
        // Kept to the end: freeing page-locked memory waits for the device.
        let (slots, ends): (Vec<_>, Vec<_>) =
            results.into_iter().map(|result| (result.wait().unwrap(), start.elapsed())).unzip();
        assert!(ends[0] < Duration::from_millis(90), "a waited for more than its own copy: {ends:?}");
        assert!(ends[2] >= Duration::from_millis(200), "c was used before it was there: {ends:?}");
        assert!(slots.iter().all(|slot| slot[..] == data(n)));
        drop(uploads);
        drop(lanes);
        turn.release().unwrap();
        let spans = recorder.spans(Track::Upload);
        let of = |name: &str| spans.iter().find(|s| s.name == name).unwrap().clone();
        assert!(of("upload a").end <= of("upload b").start && of("upload b").end <= of("upload c").start);
    });
}

/// A source that is dropped in flight goes after its copy; so does the memory of a ring and of a download.
#[test]
fn b076_what_is_dropped_in_flight_waits_for_its_copy() {
    on_card("b076", || {
        let (card, _) = recorded();
        let mut worker = Worker::new(0);
        let n = 1 << 20;
        let turn = card.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        for kind in 0..3 {
            let place = lane.alloc::<u64>("a", n).unwrap();
            let pinned = Pinned::from_slice(&card, &data(n)).unwrap();
            let plain = data(n);
            let slot = Pinned::filled(&card, n, 0u64).unwrap();
            OnCuda.busy(&card, lane.queue(), A_WHILE);
            let start = Instant::now();
            let mut buf = match kind {
                0 => lane.upload(pinned, place).unwrap().0,
                1 => lane.upload(plain, place).unwrap().0,
                _ => {
                    let (mut buf, flight) = lane.upload(pinned, place).unwrap();
                    drop(lane.download(&mut buf, 0..n, slot).unwrap());
                    drop(flight);
                    buf
                }
            };
            assert!(start.elapsed() > Duration::from_millis(90), "dropped before the copy had ended");
            let slot = Pinned::filled(&card, n, 0u64).unwrap();
            assert_eq!(lane.download(&mut buf, 0..n, slot).unwrap().wait().unwrap()[..], data(n));
        }
        assert_eq!(card.ledger().locked().bytes(), Bytes::ZERO);
    });
}

/// Reported copy times are the device's: no shorter than the link allows, no longer than the host saw.
#[test]
fn t1_pinned_copies_take_the_time_of_the_link() {
    on_card("t1", || {
        let (card, recorder) = recorded();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let n = 1 << 27;
        let bytes = 8 * n;
        let source = Arc::new(Pinned::filled(&card, n, 7u64).unwrap());
        let mut slot = Some(Pinned::filled(&card, n, 0u64).unwrap());
        let (mut buf, first) =
            lanes.upload.upload(Arc::clone(&source), lanes.upload.alloc("a", n).unwrap()).unwrap();
        first.wait().unwrap();
        let up = best(bytes, || drop(lanes.upload.upload_at(Arc::clone(&source), &mut buf, 0).unwrap()));
        let down = best(bytes, || {
            slot =
                Some(lanes.download.download(&mut buf, 0..n, slot.take().unwrap()).unwrap().wait().unwrap());
        });
        assert!(slot.unwrap().iter().all(|&x| x == 7));
        drop(buf);
        drop(lanes);
        turn.release().unwrap();
        for (track, seen) in [(Track::Upload, up), (Track::Download, down)] {
            let spans = recorder.spans(track);
            let told = spans.iter().map(|s| rate(bytes, Duration::from_nanos(s.end.since(s.start).get())));
            let told = told.fold(0.0, f64::max);
            println!(
                "pinned {} of 1 GiB: {seen:.1} GB/s by the host's clock, {told:.1} by the device's",
                track.name()
            );
            // No link of today is faster than 16 lanes of PCIe 6, or than memory that the card shares with the host.
            assert!(told >= seen && told <= 1.05 * seen, "the two clocks disagree");
            assert!(spans.iter().all(|s| s.bytes == Bytes::new(bytes as u64)));
        }
    });
}

/// Ordinary memory through a ring moves at the speed of pinned memory, or as fast as the threads can copy at all.
#[test]
fn a_ring_reaches_the_speed_of_the_link() {
    on_card("ring", || {
        let memory = data(1 << 27);
        let cores = std::thread::available_parallelism().unwrap().get();
        for threads in [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads <= cores) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let Rates { link, host, ring } = pool.install(|| rates(threads, &memory));
            assert!(
                ring >= 0.7 * link.min(host),
                "{ring:.1} GB/s of {link:.1} by the link, {host:.1} by the threads"
            );
        }
    });
}

/// In bytes per nanosecond, at best.
struct Rates {
    /// Pinned memory to the card.
    link: f64,
    /// Ordinary memory to ordinary memory.
    host: f64,
    /// Ordinary memory to the card, through a ring.
    ring: f64,
}

fn rates(threads: usize, memory: &[u64]) -> Rates {
    let (card, _) = recorded();
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker).unwrap();
    let (lane, down) =
        (Lane::open(&turn, Track::Upload).unwrap(), Lane::open(&turn, Track::Download).unwrap());
    let (n, bytes) = (memory.len(), size_of_val(memory));
    let mut back = vec![0u64; n];
    let pinned = Arc::new(Pinned::from_slice(&card, memory).unwrap());
    let (mut buf, first) = lane.upload(Arc::clone(&pinned), lane.alloc("a", n).unwrap()).unwrap();
    first.wait().unwrap();
    let link = best(bytes, || drop(lane.upload_at(Arc::clone(&pinned), &mut buf, 0).unwrap()));
    if threads == 1 {
        let plain = best(bytes, || lane.scope(|s| s.upload_at(memory, &mut buf, 0)).unwrap());
        println!("upload of 1 GiB: pinned {link:.1} GB/s, pageable {plain:.1}");
    }
    let piece = 1 << 15;
    let host = best(bytes, || {
        back.par_chunks_mut(piece)
            .zip(memory.par_chunks(piece))
            .for_each(|(to, from)| to.copy_from_slice(from));
    });
    println!("host to host, {threads} threads: {host:.1} GB/s");
    let mut ring_at_best = 0.0f64;
    for (slots, slot) in [(2, 16 << 20), (4, 4 << 20), (4, 16 << 20), (4, 32 << 20)] {
        let mut ring = Ring::open(&card, slots, slot / 8, 0u64).unwrap();
        let up = best(bytes, || ring.upload_at(&lane, memory, &mut buf, 0).unwrap().wait().unwrap());
        let out = best(bytes, || ring.download(&down, &mut buf, 0..n, &mut back).unwrap());
        println!("ring of {slots} × {} MiB, {threads} threads: {up:.1} GB/s up, {out:.1} down", slot >> 20);
        ring_at_best = ring_at_best.max(up);
    }
    assert!(back == memory, "what came back is not what was sent");
    Rates { link, host, ring: ring_at_best }
}

/// What locking costs, for the choice between registering, pinning and a ring.
#[test]
fn locking_is_measured() {
    on_card("locking", || {
        let (card, _) = recorded();
        let n = 1 << 27;
        for (what, touched) in [("touched", true), ("not touched", false)] {
            let mut memory: Vec<MaybeUninit<u64>> = Vec::with_capacity(n);
            // SAFETY: uninitialised elements need no initialisation.
            unsafe { memory.set_len(n) };
            if touched {
                memory.fill(MaybeUninit::new(1));
            }
            let start = Instant::now();
            let (locked, locking) = registered(&card, &mut memory, Bytes::gib(1), |memory| {
                assert!(memory.refusal().is_none(), "{:?}", memory.refusal());
                (memory.locked(), start.elapsed())
            })
            .unwrap();
            assert!(locked >= Bytes::gib(1));
            println!(
                "registering 1 GiB, {what}: {locking:.1?}, and unregistering {:.1?}",
                start.elapsed() - locking
            );
        }
        let start = Instant::now();
        let pinned = Pinned::<u64>::uninit(&card, n).unwrap();
        let took = start.elapsed();
        drop(pinned);
        println!("pinning 1 GiB: {took:.1?}, and freeing it {:.1?}", start.elapsed() - took);
        assert_eq!(card.ledger().locked().bytes(), Bytes::ZERO);
    });
}

/// What memory costs by class and size, the first time and when the pool keeps it.
#[test]
fn allocating_is_measured() {
    on_card("allocating", || {
        let (card, _) = recorded();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Compute).unwrap();
        for gib in [1usize, 4, 8] {
            for class in [Class::Direct, Class::Pooled] {
                let start = Instant::now();
                let buf: Buf<'_, _, MaybeUninit<u8>> =
                    turn.alloc("a", gib << 30, class, lane.queue()).unwrap();
                let taken = start.elapsed();
                drop(buf);
                turn.drain().unwrap();
                println!("{gib} GiB {class:?}: {taken:.2?} to take, {:.2?} to free", start.elapsed() - taken);
            }
        }
    });
}

/// Which calls wait for work that runs on the card: what a worker that stages must not do while another computes.
#[test]
fn waiting_for_the_device_is_measured() {
    on_card("waiting", || {
        let (card, _) = recorded();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let (busy, idle) =
            (Lane::open(&turn, Track::Compute).unwrap(), Lane::open(&turn, Track::Upload).unwrap());
        let n = 1 << 20;
        let mut plain = data(n);
        let mut pinned = None;
        let mut direct = None;
        let mut pooled = None;
        let measure = |what: &str, call: &mut dyn FnMut()| {
            turn.drain().unwrap();
            OnCuda.busy(&card, busy.queue(), A_WHILE);
            std::thread::sleep(Duration::from_millis(1));
            let start = Instant::now();
            call();
            let took = start.elapsed();
            let waited =
                if took > Duration::from_millis(90) { "waits for the device" } else { "does not wait" };
            println!("{what}: {took:.1?}, {waited}");
        };
        measure("nothing", &mut || ());
        measure("pin 8 MiB", &mut || pinned = Some(Pinned::<u64>::uninit(&card, n).unwrap()));
        measure("free pinned", &mut || drop(pinned.take()));
        measure("register and unregister 8 MiB", &mut || {
            registered(&card, &mut plain, Bytes::gib(1), |memory| assert!(memory.refusal().is_none()))
                .unwrap();
        });
        measure("allocate directly", &mut || {
            direct = Some(turn.alloc::<u64>("direct", 32 * n, Class::Direct, idle.queue()).unwrap());
        });
        measure("free directly", &mut || drop(direct.take()));
        measure("allocate from the pool", &mut || {
            pooled = Some(turn.alloc::<u64>("pooled", 32 * n, Class::Pooled, idle.queue()).unwrap());
        });
        measure("free to the pool", &mut || drop(pooled.take()));
        measure("drain another lane", &mut || idle.drain().unwrap());
        measure("open a lane", &mut || drop(Lane::open(&turn, Track::Download).unwrap()));
        measure("read the card", &mut || assert!(card.reading().is_ok()));
        measure("trim the pool", &mut || card.trim().unwrap());
        measure("open the card again", &mut || drop(Cuda::open(CudaConfig::default()).unwrap()));
    });
}

/// A card's own copies, as sums stream their bases, may span memory that was locked piece by piece. The driver refuses a copy
/// that does.
#[test]
fn copies_span_pieces_of_locked_memory() {
    on_card("pieces", || {
        let card = Cuda::open(CudaConfig::default()).unwrap();
        let n = 100_000;
        let source: Arc<[u64]> = data(n).into();
        let locked = Shared::lock(&card, Arc::clone(&source), Bytes::kib(64)).unwrap();
        assert!(locked.locked() >= Bytes::of::<u64>(n));
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut buf = lane.alloc::<u64>("points", n).unwrap();
        buf.claim(lane.queue()).unwrap();
        let (bytes, at) = (n * size_of::<u64>(), buf.block().as_ptr::<u8>());
        let mut back = vec![0u64; n];
        let (from, to) = (source.as_ptr().cast::<u8>(), back.as_mut_ptr().cast::<u8>());
        let work = Work::copy("pieces", Bytes::of::<u64>(n));
        // SAFETY: the buffer is claimed and as long as both; host memory stays until the queue has been drained.
        let copied = unsafe {
            card.enqueue(lane.queue(), work, |stream| {
                // Begins and ends inside of pieces.
                stream.upload(from.wrapping_add(8), at, bytes - 16)?;
                stream.download(at, to.wrapping_add(8), bytes - 16)
            })
        };
        lane.drain().unwrap();
        copied.unwrap();
        assert_eq!(back[1..n - 1], source[1..n - 1]);
        drop((buf, lane));
        turn.release().unwrap();
    });
}
