//! The host build: kernels launched by name, their threads as loops.
//!
//! Bounds stated in the sources are checked, and so are shared-memory accesses: an index out of range, a read of
//! something never written, or two threads that meet without a barrier between them make the launch fail.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    iter,
};

use crate::{Error, Launch};

/// The order in which a phase between two barriers visits the threads of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// 0, 1, 2, …
    #[default]
    Forwards,
    /// …, 2, 1, 0.
    Backwards,
    /// A new permutation at every phase, from this seed.
    Shuffled(u64),
}

#[repr(C)]
struct RawLaunch {
    grid_x: u32,
    grid_y: u32,
    block: u32,
    shared_bytes: u32,
    order: u32,
    seed: u64,
}

unsafe extern "C" {
    fn prestage_host_launch(
        name: *const c_char,
        launch: *const RawLaunch,
        args: *const *mut c_void,
        arguments: u32,
        message: *mut c_char,
        capacity: u64,
    ) -> i32;
    fn prestage_host_kernel(i: u32) -> *const c_char;
}

/// The names of all kernels of the host build, in no particular order.
#[must_use]
pub fn kernels() -> Vec<&'static str> {
    (0..)
        // SAFETY: any index is allowed.
        .map(|i| unsafe { prestage_host_kernel(i) })
        .take_while(|name| !name.is_null())
        // SAFETY: not null, and the table holds string literals.
        .filter_map(|name| unsafe { CStr::from_ptr(name) }.to_str().ok())
        .collect()
}

/// Runs a kernel over its whole grid, in the calling thread.
///
/// # Errors
///
/// [`Error::Host`] when the kernel does not exist, is launched with the wrong number of arguments or threads, or
/// breaks an invariant while it runs. What it wrote until then stays written.
///
/// # Safety
///
/// The arguments must have the types of the kernel's parameters, and pointers must be valid for what the kernel
/// reads and writes through them.
pub unsafe fn launch(launch: &Launch, order: Order) -> Result<(), Error> {
    let failed = |message: String| Error::Host { kernel: launch.kernel.to_owned(), message };
    let name = CString::new(launch.kernel).map_err(|e| failed(e.to_string()))?;
    let (order, seed) = match order {
        Order::Forwards => (0, 0),
        Order::Backwards => (1, 0),
        Order::Shuffled(seed) => (2, seed),
    };
    let raw = RawLaunch {
        grid_x: launch.grid.0,
        grid_y: launch.grid.1,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        order,
        seed,
    };
    let pointers = launch.args.pointers();
    let count = u32::try_from(pointers.len()).map_err(|e| failed(e.to_string()))?;
    let mut message: Vec<u8> = iter::repeat_n(0, 512).collect();
    // SAFETY: `name` is NUL-terminated, `raw` and `pointers` live through the call, `message` has 512 bytes, and
    // the caller answers for the arguments.
    let status = unsafe {
        prestage_host_launch(name.as_ptr(), &raw, pointers.as_ptr(), count, message.as_mut_ptr().cast(), 512)
    };
    if status == 0 {
        return Ok(());
    }
    let text =
        CStr::from_bytes_until_nul(&message).map_or_else(|_| String::new(), |m| m.to_string_lossy().into());
    Err(failed(text))
}
