//! What every device that copies must do, as tests that any such device can be put through.
//!
//! Describe the device by a [`Subject`] and call [`conformance!`](crate::conformance!) in a test file: each check
//! becomes a test of its own. A check that fails panics and says what the contract of [`Transfer`] asks for.

// These functions are tests: they end by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prestage_vram::conformance::Subject;
#[doc(no_inline)]
pub use prestage_vram::conformance::run;
use prestage_vram::{Bytes, Device, Event, LedgerConfig, Nanos, Op, Sink, Track, Worker};

use crate::{Error, Lane, Lanes, Pinned, Ring, Transfer, page_size, registered};

/// Makes one test of each check for a [`Subject`](prestage_vram::conformance::Subject) whose device copies.
///
/// ```
/// # use prestage_vram::conformance::Subject;
/// # use prestage_vram::{Bytes, Host, HostConfig, HostQueue, LedgerConfig, Nanos, Op};
/// struct OnHost;
///
/// impl Subject for OnHost {
///     type Device = Host;
///     // As for `prestage_vram::conformance!`.
/// #   fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Host {
/// #       Host::open(HostConfig { capacity: usable, ledger }).unwrap()
/// #   }
/// #   fn busy(&self, host: &Host, queue: &HostQueue, time: Nanos) {
/// #       let job = move || std::thread::sleep(std::time::Duration::from_nanos(time.get()));
/// #       // SAFETY: the job touches no memory.
/// #       unsafe { host.submit(queue, Op::Launch, "busy", Bytes::ZERO, job) }.unwrap();
/// #   }
/// }
///
/// prestage_transfer::conformance!(OnHost);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:expr) => {
        $crate::conformance!(@each $subject,
            every_kind_of_copy_moves_the_data, an_upload_returns_before_its_copy_has_ended,
            a_buffer_is_ready_after_its_own_copy, spans_are_timed_where_the_copy_runs,
            locked_memory_is_counted_in_pages, what_cannot_be_locked_is_copied_all_the_same,
            every_fault_leaves_nothing, a_poisoned_device_lets_everything_go,
        );
    };
    (@each $subject:expr, $($check:ident),* $(,)?) => {
        $(#[test]
        fn $check() {
            $crate::conformance::run(&$subject, stringify!($check), $crate::conformance::$check);
        })*
    };
}

/// What the checks' devices may use.
const USABLE: Bytes = Bytes::mib(1024);

/// Long enough that a busy machine does not take it for nothing.
const A_WHILE: Nanos = Nanos::new(100_000_000);

/// 0, 3 … 3(`n` − 1).
fn data(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| 3 * i).collect()
}

/// All elements of a buffer.
fn read<D: Transfer>(lane: &Lane<'_, D>, buf: &mut prestage_vram::Buf<'_, D, u64>) -> Vec<u64> {
    let len = buf.len();
    let slot = Pinned::filled(lane.device(), len, 0).unwrap();
    lane.download(buf, 0..len, slot).unwrap().wait().unwrap().to_vec()
}

/// Nothing is held of the device or of the host.
fn assert_empty<D: Transfer>(device: &D, when: &str) {
    assert!(
        device.ledger().held().is_empty(),
        "device memory is still held {when}: {:?}",
        device.ledger().held()
    );
    let locked = device.ledger().locked().bytes();
    assert_eq!(locked, Bytes::ZERO, "host memory is still locked {when}");
}

