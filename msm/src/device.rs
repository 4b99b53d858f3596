//! What a device must do for a sum, and how the CPU does it.

use crate::compact::{Pieces, View};
use crate::host::{Input, in_scratch};
use crate::{Affine, Compact, Layout, Place, Plan, Points, Stats};
use blstrs::Scalar;
use prestage_transfer::Transfer;
use prestage_vram::sim::SimQueue;
use prestage_vram::{
    Bytes, Cost, Cpu, Device, Error, Host, HostBlock, HostPtr, HostQueue, Sim, Units, Work, WorkerId,
};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

/// The scalars of one batch.
#[derive(Debug)]
pub enum BatchScalars<'b, B> {
    /// Sorted into zeros, ones and others, in host memory. Only devices that do not stream ([`Transfer::streams`]) are given
    /// them so.
    Host {
        /// The scalars of the whole sum, or of more.
        compact: &'b Compact,
        /// Where those of the batch begin.
        at: usize,
    },
    /// On the device, in Montgomery form, from element `at` of the block on.
    Plain {
        /// The block.
        block: &'b B,
        /// Where they begin.
        at: usize,
    },
    /// On the device, sorted into zeros, ones and others.
    Compact {
        /// The block, from its beginning on.
        block: &'b B,
        /// How they lie in it.
        layout: Layout,
    },
}

/// The bases of the whole sum that a batch belongs to.
#[derive(Debug)]
pub enum BatchBases<'b, A, B> {
    /// In host memory.
    Host(&'b Points<A>),
    /// From the beginning of a block of device memory on. The compute queue comes after what wrote them.
    Device(&'b B),
}

/// One batch of a sum, as a device is asked for it: Σ scalars\[i\]·bases\[`terms.start` + i\] over `terms`.
#[derive(Debug)]
pub struct Batch<'b, A, B> {
    /// What the recorded span is called.
    pub name: String,
    /// For at least as many terms.
    pub plan: &'b Plan,
    /// The bases of the whole sum.
    pub bases: BatchBases<'b, A, B>,
    /// Which of the bases.
    pub terms: Range<usize>,
    /// Its scalars, as many as terms; those in host memory are shared and never written to.
    pub scalars: BatchScalars<'b, B>,
    /// [`Msm::scratch`] bytes.
    pub scratch: &'b B,
    /// Where the partial sums go: [`Msm::partials`] of `A::Curve` at the beginning of the block.
    pub result: &'b B,
}

/// The queues of a turn that a batch works on.
#[derive(Debug)]
pub struct Queues<'q, Q> {
    /// For kernels.
    pub compute: &'q Q,
    /// For bases that come from host memory.
    pub upload: &'q Q,
    /// Whose turn it is.
    pub worker: WorkerId,
}

impl<Q> Clone for Queues<'_, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q> Copy for Queues<'_, Q> {}

/// A device that computes multi-scalar multiplications.
///
/// # Safety
/// Callers rely on [`Msm::enqueue`]: when it returned `Ok` and its work did not fail, the result block holds as many valid
/// `A::Curve` as [`Msm::partials`] says.
pub unsafe trait Msm: Transfer {
    /// What one batch of a sum leaves for the next, beside the buckets' memory: where slots of bases are free again.
    type Carried: Default + Send;

    /// The fastest plan for batches of `len` terms.
    fn plan(&self, len: usize) -> Plan;

    /// Device memory that a batch takes beside scalars, result, and bases that are on the device already.
    fn scratch<A: Affine>(&self, plan: &Plan, bases: Place) -> Bytes;

    /// What that memory is accounted for: itself, but at full size on a simulated card.
    fn scratch_charge<A: Affine>(&self, plan: &Plan, bases: Place) -> Bytes {
        self.scratch::<A>(plan, bases)
    }

    /// Partial sums that a batch leaves, the same for every plan.
    fn partials<A: Affine>(&self) -> usize {
        1
    }

    /// The sum of a batch from its partial sums, on the host; its bases were in `bases`.
    fn fold<A: Affine>(&self, _plan: &Plan, _bases: Place, partials: &[A::Curve]) -> A::Curve {
        partials.iter().sum()
    }

