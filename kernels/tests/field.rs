//! Row M6 for the fields: the host build of Fr, Fq and Fq2 against blstrs, thread order forwards, backwards and
//! shuffled, with lazy representatives and their edges.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use blstrs::{Fp, Fp2, Scalar};
use common::*;
use ff::{Field, PrimeField};
use prestage_kernels::{
    Args, Error, Launch,
    check::{FqOp, FrOp},
    host::{self, Order},
};
use proptest::{collection::vec, prelude::*};

fn fr(op: FrOp, a: &[Fr8], b: &[Fr8], block: u32, order: Order) -> Result<Vec<Fr8>, Error> {
    map("fr_check", op as u32, [0; 8], &[a, b], block, order)
}
fn fq(op: FqOp, x: &[[Fq12; 4]], block: u32, order: Order) -> Result<Vec<Fq12>, Error> {
    let c: [Vec<Fq12>; 4] = std::array::from_fn(|k| x.iter().map(|v| v[k]).collect());
    map("fq_check", op as u32, [0; 12], &[&c[0], &c[1], &c[2], &c[3]], block, order)
}
fn fq2(op: FqOp, x: &[[Fq24; 4]], block: u32, order: Order) -> Result<Vec<Fq24>, Error> {
    let c: [Vec<Fq24>; 4] = std::array::from_fn(|k| x.iter().map(|v| v[k]).collect());
    map("fq2_check", op as u32, [0; 24], &[&c[0], &c[1], &c[2], &c[3]], block, order)
}
fn one_fr(op: FrOp, a: Fr8, b: Fr8) -> Result<Fr8, Error> {
    Ok(fr(op, &[a], &[b], 1, Order::Forwards)?[0])
}
fn one_fq(op: FqOp, a: Fq12, b: Fq12) -> Result<Fq12, Error> {
    Ok(fq(op, &[[a, b, [0; 12], [0; 12]]], 1, Order::Forwards)?[0])
}

