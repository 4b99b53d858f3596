//! NVIDIA cards. The driver is loaded at run time; where it is missing nothing is printed and nothing panics.
//!
//! ```
//! match prestage_vram::cuda::probe() {
//!     Ok(found) => println!("driver for CUDA {}, {} devices", found.version, found.devices.len()),
//!     Err(why) => println!("{why}"), // no NVIDIA driver here (…); install one or use the device `host`
//! }
//! ```
//!
//! [`Cuda`] is a card as a [`crate::Device`]. What a stage needs beside turns, queues and buffers to run kernels on it:
//!
//! - [`Cuda::module`] loads a compiled module once and keeps it with the device; [`Module::kernel`] finds a kernel in it.
//! - [`Cuda::enqueue`] hands over work as one span: a closure that launches, fills and copies on a [`Stream`].
//! - [`CudaBlock::as_ptr`] is the address of a buffer ([`crate::Buf::block`]), to be put into a kernel's arguments.
//!
//! ```no_run
//! use std::ffi::c_void;
//!
//! use prestage_vram::cuda::{Cuda, CudaConfig, Grid};
//! use prestage_vram::{Class, Device, Track, Work, Worker};
//!
//! # fn image() -> Result<Vec<u8>, prestage_vram::Error> { Ok(Vec::new()) }
//! let card = Cuda::open(CudaConfig::default())?;
//! // SAFETY: the image is what the compiler wrote.
//! let module = unsafe { card.module("ntt", image) }?;
//! let kernel = module.kernel("scale")?;                                     // scale(u64* at, u64 n)
//!
//! let mut worker = Worker::new(0);
//! let turn = card.turn(&mut worker)?;
//! let queue = turn.queue(Track::Compute)?;
//! let mut a = turn.alloc::<u64>("a", 1 << 20, Class::Pooled, &queue)?;
//! a.claim(&queue)?;                                                        // before the pointer is taken
//! let (mut at, mut n) = (a.block().as_ptr::<u64>(), a.len() as u64);
//! let mut args = [(&raw mut at).cast::<c_void>(), (&raw mut n).cast()];
//! let work = Work::launch("scale a", a.bytes());
//! // SAFETY: the arguments are those of the kernel; `a` was claimed for this queue and is as long as it is told.
//! unsafe { card.enqueue(&queue, work, |stream| stream.launch(&kernel, Grid::line(4096, 256), &mut args)) }?;
//! drop(a);
//! turn.release()?;
//! # Ok::<(), prestage_vram::Error>(())
//! ```

mod call;
mod context;
mod cupti;
mod device;
mod host;
mod memory;
mod module;
mod options;
mod probe;
mod queue;
mod spans;
mod stream;

pub use cupti::cupti;
pub use device::{Cuda, Info};
pub use host::{HostLock, HostPages};
pub use memory::CudaBlock;
pub use module::{Kernel, Module};
pub use options::{Cap, CudaConfig, Which};
pub use probe::{Found, ParseUuidError, Probe, Uuid, Version, probe};
pub use queue::{CudaMark, CudaQueue};
pub use stream::{Grid, Stream};
