//! The specification: what the transforms compute, written as it is defined.

use blstrs::Scalar;
use ff::Field;

use crate::tile::reverse;
use crate::{Direction, Domain, Error, Order, Transform};

/// The polynomial with these coefficients (lowest first, any number of them) at `x`, by Horner's rule.
#[must_use]
pub fn evaluate(coefficients: &[Scalar], x: Scalar) -> Scalar {
    coefficients.iter().rev().fold(Scalar::ZERO, |y, c| y * x + c)
}

/// The transform of `values` by definition, in `n^2` operations.
///
/// # Errors
/// [`Error::Length`], [`Error::ZeroShift`].
pub fn transform(domain: &Domain, values: &[Scalar], transform: &Transform) -> Result<Vec<Scalar>, Error> {
    let n = domain.size();
    if values.len() != n {
        return Err(Error::Length { expected: n, got: values.len() });
    }
    let shift = transform.shift.unwrap_or(Scalar::ONE);
    let inverse_shift: Scalar = Option::from(shift.invert()).ok_or(Error::ZeroShift)?;
    let bits = domain.log_size();
    let place = |order: Order, i: usize| match order {
        Order::Natural => i,
        Order::Reversed => reverse(i, bits),
    };
    let input: Vec<Scalar> = (0..n).map(|i| values[place(transform.input, i)]).collect();
    let output = |i: usize| match transform.direction {
        // f(g w^i).
        Direction::Forward => evaluate(&input, shift * domain.element(i)),
        // The polynomial with the values as coefficients, at w^-i, over n g^i.
        Direction::Inverse => {
            let sum = evaluate(&input, domain.root_inverse().pow_vartime([i as u64]));
            sum * domain.size_inverse() * inverse_shift.pow_vartime([i as u64])
        }
    };
    // Reversal is its own inverse, so position p holds value `place(p)`.
    Ok((0..n).map(|p| output(place(transform.output, p))).collect())
}
