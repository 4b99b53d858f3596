//! What the driver answers, as errors of this crate.

use cudarc::driver::{DriverError, sys::CUresult};

use crate::Error;

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
