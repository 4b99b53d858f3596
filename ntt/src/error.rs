//! The one error type of the crate.

use crate::domain::MAX_LOG_SIZE;

/// Why a domain, a transform or a chunked plan was refused.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A domain size that is not a power of two (zero included).
    #[error("domain size {size} is not a power of two")]
    NotPowerOfTwo {
        /// The size asked for.
        size: usize,
    },
    /// More points than the field has roots of unity for: `r - 1 = 2^32 * t` with `t` odd.
    #[error("{size} points need a domain above 2^{max}, and the scalar field of BLS12-381 has none")]
    TooLarge {
        /// The number of points (or rows) asked for.
        size: usize,
        /// Base-two logarithm of the largest domain.
        max: u32,
    },
    /// The multiplicative generator is a square modulo r, so it yields no root of order 2^32.
    #[error("{generator} is not a quadratic non-residue modulo r and cannot generate the domain")]
    Generator {
        /// The generator asked for.
        generator: u64,
    },
    /// A slice whose length is not the size of the domain.
    #[error("{got} values for a domain of {expected}")]
    Length {
        /// Values that the operation needs.
        expected: usize,
        /// Values that were given.
        got: usize,
    },
    /// A coset shift of zero: the coset would be the single point zero.
    #[error("the coset shift is zero")]
    ZeroShift,
    /// A number of chunks that the out-of-core transform cannot use.
    #[error(
        "{chunks} chunks for a domain of {size}: need a power of two from 2 to 64 whose square is at most the size"
    )]
    Chunks {
        /// The number of chunks asked for.
        chunks: usize,
        /// The size of the domain.
        size: usize,
    },
    /// The arithmetic backend needs instructions that this processor lacks.
    #[error("this processor cannot run the {0:?} backend")]
    Backend(crate::Backend),
    /// Chunked work under a plan that keeps polynomials whole.
    #[error("the plan has no chunks")]
    Whole,
    /// The device or its account said no.
    #[error(transparent)]
    Device(#[from] prestage_vram::Error),
    /// A lane or a copy failed.
    #[error(transparent)]
    Transfer(#[from] prestage_transfer::Error),
}

impl Error {
    pub(crate) fn too_large(size: usize) -> Self {
        Self::TooLarge { size, max: MAX_LOG_SIZE }
    }
}
