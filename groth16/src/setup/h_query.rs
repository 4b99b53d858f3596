//! The discrete logarithms of the H query in its two bases.

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::Domain;

use super::lagrange::fractions;
use crate::Error;

/// `τ^i · (τ^m − 1)/δ` for i below m − 1.
pub(crate) fn monomial(domain: &Domain, tau: Scalar, delta_inverse: Scalar) -> Vec<Scalar> {
    let first = domain.vanishing(tau) * delta_inverse;
    std::iter::successors(Some(first), |power| Some(*power * tau)).take(domain.size() - 1).collect()
}

/// `(τ^2m − 1)/2m · x_j/(τ − x_j)/δ` at the odd points `x_j = w_{2m}^(2j+1)` of the domain of 2m.
///
/// These are the Lagrange polynomials of that domain at τ; `a·b − c` vanishes at its even points, so its values at
/// the odd ones against these give its value at τ.
///
/// # Errors
/// [`Error::Ntt`] for the largest domain, which has none of twice the size.
pub(crate) fn odd_coset(domain: &Domain, tau: Scalar, delta_inverse: Scalar) -> Result<Vec<Scalar>, Error> {
    let half = Option::<Scalar>::from(Scalar::from(2).invert()).unwrap_or(Scalar::ZERO);
    let factor = twice_vanishing(domain, tau) * domain.size_inverse() * half * delta_inverse;
    Ok(fractions(domain, domain.double_root()?, tau, factor))
}

/// `x^(2m) − 1` for a domain of m points.
pub(crate) fn twice_vanishing(domain: &Domain, x: Scalar) -> Scalar {
    domain.vanishing(x.square())
}
