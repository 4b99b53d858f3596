//! A proof's memory cannot be kept past its turn.
use prestage_groth16::{Assignment, Error, Libsnark, Plan, Prover, quotient, stage};
use prestage_vram::{Device, Host, Worker};

fn keep(
    device: &Host,
    prover: &Prover<'_, Host, Libsnark>,
    assignment: &Assignment,
    plan: Plan,
) -> Result<(), Error> {
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    let h = quotient(stage(&turn, prover, assignment, plan)?)?;
    turn.release()?;
    drop(h);
    Ok(())
}

fn main() {}