/// Uploads a pinned, a registered and two streamed copies of the same data, one of them as a device's own work does it, and
/// downloads each in another way.
fn everything<D: Transfer>(device: &D, n: usize) -> Result<Vec<u64>, Error> {
    let pinned = Pinned::from_slice(device, &data(n))?;
    let mut ring = Ring::open(device, 2, n / 5, 0u64)?;
    let mut memory = data(n);
    let page = Bytes::of::<u8>(page_size());
    registered(device, &mut memory, page, |memory| {
        let mut worker = Worker::new(0);
        let turn = device.turn(&mut worker)?;
        let Lanes { compute: _, upload, download } = Lanes::open(&turn)?;
        let (mut a, flight) = upload.upload(pinned, upload.alloc("a", n)?)?;
        let mut b = upload.scope(|s| s.upload(&memory, upload.alloc("b", n)?))?;
        let mut c = ring.upload(&upload, &data(n), upload.alloc("c", n)?)?;
        let mut d = upload.alloc("d", n)?;
        d.claim(upload.queue())?;
        // SAFETY: the whole of a block that was just claimed.
        unsafe { ring.stream(upload.queue(), turn.worker(), "d", &data(n), d.block(), 0) }?;
        let arrived = upload.record()?;
        // SAFETY: the copies just enqueued write every element, and the mark comes after the last.
        let mut d = unsafe {
            d.ready_at(arrived.raw().clone());
            d.assume_init()
        };
        let mut all = vec![0; 4 * n];
        let (first, rest) = all.split_at_mut(n);
        let (second, rest) = rest.split_at_mut(n);
        let (third, fourth) = rest.split_at_mut(n);
        ring.download(&download, &mut a, 0..n, first)?;
        download.scope(|s| s.download(&mut b, 0..n, second))?;
        let slot = Pinned::filled(device, n, 0u64)?;
        third.copy_from_slice(&download.download(&mut c, 0..n, slot)?.wait()?);
        ring.download(&download, &mut d, 0..n, fourth)?;
        flight.wait()?;
        drop((a, b, c, d));
        turn.release()?;
        Ok(all)
    })?
}

/// Pinned, registered and plain memory, through lanes, scopes and rings: the same data arrives.
pub fn every_kind_of_copy_moves_the_data<S: Subject<Device: Transfer>>(subject: &S) {
    let device = subject.open(USABLE, LedgerConfig::default());
    let n = 5 * page_size() / 8 + 3;
    assert_eq!(everything(&device, n).unwrap(), data(n).repeat(4));
    assert_empty(&device, "after its turn");

    // Into and out of the middle.
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let (mut buf, _whole) = lane.upload(vec![7u64; n], lane.alloc("a", n).unwrap()).unwrap();
    let _part = lane.upload_at(data(100), &mut buf, 51).unwrap();
    let slot = Pinned::filled(&device, 102, 0).unwrap();
    let part = lane.download(&mut buf, 50..152, slot).unwrap().wait().unwrap();
    assert_eq!((part[0], &part[1..101], part[101]), (7, &data(100)[..], 7));
}

