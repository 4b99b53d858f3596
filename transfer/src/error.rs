//! What can go wrong with a copy or with pinned memory.

use prestage_vram::Bytes;

/// Errors of lanes, copies and pinned memory.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device or its account said no: a fault, a refusal, the budget of pinned memory, a failed lane.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
    /// Source and destination have different numbers of elements.
    #[error("{from} elements do not fit a buffer of {to}")]
    Length {
        /// Elements at the source.
        from: usize,
        /// Elements at the destination.
        to: usize,
    },
    /// A range that reaches past the end of a buffer.
    #[error("elements {start}..{end} lie outside a buffer of {len}")]
    Range {
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements that there are.
        len: usize,
    },
    /// A ring that cannot stream: it needs two slots of at least one element.
    #[error("a ring of {slots} slots of {slot} cannot stream: it needs two slots that hold an element each")]
    Ring {
        /// The slots asked for.
        slots: usize,
        /// The size of one.
        slot: Bytes,
    },
}

impl Error {
    /// True when host memory could not be pinned or registered: use a [`crate::Ring`] or plain memory instead.
    #[must_use]
    pub fn is_unpinnable(&self) -> bool {
        use prestage_vram::{Error as E, Op};
        matches!(
            self,
            Self::Device(
                E::PinnedBudget { .. } | E::AlreadyLocked { .. } | E::Device { op: Op::Register, .. }
            )
        )
    }
}
