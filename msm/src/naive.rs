//! The definition, term by term: the reference that every fast path is tested against.

use crate::{Affine, Error};
use blstrs::Scalar;
use group::Group;

/// Σ scalars\[i\]·bases\[i\], one scalar multiplication after the other: n · (255 doublings and about as many
/// additions as blst's fixed window needs).
///
/// # Errors
/// [`Error::LengthMismatch`] when there are not as many scalars as bases.
pub fn msm<A: Affine>(bases: &[A], scalars: &[Scalar]) -> Result<A::Curve, Error> {
    if bases.len() != scalars.len() {
        return Err(Error::LengthMismatch { bases: bases.len(), scalars: scalars.len() });
    }
    let mut sum = A::Curve::identity();
    for (base, scalar) in bases.iter().zip(scalars) {
        sum += *base * *scalar;
    }
    Ok(sum)
}