/// A pinned upload behind other work is enqueued without waiting for it.
pub fn an_upload_returns_before_its_copy_has_ended<S: Subject<Device: Transfer>>(subject: &S) {
    let device = subject.open(USABLE, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let source = Pinned::from_slice(&device, &data(1000)).unwrap();
    let place = lane.alloc("a", 1000).unwrap();
    subject.busy(&device, lane.queue(), A_WHILE);
    let (mut buf, flight) = lane.upload(source, place).unwrap();
    assert!(!flight.passed().unwrap(), "the call that enqueues an upload waits for it");
    let source = flight.wait().unwrap();
    assert_eq!(source[..], data(1000));
    assert_eq!(read(&lane, &mut buf), data(1000));
}

/// A lane that claims an uploaded buffer waits for that upload, not for what its lane was given afterwards.
pub fn a_buffer_is_ready_after_its_own_copy<S: Subject<Device: Transfer>>(subject: &S) {
    let device = subject.open(USABLE, LedgerConfig::default());
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let lanes = Lanes::open(&turn).unwrap();
    let source = Arc::new(Pinned::from_slice(&device, &data(1000)).unwrap());
    let [a, b] = ["a", "b"].map(|label| lanes.upload.alloc::<u64>(label, 1000).unwrap());
    let slot = Pinned::filled(&device, 1000, 0).unwrap();
    subject.busy(&device, lanes.upload.queue(), A_WHILE);
    let (mut a, _a) = lanes.upload.upload(Arc::clone(&source), a).unwrap();
    subject.busy(&device, lanes.upload.queue(), Nanos::new(5 * A_WHILE.get()));
    let (_b, flight) = lanes.upload.upload(source, b).unwrap();
    let back = lanes.download.download(&mut a, 0..1000, slot).unwrap().wait().unwrap();
    assert_eq!(back[..], data(1000), "a buffer was read before its upload");
    assert!(!flight.passed().unwrap(), "a buffer is ready only after work that came later");
}

/// The span of a copy lies between the end of what came before and the end of the wait for it, on its lane's track,
/// and tells its bytes.
pub fn spans_are_timed_where_the_copy_runs<S: Subject<Device: Transfer>>(subject: &S) {
    #[derive(Default)]
    struct Recorder(Mutex<Vec<Event>>);
    impl Sink for Recorder {
        fn emit(&self, event: Event) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
    }

    let recorder = Arc::new(Recorder::default());
    let sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    let device = subject.open(USABLE, LedgerConfig { sink, ..LedgerConfig::default() });
    let n = 1 << 17;
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let source = Pinned::from_slice(&device, &data(n)).unwrap();
    let place = lane.alloc("a", n).unwrap();
    let start = device.now();
    subject.busy(&device, lane.queue(), A_WHILE);
    let (buf, flight) = lane.upload(source, place).unwrap();
    flight.wait().unwrap();
    let end = device.now();
    drop(buf);
    drop(lane);
    turn.release().unwrap();
    let events = recorder.0.lock().unwrap_or_else(PoisonError::into_inner);
    let span = events
        .iter()
        .find_map(|e| if let Event::Span(s) = e { (s.name == "upload a").then_some(s) } else { None })
        .expect("a copy is recorded as a span called after its buffer");
    assert_eq!(span.track, Track::Upload);
    assert!(span.bytes >= Bytes::of::<u64>(n), "{} of {n} elements", span.bytes);
    assert!(
        span.start >= start + A_WHILE,
        "the span begins before the copy could: {span:?}, enqueued {start}"
    );
    assert!(span.start < span.end && span.end <= end, "the span ends after the wait for it: {span:?}, {end}");
}

/// Pinned and registered memory is counted in whole pages while it is locked, and refused past the budget.
pub fn locked_memory_is_counted_in_pages<S: Subject<Device: Transfer>>(subject: &S) {
    let page = page_size();
    let pages = |n| Bytes::of::<u8>(n * page);
    let device = subject.open(USABLE, LedgerConfig { pinned: pages(4), ..LedgerConfig::default() });
    let account = device.ledger().locked();
    let pinned = Pinned::filled(&device, page + 1, 1u8).unwrap();
    assert_eq!((pinned.locked(), account.bytes()), (pages(2), pages(2)));
    assert!(Pinned::filled(&device, 2 * page + 1, 1u8).unwrap_err().is_unpinnable());
    assert_eq!(account.bytes(), pages(2), "a refusal leaves nothing behind");
    let mut memory = vec![0u8; 1];
    registered(&device, &mut memory, pages(1), |memory| {
        assert_eq!((memory.refusal().is_some(), memory.locked()), (false, pages(1)));
        assert_eq!(account.bytes(), pages(3));
    })
    .unwrap();
    drop(pinned);
    assert_empty(&device, "after all was dropped");
}

/// Memory that the device refuses to lock is copied as plain memory.
pub fn what_cannot_be_locked_is_copied_all_the_same<S: Subject<Device: Transfer>>(subject: &S) {
    let faults = Some(Arc::new(|op| op == Op::Register) as Arc<dyn Fn(Op) -> bool + Send + Sync>);
    let device = subject.open(USABLE, LedgerConfig { faults, ..LedgerConfig::default() });
    let n = 3 * page_size();
    let (refusal, vector) = Pinned::from_vec(&device, data(n), Bytes::mib(1)).unwrap_err();
    assert!(refusal.is_unpinnable());
    let mut memory = vector;
    registered(&device, &mut memory, Bytes::mib(1), |memory| {
        assert!(memory.refusal().is_some_and(Error::is_unpinnable));
        let mut worker = Worker::new(0);
        let turn = device.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let mut back = vec![0; n];
        let mut buf = lane.scope(|s| s.upload(&memory, lane.alloc("a", n)?)).unwrap();
        lane.scope(|s| s.download(&mut buf, 0..n, &mut back)).unwrap();
        assert_eq!(back, data(n));
    })
    .unwrap();
}

/// Row F1: the n-th allocation, copy, registration, mark or lane fails, for every n. A typed error or the right data;
/// nothing stays held or locked; the next run succeeds.
pub fn every_fault_leaves_nothing<S: Subject<Device: Transfer>>(subject: &S) {
    let n = 5 * page_size() / 8;
    let expected = data(n).repeat(4);
    for op in [Op::Allocate, Op::Copy, Op::Register, Op::Mark, Op::Lane] {
        let mut failures = 0;
        for nth in 0.. {
            // Two in a row, since a refused allocation is tried again.
            let left = Arc::new(AtomicUsize::new(nth + 2));
            let count = Arc::clone(&left);
            let fails = move |asked| {
                let next = |left: usize| left.checked_sub(1);
                asked == op
                    && matches!(count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next), Ok(1 | 2))
            };
            let faults = Some(Arc::new(fails) as Arc<dyn Fn(Op) -> bool + Send + Sync>);
            let device = subject.open(USABLE, LedgerConfig { faults, ..LedgerConfig::default() });
            let outcome = everything(&device, n);
            let injected = left.swap(0, Ordering::SeqCst) < 2;
            assert_empty(&device, &format!("after {op} {nth} failed"));
            match outcome {
                Ok(all) => assert_eq!(all, expected, "{op} {nth} failed"),
                Err(error) => {
                    assert!(matches!(error, Error::Device(_)), "{op} {nth} failed: {error}");
                    failures += 1;
                }
            }
            assert_eq!(everything(&device, n).unwrap(), expected, "after {op} {nth} had failed");
            if !injected {
                break;
            }
        }
        assert!(failures > 0, "{op} is never asked for: see `Ledger::attempt`");
    }
}

