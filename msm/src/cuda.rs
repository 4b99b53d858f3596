//! Sums on an NVIDIA card: the launches of `prestage_kernels::msm`, bases streamed in chunks through two slots.
//!
//! ```text
//! upload   [bases 0][bases 1][bases 2]      …      each into the slot that the chunk before the last has left
//! compute           [chunk 0][chunk 1][chunk 2] … [reduce]
//! ```
//!
//! Each base comes up once. From page-locked memory the card copies by itself; through a ring, the thread that enqueues fills slot
//! after slot, as fast as the link empties them, and enqueues each chunk's kernels as soon as its last bases are in a slot: the
//! card computes the chunk before meanwhile.
//!
//! Bases that stay on the card are used where they are. Buckets stay from chunk to chunk. A batch leaves one partial sum for each
//! window and one of the ones; the host adds them up.

use crate::points::bytes;
use crate::{Affine, Batch, BatchBases, BatchScalars, Layout, Msm, Place, Plan, Points, Queues};
use blstrs::Scalar;
use group::Group;
use prestage_kernels::msm::{self as launches, Curve, Form, Ones, Plan as Passes, Terms};
use prestage_kernels::ntt::Fr;
use prestage_kernels::{Family, Launch, card};
use prestage_transfer::{Error as E, Ring};
use prestage_vram::cuda::{Cuda, CudaBlock, CudaMark, CudaQueue};
use prestage_vram::{Bytes, Device as _, Error, Op, Work};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Partial sums: more than windows of five bits or more come to, and the one of the ones.
const PARTIALS: usize = 64;

// SAFETY: partial sums are written by `to_jacobian` where there are windows, and are filled with zeros, which is infinity, where
// there are none; or the queue fails.
unsafe impl Msm for Cuda {
    type Carried = BaseSlots;

    fn plan(&self, len: usize) -> Plan {
        Plan::new(len, 1)
    }

    fn scratch<A: Affine>(&self, plan: &Plan, bases: Place) -> Bytes {
        Scratch::new::<A>(self, plan, bases, std::ptr::null_mut()).bytes
    }

    fn partials<A: Affine>(&self) -> usize {
        PARTIALS
    }

    fn fold<A: Affine>(&self, plan: &Plan, bases: Place, partials: &[A::Curve]) -> A::Curve {
        let double = |point: A::Curve| point.double();
        passes::<A>(self, plan, bases).fold(partials, A::Curve::identity(), double, |sum, point| sum + point)
    }

    /// 50 ms a GiB, once; then copies run at the speed of the link with no help of the host.
    fn hold<A: Affine>(&self, points: Points<A>) -> Result<Points<A>, crate::Error> {
        if points.is_locked() { Ok(points) } else { points.locked(self) }
    }

    fn prepare(&self) -> Result<(), Error> {
        [Family::MsmSort, Family::MsmLists, Family::MsmG1, Family::MsmG2]
            .into_iter()
            .try_for_each(|family| card::load(self, family).map(drop))
    }

    unsafe fn enqueue<A: Affine>(
        &self,
        queues: Queues<'_, CudaQueue>,
        batch: Batch<'_, A, CudaBlock>,
        slots: &mut BaseSlots,
    ) -> Result<(), Error> {
        let mut enqueued = |ring: Option<&mut PointRing<'_>>| {
            // SAFETY: the same contract.
            let outcome = unsafe { enqueue(self, queues, &batch, slots, ring) };
            if outcome.is_err() {
                // Copies that have been enqueued read the bases, which the caller may let go now.
                let _ = self.drain(queues.upload);
            }
            outcome
        };
        let outcome = match &batch.bases {
            BatchBases::Host(points) => points.with_ring(self, enqueued),
            BatchBases::Device(_) => enqueued(None),
        };
        outcome.map_err(|error| match error {
            E::Device(error) => error,
            // A ring that is there has no other.
            other => {
                Error::Device { op: Op::Copy, device: self.name().to_owned(), detail: other.to_string() }
            }
        })
    }
}

