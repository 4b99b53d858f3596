//! Uploads from pinned memory, from a ring and from ordinary memory, and one download.

use prestage_harness::timeline::Verified;
use prestage_transfer::{Downloading, Lanes, Pinned, Ring, Transfer};
use prestage_vram::{Track, Worker, host_work};
use rand_core::RngCore;

use super::{Outcome, Recorded};
use crate::{Error, rng};

/// Slots of the ring.
const SLOTS: usize = 4;

/// Three uploads of 2^`log` words, each by another way, and their downloads, which are compared with the sources.
///
/// # Errors
/// What the device says; [`prestage_harness::Error::Unverified`].
pub fn transfer<D: Transfer>(on: &Recorded<D>, log: u32) -> Result<Outcome, Error> {
    let device = &on.device;
    let n = 1usize << log;
    let mut rng = rng(0);
    let sources: [Vec<u64>; 3] = [(); 3].map(|()| (0..n).map(|_| rng.next_u64()).collect());
    let pinned = Pinned::from_slice(device, &sources[0])?;
    let mut ring = Ring::open(device, SLOTS, n.div_ceil(2 * SLOTS).max(1), 0u64)?;
    let mut slots = Vec::with_capacity(sources.len());
    for _ in &sources {
        slots.push(Pinned::filled(device, n, 0u64)?);
    }

    let mut worker = Worker::new(0);
    let id = worker.id();
    let turn = device.turn(&mut worker)?;
    turn.phase("copies");
    let lanes = Lanes::open(&turn)?;
    let place = |label| lanes.upload.alloc(label, n);
    let (first, up_first) = lanes.upload.upload(pinned, place("pinned")?)?;
    let (third, up_third) = lanes.upload.upload(sources[2].clone(), place("plain")?)?;
    // The host fills slots while the two copies before run.
    let second = place("ring")?;
    let second = host_work(device, id, "fill slots", || ring.upload(&lanes.upload, &sources[1], second))?;
    let mut buffers = [first, second, third];
    let mut downloads = Vec::with_capacity(slots.len());
    for (buffer, slot) in buffers.iter_mut().zip(slots) {
        downloads.push(lanes.download.download(buffer, 0..n, slot)?);
    }
    let results = downloads.into_iter().map(Downloading::wait).collect::<Result<Vec<_>, _>>()?;
    drop((up_first.wait()?, up_third.wait()?));
    drop((buffers, lanes));
    turn.release()?;

    let verified = Verified::check(results.iter().zip(&sources), |(got, source)| got[..] == source[..])?;
    let outcome = on.outcome("bench transfer", format!("copies-2^{log}"), n as u64, verified);
    debug_assert!(outcome.timeline.on(Track::Upload).count() > 0);
    Ok(outcome)
}
