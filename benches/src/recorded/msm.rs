//! A sum in three batches, its scalars in host memory: a card streams them, the CPU reads them there.

use blstrs::G1Affine;
use prestage_harness::timeline::Verified;
use prestage_msm::{Batches, Compact, Deferred, Msm, Points, Scalars, Slots, batched};
use prestage_transfer::Lanes;
use prestage_vram::Worker;

use super::{Outcome, Recorded};
use crate::{Error, Progression, bits, scalars};

/// Two sums over 2^`log` points of G1 in three batches each: uniform scalars, then those of a witness. Both are
/// verified by the logarithms of the points.
///
/// # Errors
/// What the device says; [`prestage_harness::Error::Unverified`].
pub fn msm<D: Msm>(on: &Recorded<D>, log: u32) -> Result<Outcome, Error> {
    let device = &on.device;
    let n = 1usize << log;
    let bases = Progression::<G1Affine>::new(n, 0);
    let points = Points::from(bases.points.clone());
    let loads = [("uniform", scalars(n, 1)), ("witness", bits(n, 2))];
    let batches = Batches::new(device, n, n.div_ceil(3));
    let slots = Slots::open(device, 3)?;

    let compact = loads
        .iter()
        .map(|(name, scalars)| Ok((*name, Compact::new(device, scalars)?)))
        .collect::<Result<Vec<_>, Error>>()?;

    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    turn.phase("sums");
    let lanes = Lanes::open(&turn)?;
    let mut sums = Vec::with_capacity(loads.len());
    for (name, scalars) in &compact {
        sums.push(batched(&lanes, name, &points, Scalars::host(scalars.clone()), &batches, &slots)?);
    }
    let sums = sums.into_iter().map(Deferred::finish).collect::<Result<Vec<_>, _>>()?;
    drop(lanes);
    turn.release()?;

    let verified =
        Verified::check(sums.iter().zip(&loads), |(sum, (_, scalars))| *sum == bases.sum(scalars))?;
    Ok(on.outcome("bench msm", format!("sums-2^{log}"), n as u64, verified))
}