/// The two slots that bases are streamed through, in turn, from the first batch of a sum to the last: what comes up next need not
/// wait for the end of the batch before.
#[derive(Debug, Default)]
pub struct BaseSlots {
    /// After the kernels that used them last; none before the first batch.
    left: Option<[CudaMark; 2]>,
    next: usize,
}

type PointRing<'d> = Ring<'d, Cuda, MaybeUninit<u8>>;

fn curve<A: Affine>() -> Curve {
    if A::NAME == "G1" { Curve::G1 } else { Curve::G2 }
}

/// Windows and chunks of a plan, with scratch, and slots of bases, of at most an eighth of the card each where that can be: on a
/// card of 16 GiB there is room beside them for the three polynomials of the next proof.
fn passes<A: Affine>(device: &Cuda, plan: &Plan, bases: Place) -> Passes {
    let limit = device.ledger().reading().capacity.get() / 8;
    Passes::chunked(curve::<A>(), plan.len() as u64, terms(bases), limit)
}

fn terms(bases: Place) -> Terms {
    match bases {
        Place::Host => Terms::Streamed,
        Place::Device => Terms::There,
    }
}

/// Where a batch's scratch lies.
struct Scratch {
    passes: Passes,
    /// For the kernels.
    work: *mut u8,
    /// Two chunks of bases, where they are streamed.
    bases: [*mut u8; 2],
    /// Ranks of compact scalars.
    ranks: *mut u32,
    /// The integers of a chunk of compact scalars.
    integers: *mut [u32; 8],
    /// Partial sums in the kernels' coordinates.
    results: *mut u8,
    bytes: Bytes,
}

impl Scratch {
    fn new<A: Affine>(device: &Cuda, plan: &Plan, bases: Place, base: *mut u8) -> Self {
        let passes = passes::<A>(device, plan, bases);
        let chunk = passes.chunk_terms();
        let mut used = 0u64;
        let mut take = |bytes: u64| {
            let at = base.wrapping_byte_add(usize::try_from(used).unwrap_or(usize::MAX));
            used = used.saturating_add(bytes.next_multiple_of(256));
            at
        };
        let bases = if bases == Place::Host { curve::<A>().affine_bytes() * chunk } else { 0 };
        Self {
            work: take(passes.scratch_bytes()),
            bases: [take(bases), take(bases)],
            ranks: take(launches::expand_scratch_bytes(plan.len() as u64)).cast(),
            integers: take(32 * chunk).cast(),
            results: take(curve::<A>().xyzz_bytes() * passes.results()),
            passes,
            bytes: Bytes::new(used),
        }
    }
}

/// The chunks of a batch of `n` terms.
fn chunks(passes: &Passes, n: usize, bases: Place) -> impl Iterator<Item = Range<usize>> {
    let at = move |term: u64| usize::try_from(term).unwrap_or(n);
    passes.chunks(n as u64, terms(bases)).map(move |chunk| at(chunk.start)..at(chunk.end))
}

/// The scalars of a batch on the card.
#[derive(Clone, Copy)]
enum At {
    Plain(*const Fr),
    Compact(*const u64, Layout),
}

