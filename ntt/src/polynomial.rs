//! Polynomials with more or fewer coefficients than the domain has points.

use blstrs::Scalar;
use ff::Field;

use crate::{Domain, Error, Transform, host};

/// The polynomial of degree below n that agrees with `coefficients` on the coset `shift * H`.
///
/// There `x^n = shift^n`, so coefficient i of the long polynomial adds
/// `c_i shift^(n floor(i / n))` to coefficient `i mod n`. Fewer coefficients are filled up with zeros;
/// none stand for the zero polynomial.
///
/// # Errors
/// [`Error::ZeroShift`].
pub fn fold(domain: &Domain, coefficients: &[Scalar], shift: Scalar) -> Result<Vec<Scalar>, Error> {
    if shift == Scalar::ZERO {
        return Err(Error::ZeroShift);
    }
    let mut folded = vec![Scalar::ZERO; domain.size()];
    let turn = shift.pow_vartime([domain.size() as u64]);
    let mut power = Scalar::ONE;
    for part in coefficients.chunks(domain.size()) {
        for (f, c) in folded.iter_mut().zip(part) {
            *f += power * c;
        }
        power *= turn;
    }
    Ok(folded)
}

/// The values of a polynomial of any degree on the coset `shift * H`, in natural order.
///
/// # Errors
/// [`Error::ZeroShift`].
pub fn evaluate_on_coset(
    domain: &Domain,
    coefficients: &[Scalar],
    shift: Scalar,
) -> Result<Vec<Scalar>, Error> {
    let mut values = fold(domain, coefficients, shift)?;
    host::transform(domain, &mut values, &Transform::forward().on_coset(shift))?;
    Ok(values)
}
