//! The base fields Fq and Fq², by blst's arithmetic.
//!
//! The only module that calls blst's field functions. Elements are in Montgomery form and always fully reduced,
//! so equality of limbs is equality of elements.

use blst::{blst_fp, blst_fp2};
use std::mem::MaybeUninit;

/// Arithmetic of the field that a curve's coordinates live in.
pub trait Field: Copy + PartialEq + Send + Sync + 'static {
    /// Zero.
    const ZERO: Self;
    /// One, in Montgomery form.
    const ONE: Self;
    /// How many additions share one inversion. An inversion costs about 80 products in Fq and 30 in Fq²; sharing it
    /// among more gains little and takes more of the second-level cache.
    const BATCH: usize;

    /// `self + b`.
    fn add(&self, b: &Self) -> Self;
    /// `self − b`.
    fn sub(&self, b: &Self) -> Self;
    /// `self · b`.
    fn mul(&self, b: &Self) -> Self;
    /// `self²`.
    fn square(&self) -> Self;
    /// `self⁻¹`, and 0 for 0.
    fn invert(&self) -> Self;

    /// `−self`.
    fn neg(&self) -> Self {
        Self::ZERO.sub(self)
    }

    /// Whether this is zero.
    fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// 2^384 mod q, that is 1 in Montgomery form.
const ONE: blst_fp = blst_fp {
    l: [
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ],
};
const ZERO: blst_fp = blst_fp { l: [0; 6] };

macro_rules! field {
    ($field:ty, $zero:expr, $one:expr, $batch:expr, $add:path, $sub:path, $mul:path, $sqr:path, $inv:path) => {
        impl Field for $field {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const BATCH: usize = $batch;

            #[inline]
            fn add(&self, b: &Self) -> Self {
                let mut out = MaybeUninit::uninit();
                // SAFETY: both inputs are initialised elements, and blst writes the whole of `out`.
                unsafe {
                    $add(out.as_mut_ptr(), self, b);
                    out.assume_init()
                }
            }

            #[inline]
            fn sub(&self, b: &Self) -> Self {
                let mut out = MaybeUninit::uninit();
                // SAFETY: as in `add`.
                unsafe {
                    $sub(out.as_mut_ptr(), self, b);
                    out.assume_init()
                }
            }

            #[inline]
            fn mul(&self, b: &Self) -> Self {
                let mut out = MaybeUninit::uninit();
                // SAFETY: as in `add`.
                unsafe {
                    $mul(out.as_mut_ptr(), self, b);
                    out.assume_init()
                }
            }

            #[inline]
            fn square(&self) -> Self {
                let mut out = MaybeUninit::uninit();
                // SAFETY: the input is an initialised element, and blst writes the whole of `out`.
                unsafe {
                    $sqr(out.as_mut_ptr(), self);
                    out.assume_init()
                }
            }

            fn invert(&self) -> Self {
                let mut out = MaybeUninit::uninit();
                // SAFETY: as in `square`.
                unsafe {
                    $inv(out.as_mut_ptr(), self);
                    out.assume_init()
                }
            }
        }
    };
}

field!(
    blst_fp,
    ZERO,
    ONE,
    512,
    blst::blst_fp_add,
    blst::blst_fp_sub,
    blst::blst_fp_mul,
    blst::blst_fp_sqr,
    blst::blst_fp_inverse
);
field!(
    blst_fp2,
    blst_fp2 { fp: [ZERO, ZERO] },
    blst_fp2 { fp: [ONE, ZERO] },
    256,
    blst::blst_fp2_add,
    blst::blst_fp2_sub,
    blst::blst_fp2_mul,
    blst::blst_fp2_sqr,
    blst::blst_fp2_inverse
);

#[cfg(test)]
mod tests {
    use super::*;

    fn laws<F: Field + std::fmt::Debug>() {
        assert!(F::ZERO.is_zero() && !F::ONE.is_zero());
        assert_eq!(F::ONE.mul(&F::ONE), F::ONE);
        assert_eq!(F::ZERO.invert(), F::ZERO);
        let mut x = F::ONE;
        for _ in 0..20 {
            x = x.square().add(&F::ONE).add(&x);
            assert_eq!(x.mul(&x.invert()), F::ONE);
            assert_eq!(x.square(), x.mul(&x));
            assert_eq!(x.add(&x.neg()), F::ZERO);
            assert_eq!(x.sub(&F::ONE).add(&F::ONE), x);
        }
    }

    #[test]
    fn both_fields_obey_the_laws() {
        laws::<blst_fp>();
        laws::<blst_fp2>();
    }
}
