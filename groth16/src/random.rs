//! Uniform scalars from the operating system, or from a seed where a caller asks for one in so many words.

use blstrs::Scalar;
use ff::PrimeField;
use rand_core::{OsRng, RngCore};

use crate::Error;

/// A uniform scalar by rejection: 255 random bits are below r in nine cases out of ten.
pub(crate) fn scalar(rng: &mut impl RngCore) -> Result<Scalar, Error> {
    loop {
        let mut bytes = [0; 32];
        fill(rng, &mut bytes)?;
        bytes[31] &= 0x7f;
        if let Some(scalar) = Option::from(Scalar::from_repr(bytes)) {
            return Ok(scalar);
        }
    }
}

/// A uniform scalar below 2^128, enough for the weights of a batch.
pub(crate) fn weight(rng: &mut impl RngCore) -> Result<Scalar, Error> {
    let mut bytes = [0; 32];
    fill(rng, &mut bytes[..16])?;
    // Below 2^128 is below r.
    Ok(Option::from(Scalar::from_repr(bytes)).unwrap_or_default())
}

fn fill(rng: &mut impl RngCore, bytes: &mut [u8]) -> Result<(), Error> {
    rng.try_fill_bytes(bytes).map_err(|e| Error::Random { detail: e.to_string() })
}

/// The two scalars that make a proof reveal nothing of its witness.
///
/// They must be fresh for every proof and known to nobody: two proofs of one statement under one pair are equal,
/// and who knows the pair of a proof can test guesses of its witness.
#[derive(Clone, Copy)]
pub struct Blinding {
    /// Blinds A.
    pub r: Scalar,
    /// Blinds B.
    pub s: Scalar,
}

impl Blinding {
    /// A fresh pair from the operating system.
    ///
    /// # Errors
    /// [`Error::Random`].
    pub fn random() -> Result<Self, Error> {
        Self::sample(&mut OsRng)
    }

    /// The pair that belongs to `seed`, for tests that compare proofs byte by byte. **Not secret, not zero-knowledge.**
    ///
    /// # Errors
    /// None in practice; the type is that of [`Blinding::random`].
    pub fn insecure_from_seed(seed: [u8; 32]) -> Result<Self, Error> {
        Self::sample(&mut seeded(seed))
    }

    fn sample(rng: &mut impl RngCore) -> Result<Self, Error> {
        Ok(Self { r: scalar(rng)?, s: scalar(rng)? })
    }
}

impl std::fmt::Debug for Blinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blinding").finish_non_exhaustive()
    }
}

/// The generator of everything that is seeded.
pub(crate) fn seeded(seed: [u8; 32]) -> impl RngCore {
    <rand_chacha::ChaCha20Rng as rand_core::SeedableRng>::from_seed(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_fresh_unless_seeded() {
        let pairs = [Blinding::random().unwrap(), Blinding::random().unwrap()];
        assert_ne!(pairs[0].r, pairs[1].r);
        assert_ne!(pairs[0].r, pairs[0].s);
        let again = || Blinding::insecure_from_seed([7; 32]).unwrap();
        assert_eq!((again().r, again().s), (again().r, again().s));
        assert_ne!(again().r, Blinding::insecure_from_seed([8; 32]).unwrap().r);
        assert_eq!(format!("{:?}", again()), "Blinding { .. }");
    }
}
