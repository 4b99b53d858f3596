//! Activity records of CUPTI, NVIDIA's profiling interface: when kernels, copies and fills ran, by the card's own account.
//!
//! The library is loaded when it is first asked for, and nothing needs it otherwise. While work is handed over, a number of
//! that work is pushed on CUPTI's stack of external correlations; each call to the driver then leaves a record that ties the
//! number to the call, and what the call started has a record that names the call. Buffers of records come from here and are
//! read when CUPTI gives them back ([the interface](https://docs.nvidia.com/cupti/api/group__CUPTI__ACTIVITY__API.html)).

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use libloading::Library;

use super::device::Cuda;
use crate::sync::lock;
use crate::{Error, Nanos, Recorded, Span};

/// File names, the one of the newest toolkit first, and where toolkits put it that the loader does not look at.
const FILES: [&str; 5] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
];

/// The oldest interface whose records are as they are read here: that of CUDA 12.0.
const OLDEST: u32 = 18;

/// Bytes of a buffer of records.
const BUFFER: usize = 4 << 20;

/// Kinds of records (`CUpti_ActivityKind`).
const COPY: u32 = 1;
const FILL: u32 = 2;
const DRIVER: u32 = 4;
const KERNEL: u32 = 10;
const EXTERNAL: u32 = 39;
const KINDS: [u32; 5] = [COPY, FILL, DRIVER, KERNEL, EXTERNAL];

/// Whose numbers are pushed: `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0`.
const OURS: u32 = 3;

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// What is called of the library.
struct Cupti {
    file: &'static str,
    version: u32,
    enable: unsafe extern "C" fn(u32) -> u32,
    disable: unsafe extern "C" fn(u32) -> u32,
    register: unsafe extern "C" fn(Requested, Completed) -> u32,
    flush: unsafe extern "C" fn(u32) -> u32,
    next: unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32,
    push: unsafe extern "C" fn(u32, u64) -> u32,
    pop: unsafe extern "C" fn(u32, *mut u64) -> u32,
    timestamp: unsafe extern "C" fn(*mut u64) -> u32,
    words: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
    _library: Library,
}

fn missing(detail: impl Into<String>) -> Error {
    Error::NoCupti { detail: detail.into() }
}

impl Cupti {
    fn get() -> Result<&'static Self, Error> {
        static LOADED: OnceLock<Result<Cupti, String>> = OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref().map_err(missing)
    }

    fn load() -> Result<Self, String> {
        let mut first = None;
        for file in FILES {
            // SAFETY: loading it runs its initialisers, which is what using it means.
            match unsafe { Library::new(file) } {
                Ok(library) => return Self::of(file, library),
                Err(why) => first = first.or_else(|| Some(why.to_string())),
            }
        }
        Err(first.unwrap_or_default())
    }

    fn of(file: &'static str, library: Library) -> Result<Self, String> {
        /// # Safety
        /// The function has this type.
        unsafe fn function<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
            // SAFETY: by the caller's contract.
            unsafe { library.get::<F>(name.as_bytes()) }.map(|f| *f).map_err(|e| e.to_string())
        }
        let mut version = 0;
        // SAFETY: the types are those of the interface, which has them since CUDA 8; the pointer is to a live number.
        let (this, known) = unsafe {
            let get: unsafe extern "C" fn(*mut u32) -> u32 = function(&library, "cuptiGetVersion")?;
            let known = get(&raw mut version);
            let this = Self {
                file,
                version,
                enable: function(&library, "cuptiActivityEnable")?,
                disable: function(&library, "cuptiActivityDisable")?,
                register: function(&library, "cuptiActivityRegisterCallbacks")?,
                flush: function(&library, "cuptiActivityFlushAll")?,
                next: function(&library, "cuptiActivityGetNextRecord")?,
                push: function(&library, "cuptiActivityPushExternalCorrelationId")?,
                pop: function(&library, "cuptiActivityPopExternalCorrelationId")?,
                timestamp: function(&library, "cuptiGetTimestamp")?,
                words: function(&library, "cuptiGetResultString")?,
                _library: library,
            };
            (this, known)
        };
        this.check("cuptiGetVersion", known).map_err(|e| e.to_string())?;
        match version < OLDEST {
            true => Err(format!("{file} is older than that of CUDA 12.0")),
            false => Ok(this),
        }
    }

    fn check(&self, call: &str, status: u32) -> Result<(), Error> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the pointer is to a live pointer; what comes back is a text that ends in NUL and lives as long as the library.
        let known = unsafe { (self.words)(status, &raw mut text) } == 0 && !text.is_null();
        let words = match known {
            // SAFETY: as above.
            true => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            false => format!("error {status}"),
        };
        Err(missing(format!("{call}: {words}")))
    }

    /// The time of records, now.
    fn now(&self) -> Result<u64, Error> {
        let mut now = 0;
        // SAFETY: the pointer is to a live number.
        let status = unsafe { (self.timestamp)(&raw mut now) };
        self.check("cuptiGetTimestamp", status).map(|()| now)
    }

    /// One moment on both clocks, the host's since `opened`: the best known of a few.
    fn tie(&self, opened: Instant) -> Result<Tie, Error> {
        let mut best: Option<(u64, Tie)> = None;
        for _ in 0..9 {
            let before = Nanos::from(opened.elapsed());
            let cupti = self.now()?;
            let width = Nanos::from(opened.elapsed()).since(before).get();
            if best.as_ref().is_none_or(|(known, _)| width < *known) {
                best = Some((width, Tie { host: (before + Nanos::new(width / 2)).get(), cupti }));
            }
        }
        best.map(|(_, tie)| tie).ok_or_else(|| missing("no clock"))
    }
}

