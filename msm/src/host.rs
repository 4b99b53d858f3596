//! Sums over slices in host memory.

use crate::compact::View;
use crate::plan::SMALL;
use crate::scratch::Arena;
use crate::split::{Chunk, Terms};
use crate::{Affine, Error, Plan, pippenger};
use blstrs::Scalar;
use group::Group;
use prestage_vram::Bytes;
use std::mem::MaybeUninit;

/// What a sum had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Scalars that were zero, and dropped.
    pub zeros: usize,
    /// Scalars that were one, and split off to be added only.
    pub ones: usize,
    /// Scalars that went through windows, or to blst.
    pub others: usize,
    /// Affine additions into buckets, rows and columns, and of ones. Those inside blst are not counted.
    pub additions: u64,
}

/// Σ scalars\[i\]·bases\[i\] on all threads of the current `rayon` pool, with scratch of its own.
///
/// Bases may be infinity, repeat or be opposite to each other; no base needs to lie in the subgroup of order r.
/// The sum of nothing is infinity. Time depends on the scalars: not for secrets that others could time.
///
/// # Errors
/// [`Error::LengthMismatch`] when there are not as many scalars as bases.
pub fn msm<A: Affine>(bases: &[A], scalars: &[Scalar]) -> Result<A::Curve, Error> {
    let plan = Plan::new(bases.len(), rayon::current_num_threads());
    let bytes = plan.footprint::<A>();
    let short = Error::ScratchTooSmall { need: bytes, got: Bytes::ZERO };
    let mut scratch = vec![MaybeUninit::uninit(); bytes.to_usize().ok_or(short)?];
    msm_with(&plan, bases, scalars, &mut scratch).map(|(sum, _)| sum)
}

/// [`msm`] under a plan and in scratch of the caller's, of [`Plan::footprint`] bytes; nothing else is allocated
/// that grows with the length.
///
/// # Errors
/// [`Error::LengthMismatch`], [`Error::LongerThanPlanned`], [`Error::ScratchTooSmall`].
pub fn msm_with<A: Affine>(
    plan: &Plan,
    bases: &[A],
    scalars: &[Scalar],
    scratch: &mut [MaybeUninit<u8>],
) -> Result<(A::Curve, Stats), Error> {
    let n = bases.len();
    if n != scalars.len() {
        return Err(Error::LengthMismatch { bases: n, scalars: scalars.len() });
    }
    if n > plan.len() {
        return Err(Error::LongerThanPlanned { len: n, planned: plan.len() });
    }
    let (need, got) = (plan.footprint::<A>(), Bytes::of::<u8>(scratch.len()));
    let short = Error::ScratchTooSmall { need, got };
    if got < need {
        return Err(short);
    }
    in_scratch(plan, bases, Input::Plain(scalars), scratch).ok_or(short)
}

/// The scalars of a sum in memory.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    Plain(&'a [Scalar]),
    /// Sorted already, whether the plan splits or not.
    Compact(View<'a>),
}

/// The sum of at most [`Plan::len`] terms, as many bases as scalars. `None` when the scratch is too small.
pub(crate) fn in_scratch<A: Affine>(
    plan: &Plan,
    bases: &[A],
    scalars: Input<'_>,
    scratch: &mut [MaybeUninit<u8>],
) -> Option<(A::Curve, Stats)> {
    let n = bases.len();
    let mut arena = Arena::new(scratch)?;
    let chunks = arena.take(plan.chunks(), Chunk::default())?;
    let integers = arena.take(if matches!(scalars, Input::Plain(_)) { plan.len() } else { 0 }, [0; 4])?;
    let index = arena.take(plan.len(), 0)?;
    let results = arena.take(plan.results(), A::Curve::identity())?;
    let small = plan.len().min(SMALL);
    let small_scalars = arena.take(small, [0; 4])?;
    let small_words = arena.take(A::blst_scratch_words(small), 0)?;

    let chunks = &mut chunks[..n.div_ceil(crate::split::CHUNK)];
    let (index, threads) = (&mut index[..n], plan.threads());
    let terms = match scalars {
        Input::Plain(scalars) => {
            Terms::classify(bases, scalars, chunks, &mut integers[..n], index, plan.splits(), threads)
        }
        Input::Compact(scalars) => Terms::sorted(bases, scalars, chunks, index, threads),
    };
    let (others, ones) = terms.counts();
    let shape = plan.shape(others);
    let ones_tasks = if ones > 0 { plan.ones() } else { 0 };
    let lane = plan.lane::<A>().part();
    let (mut sum, additions) =
        pippenger::sum(&terms, shape.as_ref(), ones_tasks, &mut arena, lane, plan.threads(), results)?;
    if shape.is_none() && others > 0 {
        let mut points = [std::ptr::null(); SMALL];
        for ((point, scalar), (base, integer)) in
            points.iter_mut().zip(&mut *small_scalars).zip(terms.others(0..terms.chunks()))
        {
            (*point, *scalar) = (std::ptr::from_ref(base), *integer);
        }
        sum += A::blst_pippenger(&points[..others], &small_scalars[..others], small_words)?;
    }
    Some((sum, Stats { zeros: n - others - ones, ones, others, additions }))
}
