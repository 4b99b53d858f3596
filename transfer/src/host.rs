//! The CPU as a device that copies: one thread per lane stands for a copy engine.

use std::borrow::Cow;
use std::ptr::NonNull;

use prestage_vram::{Bytes, Device, Error, Host, HostBlock, HostQueue, Op};

use crate::{HostRange, Pages, Registration, Transfer, cpu};

/// The CPU has nothing to lock memory for: pinning allocates whole pages, registering keeps the account. The rules
/// are those of a card all the same, so that what breaks them breaks here.
impl Transfer for Host {
    fn streams(&self) -> bool {
        false
    }

    unsafe fn copy_in(
        &self,
        queue: &HostQueue,
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
        queue: &HostQueue,
        name: Cow<'static, str>,
        from: &HostBlock,
        at: usize,
        to: HostRange,
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { cpu::copy_out(self, queue, name, from, at, to) }
    }

    fn pin(&self, len: Bytes) -> Result<Pages, Error> {
        cpu::pages(self, len, || ())
    }

    unsafe fn register(&self, _: NonNull<u8>, _: usize) -> Result<Registration, Error> {
        self.ledger().attempt(Op::Register)?;
        Ok(Registration::new(|| Ok(())))
    }
}
