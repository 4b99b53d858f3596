//! Arithmetic modulo r on four 64-bit limbs, lazy where that is free.
//!
//! Products are blst's assembly, sums and differences are inlined. An inlined product in Rust that uses
//! `r mod 2^64 = 2^64 - 2^32 + 1` (28 wide multiplications instead of 36) was measured against it: whole
//! transforms took 1.10 times as long, because compilers do not emit the two interleaved carry chains
//! (`adcx`, `adox`) that the assembly has.
//!
//! **Range.** Values are kept below `2r`, which fits because `2r < 2^256`. Before its final conditional
//! subtraction, a product of `x < 2r` with a canonical `y < r` is
//! `xy / 2^256 + r < r (2r / 2^256 + 1) < 1.91 r`, so the subtraction makes it canonical.

use blstrs::Scalar;

/// Four little-endian limbs, a residue in Montgomery form (factor `2^256`).
pub(crate) type Limbs = [u64; 4];

/// The modulus r of the scalar field.
pub(crate) const R: Limbs =
    [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
/// Twice the modulus.
pub(crate) const R2: Limbs =
    [0xffff_fffe_0000_0002, 0xa77b_4805_fffc_b7fd, 0x6673_b010_1343_b00a, 0xe7db_4ea6_533a_fa90];

/// The Montgomery limbs of a scalar, canonical.
#[inline(always)]
pub(crate) fn limbs(x: &Scalar) -> Limbs {
    blst::blst_fr::from(*x).l
}

/// The scalar with these limbs, which must be below r.
#[cfg(test)]
pub(crate) fn scalar(l: Limbs) -> Scalar {
    Scalar::from(blst::blst_fr { l })
}

/// `x y / 2^256 mod r`, for `x < 2r` and `y < r`; the result is canonical.
#[inline(always)]
pub(crate) fn mul(x: &Limbs, y: &Limbs) -> Limbs {
    let mut product = blst::blst_fr { l: [0; 4] };
    // SAFETY: three valid places of four limbs each, the layout of `blst_fr`. The function is a Montgomery
    // multiplication that ends with one conditional subtraction, which is enough for x < 2r: see the module.
    unsafe { blst::blst_fr_mul(&mut product, x.as_ptr().cast(), y.as_ptr().cast()) };
    product.l
}

#[inline(always)]
const fn sub_borrow(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    let (d0, o) = a[0].overflowing_sub(b[0]);
    let (d1, o) = borrow(a[1], b[1], o);
    let (d2, o) = borrow(a[2], b[2], o);
    let (d3, o) = borrow(a[3], b[3], o);
    ([d0, d1, d2, d3], o)
}

#[inline(always)]
const fn borrow(a: u64, b: u64, o: bool) -> (u64, bool) {
    let (d, o1) = a.overflowing_sub(b);
    let (d, o2) = d.overflowing_sub(o as u64);
    (d, o1 | o2)
}

#[inline(always)]
const fn add_carry(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
    let (s0, o) = a[0].overflowing_add(b[0]);
    let (s1, o) = carry(a[1], b[1], o);
    let (s2, o) = carry(a[2], b[2], o);
    let (s3, o) = carry(a[3], b[3], o);
    ([s0, s1, s2, s3], o)
}

#[inline(always)]
const fn carry(a: u64, b: u64, o: bool) -> (u64, bool) {
    let (s, o1) = a.overflowing_add(b);
    let (s, o2) = s.overflowing_add(o as u64);
    (s, o1 | o2)
}

#[inline(always)]
const fn select(which: bool, yes: &Limbs, no: &Limbs) -> Limbs {
    let m = (which as u64).wrapping_neg();
    [
        (yes[0] & m) | (no[0] & !m),
        (yes[1] & m) | (no[1] & !m),
        (yes[2] & m) | (no[2] & !m),
        (yes[3] & m) | (no[3] & !m),
    ]
}

/// `a + b` for `a, b < 2r`, again below `2r`.
#[inline(always)]
pub(crate) const fn add(a: &Limbs, b: &Limbs) -> Limbs {
    let (s, over) = add_carry(a, b);
    let (d, under) = sub_borrow(&s, &R2);
    // Above 2^256 the sum is above 2r, and the wrapped difference is right.
    select(under & !over, &s, &d)
}

/// `a - b` for `a, b < 2r`, again below `2r`.
#[inline(always)]
pub(crate) const fn sub(a: &Limbs, b: &Limbs) -> Limbs {
    let (d, under) = sub_borrow(a, b);
    let m = (under as u64).wrapping_neg();
    add_carry(&d, &[R2[0] & m, R2[1] & m, R2[2] & m, R2[3] & m]).0
}

/// The canonical representative of a value below `2r`.
#[inline(always)]
pub(crate) const fn reduce(a: &Limbs) -> Limbs {
    let (d, under) = sub_borrow(a, &R);
    select(under, a, &d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// Values in `[0, 2r)` at and around every boundary, and random ones.
    fn cases() -> Vec<Limbs> {
        let near = |l: Limbs| {
            let one = [1, 0, 0, 0];
            [sub_borrow(&l, &one).0, l, add_carry(&l, &one).0]
        };
        let mut all = vec![[0; 4], [1, 0, 0, 0], [u64::MAX, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]];
        all.extend(near(R));
        all.push(near(R2)[0]);
        all.extend(near([0, 0, 0, R[3]]));
        all.push([u64::MAX, u64::MAX, u64::MAX, R2[3] - 1]);
        all.push([0xffff_ffff_0000_0000, u64::MAX, 0, 0]);
        all.push([0x1_0000_0000, 0, u64::MAX, 0]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        all.extend((0..40).map(|_| limbs(&Scalar::random(&mut rng))));
        all.extend((0..20).map(|_| add_carry(&limbs(&Scalar::random(&mut rng)), &R).0));
        all
    }

    #[test]
    fn agrees_with_blst_at_every_edge() {
        assert_eq!(add_carry(&R, &R), (R2, false));
        for x in cases() {
            assert!(sub_borrow(&x, &R2).1);
            let sx = scalar(reduce(&x));
            for y in cases() {
                let sy = scalar(reduce(&y));
                let product = mul(&x, &reduce(&y));
                assert!(sub_borrow(&product, &R2).1, "product of {x:x?} and {y:x?} is not below 2r");
                assert_eq!(scalar(reduce(&product)), sx * sy, "{x:x?} * {y:x?}");
                let (sum, difference) = (add(&x, &y), sub(&x, &y));
                assert!(sub_borrow(&sum, &R2).1 && sub_borrow(&difference, &R2).1);
                assert_eq!(scalar(reduce(&sum)), sx + sy, "{x:x?} + {y:x?}");
                assert_eq!(scalar(reduce(&difference)), sx - sy, "{x:x?} - {y:x?}");
            }
        }
    }
}