    /// Makes bases ready that many sums will use: devices that copy them page-lock their memory. Call it outside of turns. Bases
    /// of one sum gain more by [`Points::through`], where threads are there to fill a ring.
    ///
    /// # Errors
    /// As [`Points::locked`].
    fn hold<A: Affine>(&self, points: Points<A>) -> Result<Points<A>, crate::Error> {
        Ok(points)
    }

    /// Makes ready what batches need apart from memory of a turn: code that must be compiled or loaded. Call it outside of
    /// turns.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn prepare(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Enqueues one batch and returns at once, unless its bases go through a ring: then the calling thread fills the slots and
    /// returns when the last bases are in them. The device has work meanwhile: what a part of the bases is for is enqueued
    /// before the next part is copied. The work is recorded as one or more spans on the queues' tracks.
    ///
    /// # Safety
    /// The three blocks were claimed for the compute queue, in that they are used by no other queue until it has done this
    /// work, and have the sizes that [`Batch`] states; the scalars are initialised by what that queue ran before, as are
    /// bases on the device. The bases stay where they are until the work has ended. `carried` is new for the first batch of a
    /// sum; the later ones have its plan, scratch and queues.
    ///
    /// # Errors
    /// [`Error::Device`] when not all was enqueued; [`Error::Poisoned`].
    unsafe fn enqueue<A: Affine>(
        &self,
        queues: Queues<'_, Self::Queue>,
        batch: Batch<'_, A, Self::Block>,
        carried: &mut Self::Carried,
    ) -> Result<(), Error>;
}

// SAFETY: `perform` writes the result or fails its queue.
unsafe impl Msm for Host {
    type Carried = ();

    fn plan(&self, len: usize) -> Plan {
        Plan::new(len, rayon::current_num_threads())
    }

    fn scratch<A: Affine>(&self, plan: &Plan, _: Place) -> Bytes {
        plan.footprint::<A>()
    }

    unsafe fn enqueue<A: Affine>(
        &self,
        queues: Queues<'_, HostQueue>,
        batch: Batch<'_, A, Self::Block>,
        (): &mut (),
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { perform(self, queues.compute, batch) }
    }
}

// SAFETY: as for the host.
unsafe impl Msm for Sim {
    type Carried = ();

    fn plan(&self, len: usize) -> Plan {
        Plan::new(len, rayon::current_num_threads())
    }

    fn scratch<A: Affine>(&self, plan: &Plan, _: Place) -> Bytes {
        plan.footprint::<A>()
    }

    fn hold<A: Affine>(&self, points: Points<A>) -> Result<Points<A>, crate::Error> {
        if points.is_locked() { Ok(points) } else { points.locked(self) }
    }

    fn scratch_charge<A: Affine>(&self, plan: &Plan, bases: Place) -> Bytes {
        card_scratch::<A>((plan.len() as u64).saturating_mul(self.scale()), bases)
    }

    unsafe fn enqueue<A: Affine>(
        &self,
        queues: Queues<'_, SimQueue>,
        batch: Batch<'_, A, Self::Block>,
        (): &mut (),
    ) -> Result<(), Error> {
        // SAFETY: the same contract.
        unsafe { perform(self, queues.compute, batch) }
    }
}

/// What a sum of `n` terms takes on a card that streams bases and integers in chunks while its buckets stay: for each of up to
/// 2^22 terms an integer and two sort entries of eight bytes; 2^(c-1) buckets of four coordinates for each window of c bits,
/// c = log2(n) - 4 within 4 and 20; and where bases are streamed two slots of up to 2^18 of them. It never falls as sums grow.
fn card_scratch<A: Affine>(n: u64, bases: Place) -> Bytes {
    let Some(log) = n.checked_ilog2() else { return Bytes::ZERO };
    let c = log.saturating_sub(4).clamp(4, 20);
    let buckets = u64::from(256u32.div_ceil(c)) << (c - 1);
    let affine = Bytes::of::<A>(1);
    let slots = if bases == Place::Host { affine * 2 * n.min(1 << 18) } else { Bytes::ZERO };
    Bytes::new(32 + 16) * n.min(1 << 22) + affine * 2 * buckets + slots
}

