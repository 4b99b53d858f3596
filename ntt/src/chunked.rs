//! A transform out of core: a polynomial in host memory passes through two slots of the device.
//!
//! The domain of `n = k m` points is a matrix of k rows of m values. Three passes, k chunks each:
//!
//! | pass | a slot holds | on the device | then |
//! |---|---|---|---|
//! | 1 | k rows of `m / k` columns | inverse transforms of the columns, twiddle factors | back to the host |
//! | 2 | one row of m values | evaluations of the row to evaluations on its coset | back to the host |
//! | 3 | k rows of `m / k` columns | twiddle factors, transforms of the columns | into the resident polynomial |
//!
//! So `3n` values go up the link and `2n` down, while `2m` are on the device. One slot computes
//! while the other is on the link.

use blstrs::Scalar;
use std::mem::MaybeUninit;
use std::ops::Range;

use prestage_transfer::{Lane, Lanes, Mark, Ring};
use prestage_vram::Buf;

use crate::host::{Combine, check_shift};
use crate::{Error, Ntt, Step, Twiddles};

/// A polynomial in host memory, and how it reaches the link.
#[derive(Debug)]
pub struct Outside<'v, 'd, D: Ntt> {
    values: &'v mut [Scalar],
    rings: Option<[&'v mut Ring<'d, D, Scalar>; 2]>,
}

impl<'v, 'd, D: Ntt> Outside<'v, 'd, D> {
    /// Copied from and to where it lies, which should be locked memory: then the host never waits for the
    /// link while there is something to enqueue.
    pub const fn locked(values: &'v mut [Scalar]) -> Self {
        Self { values, rings: None }
    }

    /// Copied through the slots of two rings, up and down: for pageable memory.
    pub const fn pageable(
        values: &'v mut [Scalar],
        up: &'v mut Ring<'d, D, Scalar>,
        down: &'v mut Ring<'d, D, Scalar>,
    ) -> Self {
        Self { values, rings: Some([up, down]) }
    }
}

/// The two slots of an out-of-core transform: [`crate::Footprint::slots`] bytes.
pub struct Chunked<'t, D: Ntt> {
    slots: [Buf<'t, D, MaybeUninit<Scalar>>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    FirstColumns,
    Rows,
    LastColumns,
}

impl<'t, D: Ntt> Chunked<'t, D> {
    /// Allocates the slots.
    ///
    /// # Errors
    /// [`Error::Whole`] if the plan of the tables has no chunks; [`Error::Transfer`] when the memory is
    /// refused.
    pub fn open(lanes: &Lanes<'t, D>, twiddles: &Twiddles<'_, D>) -> Result<Self, Error> {
        let plan = twiddles.plan();
        if plan.chunks() == 1 {
            return Err(Error::Whole);
        }
        let slot = |label| lanes.upload.alloc::<Scalar>(label, plan.chunk_len());
        Ok(Self { slots: [slot("slot 0")?, slot("slot 1")?] })
    }

