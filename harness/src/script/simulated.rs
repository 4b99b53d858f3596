//! Plays a script on a simulated card, in virtual time.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use prestage_vram::sim::{Unruled, Wanted};
use prestage_vram::{Buf, Bytes, Cost, Cpu, Device, Error, Nanos, Sim, Work, WorkerId, host_work};

use super::OnRefusal;
use super::plan::Act;
use super::replay::{Player, Seats, Stage};
use super::seat::Seat;
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
            seat: Seat::new(self.sim, id, seats),
            on_refusal: self.on_refusal,
            unruled: self.sim.unruled(id),
            memory: BTreeMap::new(),
        }
    }
}

struct OnSim<'s, 't> {
    seat: Seat<'s, 't, Sim>,
    on_refusal: OnRefusal,
    unruled: Unruled<'s>,
    memory: Memory<'s>,
}

impl<'s: 't, 't> OnSim<'s, 't> {
    fn perform(&mut self, lane: Lane, work: Work, cost: Cost) -> Result<(), Error> {
        let queue = self.seat.lane(lane)?;
        // SAFETY: the job touches no memory.
        unsafe { self.seat.device.perform(&queue, work, move || cost) }
    }

    fn settle(&self) -> Result<(), Error> {
        match &self.seat.turn {
            Some(turn) => turn.drain(),
            None => self.unruled.drain(None, &self.seat.lanes()),
        }
    }
}

impl<'s: 't, 't> Player for OnSim<'s, 't> {
    type Held = Memory<'s>;

    fn unwind(&mut self) {
        self.memory.clear();
    }

    fn end(mut self) -> Memory<'s> {
        drop(self.seat.turn.take());
        self.memory
    }

    fn act(&mut self, act: &Act) -> Result<(), Error> {
        let sim = self.seat.device;
        if let Act::Host { label, ns } = act {
            host_work(sim, self.seat.id, *label, || sim.elapse(Nanos::new(*ns)));
            return Ok(());
        }
        sim.ledger().healthy()?;
        match *act {
            Act::Register { bytes } => {
                self.seat.lock(bytes)?;
                let cost = sim.card().memory.register.of(bytes);
                host_work(sim, self.seat.id, "register", || sim.elapse(cost));
            }
            Act::Alloc { label, bytes, class, resident } => {
                let queue = self.seat.lane(Lane::Compute)?;
                let trim = self.on_refusal == OnRefusal::Trim;
                let wanted = Wanted { label, bytes, class, resident, trim };
                let mut granted = self.unruled.alloc(self.seat.turn.as_ref(), &wanted, &queue);
                if matches!(granted, Err(Error::Refused(_))) && self.on_refusal == OnRefusal::Sync {
                    self.settle()?;
                    granted = self.unruled.alloc(self.seat.turn.as_ref(), &wanted, &queue);
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
            Act::Kernel { label, ns, lane } => {
                self.perform(lane, Work::launch(label, Bytes::ZERO), Cost::Time(Nanos::new(ns)))?;
            }
            Act::Note => {
                if let Some(turn) = &self.seat.turn {
                    self.unruled.note(turn);
                }
            }
            Act::PassOn => {
                if let Some(turn) = &self.seat.turn {
                    self.unruled.pass_on(turn, &self.seat.lanes())?;
                }
            }
            Act::Sync => self.settle()?,
            Act::Trim => drop(self.unruled.trim()?),
            Act::Free { label, lane } => {
                let queue = self.seat.lane(lane)?;
                // What could not be allocated is not there to be freed.
                if let Some(mut buf) = self.memory.remove(label) {
                    buf.claim(&queue)?;
                }
            }
            Act::Foreign { bytes } => sim.set_foreign(bytes),
            _ => self.seat.act(act)?,
        }
        Ok(())
    }
}
