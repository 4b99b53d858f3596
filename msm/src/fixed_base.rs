//! Many multiples of one point: what the queries of a key are made of.

#[cfg(feature = "cuda")]
mod cuda;
mod table;

use crate::{Affine, Error, to_affine_batch};
use blstrs::Scalar;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::sync::Arc;
use table::Table;

/// Points per piece of parallel work.
const PIECE: usize = 512;

/// Whoever computes many multiples of one point: [`Threads`], or a turn on an NVIDIA card.
///
/// All of them give the same points, byte for byte.
///
/// ```
/// use blstrs::{G1Affine, Scalar};
/// use group::{Group, prime::PrimeCurveAffine};
/// use prestage_msm::{Multiples, Threads};
///
/// let scalars = [Scalar::from(2), Scalar::from(0)];
/// let points = Threads.multiples(&G1Affine::generator(), &scalars)?;
/// assert_eq!(*points, [(G1Affine::generator() * scalars[0]).into(), G1Affine::identity()]);
/// # Ok::<(), prestage_msm::Error>(())
/// ```
pub trait Multiples {
    /// `scalars[i]·base` for every i, in order: infinity for a scalar that is zero.
    ///
    /// # Errors
    /// [`Error::Device`] when a device refuses the memory or fails.
    fn multiples<A: Affine>(&self, base: &A, scalars: &[Scalar]) -> Result<Arc<[A]>, Error>;
}

/// The threads of the current `rayon` pool.
///
/// With windows of c bits, ⌈256/c⌉ mixed additions for each multiple after as many for each of 2^(c−1) points of a table; c up
/// to 13.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Multiples for Threads {
    fn multiples<A: Affine>(&self, base: &A, scalars: &[Scalar]) -> Result<Arc<[A]>, Error> {
        let table = Table::for_multiples(base, scalars.len());
        let fill = |points: &mut [MaybeUninit<A>]| {
            points.par_chunks_mut(PIECE).zip(scalars.par_chunks(PIECE)).for_each(|(points, scalars)| {
                let sums: Vec<A::Curve> = scalars.iter().map(|s| table.multiple(s)).collect();
                for (place, point) in points.iter_mut().zip(to_affine_batch(&sums)) {
                    place.write(point);
                }
            });
            Ok(())
        };
        // SAFETY: there are as many scalars as places, in pieces of the same length.
        unsafe { filled(scalars.len(), fill) }
    }
}

/// Shared memory for `n` points, filled where it lies.
///
/// # Safety
/// `fill` writes every place, or fails.
unsafe fn filled<A, E>(
    n: usize,
    fill: impl FnOnce(&mut [MaybeUninit<A>]) -> Result<(), E>,
) -> Result<Arc<[A]>, E> {
    let mut places = Arc::new_uninit_slice(n);
    // Nobody else has it yet, so there is always a place.
    fill(Arc::get_mut(&mut places).unwrap_or_default())?;
    // SAFETY: all are written, by this function's contract.
    Ok(unsafe { places.assume_init() })
}
