//! What a worker of a script has on any device: its turn, its lanes, its marks; and the steps that are the same on all.

use std::collections::BTreeMap;

use prestage_vram::{Bytes, Device, Error, LockedPages, Turn, WorkerId};

use super::plan::Act;
use super::replay::Seats;
use super::step::Lane;

pub(super) struct Seat<'d, 't, D: Device> {
    pub(super) device: &'d D,
    pub(super) id: WorkerId,
    pub(super) turn: Option<Turn<'t, D>>,
    seats: Seats<'t>,
    lanes: BTreeMap<Lane, D::Queue>,
    marks: BTreeMap<&'static str, D::Mark>,
    locked: Vec<LockedPages>,
}

impl<'d: 't, 't, D: Device> Seat<'d, 't, D> {
    pub(super) fn new(device: &'d D, id: WorkerId, seats: Seats<'t>) -> Self {
        let (lanes, marks) = (BTreeMap::new(), BTreeMap::new());
        Self { device, id, turn: None, seats, lanes, marks, locked: Vec::new() }
    }

    /// The worker's lane of that name: the turn's while it has one.
    pub(super) fn lane(&mut self, lane: Lane) -> Result<D::Queue, Error> {
        if let Some(queue) = self.lanes.get(&lane) {
            return Ok(queue.clone());
        }
        let queue = match &self.turn {
            Some(turn) => turn.queue(lane.track())?,
            None => self.device.queue(lane.track(), self.id)?,
        };
        self.lanes.insert(lane, queue.clone());
        Ok(queue)
    }

    /// The lanes that it has used.
    pub(super) fn lanes(&self) -> Vec<&D::Queue> {
        self.lanes.values().collect()
    }

    /// Counts host memory as page-locked until the script has ended.
    pub(super) fn lock(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.locked.push(self.device.ledger().locked().reserve(bytes)?);
        Ok(())
    }

    /// Does a step that is the same on every device. Those that each device does in its own way it leaves alone.
    pub(super) fn act(&mut self, act: &Act) -> Result<(), Error> {
        let device = self.device;
        match *act {
            Act::Query => device.ledger().refresh(device.reading()?),
            Act::Acquire => self.acquire()?,
            Act::Compute => {
                if let Some(turn) = &self.turn {
                    turn.compute()?;
                }
            }
            Act::Record { label, lane } => {
                let queue = self.lane(lane)?;
                self.marks.insert(label, device.record(&queue)?);
            }
            Act::Wait { label, lane } => {
                let queue = self.lane(lane)?;
                // A mark that could not be recorded holds nobody up.
                if let Some(mark) = self.marks.get(label) {
                    device.wait(&queue, mark)?;
                }
            }
            Act::Release => {
                self.lanes.clear();
                if let Some(turn) = self.turn.take() {
                    turn.release()?;
                }
            }
            Act::Host { .. }
            | Act::Register { .. }
            | Act::Alloc { .. }
            | Act::Copy { .. }
            | Act::Kernel { .. }
            | Act::Note
            | Act::PassOn
            | Act::Sync
            | Act::Trim
            | Act::Free { .. }
            | Act::Foreign { .. } => {}
        }
        Ok(())
    }

    fn acquire(&mut self) -> Result<(), Error> {
        let Some(worker) = self.seats.next() else { return Ok(()) };
        self.turn = Some(self.device.turn(worker)?);
        // What was enqueued before comes first.
        for (lane, before) in std::mem::take(&mut self.lanes) {
            let queue = self.lane(lane)?;
            self.device.wait(&queue, &self.device.record(&before)?)?;
        }
        Ok(())
    }
}