/// What a batch costs on a simulated card where each term stands for `scale`: scalars looked at (`msm-scan`), bases
/// added (`msm-g1-one`), terms that go through windows (`msm-g1`); the same in G2. `streamed` of its bases come up the link
/// meanwhile.
fn cost<A: Affine>(n: usize, stats: &Stats, streamed: usize, scale: u64) -> Cost {
    let kinds = if A::NAME == "G1" { ["msm-g1-one", "msm-g1"] } else { ["msm-g2-one", "msm-g2"] };
    let counts = [("msm-scan", n), (kinds[0], stats.ones), (kinds[1], stats.others)];
    let units = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| Units { kind, count: (count as u64).saturating_mul(scale) });
    Cost::kernels(units, Bytes::of::<A>(streamed) * scale)
}

/// Scalars of a batch as a job finds them.
enum At {
    Host(Pieces),
    Plain(HostPtr<Scalar>, usize),
    Compact(HostPtr<u64>, Layout),
}

/// Bases of a batch as a job finds them.
enum Source<A> {
    Host(Arc<[A]>),
    Device(HostPtr<A>),
}

/// [`Msm::enqueue`] on a device whose memory is host memory.
///
/// # Safety
/// As there.
unsafe fn perform<D: Cpu, A: Affine>(
    device: &D,
    queue: &D::Queue,
    batch: Batch<'_, A, HostBlock>,
) -> Result<(), Error> {
    let Batch { name, plan, bases, terms, scalars, scratch, result } = batch;
    let plan = *plan;
    let (n, scale) = (terms.len(), device.scale());
    let (bases, streamed) = match bases {
        BatchBases::Host(points) => (Source::Host(points.host().clone()), n),
        BatchBases::Device(block) => (Source::Device(block.as_ptr()), 0),
    };
    let bytes = plan.footprint::<A>().to_usize().unwrap_or(0);
    let (scalars, read) = match scalars {
        BatchScalars::Host { compact, at } => {
            let pieces = compact.pieces(&(at..at.saturating_add(n)), n);
            let read = pieces.layout.bytes();
            (At::Host(pieces), read)
        }
        BatchScalars::Plain { block, at } => (At::Plain(block.as_ptr(), at), Bytes::of::<Scalar>(n)),
        BatchScalars::Compact { block, layout } => (At::Compact(block.as_ptr(), layout), layout.bytes()),
    };
    let scratch = scratch.as_ptr::<MaybeUninit<u8>>();
    let result = result.as_ptr::<MaybeUninit<A::Curve>>();
    let job = move || {
        // SAFETY: those in a block are there as it was said, initialised, and only read here.
        let scalars = unsafe {
            match &scalars {
                At::Host(pieces) => Input::Compact(pieces.view()),
                At::Plain(block, at) => {
                    Input::Plain(std::slice::from_raw_parts(block.get().add(*at).cast_const(), n))
                }
                At::Compact(block, layout) => Input::Compact(View::new(*layout, block.get().cast_const())),
            }
        };
        // SAFETY: the block has that many bytes and is this queue's for now.
        let scratch = unsafe { scratch.slice_mut(bytes) };
        let bases = match &bases {
            Source::Host(bases) => bases.get(terms),
            // SAFETY: a live block that holds the bases of the whole sum, written before this and only read from then on.
            Source::Device(block) => {
                let first = block.get().wrapping_add(terms.start).cast_const();
                // SAFETY: a live block that holds the bases of the whole sum, written before this and only read from then on.
                Some(unsafe { std::slice::from_raw_parts(first, n) })
            }
        };
        let sum = bases.and_then(|bases| in_scratch(&plan, bases, scalars, scratch));
        // A panic is how a job fails its queue: what follows is skipped, and whoever waits is told.
        #[allow(clippy::panic)]
        let Some((sum, stats)) = sum else { panic!("a batch outside its bases or its scratch") };
        // SAFETY: the block holds one point and is this queue's for now.
        unsafe { result.get().write(MaybeUninit::new(sum)) };
        cost::<A>(n, &stats, streamed, scale)
    };
    let moved = (Bytes::of::<A>(n) + read) * scale;
    // SAFETY: by this function's contract the blocks stay this queue's until the job has run.
    unsafe { device.perform(queue, Work::launch(name, moved), job) }
}