    /// Takes evaluations on the domain, in host memory, to evaluations on the coset `shift * H`, and
    /// combines them into `a`, where they are in natural order. What the host memory holds afterwards is
    /// of no use.
    ///
    /// The slots come back for the next polynomial; they are freed on failure. Returns when the last
    /// chunk has been copied from the host; its computation may still run.
    ///
    /// # Errors
    /// [`Error::Length`] unless both have n values; [`Error::ZeroShift`]; [`Error::Chunks`] for slots of another
    /// plan; [`Error::Transfer`]; [`Error::Device`].
    pub fn coset_evaluations(
        self,
        lanes: &Lanes<'t, D>,
        twiddles: &mut Twiddles<'_, D>,
        outside: Outside<'_, '_, D>,
        shift: Scalar,
        a: &mut Buf<'_, D, Scalar>,
        how: Combine,
    ) -> Result<Self, Error> {
        check_shift(shift)?;
        let Outside { values, mut rings } = outside;
        let plan = twiddles.plan().clone();
        let expected = plan.domain().size();
        for got in [values.len(), a.len()] {
            if got != expected {
                return Err(Error::Length { expected, got });
            }
        }
        let chunk = plan.chunk_len();
        if let Some(slot) = self.slots.iter().find(|s| s.len() != chunk) {
            return Err(Error::Chunks { chunks: expected / slot.len().max(1), size: expected });
        }
        // Dropped before `values` are let go, on every way out.
        let fence = Fence { lanes: [&lanes.upload, &lanes.download] };
        let values = Values(values.as_mut_ptr());
        let mut free = self.slots.into_iter().collect::<std::collections::VecDeque<_>>();
        for pass in [Pass::FirstColumns, Pass::Rows, Pass::LastColumns] {
            // What the pass before wrote to the host must be there.
            lanes.download.drain()?;
            let mut leaving: Option<Leaving<'t, D>> = None;
            for number in 0..plan.chunks() {
                let Some(mut slot) = free.pop_front() else { break };
                let pieces = Pieces::new(pass, number, plan.chunks(), plan.chunk_width());
                for (host, at) in pieces {
                    // SAFETY: the piece lies in `values`; downloads of the pass before have ended, and those of
                    // this pass write to the places of earlier chunks.
                    let from = unsafe { values.piece(host) };
                    match &mut rings {
                        // SAFETY: `values` are exclusively borrowed until the fence is passed, and the next
                        // download to this place is enqueued once this upload has ended.
                        None => drop(unsafe { lanes.upload.enqueue_in(from, &mut slot, at) }?),
                        Some([up, _]) => drop(up.upload_at(&lanes.upload, from, &mut slot, at)?),
                    }
                }
                let arrived = lanes.upload.record()?;
                // SAFETY: the pieces cover the slot, and the claim below orders what follows after them.
                let mut slot = unsafe { slot.assume_init() };
                compute(&lanes.compute, twiddles, pass, number, shift, &mut slot)?;
                if pass == Pass::LastColumns {
                    a.claim(lanes.compute.queue())?;
                    let step = Step::CombineColumns { a: a.block(), slot: slot.block(), chunk: number, how };
                    // SAFETY: sizes were checked above, both are claimed for the lane and different buffers.
                    unsafe { twiddles.enqueue(&lanes.compute, "combine chunk".into(), step)? };
                    free.push_back(slot.into_uninit());
                } else {
                    let pieces = Pieces::new(pass, number, plan.chunks(), plan.chunk_width());
                    // One chunk late, so that the next upload is under way.
                    if let Some(before) = leaving.replace(Leaving { slot, arrived, pieces }) {
                        free.push_back(before.leave(lanes, values, &mut rings)?);
                    }
                }
            }
            if let Some(last) = leaving {
                free.push_back(last.leave(lanes, values, &mut rings)?);
            }
        }
        fence.settle()?;
        match (free.pop_front(), free.pop_front()) {
            (Some(first), Some(second)) => Ok(Self { slots: [first, second] }),
            // Each chunk gives back the slot that it took.
            _ => Err(Error::Whole),
        }
    }
}

/// Enqueues the work of a pass on a slot.
fn compute<D: Ntt>(
    lane: &Lane<'_, D>,
    twiddles: &mut Twiddles<'_, D>,
    pass: Pass,
    chunk: usize,
    shift: Scalar,
    slot: &mut Buf<'_, D, Scalar>,
) -> Result<(), Error> {
    slot.claim(lane.queue())?;
    let slot = slot.block();
    let (name, step) = match pass {
        Pass::FirstColumns => ("ntt columns in", Step::FirstColumns { slot, chunk, shift }),
        Pass::Rows => ("ntt row", Step::Row { slot, shift }),
        Pass::LastColumns => ("ntt columns out", Step::LastColumns { slot, chunk }),
    };
    // SAFETY: the slot has the length of a chunk and is claimed; the shift was checked; the plan has chunks.
    unsafe { twiddles.enqueue(lane, name.into(), step) }
}

