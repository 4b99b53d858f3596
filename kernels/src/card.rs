//! Launches on an NVIDIA card.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use prestage_vram::cuda::{Cuda, CudaQueue, Grid, Module, Stream};
use prestage_vram::{Error as DeviceError, Op, Work};

use crate::{Cache, Capability, Error, Family, Launch, check_driver, driver_version, module};

/// The module of `family` on the card: compiled or read from the cache, and loaded, when it is first asked for.
///
/// # Errors
/// [`DeviceError::Device`] with the words of an [`Error`]; what the driver says.
pub fn load(device: &Cuda, family: Family) -> Result<Module, DeviceError> {
    let image = || {
        let (major, minor) = device.info().compute;
        let image = module(&Cache::from_env()?, family, Capability { major, minor })?;
        check_driver(driver_version()?, &image)?;
        Ok(image.bytes)
    };
    // SAFETY: a whole module, as the compiler wrote it; the cache checks what it reads.
    unsafe { device.module(family.name(), || image().map_err(|e| failed(device, &e))) }
}

fn failed(device: &Cuda, error: &Error) -> DeviceError {
    let device = prestage_vram::Device::name(device).to_owned();
    DeviceError::Device { op: Op::Launch, device, detail: error.to_string() }
}

/// The family that a kernel belongs to.
fn family_of(kernel: &str) -> Option<Family> {
    static FAMILIES: OnceLock<BTreeMap<&'static str, Family>> = OnceLock::new();
    let families = FAMILIES.get_or_init(|| {
        Family::ALL
            .iter()
            .flat_map(|&family| family.kernels().into_iter().map(move |kernel| (kernel, family)))
            .collect()
    });
    families.get(kernel).copied()
}

/// Enqueues one launch on a stream of `device`.
///
/// # Safety
/// As for [`enqueue`].
///
/// # Errors
/// [`DeviceError::Device`]; [`DeviceError::Poisoned`].
pub unsafe fn launch(device: &Cuda, stream: &Stream<'_>, launch: &Launch) -> Result<(), DeviceError> {
    let name = launch.kernel;
    let unknown = || DeviceError::Device {
        op: Op::Launch,
        device: prestage_vram::Device::name(device).to_owned(),
        detail: format!("no family has a kernel {name}"),
    };
    let kernel = load(device, family_of(name).ok_or_else(unknown)?)?.kernel(name)?;
    let grid = Grid {
        blocks: (launch.grid.0, launch.grid.1, 1),
        threads: (launch.block, 1, 1),
        shared_bytes: launch.shared_bytes,
    };
    stream.launch(&kernel, grid, &mut launch.args.pointers())
}

/// Enqueues launches in order, recorded as one span.
///
/// # Safety
/// Addresses among the arguments lie in device memory that is claimed for `queue`, initialised where it is read, and of the
/// sizes that the launches were made for.
///
/// # Errors
/// As [`Cuda::enqueue`]; what [`load`] says.
pub unsafe fn enqueue(
    device: &Cuda,
    queue: &CudaQueue,
    work: Work,
    launches: &[Launch],
) -> Result<(), DeviceError> {
    // SAFETY: the same contract; the argument lists are those of the kernels, by `Launch`'s makers.
    unsafe {
        device.enqueue(queue, work, |stream| launches.iter().try_for_each(|one| launch(device, stream, one)))
    }
}
