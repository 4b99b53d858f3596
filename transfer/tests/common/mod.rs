//! What the tests of this crate share: a host that records, gates that hold a lane back, a device that checks the
//! rules of a driver.
#![allow(dead_code)] // Each test binary uses a part of it.

pub mod probe;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prestage_transfer::{Lane, Pinned, Source, Transfer};
use prestage_vram::{Buf, Bytes, Event, Host, HostConfig, LedgerConfig, Op, Sink, Span, Track};

/// Keeps every event.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<Event>>);

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Recorder {
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub fn spans(&self, track: Track) -> Vec<Span> {
        let events = self.events().into_iter();
        events
            .filter_map(|e| if let Event::Span(s) = e { (s.track == track).then_some(s) } else { None })
            .collect()
    }
}

/// The host with these settings of its ledger.
pub fn host(ledger: LedgerConfig) -> Host {
    Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap()
}

/// The host with at most `pinned` of locked memory.
pub fn host_with_pinned(pinned: Bytes) -> Host {
    host(LedgerConfig { pinned, ..LedgerConfig::default() })
}

/// Makes the operations fail for which `fails` says so.
pub fn faults(fails: impl Fn(Op) -> bool + Send + Sync + 'static) -> LedgerConfig {
    LedgerConfig { faults: Some(Arc::new(fails)), ..LedgerConfig::default() }
}

/// Holds a lane back: what is enqueued behind it does not start until it is opened or dropped. It opens by itself
/// after 30 s, so that a test that fails ends.
pub struct Gate(Option<Sender<()>>);

impl Gate {
    pub fn on(lane: &Lane<'_, Host>) -> Self {
        let (open, wait) = channel();
        run(lane, move || {
            let _ = wait.recv_timeout(Duration::from_secs(30));
        });
        Self(Some(open))
    }

    pub fn open(&mut self) {
        self.0 = None;
    }

    /// Opens it from another thread after a while. The flag is set just before.
    pub fn open_later(mut self) -> Arc<AtomicBool> {
        let opened = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&opened);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            flag.store(true, Ordering::SeqCst);
            self.open();
        });
        opened
    }
}

/// Enqueues a job that touches no device memory.
pub fn run(lane: &Lane<'_, Host>, job: impl FnOnce() + Send + 'static) {
    // SAFETY: no raw pointers.
    unsafe { lane.device().submit(lane.queue(), Op::Launch, "job", Bytes::ZERO, job) }.unwrap();
}

/// What a job that need not wait for anything answers, soon.
pub fn soon(answer: &Receiver<u64>) -> u64 {
    answer
        .recv_timeout(Duration::from_secs(20))
        .expect("the job waits for something that it should not wait for")
}

/// Enqueues a job that sums the buffer, without claiming it.
///
/// # Safety
/// Whoever calls this sees to it that nobody writes while the job runs, and keeps the buffer until then.
pub unsafe fn sum_unclaimed(lane: &Lane<'_, Host>, buf: &Buf<'_, Host, u64>) -> Receiver<u64> {
    let (answer, sum) = channel();
    let (at, len) = (buf.block().as_ptr::<u64>(), buf.len());
    let job = move || {
        // SAFETY: by the contract above.
        let elements = unsafe { at.slice(len) };
        let _ = answer.send(elements.iter().sum());
    };
    // SAFETY: as above.
    unsafe { lane.device().submit(lane.queue(), Op::Launch, "sum", buf.bytes(), job) }.unwrap();
    sum
}

/// Enqueues a job that sums the buffer, in order.
pub fn sum(lane: &Lane<'_, Host>, buf: &mut Buf<'_, Host, u64>) -> Receiver<u64> {
    buf.claim(lane.queue()).unwrap();
    // SAFETY: claimed; the buffer is freed after this job, in the order of the lane.
    unsafe { sum_unclaimed(lane, buf) }
}

/// All elements of a buffer.
pub fn read<D: Transfer>(lane: &Lane<'_, D>, buf: &mut Buf<'_, D, u64>) -> Vec<u64> {
    let len = buf.len();
    let slot = Pinned::filled(lane.device(), len, 0).unwrap();
    lane.download(buf, 0..len, slot).unwrap().wait().unwrap().to_vec()
}

/// 0, 1 … `n` − 1, scrambled, of 48 bits so that sums do not overflow.
pub fn data(n: usize) -> Vec<u64> {
    (0..n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16).collect()
}

/// A source that tells when it is dropped.
pub struct Watched {
    pub elements: Vec<u64>,
    pub dropped: Arc<AtomicBool>,
}

impl Watched {
    pub fn new(elements: Vec<u64>) -> (Self, Arc<AtomicBool>) {
        let dropped = Arc::new(AtomicBool::new(false));
        (Self { elements, dropped: Arc::clone(&dropped) }, dropped)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.elements.fill(u64::MAX);
        self.dropped.store(true, Ordering::SeqCst);
    }
}

// SAFETY: a vector that is private while the source is held.
unsafe impl Source<u64> for Watched {
    fn elements(&self) -> &[u64] {
        &self.elements
    }
}

pub fn is(flag: &AtomicBool) -> bool {
    flag.load(Ordering::SeqCst)
}
