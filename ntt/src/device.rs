//! What a device must do for the transforms, and how the CPU does it.

use std::borrow::Cow;

use blstrs::Scalar;
use ff::Field;
use prestage_transfer::Transfer;
use prestage_vram::sim::SimQueue;
use prestage_vram::{Bytes, Cost, Cpu, Device as _, Error, Host, HostBlock, HostPtr, HostQueue, Sim, Units};

use crate::domain::power_of_half;
use crate::host::{self, Combine, with_backend};
use crate::lanes::{Backend, Lanes};
use crate::passes::{self, Scaling};
use crate::plan::Part;
use crate::tables::Line;
use crate::{Direction, Plan, Transform};

/// One piece of device work on blocks that a `B` stands for: n scalars where nothing else is said, a
/// slot of [`Plan::chunk_len`] scalars where so named.
///
/// The chunk steps see the domain as a matrix of k rows of m values, k the number of chunks. A slot
/// holds one row, or chunk number c of the columns: k rows of `m / k` values, from column `c m / k` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<B> {
    /// Computes the tables.
    Tables,
    /// [`host::transform`].
    Transform {
        /// Transformed in place.
        values: B,
        /// How; the shift is not zero.
        transform: Transform,
    },
    /// [`host::coset_evaluations`].
    CosetEvaluations {
        /// Transformed in place, natural order.
        values: B,
        /// The coset; not zero.
        shift: Scalar,
    },
    /// `a := (a b - c) scale`.
    Quotient {
        /// Overwritten.
        a: B,
        /// Read.
        b: B,
        /// Read.
        c: B,
        /// Applied last.
        scale: Scalar,
    },
    /// `a :=` the coefficients of the polynomial whose values on the coset are `(a b - c) scale`, natural order in and out.
    QuotientCoefficients {
        /// Overwritten.
        a: B,
        /// Read; 1 everywhere where there is none.
        b: Option<B>,
        /// Read, then anything; 0 everywhere where there is none.
        c: Option<B>,
        /// The coset; not zero.
        shift: Scalar,
        /// Applied to the difference.
        scale: Scalar,
    },
    /// [`host::combine`].
    Combine {
        /// Overwritten.
        a: B,
        /// Read.
        other: B,
        /// How.
        how: Combine,
    },
    /// First pass out of core: each column of the slot is inversely transformed, and entry
    /// (row i, column j of the domain) multiplied by `shift^i w^(-ij) / k`.
    FirstColumns {
        /// k rows, in place.
        slot: B,
        /// Which columns.
        chunk: usize,
        /// The coset.
        shift: Scalar,
    },
    /// Second pass: the row in the slot goes from evaluations to those on the coset `shift^k`, as a
    /// polynomial on the domain of m points.
    Row {
        /// One row, in place.
        slot: B,
        /// The coset of the whole domain.
        shift: Scalar,
    },
    /// Third pass: entry (i, j) is multiplied by `w^(ij)`, and each column transformed.
    LastColumns {
        /// k rows, in place.
        slot: B,
        /// Which columns.
        chunk: usize,
    },
    /// Combines finished columns into the resident polynomial.
    CombineColumns {
        /// n scalars, overwritten at the slot's columns.
        a: B,
        /// Read.
        slot: B,
        /// Which columns.
        chunk: usize,
        /// How.
        how: Combine,
    },
}

impl<B> Step<B> {
    /// The same step on what `f` makes of the blocks.
    pub fn map<C>(self, mut f: impl FnMut(B) -> C) -> Step<C> {
        match self {
            Self::Tables => Step::Tables,
            Self::Transform { values, transform } => Step::Transform { values: f(values), transform },
            Self::CosetEvaluations { values, shift } => Step::CosetEvaluations { values: f(values), shift },
            Self::Quotient { a, b, c, scale } => Step::Quotient { a: f(a), b: f(b), c: f(c), scale },
            Self::QuotientCoefficients { a, b, c, shift, scale } => {
                let (a, b, c) = (f(a), b.map(&mut f), c.map(&mut f));
                Step::QuotientCoefficients { a, b, c, shift, scale }
            }
            Self::Combine { a, other, how } => Step::Combine { a: f(a), other: f(other), how },
            Self::FirstColumns { slot, chunk, shift } => Step::FirstColumns { slot: f(slot), chunk, shift },
            Self::Row { slot, shift } => Step::Row { slot: f(slot), shift },
            Self::LastColumns { slot, chunk } => Step::LastColumns { slot: f(slot), chunk },
            Self::CombineColumns { a, slot, chunk, how } => {
                Step::CombineColumns { a: f(a), slot: f(slot), chunk, how }
            }
        }
    }

