//! Memory is unlocked while a copy of an outer scope may read it.
use prestage_transfer::{Error, Lane, registered};
use prestage_vram::{Bytes, Host};

fn misuse(lane: &Lane<'_, Host>, memory: &mut [u64]) -> Result<(), Error> {
    lane.scope(|s| {
        registered(lane.device(), memory, Bytes::mib(1), |memory| {
            s.upload(memory.into_slice(), lane.alloc("a", 8)?).map(drop)
        })?
    })
}

fn main() {}
