//! The result of a download is read before it is there.
use prestage_transfer::{Error, Lane, Pinned};
use prestage_vram::{Buf, Host};

fn misuse(lane: &Lane<'_, Host>, a: &mut Buf<'_, Host, u64>, slot: Pinned<u64>) -> Result<u64, Error> {
    let result = lane.download(a, 0..1, slot)?;
    Ok(result[0])
}

fn main() {}