    /// Bytes of values that it reads or writes, each counted once. Zero for the tables.
    #[must_use]
    pub fn bytes(&self, plan: &Plan) -> Bytes {
        let (n, m) = (plan.domain().size(), plan.chunk_len());
        Bytes::of::<Scalar>(match self {
            Self::Tables => 0,
            Self::Transform { .. } | Self::CosetEvaluations { .. } => n,
            Self::Quotient { .. } => 3 * n,
            Self::QuotientCoefficients { b, c, .. } => {
                n * (1 + usize::from(b.is_some()) + usize::from(c.is_some()))
            }
            Self::Combine { .. } => 2 * n,
            Self::FirstColumns { .. } | Self::Row { .. } | Self::LastColumns { .. } => m,
            Self::CombineColumns { .. } => 2 * m,
        })
    }
}

impl<B> Step<B> {
    /// What it costs on a simulated card where each value stands for `scale`: butterflies (`ntt`), values of a pointwise
    /// step (`pointwise`), bytes of tables (`twiddles`).
    fn cost(&self, plan: &Plan, scale: u64, tables: Bytes) -> Cost {
        let n = (plan.domain().size() as u64).saturating_mul(scale);
        let m = (plan.chunk_len() as u64).saturating_mul(scale);
        let levels = u64::from(plan.chunks().trailing_zeros());
        match self {
            Self::Tables => Cost::kernel("twiddles", tables.get()),
            Self::Transform { .. } => Cost::kernel("ntt", butterflies(n)),
            Self::CosetEvaluations { .. } => Cost::kernel("ntt", butterflies(n).saturating_mul(2)),
            Self::Row { .. } => Cost::kernel("ntt", butterflies(m).saturating_mul(2)),
            Self::FirstColumns { .. } | Self::LastColumns { .. } => {
                let levels = Units { kind: "ntt", count: m.saturating_mul(levels) / 2 };
                Cost::kernels([levels, Units { kind: "pointwise", count: m }], Bytes::ZERO)
            }
            Self::Quotient { .. } | Self::Combine { .. } => Cost::kernel("pointwise", n),
            Self::QuotientCoefficients { .. } => {
                let back = Units { kind: "ntt", count: butterflies(n) };
                Cost::kernels([Units { kind: "pointwise", count: n }, back], Bytes::ZERO)
            }
            Self::CombineColumns { .. } => Cost::kernel("pointwise", m),
        }
    }
}

/// Butterflies of a transform of n values: n log2(n) / 2.
fn butterflies(n: u64) -> u64 {
    (n / 2).saturating_mul(u64::from(n.checked_ilog2().unwrap_or(0)))
}

/// A step as a device is asked for it.
#[derive(Debug)]
pub struct Work<'p, B, L> {
    /// What the recorded span is called.
    pub name: Cow<'static, str>,
    /// Sizes and tables.
    pub plan: &'p Plan,
    /// Block of [`Ntt::table_bytes`] bytes.
    pub tables: B,
    /// What [`Ntt::layout`] said of these tables.
    pub layout: &'p L,
    /// What to do.
    pub step: Step<B>,
}

/// A device that computes transforms.
///
/// # Safety
/// Callers rely on [`Ntt::enqueue`]: when it returned `Ok` and its work did not fail, the blocks of the step
/// hold valid scalars and [`Step::Tables`] has written all of the tables.
pub unsafe trait Ntt: Transfer {
    /// What a device works out once for all steps on the same tables.
    type Layout: Send;

    /// The layout of the tables of `plan` in a block of [`Ntt::table_bytes`] bytes, which stays where it is.
    ///
    /// # Errors
    /// [`Error::Device`] where the device cannot run the plan's steps.
    fn layout(&self, plan: &Plan, tables: &Self::Block) -> Result<Self::Layout, Error>;

