//! Key points that stay on the device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use blstrs::{G1Affine, G2Affine};
use prestage_msm::{Affine, Bases, Msm, Points, Resident};
use prestage_transfer::{Lane, Transfer};
use prestage_vram::{Bytes, Cause, Device, Turn};

use super::KeyPoints;
use crate::Error;
use crate::plan::{Plan, Sum};

/// The queries of a key that are on the device now. A trait, so that a prover's lifetime can be shortened: what it holds lives
/// as long as the device.
pub(super) trait Store<D: Device>: Send + Sync {
    /// What they are accounted for.
    fn charge(&self) -> Bytes;

    /// Gives up what the plan does not keep, once no sum of another turn uses it.
    fn give_up(&self, turn: &Turn<'_, D>, plan: &Plan);

    /// Enqueues the uploads of what the plan keeps and is not here. What is refused is streamed.
    fn fetch(&self, lane: &Lane<'_, D>, points: &KeyPoints, plan: &Plan) -> Result<(), Error>;

    /// A query in G1.
    fn g1(&self, sum: Sum) -> Option<Resident<'_, D, G1Affine>>;

    /// B in G2.
    fn g2(&self) -> Option<Resident<'_, D, G2Affine>>;
}

/// The store of an open device. Only a turn in its staging half changes it.
pub(super) struct On<'d, D: Device> {
    device: &'d D,
    /// In the order of [`Sum::ALL`], without B in G2.
    g1: [Held<'d, D, G1Affine>; 4],
    g2: Held<'d, D, G2Affine>,
}

/// One query, if it is there. The device is never asked for anything while the lock is held: on a simulated one that may be
/// another worker's cue.
struct Held<'d, D: Device, A>(Mutex<Option<Resident<'d, D, A>>>);

impl<'d, D: Device, A> Held<'d, D, A> {
    const fn empty() -> Self {
        Self(Mutex::new(None))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Resident<'d, D, A>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Option<Resident<'d, D, A>> {
        self.lock().clone()
    }

    fn charge(&self) -> Bytes {
        self.lock().as_ref().map_or(Bytes::ZERO, Resident::charge)
    }

    /// Whether a sum uses it.
    fn busy(&self) -> bool {
        self.lock().as_ref().is_some_and(|query| !query.is_unused())
    }
}

impl<'d, D: Transfer, A: Affine> Held<'d, D, A> {
    /// Lets go of a query that is not kept, or whose upload failed.
    fn give_up(&self, kept: bool) {
        if !kept || self.get().is_some_and(|query| query.arrived().is_err()) {
            let query = self.lock().take();
            drop(query);
        }
    }

    fn fetch(&self, points: &Points<A>, device: &'d D, lane: &Lane<'_, D>, sum: Sum) -> Result<(), Error> {
        if points.is_empty() || self.lock().is_some() {
            return Ok(());
        }
        match Resident::upload(points, device, lane, sum.points()).map_err(Error::from) {
            Ok(query) => *self.lock() = Some(query),
            // It was planned for, and someone has taken the memory since.
            Err(e) if e.refused().is_some() => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

impl<'d, D: Device> On<'d, D> {
    pub(super) fn new(device: &'d D) -> Self {
        Self { device, g1: [const { Held::empty() }; 4], g2: Held::empty() }
    }

    fn in_g1(&self) -> impl Iterator<Item = (Sum, &Held<'d, D, G1Affine>)> {
        Sum::ALL.into_iter().zip(&self.g1)
    }
}

impl<D: Msm> Store<D> for On<'_, D> {
    fn charge(&self) -> Bytes {
        self.in_g1().map(|(_, held)| held.charge()).sum::<Bytes>() + self.g2.charge()
    }

    fn give_up(&self, turn: &Turn<'_, D>, plan: &Plan) {
        // A sum in flight is an older turn's, which waits for nothing of this one.
        let busy = || {
            self.in_g1().any(|(sum, held)| !plan.keeps(sum) && held.busy())
                || !plan.keeps(Sum::B2) && self.g2.busy()
        };
        let asked = self.device.now();
        self.device.block(&mut || !busy());
        turn.waited(Cause::Alloc, asked, self.device.now());
        self.in_g1().for_each(|(sum, held)| held.give_up(plan.keeps(sum)));
        self.g2.give_up(plan.keeps(Sum::B2));
    }

    fn fetch(&self, lane: &Lane<'_, D>, points: &KeyPoints, plan: &Plan) -> Result<(), Error> {
        // The sums run in this order, so that is how they should arrive.
        let in_g1 = [&points.h, &points.l, &points.a, &points.b1];
        for ((sum, held), points) in self.in_g1().zip(in_g1).filter(|((sum, _), _)| plan.keeps(*sum)) {
            held.fetch(points, self.device, lane, sum)?;
        }
        if plan.keeps(Sum::B2) {
            self.g2.fetch(&points.b2, self.device, lane, Sum::B2)?;
        }
        Ok(())
    }

    fn g1(&self, sum: Sum) -> Option<Resident<'_, D, G1Affine>> {
        self.g1.get(sum as usize)?.get()
    }

    fn g2(&self) -> Option<Resident<'_, D, G2Affine>> {
        self.g2.get()
    }
}

/// The bases of a sum where they are: on the device if they stay there.
pub(super) fn bases<'b, 'r, D: Device, A: Affine>(
    resident: Option<&'b Resident<'r, D, A>>,
    points: &'b Points<A>,
) -> Bases<'b, 'r, D, A> {
    resident.map_or_else(|| points.into(), Bases::from)
}
