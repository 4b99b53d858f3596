//! A simulated card as a device that copies: copies are charged as the block at their other end is.

use std::borrow::Cow;
use std::ptr::NonNull;

use prestage_vram::sim::SimQueue;
use prestage_vram::{Bytes, Device, Error, HostBlock, Op, Sim};

use crate::{HostRange, Pages, Registration, Transfer, cpu};

/// A copy takes the time of its full size on the link, at the rate for memory that is page-locked or not. Registering
/// is charged at the card's scale, as what is registered are vectors that stand for longer ones. Pinning is charged for what
/// is pinned in fact: it serves slots and rings as well, whose size stays what it is.
impl Transfer for Sim {
    unsafe fn copy_in(
        &self,
        queue: &SimQueue,
        name: Cow<'static, str>,
        from: HostRange,
        to: &HostBlock,
        at: usize,
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { cpu::copy_in(self, queue, name, from, to, at) }
    }

    unsafe fn copy_out(
        &self,
        queue: &SimQueue,
        name: Cow<'static, str>,
        from: &HostBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { cpu::copy_out(self, queue, name, from, at, to) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        let (clock, costs) = (self.clock(), self.card().memory);
        let pages = cpu::pages(self, len, move || clock.elapse(costs.unpin.of(len)))?;
        self.elapse(costs.pin.of(len));
        Ok(pages)
    }

    unsafe fn register(&self, _: NonNull<u8>, len: usize) -> Result<Registration, Error> {
        self.ledger().attempt(Op::Register)?;
        let (clock, costs) = (self.clock(), self.card().memory);
        let len = Bytes::of::<u8>(len) * self.scale();
        self.elapse(costs.register.of(len));
        Ok(Registration::new(move || {
            clock.elapse(costs.unregister.of(len));
            Ok(())
        }))
    }
}
