//! A card's primary context, shared by all that this process opens on the card, and its events.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use cudarc::driver::{DriverError, result, sys};

use super::call::{check, is_sticky, words};
use crate::sync::lock;
use crate::{Bytes, Error};

/// The contexts of this process, also those that are just being given up.
static OPEN: Mutex<BTreeMap<sys::CUdevice, Weak<Context>>> = Mutex::new(BTreeMap::new());
static GIVEN_UP: Condvar = Condvar::new();

/// The primary context of a card. Whatever needs the driver to be freed keeps it alive; the last one gives it up, and resets
/// the card for this process where the context was lost.
pub(super) struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
    bytes: AtomicU64,
    lost: AtomicBool,
    /// Events that are not in use: without times, with times.
    idle: [Mutex<Vec<sys::CUevent>>; 2],
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Context {
    /// The primary context of the card called `name`: the one that is open already, or a new one.
    pub(super) fn of(device: sys::CUdevice, name: &str) -> Result<Arc<Self>, Error> {
        let lost = |detail| Error::Lost { device: name.to_owned(), detail };
        let mut open = lock(&OPEN);
        while let Some(known) = open.get(&device) {
            if let Some(context) = known.upgrade() {
                // The last handle must not go while the list is locked.
                drop(open);
                if context.is_lost() {
                    return Err(lost("its context failed, and something still uses it".into()));
                }
                return Ok(context);
            }
            open = GIVEN_UP.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        // SAFETY: `device` came from the driver; released when this is dropped.
        let raw = match unsafe { result::primary_ctx::retain(device) } {
            Err(error) if is_sticky(error) => return Err(lost(words(error))),
            other => check("cuDevicePrimaryCtxRetain", other)?,
        };
        let context = Arc::new(Self {
            raw,
            device,
            bytes: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            idle: [Mutex::new(Vec::new()), Mutex::new(Vec::new())],
        });
        open.insert(device, Arc::downgrade(&context));
        let measured = context.measure();
        context.grow(*measured.as_ref().unwrap_or(&Bytes::ZERO));
        drop(open);
        check("cuCtxCreate", measured)?;
        Ok(context)
    }

    /// Makes it the calling thread's context.
    pub(super) fn bind(&self) -> Result<(), DriverError> {
        // SAFETY: the context is retained.
        unsafe { result::ctx::set_current(self.raw) }
    }

    pub(super) fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// What the driver keeps for this process: the context, and the modules loaded into it.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes::new(self.bytes.load(Ordering::SeqCst))
    }

    /// Counts what something that lives as long as the context has taken.
    pub(super) fn grow(&self, bytes: Bytes) {
        self.bytes.fetch_add(bytes.get(), Ordering::SeqCst);
    }

    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    /// Free memory and all memory, as the driver says.
    pub(super) fn info(&self) -> Result<(Bytes, Bytes), DriverError> {
        self.bind()?;
        let (free, total) = result::mem_get_info()?;
        Ok((Bytes::new(free as u64), Bytes::new(total as u64)))
    }

    /// What a context takes. Memory can be read inside a context only, so a second one is made beside this one.
    fn measure(&self) -> Result<Bytes, DriverError> {
        type Create = unsafe extern "C" fn(*mut sys::CUcontext, c_uint, sys::CUdevice) -> sys::CUresult;
        let (before, _) = self.info()?;
        // SAFETY: the library is there: a context of it is. The binding knows newer forms of this call only, which older
        // drivers lack; the form given here is that of all drivers.
        let Ok(create) = (unsafe { sys::culib().get::<Create>(b"cuCtxCreate_v2".as_slice()) }) else {
            return Ok(Bytes::ZERO);
        };
        let mut second = std::ptr::null_mut();
        // SAFETY: the pointer is to a live handle, the device is the driver's.
        if unsafe { create(&raw mut second, 0, self.device) } != sys::CUresult::CUDA_SUCCESS {
            // One context per card and no more is a mode of cards, and no reason not to work.
            self.bind()?;
            return Ok(Bytes::ZERO);
        }
        let after = result::mem_get_info();
        // SAFETY: made above, and nobody else has it.
        unsafe { sys::cuCtxDestroy_v2(second) }.result()?;
        self.bind()?;
        Ok(before - Bytes::new(after?.0 as u64))
    }

    /// An event; `timed` ones can be subtracted.
    pub(super) fn event(self: &Arc<Self>, timed: bool) -> Result<Event, DriverError> {
        let idle = lock(&self.idle[usize::from(timed)]).pop();
        let raw = match idle {
            Some(raw) => raw,
            None => {
                self.bind()?;
                let flags = match timed {
                    true => sys::CUevent_flags::CU_EVENT_DEFAULT,
                    false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
                };
                result::event::create(flags)?
            }
        };
        Ok(Event { raw, timed, context: Arc::clone(self) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut open = lock(&OPEN);
        let lost = self.is_lost();
        if !lost && self.bind().is_ok() {
            for raw in self.idle.iter().flat_map(|idle| std::mem::take(&mut *lock(idle))) {
                // SAFETY: made in this context, in no one's hands any more.
                let _ = unsafe { result::event::destroy(raw) };
            }
        }
        // Nothing can be done about a card that does not let go.
        // SAFETY: retained once, when this was made.
        let _ = unsafe { result::primary_ctx::release(self.device) };
        if lost {
            // What the lost context held, host memory included, is the driver's to clean up.
            // SAFETY: `device` came from the driver; nothing of this crate uses the context any more.
            let _ = unsafe { sys::cuDevicePrimaryCtxReset_v2(self.device) };
        }
        open.remove(&self.device);
        GIVEN_UP.notify_all();
    }
}

/// An event of a context, given back for reuse when dropped: what waits for it has taken note of it.
pub(super) struct Event {
    raw: sys::CUevent,
    timed: bool,
    context: Arc<Context>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.raw).finish()
    }
}

impl Event {
    /// Puts it behind all that `stream` has been given.
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: event and stream belong to the context and are alive.
        unsafe { result::event::record(self.raw, stream) }
    }

    /// Makes `stream` wait for it.
    pub(super) fn hold(&self, stream: sys::CUstream) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: as above.
        unsafe {
            result::stream::wait_event(stream, self.raw, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
        }
    }

    pub(super) fn passed(&self) -> Result<bool, DriverError> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => other.result().map(|()| true),
        }
    }

    pub(super) fn synchronise(&self) -> Result<(), DriverError> {
        self.context.bind()?;
        // SAFETY: the event is alive.
        unsafe { sys::cuEventSynchronize(self.raw) }.result()
    }

    /// Nanoseconds from `earlier` to this one; both are timed and have passed.
    pub(super) fn since(&self, earlier: &Self) -> Result<u64, DriverError> {
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;
        self.context.bind()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: the library is there: events of it are. The binding knows a newer form of this call only, which older
        // drivers lack; the form given here is that of all drivers.
        let elapsed = unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime".as_slice()) }
            .map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
        // SAFETY: the pointer is to a live number, the events are alive.
        unsafe { elapsed(&raw mut milliseconds, earlier.raw, self.raw) }.result()?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative; far below 2^64.
        Ok((f64::from(milliseconds) * 1e6).max(0.0) as u64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        lock(&self.context.idle[usize::from(self.timed)]).push(self.raw);
    }
}
