//! Compiled code on a card.

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::driver::{DriverError, sys};

use super::device::{Cuda, Shared};
use super::probe::attribute;
use crate::sync::lock;
use crate::{Bytes, Error, Op};

/// More than any module takes on a card beside its own size: what grows by more while one is loaded is someone else's.
const MOST: Bytes = Bytes::mib(64);

/// A module that is loaded on a card; clones are the same module. Unloaded with the last of them and the device.
#[derive(Clone, Debug)]
pub struct Module(Arc<Loaded>);

struct Loaded {
    name: String,
    raw: sys::CUmodule,
    shared: Arc<Shared>,
    kernels: Mutex<BTreeMap<String, Kernel>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.shared.context.bind().is_ok() {
            // SAFETY: loaded once, unloaded once; its kernels have ended with the turns that launched them.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel of a loaded module, usable while a [`Module`] of it or its device is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    raw: sys::CUfunction,
    registers: u32,
    local: Bytes,
    threads: u32,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    pub(super) fn raw(self) -> sys::CUfunction {
        self.raw
    }

    /// Registers of one thread.
    #[must_use]
    pub fn registers(self) -> u32 {
        self.registers
    }

    /// Local memory of one thread: stack and spilled registers. A context has 1 KiB for every thread that the card can hold from
    /// the start; the driver takes more when a kernel that needs more is first launched, and keeps it.
    #[must_use]
    pub fn local(self) -> Bytes {
        self.local
    }

    /// The most threads that a block of it may have.
    #[must_use]
    pub fn threads(self) -> u32 {
        self.threads
    }
}

impl Module {
    /// The kernel called `name`; found once. It may use as much dynamic shared memory as the card has for a block.
    ///
    /// # Errors
    /// [`Error::Device`] when there is none, [`Error::Poisoned`].
    pub fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        use sys::CUfunction_attribute as A;
        let Loaded { raw: module, shared, kernels, .. } = &*self.0;
        let mut kernels = lock(kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(*kernel);
        }
        let failed = |call, error| shared.failed(Op::Launch, call, error);
        let invalid = |_| DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND);
        let text = CString::new(name).map_err(|e| failed("cuModuleGetFunction", invalid(e)))?;
        shared.context.bind().map_err(|e| failed("cuCtxSetCurrent", e))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in NUL, the pointer is to a live handle.
        unsafe { sys::cuModuleGetFunction(&raw mut raw, *module, text.as_ptr()) }.result().map_err(
            |error| Error::Device {
                op: Op::Launch,
                device: shared.name.clone(),
                detail: format!("no kernel {name} in {}: {}", self.0.name, super::call::words(error)),
            },
        )?;
        let number = |which| {
            let mut value: c_int = 0;
            // SAFETY: the function was just found, the pointer is to a live number.
            unsafe { sys::cuFuncGetAttribute(&raw mut value, which, raw) }
                .result()
                .map_err(|e| failed("cuFuncGetAttribute", e))?;
            Ok::<u32, Error>(value.unsigned_abs())
        };
        let registers = number(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        let local = Bytes::new(number(A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?.into());
        let threads = number(A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        let fixed = number(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let shares = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let most = attribute(shared.context.device(), shares)?.saturating_sub(fixed);
        let most = c_int::try_from(most).unwrap_or(0);
        let which = A::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was just found.
        unsafe { sys::cuFuncSetAttribute(raw, which, most) }
            .result()
            .map_err(|e| failed("cuFuncSetAttribute", e))?;
        let kernel = Kernel { raw, registers, local, threads };
        kernels.insert(name.to_owned(), kernel);
        Ok(kernel)
    }
}

impl Cuda {
    /// The module called `name`: loaded from `image` when it is first asked for, and kept with the device. Others that ask for
    /// a module wait meanwhile, so that none is compiled twice. What it takes of the card is counted as context; load modules
    /// before the turn whose plan it would disturb.
    ///
    /// # Safety
    /// `image` returns a whole cubin, or PTX, as a compiler wrote it.
    ///
    /// # Errors
    /// What `image` returns; [`Error::Device`] when the driver refuses it; [`Error::Poisoned`].
    pub unsafe fn module<E: From<Error>>(
        &self,
        name: &str,
        image: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Module, E> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(name) {
            return Ok(module.clone());
        }
        self.shared.ledger.healthy()?;
        let mut image = image()?;
        if !image.starts_with(b"\x7fELF") && image.last() != Some(&0) {
            image.push(0);
        }
        // SAFETY: by this function's contract.
        let module = unsafe { self.load(name, &image) }?;
        modules.insert(name.to_owned(), module.clone());
        Ok(module)
    }

    /// # Safety
    /// The image is a whole cubin, or PTX that ends in NUL.
    unsafe fn load(&self, name: &str, image: &[u8]) -> Result<Module, Error> {
        let shared = &self.shared;
        let failed = |error| shared.failed(Op::Launch, "cuModuleLoadData", error);
        let before = self.holdings().map_err(failed)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: by this function's contract; the pointer is to a live handle.
        unsafe { sys::cuModuleLoadData(&raw mut raw, image.as_ptr().cast()) }.result().map_err(failed)?;
        let module = Module(Arc::new(Loaded {
            name: name.to_owned(),
            raw,
            shared: Arc::clone(shared),
            kernels: Mutex::default(),
        }));
        let after = self.holdings().map_err(failed)?;
        let taken = (before.free + before.mine) - (after.free + after.mine);
        if taken <= Bytes::of::<u8>(image.len()) + MOST {
            shared.context.grow(taken);
        }
        Ok(module)
    }
}
