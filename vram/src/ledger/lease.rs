//! A granted number of bytes.

use std::fmt;

use super::{Class, Ledger, Request, Ticket, WorkerId};
use crate::Bytes;

/// A granted number of bytes, given back when dropped. It cannot be split, grown, cloned or given back twice.
pub struct Lease {
    id: u64,
    bytes: Bytes,
    class: Class,
    label: &'static str,
    worker: WorkerId,
    resident: bool,
    /// True once the device has given the memory.
    backed: bool,
    ticket: Ticket,
    ledger: Ledger,
}

impl Lease {
    pub(super) fn new(ledger: &Ledger, id: u64, ticket: Ticket, request: &Request) -> Self {
        let Request { label, bytes, class, resident, worker, .. } = *request;
        Self { id, bytes, class, label, worker, resident, backed: false, ticket, ledger: ledger.clone() }
    }

    /// The device has given the memory: from now on giving the lease back means that it was freed. Before, the bytes
    /// were only promised, and none of them can be in the pool.
    pub(crate) fn backed(mut self) -> Self {
        self.backed = true;
        self
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// What it is for.
    #[must_use]
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// Who took it.
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// True when the free has to be waited for before the lease is given back: resident memory, whose turn may be
    /// long over, and memory of a turn that stages ahead, so that what it frees is there at once for the turn
    /// before it.
    pub(crate) fn settles(&self) -> bool {
        self.resident || !self.ledger.is_oldest(self.ticket)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("label", &self.label)
            .field("bytes", &self.bytes)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.ledger.release(self.id, self.worker, self.backed);
    }
}