/// Whatever is in flight or locked can be dropped on a device that has failed for good.
pub fn a_poisoned_device_lets_everything_go<S: Subject<Device: Transfer>>(subject: &S) {
    let device = subject.open(USABLE, LedgerConfig::default());
    let mut ring = Ring::open(&device, 2, 100, 0u64).unwrap();
    let adopted = Pinned::from_vec(&device, data(1000), Bytes::mib(1)).unwrap();
    let source = Arc::new(Pinned::from_slice(&device, &data(1000)).unwrap());
    let slot = Pinned::filled(&device, 1000, 0).unwrap();
    let mut memory = data(1000);
    registered(&device, &mut memory, Bytes::mib(1), |_| {
        let mut worker = Worker::new(0);
        let turn = device.turn(&mut worker).unwrap();
        let lane = Lane::open(&turn, Track::Upload).unwrap();
        let (mut buf, up) = lane.upload(Arc::clone(&source), lane.alloc("a", 1000).unwrap()).unwrap();
        let down = lane.download(&mut buf, 0..1000, slot).unwrap();
        ring.upload_at(&lane, &data(200), &mut buf, 0).unwrap();
        device.ledger().poison("for good");
        let refused = lane.upload_at::<u64, _, _>(Arc::clone(&source), &mut buf, 0);
        assert!(matches!(refused, Err(Error::Device(prestage_vram::Error::Poisoned { .. }))));
        drop((up, down, refused, buf));
    })
    .unwrap();
    drop((ring, adopted, source));
    assert_empty(&device, "on a poisoned device");
}
