//! Registered memory is kept past its registration.
use prestage_transfer::{Error, registered};
use prestage_vram::{Bytes, Host};

fn misuse(host: &Host, memory: &mut [u64]) -> Result<u64, Error> {
    let kept = registered(host, memory, Bytes::mib(1), |memory| memory.into_slice())?;
    Ok(kept[0])
}

fn main() {}
