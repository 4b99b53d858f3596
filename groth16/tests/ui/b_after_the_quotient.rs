//! b and c are gone after the quotient.
use prestage_groth16::{Error, Libsnark, Staged, quotient};
use prestage_vram::Host;

fn twice(staged: Staged<'_, Host, Libsnark>) -> Result<(), Error> {
    let h = quotient(staged)?;
    let again = quotient(staged)?;
    drop((h, again));
    Ok(())
}

fn main() {}