/// A slot that is to go back to the host.
struct Leaving<'t, D: Ntt> {
    slot: Buf<'t, D, Scalar>,
    /// The end of the upload that filled it.
    arrived: Mark<'t, D>,
    /// Where it came from and goes.
    pieces: Pieces,
}

impl<'t, D: Ntt> Leaving<'t, D> {
    /// Enqueues the copies.
    fn leave(
        self,
        lanes: &Lanes<'t, D>,
        values: Values,
        rings: &mut Option<[&mut Ring<'_, D, Scalar>; 2]>,
    ) -> Result<Buf<'t, D, MaybeUninit<Scalar>>, Error> {
        let Self { mut slot, arrived, pieces } = self;
        arrived.wait()?;
        for (host, at) in pieces {
            // SAFETY: the piece lies in the values that the caller borrows exclusively; the upload that read it has
            // ended, and no other copy of this pass uses it.
            let into = unsafe { values.piece_mut(host) };
            match rings {
                // SAFETY: nobody touches the piece before the next pass, which begins when this copy has ended.
                None => drop(unsafe { lanes.download.enqueue_out(&mut slot, at, into) }?),
                Some([_, down]) => {
                    let range = at..at + into.len();
                    down.download(&lanes.download, &mut slot, range, into)?;
                }
            }
        }
        Ok(slot.into_uninit())
    }
}

/// The host values of a transform under way, exclusively borrowed by [`Chunked::coset_evaluations`]. Pieces are
/// made from the address, so that no reference spans places that copies in flight write to.
#[derive(Clone, Copy)]
struct Values(*mut Scalar);

impl Values {
    /// # Safety
    /// The piece is in range; nothing writes to it while the reference lives.
    unsafe fn piece<'v>(self, range: Range<usize>) -> &'v [Scalar] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.add(range.start), range.len()) }
    }

    /// # Safety
    /// The piece is in range; nothing else uses it while the reference lives.
    unsafe fn piece_mut<'v>(self, range: Range<usize>) -> &'v mut [Scalar] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

/// The places in host memory of one chunk, each with its place in the slot.
struct Pieces {
    /// First place, distance, and length of the next pieces.
    at: usize,
    stride: usize,
    len: usize,
    done: usize,
    count: usize,
}

impl Pieces {
    const fn new(pass: Pass, number: usize, chunks: usize, width: usize) -> Self {
        let row = chunks * width;
        match pass {
            Pass::Rows => Self { at: number * row, stride: 0, len: row, done: 0, count: 1 },
            _ => Self { at: number * width, stride: row, len: width, done: 0, count: chunks },
        }
    }
}

impl Iterator for Pieces {
    type Item = (Range<usize>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.done == self.count {
            return None;
        }
        let at = self.at + self.done * self.stride;
        let piece = (at..at + self.len, self.done * self.len);
        self.done += 1;
        Some(piece)
    }
}

/// Waits for the copies when dropped, so that host memory is never let go under them.
struct Fence<'l, 't, D: Ntt> {
    lanes: [&'l Lane<'t, D>; 2],
}

impl<D: Ntt> Fence<'_, '_, D> {
    fn settle(self) -> Result<(), Error> {
        let ended = self.lanes.map(Lane::drain);
        std::mem::forget(self);
        for outcome in ended {
            outcome?;
        }
        Ok(())
    }
}

impl<D: Ntt> Drop for Fence<'_, '_, D> {
    fn drop(&mut self) {
        for lane in self.lanes {
            // Ended, if by failing; the turn reports it.
            let _ = lane.drain();
        }
    }
}

impl<D: Ntt> std::fmt::Debug for Chunked<'_, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunked").field("slots", &self.slots).finish()
    }
}
