//! A source that dies before the scope waits for its copy.
use prestage_transfer::{Error, Lane};
use prestage_vram::Host;

fn misuse(lane: &Lane<'_, Host>) -> Result<(), Error> {
    lane.scope(|s| {
        let source = vec![1u64; 8];
        let _a = s.upload(&source, lane.alloc("a", 8)?)?;
        Ok(())
    })
}

fn main() {}
