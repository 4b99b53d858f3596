//! Evaluation domains: the subgroups of order `2^k` of the multiplicative group modulo r.

use std::sync::Arc;

use blstrs::Scalar;
use ff::{Field, PrimeField};

use crate::lanes::Backend;
use crate::tables::Shared;
use crate::{Direction, Error};

/// Base-two logarithm of the largest domain: the two-adicity of `r - 1`.
pub const MAX_LOG_SIZE: u32 = 32;

/// The generator of bellman, blstrs, arkworks and everything derived from them.
pub const LIBSNARK_GENERATOR: u64 = 7;

/// The generator of circom and snarkjs (ffjavascript takes the least quadratic non-residue).
pub const CIRCOM_GENERATOR: u64 = 5;

/// The odd part of `r - 1 = 2^32 t`, little-endian.
const T: [u64; 4] = [0xfffe_5bfe_ffff_ffff, 0x09a1_d805_53bd_a402, 0x299d_7d48_3339_d808, 0x73ed_a753];

/// The points `1, w, w^2, …, w^(n-1)` for a root of unity `w` of order `n = 2^k`.
///
/// The root is `(g^t)^(2^(32-k))` with `r - 1 = 2^32 t`, where the multiplicative generator `g` is a
/// parameter, because proof systems do not agree on it: [`LIBSNARK_GENERATOR`] or
/// [`CIRCOM_GENERATOR`]. Any quadratic non-residue will do and any other number is refused.
///
/// Creating a domain costs a few hundred multiplications and allocates nothing that grows with its
/// size. Twiddle tables (about `16 sqrt(n)` elements) are built by the first transform of each
/// direction and shared by all clones.
#[derive(Clone)]
pub struct Domain {
    log_size: u32,
    generator: u64,
    /// Of order `2^i` at index i, and their inverses.
    roots: [Roots; 2],
    size_inverse: Scalar,
    backend: Backend,
    shared: Arc<Shared>,
}

impl Domain {
    /// The domain of `size` points generated from `generator`.
    ///
    /// # Errors
    /// [`Error::NotPowerOfTwo`], [`Error::TooLarge`] above `2^32` points, [`Error::Generator`] if
    /// `generator` is zero or a square modulo r.
    pub fn new(size: usize, generator: u64) -> Result<Self, Error> {
        if !size.is_power_of_two() {
            return Err(Error::NotPowerOfTwo { size });
        }
        let log_size = size.trailing_zeros();
        if log_size > MAX_LOG_SIZE {
            return Err(Error::too_large(size));
        }
        let top = Scalar::from(generator).pow_vartime(T);
        let roots = tower(top);
        if roots[1] != -Scalar::ONE {
            return Err(Error::Generator { generator });
        }
        // Of order 2^32, so not zero.
        let roots = [roots, tower(top.invert().unwrap_or(Scalar::ONE))];
        let size_inverse = power_of_half(log_size);
        Ok(Self {
            log_size,
            generator,
            roots,
            size_inverse,
            backend: Backend::detect(),
            shared: Arc::default(),
        })
    }

    /// The smallest domain that holds `rows` points (one point for no rows).
    ///
    /// # Errors
    /// [`Error::TooLarge`] naming `rows` if they exceed `2^32`; [`Error::Generator`] as in
    /// [`Domain::new`].
    pub fn at_least(rows: usize, generator: u64) -> Result<Self, Error> {
        let size = rows.checked_next_power_of_two().ok_or_else(|| Error::too_large(rows))?;
        Self::new(size, generator).map_err(|e| match e {
            Error::TooLarge { .. } => Error::too_large(rows),
            other => other,
        })
    }

    /// The same domain computed by another arithmetic backend, for tests and measurements.
    ///
    /// # Errors
    /// [`Error::Backend`] if this processor lacks the instructions.
    pub fn with_backend(mut self, backend: Backend) -> Result<Self, Error> {
        if !backend.is_available() {
            return Err(Error::Backend(backend));
        }
        self.backend = backend;
        Ok(self)
    }

    /// Number of points n.
    #[must_use]
    pub const fn size(&self) -> usize {
        1 << self.log_size
    }

    /// Base-two logarithm of the number of points.
    #[must_use]
    pub const fn log_size(&self) -> u32 {
        self.log_size
    }

    /// The multiplicative generator that the roots come from.
    #[must_use]
    pub const fn generator(&self) -> u64 {
        self.generator
    }

    /// The root of unity w of order n.
    #[must_use]
    pub const fn root(&self) -> Scalar {
        self.roots[0][self.log_size as usize]
    }

    /// `w^-1`.
    #[must_use]
    pub fn root_inverse(&self) -> Scalar {
        self.roots[1][self.log_size as usize]
    }

    /// `n^-1`, the factor of the inverse transform.
    #[must_use]
    pub const fn size_inverse(&self) -> Scalar {
        self.size_inverse
    }

    /// The point `w^index`.
    #[must_use]
    pub fn element(&self, index: usize) -> Scalar {
        self.root().pow_vartime([index as u64])
    }

    /// The square root of w from the same generator: the root of order `2n`. Circom keys evaluate
    /// the quotient on the coset that it shifts to.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for the largest domain.
    pub fn double_root(&self) -> Result<Scalar, Error> {
        let next = self.log_size as usize + 1;
        self.roots[0].get(next).copied().ok_or_else(|| Error::too_large(self.size().saturating_mul(2)))
    }

    /// The vanishing polynomial `x^n - 1` of the domain at `x`. On the coset `gH` it has the one value
    /// `vanishing(g)`.
    #[must_use]
    pub fn vanishing(&self, x: Scalar) -> Scalar {
        (0..self.log_size).fold(x, |x, _| x.square()) - Scalar::ONE
    }

    /// Which arithmetic the transforms of this domain run on.
    #[must_use]
    pub const fn backend(&self) -> Backend {
        self.backend
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The roots of order `2^i` for every i: as they are, or their inverses.
    pub(crate) const fn roots(&self, direction: Direction) -> &Roots {
        match direction {
            Direction::Forward => &self.roots[0],
            Direction::Inverse => &self.roots[1],
        }
    }
}

/// The powers `top^(2^i)`, the last first: roots of order `2^i` from one of order `2^32`.
fn tower(top: Scalar) -> Roots {
    let mut roots = [top; MAX_LOG_SIZE as usize + 1];
    for i in (0..MAX_LOG_SIZE as usize).rev() {
        roots[i] = roots[i + 1].square();
    }
    roots
}

/// `2^-log`.
pub(crate) fn power_of_half(log: u32) -> Scalar {
    Scalar::TWO_INV.pow_vartime([u64::from(log)])
}

/// Roots of unity by base-two logarithm of their order.
pub(crate) type Roots = [Scalar; MAX_LOG_SIZE as usize + 1];

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("log_size", &self.log_size)
            .field("generator", &self.generator)
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Domain {
    fn eq(&self, other: &Self) -> bool {
        (self.log_size, self.generator) == (other.log_size, other.generator)
    }
}

impl Eq for Domain {}
