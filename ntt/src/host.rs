//! Transforms of slices in host memory: in place, on all cores, one pass over memory per level.
//!
//! Every function here works alone, without a device. Costs in products for n values and `l` levels
//! (two up to `2^22`): `n/2 log n - n l` in the butterflies, `2 n (l - 1)` in the twiddle factors, and
//! n for a coset.

use blstrs::Scalar;
use ff::Field;

use crate::domain::power_of_half;
use crate::lanes::{Backend, Lanes};
use crate::passes::{self, Scaling, Way};
use crate::tables::{Shared, Tables};
use crate::{Direction, Domain, Error, Order, Transform};

/// Runs `$body` with `$V` naming the backend of the domain.
macro_rules! with_backend {
    ($domain:expr, $V:ident => $body:expr) => {
        match $domain {
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma => {
                type $V = $crate::lanes::ifma::Ifma;
                $body
            }
            _ => {
                type $V = $crate::lanes::portable::Portable;
                $body
            }
        }
    };
}
pub(crate) use with_backend;

fn check(domain: &Domain, values: &[Scalar]) -> Result<(), Error> {
    if values.len() == domain.size() {
        return Ok(());
    }
    Err(Error::Length { expected: domain.size(), got: values.len() })
}

/// Refuses a coset shift that has no inverse.
pub(crate) fn check_shift(shift: Scalar) -> Result<(), Error> {
    if shift == Scalar::ZERO { Err(Error::ZeroShift) } else { Ok(()) }
}

/// Runs one transform in place.
///
/// Natural to reversed order, and reversed to natural, cost no permutation; the two others end with
/// (or begin by) a bit reversal.
///
/// # Errors
/// [`Error::Length`] if `values` are not as many as the domain's points, [`Error::ZeroShift`].
pub fn transform(domain: &Domain, values: &mut [Scalar], transform: &Transform) -> Result<(), Error> {
    check(domain, values)?;
    let shift = transform.shift.unwrap_or(Scalar::ONE);
    check_shift(shift)?;
    with_backend!(domain.backend(), V => {
        run::<V>(&Shared::tables(domain, transform.direction), values, transform);
    });
    Ok(())
}

/// A checked transform with given tables.
pub(crate) fn run<V: Lanes>(tables: &Tables<'_, V>, values: &mut [Scalar], transform: &Transform) {
    let shift = transform.shift.unwrap_or(Scalar::ONE);
    let scaling = match transform.direction {
        Direction::Forward => Scaling { constant: Scalar::ONE, ratio: shift },
        Direction::Inverse => Scaling {
            constant: power_of_half(tables.log_size()),
            ratio: shift.invert().unwrap_or(Scalar::ONE),
        },
    };
    let way = match transform.input {
        Order::Natural => Way::NaturalToReversed,
        Order::Reversed => Way::ReversedToNatural,
    };
    passes::transform::<V>(tables, values, transform.direction, way, scaling);
    if transform.input == transform.output {
        crate::reorder::reverse_bits(values);
    }
}

/// Evaluations on the domain to evaluations on the coset `shift * H`, both in natural order.
///
/// Inverse transform, scaling of coefficient i by `shift^i / n`, and forward transform in one: the
/// coefficients exist in reversed order only, inside the innermost tiles, and memory is passed over
/// `2 l - 1` times for l levels.
///
/// # Errors
/// [`Error::Length`], [`Error::ZeroShift`].
pub fn coset_evaluations(domain: &Domain, values: &mut [Scalar], shift: Scalar) -> Result<(), Error> {
    check(domain, values)?;
    check_shift(shift)?;
    let scaling = Scaling { constant: domain.size_inverse(), ratio: shift };
    with_backend!(domain.backend(), V => {
        let inverse = Shared::tables::<V>(domain, Direction::Inverse);
        let forward = Shared::tables::<V>(domain, Direction::Forward);
        passes::coset_evaluations::<V>(&inverse, &forward, values, scaling);
    });
    Ok(())
}

/// Evaluations on the coset `shift * H` to coefficients, both in natural order.
///
/// # Errors
/// [`Error::Length`], [`Error::ZeroShift`].
pub fn coset_coefficients(domain: &Domain, values: &mut [Scalar], shift: Scalar) -> Result<(), Error> {
    transform(domain, values, &Transform::inverse().on_coset(shift))
}

/// `a := (a b - c) scale`, value by value: the quotient on a coset, where `scale` is the inverse of the
/// vanishing polynomial's one value there (bellman, arkworks) or 1 (circom).
///
/// # Errors
/// [`Error::Length`] if the three slices differ in length.
pub fn mul_sub_scale(a: &mut [Scalar], b: &[Scalar], c: &[Scalar], scale: Scalar) -> Result<(), Error> {
    same_length(a, b)?;
    same_length(a, c)?;
    passes::pointwise(a, Some(b), Some(c), scale);
    Ok(())
}

/// How a finished polynomial is combined with the resident one, value by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// `a := a b`.
    Mul,
    /// `a := (a - c) s`.
    SubScale(Scalar),
}

/// Combines `other` into `a`.
///
/// # Errors
/// [`Error::Length`] if the two slices differ in length.
pub fn combine(a: &mut [Scalar], other: &[Scalar], how: Combine) -> Result<(), Error> {
    same_length(a, other)?;
    match how {
        Combine::Mul => passes::pointwise(a, Some(other), None, Scalar::ONE),
        Combine::SubScale(scale) => passes::pointwise(a, None, Some(other), scale),
    }
    Ok(())
}

fn same_length(a: &[Scalar], b: &[Scalar]) -> Result<(), Error> {
    if a.len() == b.len() { Ok(()) } else { Err(Error::Length { expected: a.len(), got: b.len() }) }
}
