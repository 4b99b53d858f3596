//! Work for devices that compute on the CPU: the CPU itself, and simulated cards.

use std::borrow::Cow;

use crate::{Bytes, Device, Error, HostBlock, Nanos, Op};

/// A piece of work as it is handed over and recorded.
#[derive(Clone, Debug)]
pub struct Work {
    /// What kind of operation it is.
    pub op: Op,
    /// The span's name.
    pub name: Cow<'static, str>,
    /// Bytes moved, at full size; zero where that means nothing.
    pub bytes: Bytes,
}

impl Work {
    /// Computation over `bytes`.
    #[must_use]
    pub fn launch(name: impl Into<Cow<'static, str>>, bytes: Bytes) -> Self {
        Self { op: Op::Launch, name: name.into(), bytes }
    }

    /// A copy of `bytes`.
    #[must_use]
    pub fn copy(name: impl Into<Cow<'static, str>>, bytes: Bytes) -> Self {
        Self { op: Op::Copy, name: name.into(), bytes }
    }
}

/// Work of one kind, in the unit that the stage which does it defines: a butterfly, a point, an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// The name in the card's table of kernels.
    pub kind: &'static str,
    /// How many, at full size.
    pub count: u64,
}

/// What a piece of work costs on a simulated card. Sizes are full sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// A copy from host to device.
    Upload {
        /// How much.
        bytes: Bytes,
        /// From page-locked host memory. From other memory it is slower, and whoever enqueues it waits for it.
        pinned: bool,
    },
    /// A copy from device to host.
    Download {
        /// How much.
        bytes: Bytes,
        /// To page-locked host memory.
        pinned: bool,
    },
    /// So much time.
    Time(Nanos),
    /// Kernels one after the other, while data streams up the link beside them.
    Kernels {
        /// What they do.
        units: Vec<Units>,
        /// Bytes that come from page-locked host memory while they run. They end together.
        streamed: Bytes,
    },
}

impl Cost {
    /// A kernel of some kind over `count` units.
    #[must_use]
    pub fn kernel(kind: &'static str, count: u64) -> Self {
        Self::Kernels { units: vec![Units { kind, count }], streamed: Bytes::ZERO }
    }

    /// Kernels, while `streamed` bytes come up the link.
    #[must_use]
    pub fn kernels(units: impl IntoIterator<Item = Units>, streamed: Bytes) -> Self {
        Self::Kernels { units: units.into_iter().collect(), streamed }
    }
}

/// A device whose memory is host memory and whose work is closures, so that stages write what the CPU does once for the
/// CPU itself and for simulated cards.
pub trait Cpu: Device<Block = HostBlock> {
    /// Enqueues a job, which says when it is done what it would have cost on a card.
    ///
    /// # Safety
    /// Memory that the job touches through raw pointers must stay valid until the job has run, and no other queue
    /// may touch it at the same time: claim each [`crate::Buf`] for this queue first ([`crate::Buf::claim`]) and
    /// take the pointers after that.
    ///
    /// # Errors
    /// [`Error::Device`] for an injected fault, or for a kind of kernel that the card does not know; [`Error::Poisoned`].
    /// A job that panics fails its queue: later jobs there, and on queues that wait for it, are skipped, and the turn's
    /// release says so.
    unsafe fn perform(
        &self,
        queue: &Self::Queue,
        work: Work,
        job: impl FnOnce() -> Cost + Send + 'static,
    ) -> Result<(), Error>;
}