    /// Bytes of the tables that the steps of a plan need on this device: a multiple of eight.
    fn table_bytes(&self, plan: &Plan) -> Bytes;

    /// What they are accounted for: themselves, but at full size on a simulated card.
    fn table_charge(&self, plan: &Plan) -> Bytes {
        self.table_bytes(plan)
    }

    /// Makes ready what steps need apart from memory of a turn: code that must be compiled or loaded. Call it outside of turns.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Enqueues one step and returns at once. The work is recorded as one or more spans on the queue's
    /// track.
    ///
    /// # Safety
    /// Blocks have the sizes that [`Step`] and [`Work`] state and are those of no other queue until this one
    /// has done the work. All but those of [`Step::Tables`] are initialised by what `queue` ran before.
    /// Blocks of one step are different; shifts are not zero; chunks are below [`Plan::chunks`], which is
    /// above one for the chunk steps.
    ///
    /// # Errors
    /// [`Error::Device`] when nothing was enqueued; [`Error::Poisoned`].
    unsafe fn enqueue(
        &self,
        queue: &Self::Queue,
        work: Work<'_, &Self::Block, Self::Layout>,
    ) -> Result<(), Error>;
}

// SAFETY: `perform` writes canonical scalars to every value that its step owns, or fails its queue.
unsafe impl Ntt for Host {
    type Layout = ();

    fn layout(&self, _: &Plan, _: &HostBlock) -> Result<(), Error> {
        Ok(())
    }

    /// The tables of [`crate::host`], which lie in the device's memory like any other data. What a
    /// call works out for its coset (a row of factors, at most 2^11) is an argument, not memory of the
    /// device, and neither are the tiles, which stand for a card's shared memory.
    fn table_bytes(&self, plan: &Plan) -> Bytes {
        table_bytes(plan)
    }

    unsafe fn enqueue(&self, queue: &HostQueue, work: Work<'_, &HostBlock, ()>) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { perform(self, queue, work) }
    }
}

// SAFETY: as for the host.
unsafe impl Ntt for Sim {
    type Layout = ();

    fn layout(&self, _: &Plan, _: &HostBlock) -> Result<(), Error> {
        Ok(())
    }

    fn table_bytes(&self, plan: &Plan) -> Bytes {
        table_bytes(plan)
    }

    /// What two-level tables take at full size: 3 MiB at 2^27.
    fn table_charge(&self, plan: &Plan) -> Bytes {
        plan.card_tables(self.scale())
    }

    unsafe fn enqueue(&self, queue: &SimQueue, work: Work<'_, &HostBlock, ()>) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { perform(self, queue, work) }
    }
}

fn table_bytes(plan: &Plan) -> Bytes {
    let lines = with_backend!(plan.domain().backend(), V => plan.lines::<V>());
    Bytes::of::<Line>(lines)
}

/// [`Ntt::enqueue`] on a device whose memory is host memory.
///
/// # Safety
/// As there.
unsafe fn perform<D: Cpu + Ntt>(
    device: &D,
    queue: &D::Queue,
    work: Work<'_, &HostBlock, ()>,
) -> Result<(), Error> {
    let Work { name, plan, tables, step, .. } = work;
    let cost = step.cost(plan, device.scale(), device.table_charge(plan));
    let work = prestage_vram::Work::launch(name, step.bytes(plan) * device.scale());
    let tables = tables.as_ptr::<Line>();
    let plan = plan.clone();
    let step = step.map(HostBlock::as_ptr::<Scalar>);
    let job = move || {
        // SAFETY: the caller's promise about the blocks lasts until this job has run.
        let done = with_backend!(plan.domain().backend(), V => unsafe { run::<V>(&plan, tables, step) });
        // A panic is how a job fails its queue: what follows is skipped, and whoever waits is told.
        assert!(done.is_some(), "a chunk step under a plan without chunks");
        cost
    };
    // SAFETY: as above.
    unsafe { device.perform(queue, work, job) }
}