/// Which CUPTI is here: its file and its version. Loads it where that was not done before.
///
/// # Errors
/// [`Error::NoCupti`] says what is missing.
pub fn cupti() -> Result<String, Error> {
    let Cupti { file, version, .. } = Cupti::get()?;
    Ok(match version {
        0..100_000 => format!("{file}, interface {version}"),
        _ => format!("{file}, version {}.{}", version / 10_000, version % 10_000 / 100),
    })
}

/// A moment on the host's clock and on that of the records, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Tie {
    host: u64,
    cupti: u64,
}

impl Tie {
    /// When a record's time was, between this moment and a later one: the clocks may run at different rates.
    fn until(self, later: Self, at: u64) -> Nanos {
        let signed = |to: u64, from: u64| i128::from(to) - i128::from(from);
        let (host, cupti) = (signed(later.host, self.host), signed(later.cupti, self.cupti));
        let past = signed(at, self.cupti);
        let moved = if cupti > 0 { past * host / cupti } else { past };
        Nanos::new(u64::try_from(i128::from(self.host) + moved).unwrap_or(0))
    }
}

/// The beginning of the record of a kernel (`CUpti_ActivityKernel10` and its forerunners).
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelRecord {
    settings: [u32; 4],
    start: u64,
    end: u64,
    launch: [u32; 15],
    call: u32,
}

/// The beginning of the record of a copy or a fill (`CUpti_ActivityMemcpy6`, `CUpti_ActivityMemset4`).
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryRecord {
    settings: [u32; 2],
    bytes: u64,
    start: u64,
    end: u64,
    place: [u32; 3],
    call: u32,
}

/// The beginning of the record that ties a call to pushed numbers (`CUpti_ActivityExternalCorrelation`).
#[repr(C)]
#[derive(Clone, Copy)]
struct ExternalRecord {
    kind: u32,
    whose: u32,
    work: u64,
    call: u32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(KernelRecord, start) == 16 && offset_of!(KernelRecord, call) == 92);
    assert!(offset_of!(MemoryRecord, start) == 16 && offset_of!(MemoryRecord, call) == 44);
    assert!(offset_of!(ExternalRecord, work) == 8 && offset_of!(ExternalRecord, call) == 16);
};

/// What ran for one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    start: u64,
    end: u64,
    busy: u64,
    records: u32,
}

/// The records of this process that have come so far.
#[derive(Debug, Default)]
struct Come {
    /// The work of each call.
    calls: HashMap<u32, u64>,
    /// Call, start and end of what ran and whose call is not known yet.
    ran: Vec<(u32, u64, u64)>,
    works: HashMap<u64, Ran>,
}

