//! All Lagrange polynomials of a coset at one point, by a recurrence.

use blstrs::Scalar;
use ff::{BatchInverter, Field};
use prestage_ntt::Domain;
use rayon::prelude::*;

use crate::matrix::zeros;

/// Elements per inversion, and per piece of parallel work.
pub(super) const PIECE: usize = 4096;

/// `factor · x_i / (x − x_i)` for the points `x_i = shift · w^i` of a coset of the domain, none of which is `x`.
///
/// With `factor = ((x/shift)^m − 1)/m` these are the Lagrange polynomials of the coset at `x`. Seven multiplications
/// per point.
pub(crate) fn fractions(domain: &Domain, shift: Scalar, x: Scalar, factor: Scalar) -> Vec<Scalar> {
    let mut out = zeros(domain.size());
    let root = domain.root();
    out.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
        let first = shift * domain.element(piece * PIECE);
        let mut point = first;
        for value in out.iter_mut() {
            *value = x - point;
            point *= root;
        }
        let mut scratch = vec![Scalar::ZERO; out.len()];
        BatchInverter::invert_with_external_scratch(&mut *out, &mut scratch);
        let mut numerator = factor * first;
        for value in out {
            *value *= numerator;
            numerator *= root;
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Π_{j≠i} (x − x_j)/(x_i − x_j).
    fn naive(points: &[Scalar], i: usize, x: Scalar) -> Scalar {
        (0..points.len()).filter(|j| *j != i).fold(Scalar::ONE, |product, j| {
            product * (x - points[j]) * (points[i] - points[j]).invert().unwrap()
        })
    }

    #[test]
    fn equals_the_definition_on_the_domain_and_on_the_odd_coset() {
        let x = Scalar::from(123_456_789);
        for generator in [5, 7] {
            for log_size in 0..5 {
                let domain = Domain::new(1 << log_size, generator).unwrap();
                for shift in [Scalar::ONE, domain.double_root().unwrap()] {
                    let over = x * shift.invert().unwrap();
                    let factor = domain.vanishing(over) * domain.size_inverse();
                    let points: Vec<_> = (0..domain.size()).map(|i| shift * domain.element(i)).collect();
                    for (i, value) in fractions(&domain, shift, x, factor).into_iter().enumerate() {
                        assert_eq!(value, naive(&points, i, x), "{i} of 2^{log_size}, generator {generator}");
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_join() {
        let domain = Domain::new(2 * PIECE, 7).unwrap();
        let x = Scalar::from(99);
        let values = fractions(&domain, Scalar::ONE, x, domain.vanishing(x) * domain.size_inverse());
        // The Lagrange basis adds up to one.
        assert_eq!(values.iter().sum::<Scalar>(), Scalar::ONE);
        let at = PIECE + 17;
        let point = domain.element(at);
        let expected = domain.vanishing(x) * domain.size_inverse() * point * (x - point).invert().unwrap();
        assert_eq!(values[at], expected);
    }
}
