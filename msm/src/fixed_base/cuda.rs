//! Multiples on an NVIDIA card, in chunks through two slots.
//!
//! ```text
//! upload    [s0][s1]        [s2]        …    scalars
//! compute       [ chunk 0 ][ chunk 1 ][ chunk 2 ]
//! download                 [p0]       [p1]   points
//! host      s0 s1        wait p0, copy it, fill s2 …
//! ```

use super::table::Table;
use super::{Multiples, filled};
use crate::{Affine, Error};
use blstrs::Scalar;
use ff::Field;
use prestage_kernels::fixed_base::{self as launches, Window};
use prestage_kernels::msm::Curve;
use prestage_kernels::ntt::Fr;
use prestage_kernels::{Family, card};
use prestage_transfer::{Downloading, Lanes, Pinned, Uploading};
use prestage_vram::cuda::Cuda;
use prestage_vram::{Buf, Bytes, Turn, Work};
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Bytes of affine points in a chunk.
const CHUNK: usize = 96 << 20;
/// Elements that a thread of the host copies at a time.
const PIECE: usize = 1 << 10;

impl Multiples for Turn<'_, Cuda> {
    /// Takes 0.7 GB of the card and 0.3 GB of page-locked memory, less for few scalars.
    fn multiples<A: Affine>(&self, base: &A, scalars: &[Scalar]) -> Result<Arc<[A]>, Error> {
        let n = scalars.len();
        if n == 0 {
            return Ok(Vec::new().into());
        }
        card::load(self.device(), Family::FixedBase)?;
        let lanes = Lanes::open(self)?;
        let window = Window::of(n);
        let table = Arc::new(Table::new(base, window.bits() as usize).into_points());
        let at = lanes.upload.alloc("table of multiples", table.len())?;
        let (mut table, uploading) = lanes.upload.upload(table, at)?;
        uploading.wait()?;
        table.claim(lanes.compute.queue())?;

        let chunks = n.div_ceil(CHUNK / size_of::<A>());
        let chunk = n.div_ceil(chunks);
        let range = |index: usize| n.min(index * chunk)..n.min((index + 1) * chunk);
        let mut slots: Vec<Slot<'_, A>> =
            (0..chunks.min(2)).map(|_| Slot::open(&lanes, chunk)).collect::<Result<_, _>>()?;
        let fill = |points: &mut [MaybeUninit<A>]| {
            for index in 0..chunks + 2 {
                let Some(slot) = slots.get_mut(index % 2) else { continue };
                if let Some(landed) = index.checked_sub(2) {
                    slot.land(points.get_mut(range(landed)).unwrap_or_default())?;
                }
                if let Some(scalars) = scalars.get(range(index)).filter(|scalars| !scalars.is_empty()) {
                    slot.start(&lanes, window, &table, scalars)?;
                }
            }
            Ok::<_, Error>(())
        };
        // SAFETY: every chunk that is started lands in its range two rounds later, and the ranges cover all places.
        unsafe { filled(n, fill) }
    }
}

/// Memory of one chunk, on the card and on the host.
struct Slot<'t, A: Affine> {
    on_card: Buf<'t, Cuda, MaybeUninit<Scalar>>,
    sums: Buf<'t, Cuda, MaybeUninit<u8>>,
    points: Buf<'t, Cuda, MaybeUninit<A>>,
    staged: Staged<'t, A>,
}

/// Page-locked memory of a chunk.
enum Staged<'t, A> {
    /// Nothing is under way.
    Idle(Pinned<Scalar>, Pinned<MaybeUninit<A>>),
    /// Scalars go up, and points come down.
    Flying(Uploading<'t, Cuda, Pinned<Scalar>>, Downloading<'t, Cuda, MaybeUninit<A>>),
    /// An operation failed, and so does all of it.
    Gone,
}

impl<'t, A: Affine> Slot<'t, A> {
    fn open(lanes: &Lanes<'t, Cuda>, len: usize) -> Result<Self, Error> {
        let device = lanes.device();
        let sums = Bytes::new(curve::<A>().xyzz_bytes()).get().saturating_mul(len as u64);
        let sums =
            usize::try_from(sums).map_err(|_| prestage_vram::Error::TooLong { elements: len, size: 384 })?;
        Ok(Self {
            on_card: lanes.upload.alloc("scalars of multiples", len)?,
            sums: lanes.compute.alloc("sums of multiples", sums)?,
            points: lanes.compute.alloc("multiples", len)?,
            staged: Staged::Idle(Pinned::filled(device, len, Scalar::ZERO)?, Pinned::uninit(device, len)?),
        })
    }

    /// Enqueues the multiples by `scalars`, at most as many as the slot has places.
    fn start(
        &mut self,
        lanes: &Lanes<'t, Cuda>,
        window: Window,
        table: &Buf<'_, Cuda, A>,
        scalars: &[Scalar],
    ) -> Result<(), Error> {
        let Staged::Idle(mut source, target) = std::mem::replace(&mut self.staged, Staged::Gone) else {
            return Ok(());
        };
        copy(scalars, &mut source);
        let uploading = lanes.upload.upload_at(source, &mut self.on_card, 0)?;
        let (queue, n, curve) = (lanes.compute.queue(), scalars.len() as u64, curve::<A>());
        self.on_card.claim(queue)?;
        self.sums.claim(queue)?;
        self.points.claim(queue)?;
        let (at, sums) = (self.on_card.block().as_ptr::<Fr>(), self.sums.block().as_ptr::<u8>());
        let table = table.block().as_ptr::<u8>().cast_const();
        let moved = Bytes::of::<Scalar>(scalars.len()) + Bytes::of::<A>(scalars.len());
        let work = Work::launch(format!("multiples in {}", A::NAME), moved);
        let launches = [
            launches::multiples(curve, window, table, at.cast_const(), n, sums),
            launches::normalise(curve, sums, n, self.points.block().as_ptr()),
        ];
        // SAFETY: all memory is claimed for the queue and has places for at least `n` elements; the scalars are uploaded, as
        // the table is, which has the points that its window asks for; the kernels write the sums before they are read.
        unsafe { card::enqueue(lanes.device(), queue, work, &launches) }?;
        let mark = lanes.compute.record()?;
        // SAFETY: recorded after the only use on this lane: the next upload waits for this chunk alone.
        unsafe { self.on_card.ready_at(mark.raw().clone()) };
        let all = 0..self.points.len();
        let downloading = lanes.download.download(&mut self.points, all, target)?;
        self.staged = Staged::Flying(uploading, downloading);
        Ok(())
    }

    /// Waits for the chunk under way, and writes its first points to all of `points`.
    fn land(&mut self, points: &mut [MaybeUninit<A>]) -> Result<(), Error> {
        let Staged::Flying(uploading, downloading) = std::mem::replace(&mut self.staged, Staged::Gone) else {
            return Ok(());
        };
        let (source, target) = (uploading.wait()?, downloading.wait()?);
        copy(target.get(..points.len()).unwrap_or_default(), points);
        self.staged = Staged::Idle(source, target);
        Ok(())
    }
}

/// Copies on all threads; memory that was never touched is touched by all of them.
fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| {
        let n = to.len().min(from.len());
        to[..n].copy_from_slice(&from[..n]);
    });
}

fn curve<A: Affine>() -> Curve {
    if A::NAME == "G1" { Curve::G1 } else { Curve::G2 }
}
