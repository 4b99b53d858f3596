//! Conversions between blstrs and the kernels' limbs, and launches of the check kernels.
#![allow(dead_code, clippy::cast_possible_truncation, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(all(feature = "cuda", feature = "host"))]
pub mod known;
#[cfg(all(feature = "cuda", feature = "host"))]
pub mod machine;
pub mod transforms;

use blstrs::{Fp, Fp2, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group, prime::PrimeCurveAffine};
use prestage_kernels::{
    Args, Argument, Error, Launch,
    host::{self, Order},
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

pub type Fr8 = [u32; 8];
pub type Fq12 = [u32; 12];
pub type Fq24 = [u32; 24];

/// r and p, written out once more so that the tests do not lean on the sources.
pub const R: Fr8 =
    [0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753];
pub const P: Fq12 = [
    0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84,
    0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea,
];

/// The bytes of a value as those of another type of the same size.
pub fn cast<A: Copy, B: Copy>(a: &A) -> B {
    assert_eq!(size_of::<A>(), size_of::<B>());
    // SAFETY: the sizes agree, and every type used here is plain integers.
    unsafe { std::mem::transmute_copy(a) }
}

pub fn limbs<const N: usize, A: Copy>(a: &A) -> [u32; N] {
    cast(a)
}

/// a + b over N limbs, and the carry.
pub fn plus<const N: usize>(a: [u32; N], b: [u32; N]) -> ([u32; N], bool) {
    let mut carry = 0u64;
    let r = std::array::from_fn(|i| {
        carry += u64::from(a[i]) + u64::from(b[i]);
        let limb = carry as u32;
        carry >>= 32;
        limb
    });
    (r, carry != 0)
}

/// a − b over N limbs, and the borrow.
pub fn minus<const N: usize>(a: [u32; N], b: [u32; N]) -> ([u32; N], bool) {
    let mut borrow = false;
    let r = std::array::from_fn(|i| {
        let (d, b1) = a[i].overflowing_sub(b[i]);
        let (d, b2) = d.overflowing_sub(u32::from(borrow));
        borrow = b1 || b2;
        d
    });
    (r, borrow)
}

/// a modulo m by repeated subtraction.
pub fn modulo<const N: usize>(mut a: [u32; N], m: [u32; N]) -> [u32; N] {
    loop {
        let (d, borrow) = minus(a, m);
        if borrow {
            return a;
        }
        a = d;
    }
}

pub fn less<const N: usize>(a: [u32; N], b: [u32; N]) -> bool {
    minus(a, b).1
}

pub fn small<const N: usize>(v: u32) -> [u32; N] {
    std::array::from_fn(|i| if i == 0 { v } else { 0 })
}

pub fn times<const N: usize>(a: [u32; N], k: u32) -> [u32; N] {
    (0..k).fold([0; N], |s, _| {
        let (s, carry) = plus(s, a);
        assert!(!carry);
        s
    })
}

pub fn scalar(a: Fr8) -> Scalar {
    cast(&modulo(a, R))
}
pub fn fp(a: Fq12) -> Fp {
    cast(&modulo(a, P))
}
pub fn halves(a: Fq24) -> (Fq12, Fq12) {
    (a[..12].try_into().unwrap(), a[12..].try_into().unwrap())
}
pub fn joined(a: Fq12, b: Fq12) -> Fq24 {
    std::array::from_fn(|i| if i < 12 { a[i] } else { b[i - 12] })
}
pub fn fp2(a: Fq24) -> Fp2 {
    let (c0, c1) = halves(a);
    cast(&joined(modulo(c0, P), modulo(c1, P)))
}

pub fn random_scalar(seed: u64) -> Scalar {
    Scalar::random(ChaCha8Rng::seed_from_u64(seed))
}
pub fn random_fp(seed: u64) -> Fp {
    Fp::random(ChaCha8Rng::seed_from_u64(seed))
}

/// Integers below 2r that matter: around 0, r and 2r, powers of two, random.
pub fn lazy_fr() -> impl Strategy<Value = Fr8> {
    let near = (0u32..3, any::<bool>(), 0u32..4).prop_map(|(k, below, d)| {
        let m = times(R, k);
        let v = if below { minus(m, small(d)).0 } else { plus(m, small(d)).0 };
        if less(v, times(R, 2)) { v } else { times(R, 2).map(|_| 0) }
    });
    let power = (0u32..256).prop_map(|b| {
        modulo(std::array::from_fn(|i| if i == b as usize / 32 { 1 << (b % 32) } else { 0 }), times(R, 2))
    });
    let random = (any::<u64>(), any::<bool>()).prop_map(|(s, lift)| {
        let v = limbs(&random_scalar(s));
        if lift { plus(v, R).0 } else { v }
    });
    prop_oneof![near, power, random]
}

/// The same for 2p.
pub fn lazy_fq() -> impl Strategy<Value = Fq12> {
    let near = (0u32..3, any::<bool>(), 0u32..4).prop_map(|(k, below, d)| {
        let m = times(P, k);
        let v = if below { minus(m, small(d)).0 } else { plus(m, small(d)).0 };
        if less(v, times(P, 2)) { v } else { [0; 12] }
    });
    let power = (0usize..384).prop_map(|b| {
        modulo(std::array::from_fn(|i| if i == b / 32 { 1 << (b % 32) } else { 0 }), times(P, 2))
    });
    let random = (any::<u64>(), any::<bool>()).prop_map(|(s, lift)| {
        let v = limbs(&random_fp(s));
        if lift { plus(v, P).0 } else { v }
    });
    prop_oneof![near, power, random]
}
pub fn lazy_fq2() -> impl Strategy<Value = Fq24> {
    (lazy_fq(), lazy_fq()).prop_map(|(a, b)| joined(a, b))
}

pub fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Forwards), Just(Order::Backwards), any::<u64>().prop_map(Order::Shuffled)]
}

