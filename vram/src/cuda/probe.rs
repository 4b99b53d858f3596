//! What NVIDIA hardware and driver are here. The driver is loaded at run time; where it is missing nothing is printed
//! and nothing panics.

use std::ffi::c_int;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use cudarc::driver::{DriverError, result, sys};

use super::call::{check, missing};
use crate::{Bytes, Error};

/// The oldest driver that has every call made here.
const OLDEST: Version = Version { major: 12, minor: 0 };

/// A CUDA version that a driver supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the dot.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl Version {
    /// From the driver's number, 1000 × major + 10 × minor
    /// ([`cuDriverGetVersion`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__VERSION.html)).
    fn from_number(number: c_int) -> Self {
        let number = u32::try_from(number).unwrap_or(0);
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Names one card for ever, whatever order cards are listed in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

impl fmt::Display for Uuid {
    /// As `nvidia-smi -L` shows it: `GPU-` and 8-4-4-4-12 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPU")?;
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 0 | 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    /// Reads what `Display` writes; `GPU-` may be left out.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || ParseUuidError(s.to_owned());
        let digits: Vec<u8> = s
            .strip_prefix("GPU-")
            .unwrap_or(s)
            .chars()
            .filter(|&c| c != '-')
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()).ok_or_else(bad))
            .collect::<Result<_, _>>()?;
        let bytes: Vec<u8> = digits.as_chunks().0.iter().map(|[high, low]| high << 4 | low).collect();
        match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) if digits.len() == 32 => Ok(Self(bytes)),
            _ => Err(bad()),
        }
    }
}

/// Text that names no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no card (write its number, or its UUID as nvidia-smi -L shows it)")]
pub struct ParseUuidError(pub(super) String);

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One card.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Found {
    /// Its number in this process: `cuda:N`. It depends on `CUDA_VISIBLE_DEVICES` and on the driver's order.
    pub ordinal: u32,
    /// What it is called.
    pub name: String,
    /// Which one it is.
    pub uuid: Uuid,
    /// Its compute capability: 9.0 for `sm_90`.
    pub compute: (u32, u32),
    /// All of its memory.
    pub total: Bytes,
    /// What is free of it now, beside a fresh context of this process. The error says why a context cannot be made:
    /// another process may have the card for itself.
    pub free: Result<Bytes, Error>,
}

/// What is here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probe {
    /// The newest CUDA that the driver supports.
    pub version: Version,
    /// The cards that this process may use; none where the driver sees none.
    pub devices: Vec<Found>,
}

/// Looks for the driver and its cards. Whether the driver's library is there is asked once for a process.
///
/// # Errors
/// [`Error::NoDriver`] where the library is missing or too old, [`Error::Driver`] where a call to it fails.
pub fn probe() -> Result<Probe, Error> {
    let (version, count) = start()?;
    let found = |ordinal| {
        let Card { device, name, uuid, compute } = Card::find(ordinal)?;
        // SAFETY: `device` came from the driver.
        let total = check("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })?;
        let total = Bytes::new(total as u64);
        Ok(Found { ordinal, name, uuid, compute, total, free: free_of(device) })
    };
    let devices = (0..count).map(found).collect::<Result<_, Error>>()?;
    Ok(Probe { version, devices })
}

/// Starts the driver: what it supports, and how many cards it shows.
pub(super) fn start() -> Result<(Version, u32), Error> {
    static LACKS: OnceLock<Option<String>> = OnceLock::new();
    let lacks = LACKS.get_or_init(|| {
        // SAFETY: loading the driver's library runs its initialisers, which is what using it means.
        if !unsafe { sys::is_culib_present() } {
            return Some("libcuda is not to be found".into());
        }
        // SAFETY: the library is there.
        let call = unsafe { missing() }?;
        Some(format!("libcuda has no {call}, as drivers for CUDA {OLDEST} have"))
    });
    if let Some(detail) = lacks {
        return Err(Error::NoDriver { detail: detail.clone() });
    }
    let mut number = 0;
    // SAFETY: the library is there; the pointer is to a live integer.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut number) }.result())?;
    let version = Version::from_number(number);
    if version < OLDEST {
        let detail = format!("the driver supports CUDA {version}, {OLDEST} is needed");
        return Err(Error::NoDriver { detail });
    }
    match result::init() {
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok((version, 0)),
        other => check("cuInit", other)?,
    }
    let count = check("cuDeviceGetCount", result::device::get_count())?;
    Ok((version, u32::try_from(count).unwrap_or(0)))
}

/// What the driver says of a card without a context on it.
pub(super) struct Card {
    pub(super) device: sys::CUdevice,
    pub(super) name: String,
    pub(super) uuid: Uuid,
    pub(super) compute: (u32, u32),
}

impl Card {
    /// The card with this number; [`start`] was called.
    pub(super) fn find(ordinal: u32) -> Result<Self, Error> {
        use sys::CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        let device = check("cuDeviceGet", result::device::get(ordinal))?;
        let name = check("cuDeviceGetName", result::device::get_name(device))?;
        let uuid = check("cuDeviceGetUuid", result::device::get_uuid(device))?;
        let uuid = Uuid(uuid.bytes.map(|b| b.to_ne_bytes()[0]));
        let compute = (attribute(device, MAJOR)?, attribute(device, MINOR)?);
        Ok(Self { device, name, uuid, compute })
    }
}

/// A number that the driver knows of a card; negative ones are none.
pub(super) fn attribute(device: sys::CUdevice, which: sys::CUdevice_attribute) -> Result<u32, Error> {
    // SAFETY: `device` came from the driver.
    let value = check("cuDeviceGetAttribute", unsafe { result::device::get_attribute(device, which) })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Free memory can be asked for inside a context only: the primary one is made for it and given up again.
fn free_of(device: sys::CUdevice) -> Result<Bytes, Error> {
    // SAFETY: `device` came from `get`; the context is released below.
    let context = check("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
    // SAFETY: the context is retained; it is popped again, so the caller's context is current afterwards.
    let pushed = check("cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context) }.result());
    let free = pushed.and_then(|()| {
        let free = check("cuMemGetInfo", result::mem_get_info());
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context pushed above is the current one.
        check("cuCtxPopCurrent", unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) }.result())?;
        free
    });
    // SAFETY: retained above, once.
    check("cuDevicePrimaryCtxRelease", unsafe { result::primary_ctx::release(device) })?;
    free.map(|(free, _)| Bytes::new(free as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_drivers_number() {
        let version = Version::from_number(13_010);
        assert_eq!((version.major, version.minor), (13, 1));
        assert_eq!(version.to_string(), "13.1");
        assert!(Version::from_number(11_080) < OLDEST && Version::from_number(12_000) >= OLDEST);
    }

    #[test]
    fn uuids_read_as_the_vendor_writes_them() {
        let uuid = Uuid([
            0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
        ]);
        let written = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(uuid.to_string(), written);
        assert_eq!(written.parse(), Ok(uuid));
        for bad in [
            "",
            "GPU-",
            "0",
            "GPU-00112233-4455-6677-8899-aabbccddeef",
            "GPU-0011223é-4455-6677-8899-aabbccddeeff",
        ] {
            assert!(bad.parse::<Uuid>().is_err(), "{bad}");
        }
    }
}