/// What an operation of Fr must give, as an element.
fn fr_expected(op: FrOp, a: Fr8, b: Fr8) -> Scalar {
    let (x, y) = (scalar(a), scalar(b));
    match op {
        FrOp::Mul => x * y,
        FrOp::Add | FrOp::AddLoose => x + y,
        FrOp::Sub => x - y,
        FrOp::Canonical => x,
        // The limbs of the result, read as an element, are the integer times 1/2^256, and back.
        FrOp::ToInteger => cast(&le_limbs(&x)),
        FrOp::FromInteger => from_integer(a),
    }
}
fn le_limbs(x: &Scalar) -> Fr8 {
    cast(&x.to_bytes_le())
}
fn from_integer(a: Fr8) -> Scalar {
    a.iter().rev().fold(Scalar::ZERO, |s, &limb| s * Scalar::from(1u64 << 32) + Scalar::from(u64::from(limb)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn m6_fr_equals_blstrs(pairs in vec((lazy_fr(), lazy_fr()), 1..40), block in 1u32..=128, order in order()) {
        let (a, b): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
        let canonical: Vec<_> = b.iter().map(|&v| modulo(v, R)).collect();
        for op in [FrOp::Mul, FrOp::Add, FrOp::AddLoose, FrOp::Sub, FrOp::Canonical, FrOp::ToInteger, FrOp::FromInteger] {
            let right = if op == FrOp::Mul { &canonical } else { &b };
            let out = fr(op, &a, right, block, order).unwrap();
            for i in 0..a.len() {
                prop_assert_eq!(scalar(out[i]), fr_expected(op, a[i], right[i]), "{:?} {:x?} {:x?}", op, a[i], right[i]);
                match op {
                    FrOp::Mul | FrOp::Sub => prop_assert!(less(out[i], times(R, 2))),
                    FrOp::Add => prop_assert!(!less(times(R, 2), out[i])),
                    FrOp::Canonical | FrOp::ToInteger | FrOp::FromInteger => prop_assert!(less(out[i], R)),
                    FrOp::AddLoose => prop_assert!(out[i][7] <= times(R, 2)[7]),
                }
            }
        }
    }

    /// One factor may be any 256-bit integer.
    #[test]
    fn m6_fr_mul_takes_any_256_bits(x in prop::array::uniform8(prop_oneof![Just(0u32), Just(u32::MAX), any::<u32>()]), w in lazy_fr()) {
        let w = modulo(w, R);
        let out = one_fr(FrOp::Mul, x, w).unwrap();
        prop_assert_eq!(scalar(out), scalar(x) * scalar(w));
        prop_assert!(less(out, times(R, 2)));
        prop_assert_eq!(one_fr(FrOp::Canonical, x, x).unwrap(), modulo(x, R));
    }

    #[test]
    fn m6_fq_equals_blstrs(rows in vec([lazy_fq(), lazy_fq(), lazy_fq(), lazy_fq()], 1..24), block in 1u32..=128, order in order()) {
        for op in [FqOp::Mul, FqOp::Sqr, FqOp::Add, FqOp::Sub, FqOp::Neg, FqOp::MulAdd, FqOp::Canonical, FqOp::Inverse, FqOp::IsZero] {
            let out = fq(op, &rows, block, order).unwrap();
            for (row, z) in rows.iter().zip(&out) {
                let [a, b, c, d] = row.map(fp);
                let expected = match op {
                    FqOp::Mul => a * b,
                    FqOp::Sqr => a.square(),
                    FqOp::Add => a + b,
                    FqOp::Sub => a - b,
                    FqOp::Neg => -a,
                    FqOp::MulAdd => a * b + c * d,
                    FqOp::Canonical => a,
                    FqOp::Inverse | FqOp::InverseByPower => a.invert().unwrap_or(Fp::ZERO),
                    FqOp::IsZero => if bool::from(a.is_zero()) { Fp::ONE } else { Fp::ZERO },
                };
                prop_assert_eq!(fp(*z), expected, "{:?} {:x?}", op, row);
                prop_assert!(less(*z, times(P, 2)));
                prop_assert!(op != FqOp::Canonical || less(*z, P));
            }
        }
    }

    #[test]
    fn m6_fq2_equals_blstrs(rows in vec([lazy_fq2(), lazy_fq2(), lazy_fq2(), lazy_fq2()], 1..12), block in 1u32..=128, order in order()) {
        for op in [FqOp::Mul, FqOp::Sqr, FqOp::Add, FqOp::Sub, FqOp::Neg, FqOp::MulAdd, FqOp::Canonical, FqOp::Inverse, FqOp::IsZero] {
            let out = fq2(op, &rows, block, order).unwrap();
            for (row, z) in rows.iter().zip(&out) {
                let [a, b, c, d] = row.map(fp2);
                let expected = match op {
                    FqOp::Mul => a * b,
                    FqOp::Sqr => a.square(),
                    FqOp::Add => a + b,
                    FqOp::Sub => a - b,
                    FqOp::Neg => -a,
                    FqOp::MulAdd => a * b + c * d,
                    FqOp::Canonical => a,
                    FqOp::Inverse | FqOp::InverseByPower => a.invert().unwrap_or(Fp2::ZERO),
                    FqOp::IsZero => if bool::from(a.is_zero()) { Fp2::ONE } else { Fp2::ZERO },
                };
                prop_assert_eq!(fp2(*z), expected, "{:?} {:x?}", op, row);
                let (c0, c1) = halves(*z);
                prop_assert!(less(c0, times(P, 2)) && less(c1, times(P, 2)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The fast inversion against the plain one.
    #[test]
    fn m6_fq_inverse_equals_its_definition(a in lazy_fq()) {
        let fast = one_fq(FqOp::Inverse, a, a).unwrap();
        let plain = one_fq(FqOp::InverseByPower, a, a).unwrap();
        prop_assert_eq!(modulo(fast, P), modulo(plain, P));
    }
}

/// Every pair of the values where a lazy representation turns over.
#[test]
fn m6_edges_of_the_lazy_ranges() {
    let around = |m: Fr8| [minus(m, small(1)).0, m, plus(m, small(1)).0];
    let mut values: Vec<Fr8> = vec![small(0), small(1)];
    values.extend(around(R));
    values.extend([minus(times(R, 2), small(2)).0, minus(times(R, 2), small(1)).0]);
    for &a in &values {
        for &b in &values {
            for op in [FrOp::Add, FrOp::AddLoose, FrOp::Sub] {
                assert_eq!(scalar(one_fr(op, a, b).unwrap()), fr_expected(op, a, b), "{op:?} {a:x?} {b:x?}");
            }
            let w = modulo(b, R);
            assert_eq!(scalar(one_fr(FrOp::Mul, a, w).unwrap()), scalar(a) * scalar(w));
        }
    }
    // 2r itself may be subtracted: it is what the exact addition of r and r, less one wrap, would leave.
    assert_eq!(scalar(one_fr(FrOp::Sub, small(0), times(R, 2)).unwrap()), Scalar::ZERO);

    let p = |k: u32, d: i32| {
        let m = times(P, k);
        if d < 0 { minus(m, small(d.unsigned_abs())).0 } else { plus(m, small(d.unsigned_abs())).0 }
    };
    let values = [p(0, 0), p(0, 1), p(1, -1), p(1, 0), p(1, 1), p(2, -2), p(2, -1)];
    for &a in &values {
        for &b in &values {
            for (op, expected) in [
                (FqOp::Mul, fp(a) * fp(b)),
                (FqOp::Add, fp(a) + fp(b)),
                (FqOp::Sub, fp(a) - fp(b)),
                (FqOp::Sqr, fp(a).square()),
            ] {
                assert_eq!(fp(one_fq(op, a, b).unwrap()), expected, "{op:?} {a:x?} {b:x?}");
            }
        }
    }
}

/// A top-limb-only correction leaves up to 2r + 2^224. Subtracted from near zero that wraps below -2r, which
/// random operands meet once in 2^33: the loose sum must be refused as a subtrahend, the exact one accepted.
#[test]
fn m6_top_limb_edge_of_the_loose_sum() {
    let two_r = times(R, 2);
    // A sum whose top limb is exactly that of 2r and whose rest is above: the loose correction leaves it alone.
    let a = minus(two_r, small(1)).0;
    let b: Fr8 = [0, 0, 0, 0, 0, 0x8000_0000, 0, 0];
    let loose = one_fr(FrOp::AddLoose, a, b).unwrap();
    assert!(less(two_r, loose), "the case must reach the edge");
    assert_eq!(scalar(loose), scalar(a) + scalar(b));
    assert!(one_fr(FrOp::Sub, small(3), loose).is_err());
    // The plain subtraction corrected once would have been wrong here.
    let (wrapped, _) = minus(small(3), loose);
    let (corrected, carry) = plus(wrapped, two_r);
    assert!(!carry && scalar(corrected) != scalar(small(3)) - scalar(loose));

    let exact = one_fr(FrOp::Add, a, b).unwrap();
    assert!(!less(two_r, exact));
    assert_eq!(scalar(one_fr(FrOp::Sub, small(3), exact).unwrap()), scalar(small(3)) - scalar(exact));
}

/// Bounds are checked on the host: a value out of its range ends in an error that names the condition.
#[test]
fn bounds_are_checked() {
    let error = one_fq(FqOp::Add, times(P, 2), small(0)).unwrap_err();
    let Error::Host { kernel, message } = &error else { panic!("{error}") };
    assert_eq!(kernel, "fq_check");
    assert!(message.contains("FQ_2P") && message.contains("fq.cuh"), "{message}");
    assert!(one_fr(FrOp::Mul, small(1), R).is_err());
    // The next launch is not affected.
    assert_eq!(one_fq(FqOp::Add, small(1), small(2)).unwrap(), small(3));
}

#[test]
fn launches_are_checked() {
    let x = [[1u32; 8]];
    assert!(map("fr_checks", 0, [0; 8], &[&x, &x], 1, Order::Forwards).is_err());
    assert!(map("fr_check", 0, [0; 8], &[&x], 1, Order::Forwards).is_err());
    assert!(fr(FrOp::Add, &x, &x, 129, Order::Forwards).is_err());
    assert!(fr(FrOp::Add, &x, &x, 0x80, Order::Forwards).is_ok());
}

/// Chains of dependent operations, where a bound that creeps up would show.
#[test]
fn m6_chains_of_dependent_operations() {
    let steps = 2000u32;
    let (x, w, y) = (random_scalar(1), random_scalar(2), -Scalar::ONE);
    let mut v: [Fr8; 1] = [limbs(&x)];
    let args = Args::new().with(v.as_mut_ptr());
    let (wl, yl): ([Fr8; 1], [Fr8; 1]) = ([limbs(&w)], [limbs(&y)]);
    let args = with_pointer(with_pointer(args, &wl), &yl).with(steps).with(1u64);
    // SAFETY: one element behind each pointer.
    unsafe { host::launch(&Launch::elementwise("fr_chain", 1, 1, args), Order::Forwards).unwrap() };
    let expected = (0..steps).fold(x, |v, _| v * w + v - y);
    assert_eq!(scalar(v[0]), expected);

    let (x, w, y) = (random_fp(1), -Fp::ONE, random_fp(3));
    let mut v: [Fq12; 1] = [limbs(&x)];
    let args = Args::new().with(v.as_mut_ptr());
    let (wl, yl): ([Fq12; 1], [Fq12; 1]) = ([limbs(&w)], [limbs(&y)]);
    let args = with_pointer(with_pointer(args, &wl), &yl).with(steps).with(1u64);
    // SAFETY: one element behind each pointer.
    unsafe { host::launch(&Launch::elementwise("fq_chain", 1, 1, args), Order::Forwards).unwrap() };
    let expected = (0..steps).fold(x, |v, _| v * w + v.square() - y);
    assert_eq!(fp(v[0]), expected);
}

/// The constants of the sources, from the field itself.
#[test]
fn layout_is_that_of_blst() {
    assert_eq!(limbs::<8, _>(&Scalar::ONE), one_fr(FrOp::FromInteger, small(1), small(0)).unwrap());
    assert_eq!(one_fr(FrOp::ToInteger, limbs(&Scalar::from(77u64)), small(0)).unwrap(), small(77));
    assert_eq!(Scalar::NUM_BITS, 255);
    let generator = limbs(&Scalar::MULTIPLICATIVE_GENERATOR);
    assert_eq!(one_fr(FrOp::ToInteger, generator, small(0)).unwrap(), small(7));
}
