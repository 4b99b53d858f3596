//! What a device must do for a sum, and how the CPU does it.

use crate::host::in_scratch;
use crate::{Affine, Plan, Points};
use blstrs::Scalar;
use prestage_transfer::Transfer;
use prestage_vram::{Bytes, Error, Host, HostQueue, Op};
use std::mem::MaybeUninit;
use std::ops::Range;

/// One batch of a sum, as a device is asked for it: Σ scalars\[`at` + i\]·bases\[`terms.start` + i\] over `terms`.
#[derive(Debug)]
pub struct Batch<'b, A, B> {
    /// What the recorded span is called.
    pub name: String,
    /// For at least as many terms.
    pub plan: &'b Plan,
    /// The bases of the whole sum.
    pub bases: &'b Points<A>,
    /// Which of the bases.
    pub terms: Range<usize>,
    /// Block that holds the scalars.
    pub scalars: &'b B,
    /// Where in the block the batch's scalars begin, in elements.
    pub at: usize,
    /// [`Msm::scratch`] bytes.
    pub scratch: &'b B,
    /// Where the sum goes: one `A::Curve` at the beginning of the block.
    pub result: &'b B,
}

/// A device that computes multi-scalar multiplications.
///
/// # Safety
/// Callers rely on [`Msm::enqueue`]: when it returned `Ok` and its work did not fail, the result block holds a valid
/// `A::Curve`.
pub unsafe trait Msm: Transfer {
    /// The fastest plan for batches of `len` terms.
    fn plan(&self, len: usize) -> Plan;

    /// Device memory that a batch takes beside scalars and result.
    fn scratch<A: Affine>(&self, plan: &Plan) -> Bytes;

    /// Enqueues one batch and returns at once. The work is recorded as one or more spans on the queue's track.
    ///
    /// # Safety
    /// The three blocks were claimed for `queue`, in that they are used by no other queue until it has done this
    /// work, and have the sizes that [`Batch`] states; the scalars are initialised by what `queue` ran before.
    ///
    /// # Errors
    /// [`Error::Device`] when nothing was enqueued; [`Error::Poisoned`].
    unsafe fn enqueue<A: Affine>(
        &self,
        queue: &Self::Queue,
        batch: Batch<'_, A, Self::Block>,
    ) -> Result<(), Error>;
}

// SAFETY: the job writes the result or fails its queue.
unsafe impl Msm for Host {
    fn plan(&self, len: usize) -> Plan {
        Plan::new(len, rayon::current_num_threads())
    }

    fn scratch<A: Affine>(&self, plan: &Plan) -> Bytes {
        plan.footprint::<A>()
    }

    unsafe fn enqueue<A: Affine>(
        &self,
        queue: &HostQueue,
        batch: Batch<'_, A, Self::Block>,
    ) -> Result<(), Error> {
        let Batch { name, plan, bases, terms, scalars, at, scratch, result } = batch;
        let (plan, bases) = (*plan, bases.host().clone());
        let n = terms.len();
        let bytes = plan.footprint::<A>().to_usize().unwrap_or(0);
        let scalars = scalars.as_ptr::<Scalar>();
        let scratch = scratch.as_ptr::<MaybeUninit<u8>>();
        let result = result.as_ptr::<MaybeUninit<A::Curve>>();
        let job = move || {
            // SAFETY: the scalars begin at element `at` of a live block, are initialised, and only read here.
            let scalars = unsafe { std::slice::from_raw_parts(scalars.get().add(at).cast_const(), n) };
            // SAFETY: the block has that many bytes and is this queue's for now.
            let scratch = unsafe { scratch.slice_mut(bytes) };
            let sum = bases.get(terms).and_then(|bases| in_scratch(&plan, bases, scalars, scratch));
            // A panic is how a job fails its queue: what follows is skipped, and whoever waits is told.
            #[allow(clippy::panic)]
            let Some((sum, _)) = sum else { panic!("a batch outside its bases or its scratch") };
            // SAFETY: the block holds one point and is this queue's for now.
            unsafe { result.get().write(MaybeUninit::new(sum)) };
        };
        let moved = Bytes::of::<A>(n) + Bytes::of::<Scalar>(n);
        // SAFETY: by this function's contract the blocks stay this queue's until the job has run.
        unsafe { self.submit(queue, Op::Launch, name, moved, job) }
    }
}