impl Come {
    /// Brings calls and what they started together.
    fn join(&mut self) {
        let Self { calls, ran, works } = self;
        ran.retain(|(call, start, end)| {
            let Some(work) = calls.get(call) else { return true };
            let sum = works.entry(*work).or_insert(Ran { start: *start, end: *end, busy: 0, records: 0 });
            sum.start = sum.start.min(*start);
            sum.end = sum.end.max(*end);
            sum.busy += end.saturating_sub(*start);
            sum.records += 1;
            false
        });
    }

    /// Takes what ran for this work.
    fn take(&mut self, work: u64) -> Option<Ran> {
        self.works.remove(&work)
    }
}

static COME: Mutex<Option<Come>> = Mutex::new(None);

fn layout() -> Option<Layout> {
    Layout::from_size_align(BUFFER, 8).ok()
}

/// Gives CUPTI a buffer.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // SAFETY: the size is not zero.
    let memory = layout().map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) });
    // SAFETY: CUPTI gives pointers to live values.
    unsafe {
        *buffer = memory;
        *size = if memory.is_null() { 0 } else { BUFFER };
        *most = 0;
    }
}

/// Reads a buffer and frees it.
unsafe extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if let Ok(cupti) = Cupti::get() {
        let mut come = lock(&COME);
        let come = come.get_or_insert_default();
        let mut at = std::ptr::null_mut();
        // SAFETY: the buffer holds that many bytes of records.
        while valid > 0 && unsafe { (cupti.next)(buffer, valid, &raw mut at) } == 0 {
            // SAFETY: every record begins with its kind, and those of these kinds as the types say.
            unsafe {
                match at.cast::<u32>().read_unaligned() {
                    EXTERNAL => {
                        let record = at.cast::<ExternalRecord>().read_unaligned();
                        if record.whose == OURS {
                            come.calls.insert(record.call, record.work);
                        }
                    }
                    KERNEL => {
                        let record = at.cast::<KernelRecord>().read_unaligned();
                        come.ran.push((record.call, record.start, record.end));
                    }
                    COPY | FILL => {
                        let record = at.cast::<MemoryRecord>().read_unaligned();
                        come.ran.push((record.call, record.start, record.end));
                    }
                    _ => {}
                }
            }
        }
    }
    if let (Some(layout), false) = (layout(), buffer.is_null()) {
        // SAFETY: allocated by `requested` with this layout.
        unsafe { dealloc(buffer, layout) };
    }
}

/// How many devices are recorded.
static RECORDED: Mutex<u32> = Mutex::new(0);

/// Records are made while one of these is there.
#[derive(Debug)]
struct Session;

impl Session {
    fn start(cupti: &Cupti) -> Result<Self, Error> {
        let mut recorded = lock(&RECORDED);
        if *recorded == 0 {
            // SAFETY: the callbacks are functions of the interface's types, and there for ever.
            let status = unsafe { (cupti.register)(requested, completed) };
            cupti.check("cuptiActivityRegisterCallbacks", status)?;
            for kind in KINDS {
                // SAFETY: a kind of the interface.
                let status = unsafe { (cupti.enable)(kind) };
                cupti.check("cuptiActivityEnable", status).inspect_err(|_| stop(cupti))?;
            }
        }
        *recorded += 1;
        Ok(Self)
    }
}

fn stop(cupti: &Cupti) {
    for kind in KINDS {
        // SAFETY: a kind of the interface; disabling what is not enabled does nothing.
        let _ = unsafe { (cupti.disable)(kind) };
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut recorded = lock(&RECORDED);
        *recorded -= 1;
        if let (0, Ok(cupti)) = (*recorded, Cupti::get()) {
            stop(cupti);
        }
    }
}

/// The recording of one open device.
#[derive(Debug)]
pub(super) struct Recording {
    _session: Session,
    opened: Instant,
    first: Tie,
    /// Work that has been told of, with its span by events.
    told: Mutex<Vec<(u64, Span)>>,
}

/// Work is handed over while this is there.
pub(super) struct Region(u64);

