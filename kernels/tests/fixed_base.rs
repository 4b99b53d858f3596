//! Row M6 for multiples of one point: the host build of the family `fixed_base`, launched as on a device, against
//! blstrs.
#![cfg(feature = "host")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use common::{transforms::run, *};
use ff::Field;
use group::{Curve as _, Group, prime::PrimeCurveAffine};
use prestage_kernels::{
    fixed_base::{Window, multiples, normalise},
    host::Order,
    msm::Curve,
    ntt::Fr,
};
use proptest::prelude::*;

/// d·2^(b·j)·P, as the definition says.
fn table<A: PrimeCurveAffine<Scalar = Scalar>>(base: A, window: Window) -> Vec<A>
where
    A::Curve: group::Curve<AffineRepr = A>,
{
    let mut step = base.to_curve();
    let mut points = Vec::with_capacity(window.table_len());
    for _ in 0..256 / window.bits() {
        let mut point = step;
        for _ in 0..1 << (window.bits() - 1) {
            points.push(point);
            point += step;
        }
        for _ in 0..window.bits() {
            step = step.double();
        }
    }
    let mut affine = vec![A::identity(); points.len()];
    A::Curve::batch_normalize(&points, &mut affine);
    affine
}

macro_rules! equal_to_blstrs {
    ($name:ident, $affine:ty, $limbs:ident, $n:literal, $curve:expr) => {
        fn $name(base: $affine, window: Window, scalars: &[Scalar], order: Order) {
            let n = scalars.len();
            let table: Vec<[u32; $n]> = table(base, window).iter().map($limbs).collect();
            assert_eq!(table.len(), window.table_len());
            let integers: Vec<Fr> = scalars.iter().map(|s| Fr(limbs(s))).collect();
            // One more of each: nothing past the end is written.
            let rubbish = [0xa5a5_a5a5u32; $n];
            let mut sums = vec![[rubbish; 2]; n + 1];
            let mut out = vec![rubbish; n + 1];
            let at = sums.as_mut_ptr().cast::<u8>();
            run(
                &[
                    multiples($curve, window, table.as_ptr().cast(), integers.as_ptr(), n as u64, at),
                    normalise($curve, at.cast_const(), n as u64, out.as_mut_ptr().cast()),
                ],
                order,
            );
            assert_eq!(sums.pop(), Some([rubbish; 2]));
            assert_eq!(out.pop(), Some(rubbish));
            for (got, scalar) in out.iter().zip(scalars) {
                let expected = (base * *scalar).to_affine();
                assert_eq!(*got, $limbs(&expected), "{scalar:?}, {window:?}");
            }
        }
    };
}

equal_to_blstrs!(g1, G1Affine, g1_limbs, 24, Curve::G1);
equal_to_blstrs!(g2, G2Affine, g2_limbs, 48, Curve::G2);

/// Zero, one, r − 1, powers of two and their neighbours: every digit at its ends.
fn edges() -> Vec<Scalar> {
    let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::ZERO, -Scalar::from(2)];
    for k in (3..255).step_by(4) {
        let power = Scalar::from(2).pow_vartime([k]);
        scalars.extend([power, power - Scalar::ONE, -power]);
    }
    scalars
}

#[test]
fn m6_multiples_at_the_edges() {
    let edges = edges();
    g1(G1Affine::generator(), Window::Bits4, &edges, Order::Forwards);
    g1(G1Affine::generator(), Window::Bits8, &edges, Order::Backwards);
    g1(G1Affine::generator(), Window::Bits16, &edges, Order::Shuffled(1));
    g2(G2Affine::generator(), Window::Bits4, &edges, Order::Shuffled(2));
    g2(G2Affine::generator(), Window::Bits8, &edges[..40], Order::Forwards);
}

/// Nothing, a lone zero, and a base at infinity.
#[test]
fn m6_multiples_of_little() {
    g1(G1Affine::generator(), Window::Bits4, &[], Order::Forwards);
    g1(G1Affine::generator(), Window::Bits4, &[Scalar::ZERO], Order::Forwards);
    g1(G1Affine::identity(), Window::Bits4, &edges()[..9], Order::Forwards);
    g2(G2Affine::identity(), Window::Bits4, &edges()[..9], Order::Forwards);
}

/// More threads than one block, several points a thread, and a last round that is not full.
#[test]
fn m6_multiples_of_many() {
    let scalar = |i: u64| if i % 37 == 5 { Scalar::ZERO } else { random_scalar(i) };
    let scalars: Vec<Scalar> = (0..5003).map(scalar).collect();
    g1(G1Affine::generator(), Window::of(scalars.len()), &scalars, Order::Shuffled(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn m6_multiples_equal_blstrs(base in g1_point(), seeds in proptest::collection::vec(any::<u64>(), 1..80), order in order()) {
        let scalars: Vec<Scalar> = seeds.iter().map(|s| random_scalar(*s)).collect();
        g1(base, Window::Bits8, &scalars, order);
        let base = (G2Projective::generator() * scalars[0]).to_affine();
        g2(base, Window::Bits4, &scalars[..scalars.len().min(9)], order);
        let base = (G1Projective::generator() * scalars[0]).to_affine();
        g1(base, Window::Bits4, &scalars, order);
    }
}
