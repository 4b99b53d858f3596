//! What can go wrong between a kernel source and its result.

use std::path::PathBuf;

use crate::{Arch, Family, Target, Version, arch::Capability};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host build found a broken invariant, an unsynchronised access or a wrong launch.
    #[error("kernel {kernel} on the host: {message}")]
    Host {
        /// The kernel's name.
        kernel: String,
        /// File, line and condition, or what is wrong with the launch.
        message: String,
    },
    /// The NVIDIA driver's library is not there.
    #[error(
        "no NVIDIA driver: libcuda was not found (install the driver; nothing else on this machine needs it)"
    )]
    NoDriver,
    /// The driver is older than the code it would load.
    #[error("driver for CUDA {driver} is too old for kernels compiled by CUDA {compiler}: update the driver, or use an NVRTC of CUDA {}", driver.major)]
    DriverTooOld {
        /// What the driver supports.
        driver: Version,
        /// What compiled the kernels.
        compiler: Version,
    },
    /// The kernels must be compiled and the compiler is not there.
    #[error("no NVRTC, and no compiled {family} for {target} in {}: `pip install nvidia-cuda-nvrtc` and put its folder in LD_LIBRARY_PATH, or warm the cache elsewhere with `prestage kernels build --arch {}`", cache.display(), target.arch)]
    NoCompiler {
        /// What was to be compiled.
        family: Family,
        /// And for what.
        target: Target,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// NVRTC is needed and not there.
    #[error(
        "no NVRTC: `pip install nvidia-cuda-nvrtc` and put the folder of its libnvrtc in LD_LIBRARY_PATH"
    )]
    NoNvrtc,
    /// The device is older than every architecture that kernels are compiled for.
    #[error("compute capability {capability} is not supported; kernels are compiled for {}", join(supported))]
    UnsupportedArchitecture {
        /// The device's.
        capability: Capability,
        /// What would do.
        supported: Vec<Arch>,
    },
    /// An architecture's name is not known.
    #[error("unknown architecture `{name}`; known are {}", join(Arch::ALL))]
    UnknownArchitecture {
        /// What was given.
        name: String,
    },
    /// The compiler refused a source.
    #[error("NVRTC {compiler} failed on {family} for {target}: {status}\n{log}")]
    Compile {
        /// What was compiled.
        family: Family,
        /// And for what.
        target: Target,
        /// By which version.
        compiler: Version,
        /// NVRTC's status.
        status: String,
        /// NVRTC's log.
        log: String,
    },
    /// A call to a CUDA library failed.
    #[error("{call}: {status}")]
    Call {
        /// The function.
        call: &'static str,
        /// What it returned.
        status: String,
    },
    /// No folder for the cache can be named.
    #[error("no folder for compiled kernels: set PRESTAGE_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheDir,
    /// The cache could not be read or written.
    #[error("kernel cache {}: {source}", path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

fn join(archs: &[Arch]) -> String {
    archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(", ")
}
