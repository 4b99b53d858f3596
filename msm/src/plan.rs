//! Which windows, how many tasks, how much scratch: decided from the length alone, before anything runs.

use crate::buckets::Buckets;
use crate::digits::{Integer, Windows};
use crate::pippenger::Shape;
use crate::scratch::Size;
use crate::split::{self, Chunk};
use crate::{Affine, Error};
use prestage_vram::Bytes;

/// Up to this many terms go to blst's routine on the calling thread.
pub(crate) const SMALL: usize = 31;

/// How a sum of up to [`Plan::len`] terms will be computed, and with how much memory.
///
/// ```
/// use blstrs::{G1Affine, G2Affine};
/// use prestage_msm::Plan;
///
/// let plan = Plan::new(1 << 16, 2);
/// assert_eq!((plan.len(), plan.threads(), plan.window()), (1 << 16, 2, 13));
/// assert!(plan.footprint::<G2Affine>() > plan.footprint::<G1Affine>());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    len: usize,
    threads: usize,
    shape: Shape,
    /// The window was asked for: use it whatever the scalars are.
    forced: bool,
    split: bool,
}

impl Plan {
    /// The fastest plan for sums of up to `len` terms on `threads` threads (0 counts as 1).
    #[must_use]
    pub fn new(len: usize, threads: usize) -> Self {
        let threads = threads.max(1);
        Self { len, threads, shape: Shape::best(len, threads, None), forced: false, split: true }
    }

    /// This plan with windows of at most `bits` bits, used for every sum however short or skewed.
    ///
    /// # Errors
    /// [`Error::WindowOutOfRange`] unless `bits` is 1 to 20.
    pub fn with_window(mut self, bits: u32) -> Result<Self, Error> {
        self.shape = Shape::single(Windows::new(bits)?);
        self.forced = true;
        Ok(self)
    }

    /// This plan without the split: ones go through the windows like any other scalar. To compare with.
    #[must_use]
    pub const fn without_split(mut self) -> Self {
        self.split = false;
        self
    }

    /// The longest sum that the plan allows.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Threads that work at once.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Bits of the widest window, 1 to 20.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.shape.windows.bits()
    }

    /// The scratch memory that a sum over `A` takes under this plan. It never falls as plans grow longer, so that
    /// cutting a sum into shorter ones saves memory.
    #[must_use]
    pub fn footprint<A: Affine>(&self) -> Bytes {
        self.size::<A>().block()
    }

    /// The same, part by part in the order in which [`crate::host`] takes them.
    fn size<A: Affine>(&self) -> Size {
        let small = self.len.min(SMALL);
        Size::ZERO
            .and::<Chunk>(self.chunks())
            .and::<Integer>(self.len)
            .and::<split::Index>(self.len)
            .and::<A::Curve>(self.results())
            .and::<Integer>(small)
            .and::<u64>(A::blst_scratch_words(small))
            .and_bytes(self.lane::<A>().part().saturating_mul(self.threads))
    }

    /// What each thread takes for itself.
    pub(crate) fn lane<A: Affine>(&self) -> Size {
        Buckets::<A::Field>::size(self.slots())
    }

    /// Slots of each thread: those of the plan's own shape, and of any that a shorter sum may take.
    fn slots(&self) -> usize {
        self.shape.slots().max(Shape::grouped_slots(self.len))
    }

    /// Chunks of the longest sum.
    pub(crate) const fn chunks(&self) -> usize {
        self.len.div_ceil(split::CHUNK)
    }

    /// Partial results of a sum, at most.
    pub(crate) fn results(&self) -> usize {
        Shape::RESULTS + self.ones()
    }

    /// Tasks that the additions of ones are cut into.
    pub(crate) fn ones(&self) -> usize {
        self.chunks().min(4 * self.threads)
    }

    /// Whether ones are split off.
    pub(crate) const fn splits(&self) -> bool {
        self.split
    }

    /// The shape for `others` scalars that need windows, within the memory of this plan. `None`: so few that
    /// blst is left to it.
    pub(crate) fn shape(&self, others: usize) -> Option<Shape> {
        if self.forced {
            Some(self.shape)
        } else if others <= SMALL {
            None
        } else if others == self.len {
            Some(self.shape)
        } else {
            Some(Shape::best(others, self.threads, Some(self.slots())))
        }
    }
}