/// `kernel(op, out, inputs…, n)` over n elements, `block` threads a block.
pub fn map<O: Copy, T: Copy>(
    kernel: &'static str,
    op: u32,
    zero: O,
    inputs: &[&[T]],
    block: u32,
    order: Order,
) -> Result<Vec<O>, Error> {
    let n = inputs[0].len();
    assert!(inputs.iter().all(|i| i.len() == n));
    let mut out = vec![zero; n];
    let mut args = Args::new().with(op).with(out.as_mut_ptr());
    for input in inputs {
        args = args.with(input.as_ptr());
    }
    args = args.with(n as u64);
    // SAFETY: the check kernels read and write n elements through each pointer.
    unsafe { host::launch(&Launch::elementwise(kernel, n as u64, block, args), order)? };
    Ok(out)
}

pub fn with_pointer<T>(args: Args, v: &[T]) -> Args
where
    *const T: Argument,
{
    args.with(v.as_ptr())
}

/// k·G and infinity for k = 0: small multiples meet often, random ones do not.
pub fn g1_point() -> impl Strategy<Value = G1Affine> {
    prop_oneof![
        (0u64..5, any::<bool>()).prop_map(|(k, minus)| {
            let p = G1Projective::generator() * Scalar::from(k);
            if minus { -p } else { p }.to_affine()
        }),
        any::<u64>().prop_map(|s| (G1Projective::generator() * random_scalar(s)).to_affine()),
    ]
}
pub fn g2_point() -> impl Strategy<Value = G2Affine> {
    prop_oneof![
        (0u64..5, any::<bool>()).prop_map(|(k, minus)| {
            let p = G2Projective::generator() * Scalar::from(k);
            if minus { -p } else { p }.to_affine()
        }),
        any::<u64>().prop_map(|s| (G2Projective::generator() * random_scalar(s)).to_affine()),
    ]
}

/// The kernels' layout of an affine point: coordinates, zeros for infinity.
pub fn g1_limbs(p: &G1Affine) -> [u32; 24] {
    if bool::from(p.is_identity()) { [0; 24] } else { joined(limbs(&p.x()), limbs(&p.y())) }
}
pub fn g2_limbs(p: &G2Affine) -> [u32; 48] {
    if bool::from(p.is_identity()) {
        return [0; 48];
    }
    let (x, y): (Fq24, Fq24) = (limbs(&p.x()), limbs(&p.y()));
    std::array::from_fn(|i| if i < 24 { x[i] } else { y[i - 24] })
}

/// The point of a kernel's affine limbs.
pub fn g1_from(l: &[u32; 24]) -> G1Affine {
    if l.iter().all(|&w| w == 0) {
        return G1Affine::identity();
    }
    let (x, y) = halves(*l);
    G1Affine::from_raw_unchecked(cast(&x), cast(&y), false)
}

/// Elements below `bound` (a power of two of limbs is enough): edges first, then random.
pub fn fr_values(n: usize, seed: u64) -> Vec<Fr8> {
    let edges =
        [small(0), small(1), minus(R, small(1)).0, R, plus(R, small(1)).0, minus(times(R, 2), small(1)).0];
    (0..n)
        .map(|i| {
            edges
                .get((i * 7 + seed as usize) % 64)
                .copied()
                .unwrap_or(limbs(&random_scalar(seed << 32 | i as u64)))
        })
        .collect()
}

/// A walk, with infinity, equal and opposite points among it.
pub fn g1_points(n: usize) -> Vec<[u32; 24]> {
    let mut p = G1Projective::generator() * random_scalar(4);
    let step = G1Projective::generator() * random_scalar(5);
    let points: Vec<G1Projective> = (0..n)
        .map(|i| {
            p += step;
            match i % 16 {
                0 => G1Projective::identity(),
                1 | 2 => G1Projective::generator(),
                3 => -G1Projective::generator(),
                _ => p,
            }
        })
        .collect();
    let mut affine = vec![G1Affine::default(); n];
    G1Projective::batch_normalize(&points, &mut affine);
    affine.iter().map(g1_limbs).collect()
}

/// The same in G2.
pub fn g2_points(n: usize) -> Vec<[u32; 48]> {
    let mut p = G2Projective::generator() * random_scalar(4);
    let step = G2Projective::generator() * random_scalar(5);
    let points: Vec<G2Projective> = (0..n)
        .map(|i| {
            p += step;
            match i % 16 {
                0 => G2Projective::identity(),
                1 | 2 => G2Projective::generator(),
                3 => -G2Projective::generator(),
                _ => p,
            }
        })
        .collect();
    let mut affine = vec![G2Affine::default(); n];
    G2Projective::batch_normalize(&points, &mut affine);
    affine.iter().map(g2_limbs).collect()
}
