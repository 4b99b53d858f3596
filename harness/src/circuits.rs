//! Circuits made on the spot, for the demo, the tests and the benches.

use blstrs::Scalar;
use ff::Field;
use prestage_groth16::{R1cs, ShapeError, Witness};
use rand_core::RngCore;

/// A constraint system with a witness that satisfies it.
#[derive(Debug)]
pub struct Circuit {
    /// The constraints.
    pub r1cs: R1cs,
    /// A satisfying witness.
    pub witness: Witness,
}

/// `y = x^(2^n)` by n squarings with `n = 2^log_domain − 2`, so that the rows fill the domain exactly; x is private and
/// random, y public. Every wire is a full-size scalar: the dense case.
///
/// `log_domain` below 2 is taken as 2.
///
/// # Errors
/// [`ShapeError`] when `log_domain` is above what 32-bit wire numbers hold.
pub fn squares(log_domain: u32, mut rng: impl RngCore) -> Result<Circuit, ShapeError> {
    let n = constraints(log_domain, 2)?;
    let mut builder = R1cs::builder(n.saturating_add(2), 1)?;
    // Wires: 1, y, x, x², x⁴, …; the last square is y.
    let one = Scalar::ONE;
    let mut values = vec![one, Scalar::ZERO, Scalar::random(&mut rng)];
    for i in 0..n {
        let square = values[i as usize + 2].square();
        let out = if i + 1 == n {
            values[1] = square;
            1
        } else {
            values.push(square);
            i + 3
        };
        builder.constraint(&[(i + 2, one)], &[(i + 2, one)], &[(out, one)])?;
    }
    Ok(Circuit { r1cs: builder.finish(), witness: Witness::new(values)? })
}

/// `n = 2^log_domain − 3` random bits, each constrained to be one, and their sum as the public output: a witness of
/// zeros and ones, as hash circuits have.
///
/// `log_domain` below 3 is taken as 3.
///
/// # Errors
/// [`ShapeError`] when `log_domain` is above what 32-bit wire numbers hold.
pub fn bits(log_domain: u32, mut rng: impl RngCore) -> Result<Circuit, ShapeError> {
    let n = constraints(log_domain.max(3), 3)?;
    let mut builder = R1cs::builder(n.saturating_add(2), 1)?;
    let one = Scalar::ONE;
    let mut values = vec![one, Scalar::ZERO];
    let mut sum = Vec::with_capacity(n as usize);
    for i in 0..n {
        let bit = Scalar::from(u64::from(rng.next_u32() & 1));
        values[1] += bit;
        values.push(bit);
        sum.push((i + 2, one));
        builder.constraint(&[(i + 2, one)], &[(i + 2, one), (0, -one)], &[])?;
    }
    builder.constraint(&sum, &[(0, one)], &[(1, one)])?;
    Ok(Circuit { r1cs: builder.finish(), witness: Witness::new(values)? })
}

/// `2^log_domain − less`, where `less` rows are taken by other things.
fn constraints(log_domain: u32, less: u32) -> Result<u32, ShapeError> {
    let log = log_domain.max(2);
    let too_many = || ShapeError::Count {
        what: "rows, at most",
        expected: 1 << 31,
        got: 1u64.checked_shl(log).unwrap_or(u64::MAX),
    };
    if log > 31 {
        return Err(too_many());
    }
    Ok((1u32 << log) - less)
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::*;

    #[test]
    fn circuits_fill_their_domain_and_are_satisfied() {
        for log in 0..9 {
            for circuit in [squares, bits].map(|f| f(log, ChaCha8Rng::seed_from_u64(log.into())).unwrap()) {
                assert_eq!(circuit.r1cs.first_unsatisfied(&circuit.witness), Ok(None), "log {log}");
                assert_eq!(circuit.r1cs.n_rows(), circuit.r1cs.domain_size());
            }
        }
        assert!(squares(40, ChaCha8Rng::seed_from_u64(0)).is_err());
    }
}
