//! The discrete logarithms of the H query in its two bases.

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::Domain;
use rayon::prelude::*;

use super::lagrange::{PIECE, fractions};
use crate::Error;
use crate::matrix::zeros;

/// `τ^i · (τ^m − 1)/δ` for i below m − 1.
pub(crate) fn monomial(domain: &Domain, tau: Scalar, delta_inverse: Scalar) -> Vec<Scalar> {
    let first = domain.vanishing(tau) * delta_inverse;
    let mut out = zeros(domain.size() - 1);
    out.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
        let mut power = first * tau.pow_vartime([(piece * PIECE) as u64]);
        for place in out {
            *place = power;
            power *= tau;
        }
    });
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_all_pieces_follow_one_another() {
        let (tau, delta_inverse) = (Scalar::from(3), Scalar::from(11));
        for size in [1, 2, PIECE, 2 * PIECE] {
            let domain = Domain::new(size, 7).unwrap();
            let powers = monomial(&domain, tau, delta_inverse);
            assert_eq!(powers.len(), size - 1);
            let mut expected = (tau.pow_vartime([size as u64]) - Scalar::ONE) * delta_inverse;
            for power in powers {
                assert_eq!(power, expected);
                expected *= tau;
            }
        }
    }
}
