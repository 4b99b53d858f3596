//! The host behind the rules of a driver: a copy may not span two registrations, nor locked and pageable memory.

use std::borrow::Cow;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use prestage_transfer::{HostRange, Pages, Registration, Transfer};
use prestage_vram::{
    Bytes, Class, Device, Error, Host, HostBlock, HostMark, HostQueue, Ledger, Op, Reading, Track, WorkerId,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Register(Range<usize>),
    Unregister(Range<usize>),
    Copy { bytes: Range<usize>, locked: bool },
}

#[derive(Default)]
pub struct State {
    pub calls: Vec<Call>,
    pub registered: Vec<Range<usize>>,
    /// Unlocking the ranges that begin here fails.
    pub stuck: Vec<usize>,
    /// How often memory was pinned.
    pub pins: usize,
    /// For each pinned range that was given back, whether it held nothing but zeros.
    pub wiped: Vec<bool>,
}

pub struct Probe {
    pub host: Host,
    pub state: Arc<Mutex<State>>,
}

impl Probe {
    pub fn new(host: Host) -> Self {
        Self { host, state: Arc::default() }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap().calls.clone()
    }

    fn check(&self, host: HostRange) -> Result<(), Error> {
        let start = host.at.addr().get();
        let bytes = start..start + host.len;
        let mut state = self.state.lock().unwrap();
        let touched: Vec<_> =
            state.registered.iter().filter(|r| r.start < bytes.end && bytes.start < r.end).cloned().collect();
        let legal = match touched.as_slice() {
            [] => !host.locked,
            [one] => host.locked && one.start <= bytes.start && bytes.end <= one.end,
            _ => false,
        };
        state.calls.push(Call::Copy { bytes, locked: host.locked });
        if legal { Ok(()) } else { Err(self.invalid(Op::Copy)) }
    }

    fn invalid(&self, op: Op) -> Error {
        Error::Device { op, device: self.host.name().into(), detail: "invalid argument".into() }
    }
}

impl Device for Probe {
    type Block = HostBlock;
    type Queue = HostQueue;
    type Mark = HostMark;

    fn name(&self) -> &str {
        self.host.name()
    }
    fn ledger(&self) -> &Ledger {
        self.host.ledger()
    }
    fn reading(&self) -> Result<Reading, Error> {
        self.host.reading()
    }
    fn queue(&self, track: Track, worker: WorkerId) -> Result<HostQueue, Error> {
        self.host.queue(track, worker)
    }
    fn retire(&self, queue: HostQueue) {
        self.host.retire(queue);
    }
    unsafe fn allocate(
        &self,
        len: Bytes,
        charge: Bytes,
        class: Class,
        queue: &HostQueue,
    ) -> Result<HostBlock, Error> {
        // SAFETY: passed on.
        unsafe { self.host.allocate(len, charge, class, queue) }
    }
    unsafe fn free(&self, block: HostBlock, class: Class, queue: &HostQueue) {
        // SAFETY: passed on.
        unsafe { self.host.free(block, class, queue) };
    }
    fn record(&self, queue: &HostQueue) -> Result<HostMark, Error> {
        self.host.record(queue)
    }
    fn wait(&self, queue: &HostQueue, mark: &HostMark) -> Result<(), Error> {
        self.host.wait(queue, mark)
    }
    fn passed(&self, mark: &HostMark) -> Result<bool, Error> {
        self.host.passed(mark)
    }
    fn synchronise(&self, mark: &HostMark) -> Result<(), Error> {
        self.host.synchronise(mark)
    }
    fn drain(&self, queue: &HostQueue) -> Result<(), Error> {
        self.host.drain(queue)
    }
    fn trim(&self) -> Result<(), Error> {
        self.host.trim()
    }
}

impl Transfer for Probe {
    unsafe fn copy_in(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &HostBlock,
        at: usize,
    ) -> Result<(), Error> {
        self.check(from)?;
        // SAFETY: passed on.
        unsafe { self.host.copy_in(queue, name, from, to, at) }
    }

    unsafe fn copy_out(
        &self,
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: &HostBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        self.check(to)?;
        // SAFETY: passed on.
        unsafe { self.host.copy_out(queue, name, from, at, to) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        let pages = self.host.pin(len)?;
        let (at, len) = (pages.as_ptr(), pages.len());
        let range = at.addr().get()..at.addr().get() + len;
        {
            let mut state = self.state.lock().unwrap();
            state.registered.push(range.clone());
            state.pins += 1;
        }
        // Whatever nobody writes to is no zero by chance.
        // SAFETY: this memory, which nobody else has yet.
        unsafe { at.write_bytes(0xa5, len) };
        let state = Arc::clone(&self.state);
        // SAFETY: the memory of `pages`, which goes when this is freed.
        Ok(unsafe {
            Pages::new(at, len, move |at| {
                let mut state = state.lock().unwrap();
                state.registered.retain(|r| *r != range);
                // Written when it was pinned, and nobody else's any more.
                let memory = std::slice::from_raw_parts(at.as_ptr(), len);
                state.wiped.push(memory.iter().all(|byte| *byte == 0));
                drop(pages);
            })
        })
    }

    unsafe fn register(&self, at: NonNull<u8>, len: usize) -> Result<Registration, Error> {
        // SAFETY: passed on.
        let inner = unsafe { self.host.register(at, len) }?;
        let range = at.addr().get()..at.addr().get() + len;
        let mut now = self.state.lock().unwrap();
        now.calls.push(Call::Register(range.clone()));
        now.registered.push(range.clone());
        let state = Arc::clone(&self.state);
        let stuck = self.invalid(Op::Register);
        Ok(Registration::new(move || {
            let mut now = state.lock().unwrap();
            now.calls.push(Call::Unregister(range.clone()));
            if now.stuck.contains(&range.start) {
                return Err(stuck);
            }
            now.registered.retain(|r| *r != range);
            inner.end()
        }))
    }
}
