//! What is wrong when counts, wires or rows of a circuit, a witness and a key do not fit together.

use std::fmt;

/// One of the three matrices of a rank-1 constraint system, `A·w ∘ B·w = C·w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixName {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The product.
    C,
}

impl fmt::Display for MatrixName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// A circuit, witness or key whose parts do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A count differs from what the other parts imply.
    #[error("{what}: expected {expected}, got {got}")]
    Count {
        /// What was counted, in words.
        what: &'static str,
        /// The count that the other parts imply.
        expected: u64,
        /// The count that is there.
        got: u64,
    },
    /// A linear combination names a wire that the circuit does not have.
    #[error("row {row} names wire {wire} of {n_wires}")]
    Wire {
        /// Row within its matrix.
        row: u64,
        /// The wire that is named.
        wire: u64,
        /// How many wires there are.
        n_wires: u64,
    },
    /// The domain is not a power of two, or larger than the scalar field has roots of unity for.
    #[error("a domain of {size} rows is not a power of two of at most 2^32")]
    Domain {
        /// The size that was asked for.
        size: u64,
    },
    /// The H query is that of another domain, or of another reduction.
    #[error(
        "the H query of {reduction} keys ({basis} basis) has {expected} points for {domain_size} rows, got {got}"
    )]
    QuotientQuery {
        /// Name of the reduction.
        reduction: &'static str,
        /// The basis in which it holds the quotient's points.
        basis: &'static str,
        /// Rows of the domain.
        domain_size: u64,
        /// Points that such a key has.
        expected: u64,
        /// Points that are there.
        got: u64,
    },
    /// The first wire of a witness is the constant one.
    #[error("wire 0 of a witness must be 1")]
    FirstWire,
    /// More distinct coefficients in one matrix than a 32-bit index can name.
    #[error("more than {max} distinct coefficients in one matrix")]
    Coefficients {
        /// The largest number of distinct coefficients.
        max: u64,
    },
}

/// Returns an error unless `got` is `expected`.
pub(crate) fn expect_count(what: &'static str, expected: u64, got: u64) -> Result<(), ShapeError> {
    if expected == got { Ok(()) } else { Err(ShapeError::Count { what, expected, got }) }
}