/// Runs a step on the CPU. `None` for a chunk step without chunks.
///
/// # Safety
/// As for [`Ntt::enqueue`], and the blocks are this thread's.
unsafe fn run<V: Lanes>(plan: &Plan, tables: HostPtr<Line>, step: Step<HostPtr<Scalar>>) -> Option<()> {
    let n = plan.domain().size();
    let m = plan.chunk_len();
    let lines = plan.lines::<V>();
    if matches!(step, Step::Tables) {
        for i in 0..lines {
            // SAFETY: the block has that many lines and is this thread's.
            unsafe { tables.get().add(i).write(Line::ZERO) };
        }
        // SAFETY: initialised just now.
        plan.fill::<V>(unsafe { tables.slice_mut(lines) });
        return Some(());
    }
    // SAFETY: `Step::Tables` ran before on this queue or one that it waited for.
    let tables: &[Line] = unsafe { tables.slice(lines) };
    let of = |part, direction| plan.tables::<V>(tables, part, direction);
    // SAFETY: blocks have the sizes that `Step` states, are initialised, different, and this thread's.
    let whole = |p: HostPtr<Scalar>| unsafe { p.slice_mut(n) };
    // SAFETY: as above.
    let slot = |p: HostPtr<Scalar>| unsafe { p.slice_mut(m) };
    match step {
        Step::Tables => {}
        Step::Transform { values, transform } => {
            host::run(&of(Part::Whole, transform.direction)?, whole(values), &transform);
        }
        Step::CosetEvaluations { values, shift } => {
            let scaling = Scaling { constant: plan.domain().size_inverse(), ratio: shift };
            let (inverse, forward) =
                (of(Part::Whole, Direction::Inverse)?, of(Part::Whole, Direction::Forward)?);
            passes::coset_evaluations(&inverse, &forward, whole(values), scaling);
        }
        Step::Quotient { a, b, c, scale } => {
            passes::pointwise(whole(a), Some(whole(b)), Some(whole(c)), scale);
        }
        Step::QuotientCoefficients { a, b, c, shift, scale } => {
            let (b, c) = (b.map(whole), c.map(whole));
            passes::pointwise(whole(a), b.as_deref(), c.as_deref(), scale);
            host::run(&of(Part::Whole, Direction::Inverse)?, whole(a), &Transform::inverse().on_coset(shift));
        }
        Step::Combine { a, other, how } => combine(whole(a), whole(other), how),
        Step::FirstColumns { slot: s, chunk, shift } => {
            let constant = power_of_half(plan.chunks().trailing_zeros());
            let scaling = Scaling { constant, ratio: shift };
            let first = chunk * plan.chunk_width();
            passes::columns(
                &of(Part::Columns, Direction::Inverse)?,
                slot(s),
                first,
                Direction::Inverse,
                scaling,
            );
        }
        Step::Row { slot: s, shift } => {
            let (inverse, forward) =
                (of(Part::Chunk, Direction::Inverse)?, of(Part::Chunk, Direction::Forward)?);
            let constant = power_of_half(m.trailing_zeros());
            let ratio = shift.pow_vartime([plan.chunks() as u64]);
            passes::coset_evaluations(&inverse, &forward, slot(s), Scaling { constant, ratio });
        }
        Step::LastColumns { slot: s, chunk } => {
            let scaling = Scaling { constant: Scalar::ONE, ratio: Scalar::ONE };
            let first = chunk * plan.chunk_width();
            passes::columns(
                &of(Part::Columns, Direction::Forward)?,
                slot(s),
                first,
                Direction::Forward,
                scaling,
            );
        }
        Step::CombineColumns { a, slot: s, chunk, how } => {
            let width = plan.chunk_width();
            let rows = whole(a).chunks_exact_mut(m).zip(slot(s).chunks_exact(width));
            for (a, other) in rows {
                combine(&mut a[chunk * width..][..width], other, how);
            }
        }
    }
    Some(())
}

fn combine(a: &mut [Scalar], other: &[Scalar], how: Combine) {
    match how {
        Combine::Mul => passes::pointwise(a, Some(other), None, Scalar::ONE),
        Combine::SubScale(scale) => passes::pointwise(a, None, Some(other), scale),
    }
}
