//! Launches, and kernel arguments in the form that `cuLaunchKernel` takes: the same for a device and the host
//! build.

use std::ffi::c_void;

/// A value that may be passed to a kernel: plain old data, laid out as in C.
///
/// # Safety
///
/// The type must be `repr(C)`, a primitive or a pointer, with no padding that is read, at most 8-byte aligned,
/// and equal in layout to the kernel's parameter.
pub unsafe trait Argument: Copy {}

// SAFETY: primitives and pointers have the layout of their C counterparts.
unsafe impl Argument for u32 {}
// SAFETY: as above.
unsafe impl Argument for i32 {}
// SAFETY: as above.
unsafe impl Argument for u64 {}
// SAFETY: as above.
unsafe impl<T> Argument for *const T {}
// SAFETY: as above.
unsafe impl<T> Argument for *mut T {}

/// The arguments of one launch, in order.
#[derive(Debug, Default, Clone)]
pub struct Args {
    values: Vec<Box<[u64]>>,
}

impl Args {
    /// No arguments yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a value.
    #[must_use]
    pub fn with<A: Argument>(mut self, value: A) -> Self {
        const { assert!(align_of::<A>() <= align_of::<u64>()) };
        let mut words = vec![0u64; size_of::<A>().div_ceil(size_of::<u64>()).max(1)].into_boxed_slice();
        // SAFETY: `words` is at least as large as `A`, aligned for it by the assertion above, and exclusive.
        unsafe { words.as_mut_ptr().cast::<A>().write(value) };
        self.values.push(words);
        self
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One pointer per argument, valid while `self` is neither changed nor dropped.
    #[must_use]
    pub fn pointers(&self) -> Vec<*mut c_void> {
        // `cuLaunchKernel` asks for mutable pointers and only reads through them.
        self.values.iter().map(|v| v.as_ptr().cast_mut().cast()).collect()
    }
}

/// One kernel over one grid.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: &'static str,
    /// Blocks: columns and rows.
    pub grid: (u32, u32),
    /// Threads per block.
    pub block: u32,
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The arguments.
    pub args: Args,
}

impl Launch {
    /// One thread for each of `n` elements in blocks of `block` threads, no shared memory.
    #[must_use]
    pub fn elementwise(kernel: &'static str, n: u64, block: u32, args: Args) -> Self {
        let blocks = u32::try_from(n.div_ceil(u64::from(block.max(1)))).unwrap_or(u32::MAX);
        Self { kernel, grid: (blocks.max(1), 1), block, shared_bytes: 0, args }
    }
}

/// Hands out places in one block of memory, device or host: addresses are computed, never followed.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    base: *mut u8,
    used: u64,
}

impl Cursor {
    pub(crate) fn new(base: *mut u8) -> Self {
        Self { base, used: 0 }
    }

    /// `bytes` bytes, aligned to 32 when the base is.
    pub(crate) fn take<T>(&mut self, bytes: u64) -> *mut T {
        let at = self.base.wrapping_byte_add(usize::try_from(self.used).unwrap_or(usize::MAX));
        self.used += bytes.next_multiple_of(32);
        at.cast()
    }

    /// Goes on no earlier than where `other` is.
    pub(crate) fn reach(&mut self, other: &Self) {
        self.used = self.used.max(other.used);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}
