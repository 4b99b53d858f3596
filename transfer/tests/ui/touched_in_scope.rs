//! A borrowed source is written while its copy may read it.
use prestage_transfer::{Error, Lane};
use prestage_vram::Host;

fn misuse(lane: &Lane<'_, Host>, mut source: Vec<u64>) -> Result<(), Error> {
    lane.scope(|s| {
        let _a = s.upload(&source, lane.alloc("a", source.len())?)?;
        source[0] = 1;
        Ok(())
    })
}

fn main() {}
