//! Memory that may not be written, such as a read-only mapping of a file, is registered.
use prestage_transfer::{Error, registered};
use prestage_vram::{Bytes, Host};

fn misuse(host: &Host, mapped: &[u64]) -> Result<(), Error> {
    registered(host, mapped, Bytes::mib(1), |_| ())
}

fn main() {}
