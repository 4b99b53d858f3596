//! Device memory is registered as host memory.
use prestage_transfer::{Error, registered};
use prestage_vram::{Buf, Bytes, Host};

fn misuse(host: &Host, a: &mut Buf<'_, Host, u64>) -> Result<(), Error> {
    registered(host, a, Bytes::mib(1), |_| ())
}

fn main() {}
