//! Bounds that creep, indices that wrap, constants that nobody else would agree with.
#![cfg(feature = "host")]

use blstrs::{Fp, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use prestage_kernels::{
    Args, Family, Launch,
    check::{CurveOp, FqOp, FrOp},
    host::{self, Order},
};

use crate::common::{
    Fq12, Fr8, P, R, cast, fp, g1_limbs, g2_limbs, joined, limbs, map, minus, random_fp, scalar, small,
};

/// Element indices are computed in 64 bits: a 32-bit product of block and thread wraps at 2^32 elements. Every
/// kernel source is searched for one that is not.
#[test]
fn b150_element_indices_have_64_bits() {
    let mut seen = 0;
    for family in Family::ALL {
        for source in family.headers().iter().chain([&family.source()]) {
            for (at, _) in source.text.match_indices("blk.index()") {
                let before = &source.text[..at];
                let after = &source.text[at + "blk.index()".len()..];
                if after.trim_start().trim_start_matches(')').trim_start().starts_with('*') {
                    seen += 1;
                    assert!(before.ends_with("u64("), "{}: {}", source.name, before.lines().last().unwrap());
                }
            }
        }
    }
    assert!(seen > 10, "the search must find what it looks for");
}

/// 10^5 dependent additions compared with the CPU, from p − 1, and as many steps in Fr and Fq: a missing final
/// subtraction shows only after several.
#[test]
fn b229_long_chains_keep_their_bounds() {
    let steps = 100_000u32;
    let q = G1Projective::generator() * Scalar::from(3);
    let (start, b) = ([g1_limbs(&-q.to_affine())], [g1_limbs(&q.to_affine())]);
    let mut out = [[0u32; 24]];
    let args =
        Args::new().with(out.as_mut_ptr()).with(start.as_ptr()).with(b.as_ptr()).with(steps).with(1u64);
    // SAFETY: one element behind each pointer.
    unsafe { host::launch(&Launch::elementwise("g1_chain", 1, 1, args), Order::Forwards).unwrap() };
    assert_eq!(out[0], g1_limbs(&(q * Scalar::from(u64::from(steps - 1))).to_affine()));

    let (mut x, w, y): ([Fq12; 1], [Fq12; 1], [Fq12; 1]) =
        ([minus(P, small(1)).0], [minus(P, small(1)).0], [limbs(&Fp::ONE)]);
    let expected = (0..steps).fold(fp(x[0]), |v, _| v * fp(w[0]) + v.square() - fp(y[0]));
    let args = Args::new().with(x.as_mut_ptr()).with(w.as_ptr()).with(y.as_ptr()).with(steps).with(1u64);
    // SAFETY: as above.
    unsafe { host::launch(&Launch::elementwise("fq_chain", 1, 1, args), Order::Forwards).unwrap() };
    assert_eq!(fp(x[0]), expected);

    let (mut x, w, y): ([Fr8; 1], [Fr8; 1], [Fr8; 1]) =
        ([minus(R, small(1)).0], [minus(R, small(1)).0], [small(1)]);
    let expected = (0..steps).fold(scalar(x[0]), |v, _| v * scalar(w[0]) + v - scalar(y[0]));
    let args = Args::new().with(x.as_mut_ptr()).with(w.as_ptr()).with(y.as_ptr()).with(steps).with(1u64);
    // SAFETY: as above.
    unsafe { host::launch(&Launch::elementwise("fr_chain", 1, 1, args), Order::Forwards).unwrap() };
    assert_eq!(scalar(x[0]), expected);
}

fn big_endian<const N: usize>(hex: &str) -> [u32; N] {
    assert_eq!(hex.len(), 8 * N);
    std::array::from_fn(|i| u32::from_str_radix(&hex[8 * (N - 1 - i)..8 * (N - i)], 16).unwrap())
}
fn montgomery(hex: &str) -> Fq12 {
    let mut bytes = [0u8; 48];
    for (i, b) in bytes.iter_mut().enumerate() {
        *b = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    }
    limbs(&Fp::from_bytes_be(&bytes).unwrap())
}

/// Known answers from the standard, draft-irtf-cfrg-pairing-friendly-curves: moduli and generators; the generators
/// double to the published 2·G and their multiples close.
#[test]
fn b230_known_answers() {
    assert_eq!(R, big_endian("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001"));
    let p =
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    assert_eq!(P, big_endian(p));
    let g1 = joined(
        montgomery(
            "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
        ),
        montgomery(
            "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1",
        ),
    );
    assert_eq!(g1, g1_limbs(&G1Affine::generator()));
    let two_g1 = joined(
        montgomery(
            "0572cbea904d67468808c8eb50a9450c9721db309128012543902d0ac358a62ae28f75bb8f1c7c42c39a8c5529bf0f4e",
        ),
        montgomery(
            "166a9d8cabc673a322fda673779d8e3822ba3ecb8670e461f73bb9021d5fd76a4c56d9d4cd16bd1bba86881979749d28",
        ),
    );
    let z: [Fq12; 1] = [limbs(&random_fp(1))];
    let run = |op: CurveOp| {
        let (a, mut out) = ([g1], [[0u32; 24]]);
        let args = Args::new().with(op as u32).with(out.as_mut_ptr()).with(a.as_ptr()).with(a.as_ptr());
        let args = args.with(z.as_ptr()).with(1u64);
        // SAFETY: one element behind each pointer.
        unsafe { host::launch(&Launch::elementwise("g1_check", 1, 1, args), Order::Forwards).unwrap() };
        out[0]
    };
    for op in [CurveOp::Double, CurveOp::Mixed, CurveOp::Full, CurveOp::Affine] {
        assert_eq!(run(op), two_g1, "{op:?}");
    }
    // u² = −1.
    let u: [u32; 24] = joined([0; 12], limbs(&Fp::ONE));
    let square =
        map("fq2_check", FqOp::Sqr as u32, [0u32; 24], &[&[u], &[u], &[u], &[u]], 1, Order::Forwards)
            .unwrap();
    let minus_one: [u32; 24] = joined(limbs(&-Fp::ONE), [0; 12]);
    let canonical = map(
        "fq2_check",
        FqOp::Canonical as u32,
        [0u32; 24],
        &[&square, &square, &square, &square],
        1,
        Order::Forwards,
    )
    .unwrap();
    assert_eq!(canonical[0], minus_one);
    // 7·7 = 49 in Fr, from integers to an integer.
    let seven = map(
        "fr_check",
        FrOp::FromInteger as u32,
        [0; 8],
        &[&[small::<8>(7)], &[small(7)]],
        1,
        Order::Forwards,
    )
    .unwrap();
    let product = map("fr_check", FrOp::Mul as u32, [0; 8], &[&seven, &seven], 1, Order::Forwards).unwrap();
    let integer =
        map("fr_check", FrOp::ToInteger as u32, [0; 8], &[&product, &product], 1, Order::Forwards).unwrap();
    assert_eq!(integer[0], small(49));
    // The generator of G2 has order r.
    let g2 = G2Affine::generator();
    assert_eq!(g2_limbs(&(G2Projective::from(g2) * -Scalar::ONE).to_affine()), g2_limbs(&-g2));
    let _: Scalar = cast(&seven[0]);
}
