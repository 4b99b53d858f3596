//! What the driver answers, as errors of this crate.

use cudarc::driver::{
    DriverError,
    sys::{self, CUresult},
};

use crate::Error;

/// Every function of the driver that is used here, by the name under which its library has it. The binding looks each up
/// when it is first called, and ends the process where there is none.
const CALLS: &[&str] = &[
    "cuCtxDestroy_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxReset_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocFromPoolAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// The first function that the driver's library lacks.
///
/// # Safety
/// The library is there.
pub(super) unsafe fn missing() -> Option<&'static str> {
    CALLS.iter().copied().find(|name| {
        // SAFETY: the library is there; the address is not used.
        let found = unsafe { sys::culib().get::<*const ()>(name.as_bytes()) };
        found.is_err()
    })
}

/// The answer to a call that concerns no particular operation of a device.
pub(super) fn check<T>(call: &'static str, answer: Result<T, DriverError>) -> Result<T, Error> {
    answer.map_err(|error| Error::Driver { call, detail: words(error) })
}

/// The driver's own words for an error.
pub(super) fn words(error: DriverError) -> String {
    match error.error_string() {
        Ok(words) => words.to_string_lossy().into_owned(),
        Err(_) => format!("error {}", error.0 as u32),
    }
}

/// Whether the context is lost: from such an error on every call in it fails, whoever makes it.
pub(super) fn is_sticky(error: DriverError) -> bool {
    use CUresult as E;
    matches!(
        error.0,
        E::CUDA_ERROR_DEINITIALIZED
            | E::CUDA_ERROR_DEVICE_UNAVAILABLE
            | E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_EXTERNAL_DEVICE
            | E::CUDA_ERROR_UNKNOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions that are called by name are listed; those behind the binding's wrappers are listed by hand.
    #[test]
    fn every_function_in_use_is_listed() {
        let sources = [
            include_str!("context.rs"),
            include_str!("device.rs"),
            include_str!("host.rs"),
            include_str!("memory.rs"),
            include_str!("module.rs"),
            include_str!("probe.rs"),
            include_str!("queue.rs"),
            include_str!("spans.rs"),
            include_str!("stream.rs"),
        ];
        let mut seen = 0;
        for source in sources {
            for rest in source.split("sys::cu").skip(1).filter(|rest| rest.starts_with(char::is_uppercase)) {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap();
                let name = format!("cu{}", &rest[..end]);
                assert!(CALLS.contains(&name.as_str()), "{name} is not listed");
                seen += 1;
            }
        }
        assert!(seen > 20 && CALLS.is_sorted());
    }
}
