//! The memory that a download is being written to is read meanwhile.
use prestage_transfer::{Error, Lane, Pinned};
use prestage_vram::{Buf, Host};

fn misuse(lane: &Lane<'_, Host>, a: &mut Buf<'_, Host, u64>, slot: Pinned<u64>) -> Result<u64, Error> {
    let _result = lane.download(a, 0..1, slot)?;
    Ok(slot[0])
}

fn main() {}
