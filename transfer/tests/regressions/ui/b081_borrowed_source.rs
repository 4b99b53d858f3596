//! Borrowed memory is no source of a copy that outlives the call.
use prestage_transfer::{Error, Lane};
use prestage_vram::Host;

fn misuse(lane: &Lane<'_, Host>, source: &[u64]) -> Result<(), Error> {
    let (_a, _flight) = lane.upload(source, lane.alloc("a", source.len())?)?;
    Ok(())
}

fn main() {}