impl Region {
    /// The number of the work.
    pub(super) fn work(&self) -> u64 {
        self.0
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Ok(cupti) = Cupti::get() {
            let mut last = 0;
            // SAFETY: the pointer is to a live number; pushed by this thread, which the region does not leave.
            let _ = unsafe { (cupti.pop)(OURS, &raw mut last) };
        }
    }
}

impl Recording {
    /// Begins, for a device that is being opened: its host clock starts at `opened`.
    pub(super) fn start(opened: Instant) -> Result<Self, Error> {
        let cupti = Cupti::get()?;
        let session = Session::start(cupti)?;
        let first = cupti.tie(opened)?;
        Ok(Self { _session: session, opened, first, told: Mutex::default() })
    }

    /// What the calling thread asks of the driver from now on belongs to one piece of work.
    pub(super) fn enter(&self) -> Option<Region> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let work = NEXT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: a kind of the interface and any number.
        let pushed = Cupti::get().is_ok_and(|cupti| unsafe { (cupti.push)(OURS, work) } == 0);
        pushed.then_some(Region(work))
    }

    /// Work has ended; so it was timed by events.
    pub(super) fn tell(&self, work: u64, span: &Span) {
        lock(&self.told).push((work, span.clone()));
    }

    fn take(&self) -> Result<Vec<Recorded>, Error> {
        let cupti = Cupti::get()?;
        // SAFETY: flag 0 takes buffers whose records are complete.
        let status = unsafe { (cupti.flush)(0) };
        cupti.check("cuptiActivityFlushAll", status)?;
        let last = cupti.tie(self.opened)?;
        let told = std::mem::take(&mut *lock(&self.told));
        let mut come = lock(&COME);
        let come = come.get_or_insert_default();
        come.join();
        let of = |(work, span): (u64, Span)| {
            let Ran { start, end, busy, records } = come.take(work)?;
            let on = |at| self.first.until(last, at);
            Some(Recorded { span, start: on(start), end: on(end), busy: Nanos::new(busy), records })
        };
        Ok(told.into_iter().filter_map(of).collect())
    }
}

impl Cuda {
    /// What CUPTI recorded of the work that has been told of since the last call, where the device was opened for that
    /// ([`super::CudaConfig::records`]). Work of no kernel, copy or fill has no record.
    ///
    /// # Errors
    /// [`Error::NoCupti`] when the records cannot be had.
    pub fn records(&self) -> Result<Vec<Recorded>, Error> {
        self.shared.clock.recording().map_or(Ok(Vec::new()), Recording::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_two_rates_are_tied_at_two_moments() {
        let (first, last) = (Tie { host: 1_000, cupti: 50_000 }, Tie { host: 3_000, cupti: 51_000 });
        let at = |cupti| first.until(last, cupti).get();
        assert_eq!([at(50_000), at(50_500), at(51_000), at(49_900)], [1_000, 2_000, 3_000, 800]);
        assert_eq!(first.until(first, 50_007).get(), 1_007);
        assert_eq!(Tie { host: 5, cupti: 100 }.until(Tie { host: 10, cupti: 105 }, 0).get(), 0);
    }

    #[test]
    fn records_of_one_work_are_one_interval() {
        let mut come = Come::default();
        come.ran.extend([(7, 100, 110), (9, 1, 2), (8, 120, 150)]);
        come.join();
        assert!(come.works.is_empty() && come.ran.len() == 3);
        // The records that name the calls may come in a later buffer.
        come.calls.extend([(7, 1), (8, 1)]);
        come.join();
        assert_eq!(come.take(1), Some(Ran { start: 100, end: 150, busy: 40, records: 2 }));
        assert_eq!((come.take(1), come.ran.len()), (None, 1));
    }

    #[test]
    fn what_is_missing_is_one_line() {
        match cupti() {
            Ok(words) => assert!(words.contains("libcupti")),
            Err(error) => {
                let words = error.to_string();
                assert!(matches!(error, Error::NoCupti { .. }), "{words}");
                assert!(words.contains("libcupti.so.13") && words.lines().count() == 1, "{words}");
            }
        }
    }
}