/// # Safety
/// As [`Msm::enqueue`].
unsafe fn enqueue<A: Affine>(
    device: &Cuda,
    queues: Queues<'_, CudaQueue>,
    batch: &Batch<'_, A, CudaBlock>,
    slots: &mut BaseSlots,
    mut ring: Option<&mut PointRing<'_>>,
) -> Result<(), E> {
    let Queues { compute, upload, worker } = queues;
    let Batch { name, plan, bases, terms, scalars, scratch: block, result } = batch;
    let place = match bases {
        BatchBases::Host(_) => Place::Host,
        BatchBases::Device(_) => Place::Device,
    };
    let scratch = Scratch::new::<A>(device, plan, place, block.as_ptr());
    let passes = &scratch.passes;
    let scalars = match scalars {
        BatchScalars::Host { .. } => {
            let (device, detail) = (device.name().to_owned(), "the scalars are in host memory".to_owned());
            return Err(Error::Device { op: Op::Launch, device, detail }.into());
        }
        BatchScalars::Plain { block, at } => At::Plain(block.as_ptr::<Fr>().cast_const().wrapping_add(*at)),
        BatchScalars::Compact { block, layout } => At::Compact(block.as_ptr::<u64>().cast_const(), *layout),
    };
    let n = match bases {
        BatchBases::Host(points) => points.memory().get(terms.clone()).unwrap_or_default().len(),
        BatchBases::Device(_) => terms.len(),
    };

    let mut prelude = match scalars {
        At::Plain(_) => Vec::new(),
        At::Compact(words, layout) => launches::ranks(words, narrow(layout.shift()), n as u64, scratch.ranks),
    };
    let left = match &mut slots.left {
        Some(left) => left,
        // What was in the scratch before has been used by then.
        left => left.insert([device.record(compute)?, device.record(compute)?]),
    };
    for (number, chunk) in chunks(passes, n, place).enumerate() {
        let at = match bases {
            BatchBases::Device(block) => {
                block.as_ptr::<A>().wrapping_add(terms.start + chunk.start).cast::<u8>()
            }
            BatchBases::Host(points) => {
                let slot = scratch.bases[slots.next];
                let part = points.memory().get(terms.start + chunk.start..terms.start + chunk.end);
                let part = part.unwrap_or_default();
                device.wait(upload, &left[slots.next])?;
                if let Some(ring) = &mut ring {
                    let at = slot.addr() - block.as_ptr::<u8>().addr();
                    // SAFETY: the slot is inside the scratch, which is the compute queue's, and that is waited for.
                    unsafe { ring.stream(upload, worker, name, bytes(part), block, at) }?;
                } else {
                    let work = Work::copy(format!("stream {name}"), Bytes::of::<A>(part.len()));
                    // SAFETY: the slot as above; the bases stay until the batch has ended, by the contract, or until the
                    // queue was drained.
                    unsafe {
                        device.enqueue(upload, work, |stream| {
                            stream.upload(part.as_ptr().cast(), slot, size_of_val(part))
                        })
                    }?;
                }
                let arrived = device.record(upload)?;
                device.wait(compute, &arrived)?;
                slot
            }
        };

        let mut launches = std::mem::take(&mut prelude);
        let (first, len) = (chunk.start as u64, chunk.len() as u64);
        let (form, of_chunk) = match scalars {
            At::Plain(scalars) => (Form::Montgomery, scalars.wrapping_add(chunk.start)),
            At::Compact(words, layout) => {
                launches.push(launches::expand(
                    words,
                    layout.width() as u64,
                    narrow(layout.shift()),
                    first,
                    len,
                    scratch.ranks,
                    scratch.integers,
                ));
                (Form::Integers, scratch.integers.cast_const().cast())
            }
        };
        let work = scratch.work;
        launches.extend(if number == 0 {
            passes.begin(Ones::Apart, form, of_chunk, at, len, work)
        } else {
            passes.accumulate(Ones::Apart, form, of_chunk, at, len, work)
        });
        let moved = Bytes::of::<A>(chunk.len()) + Bytes::of::<Scalar>(chunk.len());
        // SAFETY: scratch, scalars and result are claimed for the queue, and of the sizes that they need.
        unsafe { card::enqueue(device, compute, Work::launch(name.clone(), moved), &launches) }?;
        if place == Place::Host {
            left[slots.next] = device.record(compute)?;
            slots.next = 1 - slots.next;
        }
    }
    prelude.extend(passes.reduce(scratch.work, scratch.results));
    let out = result.as_ptr::<A::Curve>().cast::<u8>();
    prelude.push(passes.to_jacobian(scratch.results, out));
    let size = PARTIALS * size_of::<A::Curve>();
    let work = Work::launch(format!("{name} reduce"), Bytes::of::<A::Curve>(PARTIALS));
    // SAFETY: as above; the block of the result has room for all partial sums.
    unsafe {
        device.enqueue(compute, work, |stream| {
            stream.fill(out, 0, size)?;
            prelude.iter().try_for_each(|launch: &Launch| card::launch(device, stream, launch))
        })
    }?;
    Ok(())
}

/// Below 64.
fn narrow(shift: usize) -> u32 {
    u32::try_from(shift).unwrap_or(0)
}
