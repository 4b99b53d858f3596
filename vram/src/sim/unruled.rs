//! Memory of a simulated card without the rules that types keep: for schedules that broke them.
//!
//! Historical faults took memory before the turn and freed it after it. A [`crate::Turn`] cannot express them, so what
//! replays them asks here. The account is the same and so is its rule of admission; only lifetimes are the caller's.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{OutOfMemory, Sim, SimQueue};
use crate::ledger::{Request, Ticket};
use crate::{Buf, Bytes, Cause, Class, Device, Error, Event, Op, Refused, Turn, WorkerId};

/// A request for memory by a replayed schedule.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// What it is for.
    pub label: &'static str,
    /// How much.
    pub bytes: Bytes,
    /// How it is allocated.
    pub class: Class,
    /// Whether it is counted as memory that outlives turns.
    pub resident: bool,
    /// Whether to synchronise, trim and ask once more before it is refused, as turns do.
    pub trim: bool,
}

/// A worker of a replayed schedule: it may take and free memory with and without a turn.
#[derive(Debug)]
pub struct Unruled<'s> {
    sim: &'s Sim,
    worker: WorkerId,
    outside: Ticket,
}

impl Sim {
    /// A worker that the rules of turns do not bind.
    #[must_use]
    pub fn unruled(&self, worker: WorkerId) -> Unruled<'_> {
        Unruled { sim: self, worker, outside: self.ledger.outside() }
    }
}

impl<'s> Unruled<'s> {
    /// Memory that lives until it is dropped, in the turn given or in none. Freeing waits for its home queue unless it was
    /// taken in the turn that is the oldest now.
    ///
    /// What the account does not grant is asked of the card all the same, as programs without an account did: a card that
    /// does not stand that behaves as it does when memory runs out ([`OutOfMemory`]).
    ///
    /// # Errors
    /// [`Error::Refused`], with the driver's words where the card failed; [`Error::Poisoned`].
    pub fn alloc(
        &self,
        turn: Option<&Turn<'_, Sim>>,
        wanted: &Wanted,
        queue: &SimQueue,
    ) -> Result<Buf<'s, Sim, MaybeUninit<u8>>, Error> {
        let (sim, ledger) = (self.sim, &self.sim.ledger);
        ledger.healthy()?;
        let Wanted { label, bytes, class, resident, trim } = *wanted;
        let (ticket, phase) = match turn {
            Some(turn) => (turn.ticket(), "turn"),
            None => (self.outside, "no turn"),
        };
        let worker = self.worker;
        let request = Request { label, bytes, real: Bytes::new(1), class, phase, resident, worker };
        let mut lease = ledger.try_lease(ticket, &request);
        if trim && lease.as_ref().is_err_and(|refused| !refused.never) {
            self.settle(turn, &[queue], Cause::Alloc)?;
            self.trim()?;
            lease = ledger.try_lease(ticket, &request);
        }
        let Ok(lease) = lease else {
            let words = self.force(&request, queue);
            return Err(self.refuse(ledger.refusal(ticket, &request, words)));
        };
        // SAFETY: the lease is kept beside the block, in the buffer.
        match unsafe { sim.allocate(request.real, bytes, class, queue) } {
            Ok(block) => Ok(Buf::new(sim, block, lease.backed(), 1, queue.clone())),
            Err(Error::Device { op: Op::Allocate, detail, .. }) => {
                drop(lease);
                Err(self.refuse(ledger.refusal(ticket, &request, Some(detail))))
            }
            Err(other) => Err(other),
        }
    }

    /// Asks the card for what the account has refused. Returns its words if it refuses as well.
    fn force(&self, request: &Request, queue: &SimQueue) -> Option<String> {
        if self.sim.card().out_of_memory == OutOfMemory::Clean {
            return None;
        }
        // SAFETY: memory that is given, in spite of the account, is given back before anyone uses it.
        match unsafe { self.sim.allocate(request.real, request.bytes, request.class, queue) } {
            Ok(block) => {
                // SAFETY: the block is of this class, and no work uses it.
                unsafe { self.sim.free(block, request.class, queue) };
                None
            }
            Err(Error::Device { detail, .. }) => Some(detail),
            Err(other) => Some(other.to_string()),
        }
    }

    fn refuse(&self, refused: Arc<Refused>) -> Error {
        self.sim.ledger.emit(Event::Refusal { at: self.sim.now(), refused: Arc::clone(&refused) });
        Error::Refused(refused)
    }

    /// Waits until all work on these queues and on those of the turn has ended.
    ///
    /// # Errors
    /// The first failure of that work.
    pub fn drain(&self, turn: Option<&Turn<'_, Sim>>, queues: &[&SimQueue]) -> Result<(), Error> {
        self.settle(turn, queues, Cause::Sync)
    }

    /// Notes what the turn has freed so far, for [`Unruled::pass_on`].
    pub fn note(&self, turn: &Turn<'_, Sim>) {
        self.sim.ledger.drain_begins(turn.ticket());
    }

    /// Lets turns that stage beside this one have what was noted, after waiting for these queues. It stays in the pool.
    ///
    /// # Errors
    /// The first failure of work on the queues.
    pub fn pass_on(&self, turn: &Turn<'_, Sim>, queues: &[&SimQueue]) -> Result<(), Error> {
        let mut first = Ok(());
        for queue in queues {
            first = first.and(self.sim.drain(queue));
        }
        self.sim.ledger.frees_passed(turn.ticket());
        first
    }

    fn settle(&self, turn: Option<&Turn<'_, Sim>>, queues: &[&SimQueue], cause: Cause) -> Result<(), Error> {
        let asked = self.sim.now();
        let mut first = Ok(());
        for queue in queues {
            first = first.and(self.sim.drain(queue));
        }
        let (worker, end) = (self.worker, self.sim.now());
        if end > asked {
            self.sim.ledger.emit(Event::Wait { worker, cause, start: asked, end });
        }
        match turn {
            Some(turn) => first.and(turn.drain()),
            None => {
                self.sim.ledger.drain_ends(self.outside, self.worker);
                first
            }
        }
    }

    /// Gives back what the pool retains, but for what has not been freed in fact: [`Unruled::drain`] first. Returns what
    /// came back.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn trim(&self) -> Result<Bytes, Error> {
        self.sim.trim()?;
        let (ledger, worker) = (&self.sim.ledger, self.worker);
        let freed = ledger.trimmed(worker);
        ledger.emit(Event::Trim { at: self.sim.now(), worker, freed });
        ledger.refresh(self.sim.reading()?);
        Ok(freed)
    }
}
