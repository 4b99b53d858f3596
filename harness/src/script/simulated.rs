//! Plays a script on a simulated card, in virtual time.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use prestage_vram::sim::{SimMark, SimQueue, Unruled, Wanted};
use prestage_vram::{
    Buf, Bytes, Cost, Cpu, Device, Error, LockedPages, Nanos, Sim, Turn, Work, WorkerId, host_work,
};

use super::OnRefusal;
use super::plan::Act;
use super::replay::{Player, Seats, Stage};
use super::step::Lane;

type Memory<'s> = BTreeMap<&'static str, Buf<'s, Sim, MaybeUninit<u8>>>;

/// A simulated card that was opened for a script.
pub(super) struct Simulated<'s> {
    pub(super) sim: &'s Sim,
    pub(super) on_refusal: OnRefusal,
}

impl<'s> Stage<'s> for Simulated<'s> {
    type Device = Sim;
    type Held = Memory<'s>;

    fn device(&self) -> &'s Sim {
        self.sim
    }

    fn player<'t>(&self, id: WorkerId, seats: Seats<'t>) -> impl Player<Held = Memory<'s>>
    where
        's: 't,
    {
        OnSim {
            sim: self.sim,
            id,
            on_refusal: self.on_refusal,
            unruled: self.sim.unruled(id),
            seats,
            turn: None,
            lanes: BTreeMap::new(),
            memory: BTreeMap::new(),
            marks: BTreeMap::new(),
            locked: Vec::new(),
        }
    }
}

struct OnSim<'s, 't> {
    sim: &'s Sim,
    id: WorkerId,
    on_refusal: OnRefusal,
    unruled: Unruled<'s>,
    seats: Seats<'t>,
    turn: Option<Turn<'t, Sim>>,
    lanes: BTreeMap<Lane, SimQueue>,
    memory: Memory<'s>,
    marks: BTreeMap<&'static str, SimMark>,
    locked: Vec<LockedPages>,
}

impl<'s: 't, 't> OnSim<'s, 't> {
    fn lane(&mut self, lane: Lane) -> Result<SimQueue, Error> {
        if let Some(queue) = self.lanes.get(&lane) {
            return Ok(queue.clone());
        }
        let queue = match &self.turn {
            Some(turn) => turn.queue(lane.track())?,
            None => self.sim.queue(lane.track(), self.id)?,
        };
        self.lanes.insert(lane, queue.clone());
        Ok(queue)
    }

    fn perform(&mut self, lane: Lane, work: Work, cost: Cost) -> Result<(), Error> {
        let queue = self.lane(lane)?;
        // SAFETY: the job touches no memory.
        unsafe { self.sim.perform(&queue, work, move || cost) }
    }

    fn acquire(&mut self) -> Result<(), Error> {
        let Some(seat) = self.seats.next() else { return Ok(()) };
        let turn = self.sim.turn(seat)?;
        self.turn = Some(turn);
        // What was enqueued before comes first.
        for (lane, before) in std::mem::take(&mut self.lanes) {
            let queue = self.lane(lane)?;
            self.sim.wait(&queue, &self.sim.record(&before)?)?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), Error> {
        match &self.turn {
            Some(turn) => turn.drain(),
            None => self.unruled.drain(None, &self.lanes.values().collect::<Vec<_>>()),
        }
    }
}

impl<'s: 't, 't> Player for OnSim<'s, 't> {
    type Held = Memory<'s>;

    fn unwind(&mut self) {
        self.memory.clear();
    }

    fn end(mut self) -> Memory<'s> {
        drop(self.turn.take());
        self.memory
    }

    fn act(&mut self, act: &Act) -> Result<(), Error> {
        let sim = self.sim;
        if let Act::Host { label, ns } = act {
            host_work(sim, self.id, *label, || sim.elapse(Nanos::new(*ns)));
            return Ok(());
        }
        sim.ledger().healthy()?;
        match *act {
            Act::Host { .. } => {}
            Act::Register { bytes } => {
                self.locked.push(sim.ledger().locked().reserve(bytes)?);
                let cost = sim.card().memory.register.of(bytes);
                host_work(sim, self.id, "register", || sim.elapse(cost));
            }
            Act::Query => sim.ledger().refresh(sim.reading()?),
            Act::Acquire => self.acquire()?,
            Act::Compute => {
                if let Some(turn) = &self.turn {
                    turn.compute()?;
                }
            }
            Act::Alloc { label, bytes, class, resident } => {
                let queue = self.lane(Lane::Compute)?;
                let trim = self.on_refusal == OnRefusal::Trim;
                let wanted = Wanted { label, bytes, class, resident, trim };
                let mut granted = self.unruled.alloc(self.turn.as_ref(), &wanted, &queue);
                if matches!(granted, Err(Error::Refused(_))) && self.on_refusal == OnRefusal::Sync {
                    self.settle()?;
                    granted = self.unruled.alloc(self.turn.as_ref(), &wanted, &queue);
                }
                let buf = granted?;
                self.memory.insert(label, buf);
            }
            Act::Copy { label, bytes, lane, pinned } => {
                let cost = match lane {
                    Lane::Download => Cost::Download { bytes, pinned },
                    Lane::Compute | Lane::Upload => Cost::Upload { bytes, pinned },
                };
                self.perform(lane, Work::copy(label, bytes), cost)?;
            }
            Act::Record { label, lane } => {
                let queue = self.lane(lane)?;
                self.marks.insert(label, sim.record(&queue)?);
            }
            Act::Wait { label, lane } => {
                let queue = self.lane(lane)?;
                // A mark that could not be recorded holds nobody up.
                if let Some(mark) = self.marks.get(label) {
                    sim.wait(&queue, mark)?;
                }
            }
            Act::Kernel { label, ns, lane } => {
                self.perform(lane, Work::launch(label, Bytes::ZERO), Cost::Time(Nanos::new(ns)))?;
            }
            Act::Note => {
                if let Some(turn) = &self.turn {
                    self.unruled.note(turn);
                }
            }
            Act::PassOn => {
                if let Some(turn) = &self.turn {
                    self.unruled.pass_on(turn, &self.lanes.values().collect::<Vec<_>>())?;
                }
            }
            Act::Sync => self.settle()?,
            Act::Trim => drop(self.unruled.trim()?),
            Act::Free { label, lane } => {
                let queue = self.lane(lane)?;
                // What could not be allocated is not there to be freed.
                if let Some(mut buf) = self.memory.remove(label) {
                    buf.claim(&queue)?;
                }
            }
            Act::Release => {
                self.lanes.clear();
                if let Some(turn) = self.turn.take() {
                    turn.release()?;
                }
            }
            Act::Foreign { bytes } => sim.set_foreign(bytes),
        }
        Ok(())
    }
}
