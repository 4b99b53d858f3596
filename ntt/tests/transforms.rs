//! Row M1: every transform against direct evaluation, both generators, both backends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use blstrs::Scalar;
use ff::{Field, PrimeField};
use prestage_ntt::host::{self, Combine};
use prestage_ntt::{
    Backend, CIRCOM_GENERATOR, Direction, Domain, Error, LIBSNARK_GENERATOR, Order, Transform, naive,
    polynomial,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

const GENERATORS: [u64; 2] = [LIBSNARK_GENERATOR, CIRCOM_GENERATOR];
const ORDERS: [Order; 2] = [Order::Natural, Order::Reversed];
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// Checks that a result is this error.
macro_rules! refused {
    ($result:expr, $pattern:pat $(if $guard:expr)?) => {{
        let result = $result;
        assert!(matches!(result, Err($pattern) $(if $guard)?), "{result:?}");
    }};
}

fn backends() -> Vec<Backend> {
    [Backend::Portable, Backend::Ifma].into_iter().filter(|b| b.is_available()).collect()
}

fn domain(log_size: u32, generator: u64, backend: Backend) -> Domain {
    Domain::new(1 << log_size, generator).unwrap().with_backend(backend).unwrap()
}

/// Random values with zeros, ones and minus ones among them.
fn values(n: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n)
        .map(|_| match rng.next_u32() % 8 {
            0 => Scalar::ZERO,
            1 => Scalar::ONE,
            2 => -Scalar::ONE,
            _ => Scalar::random(&mut rng),
        })
        .collect()
}

fn transforms(shift: Option<Scalar>) -> Vec<Transform> {
    let mut all = Vec::new();
    for direction in DIRECTIONS {
        for input in ORDERS {
            for output in ORDERS {
                all.push(Transform { direction, shift, input, output });
            }
        }
    }
    all
}

fn reversed(i: usize, bits: u32) -> usize {
    (0..bits).fold(0, |r, bit| r | (i >> bit & 1) << (bits - 1 - bit))
}

/// The value at index `i` of a slice in the given order.
fn at(values: &[Scalar], order: Order, i: usize) -> Scalar {
    match order {
        Order::Natural => values[i],
        Order::Reversed => values[reversed(i, values.len().trailing_zeros())],
    }
}

/// Checks that `evaluations` are those of `coefficients` at a few random indices, and the first and last.
fn spot_check(
    domain: &Domain,
    shift: Scalar,
    coefficients: (&[Scalar], Order),
    evaluations: (&[Scalar], Order),
    rng: &mut ChaCha8Rng,
) {
    let n = domain.size();
    let natural: Vec<Scalar> = (0..n).map(|i| at(coefficients.0, coefficients.1, i)).collect();
    for i in [0, n - 1, rng.next_u32() as usize % n] {
        let expected = naive::evaluate(&natural, shift * domain.element(i));
        assert_eq!(at(evaluations.0, evaluations.1, i), expected, "value {i} of {n}");
    }
}

#[test]
fn m1_naive_transform_is_horner_and_its_inverse() {
    // The reference itself, against the definition spelled out.
    let d = Domain::new(8, 7).unwrap();
    let c = values(8, 3);
    let shift = Scalar::from(5);
    let e = naive::transform(&d, &c, &Transform::forward().on_coset(shift)).unwrap();
    for (i, y) in e.iter().enumerate() {
        let x = shift * d.root().pow_vartime([i as u64]);
        let sum: Scalar = c.iter().enumerate().map(|(j, c)| x.pow_vartime([j as u64]) * c).sum();
        assert_eq!(*y, sum);
    }
    assert_eq!(naive::transform(&d, &e, &Transform::inverse().on_coset(shift)).unwrap(), c);
}

#[test]
fn m1_sizes_2_0_to_2_7_equal_direct_evaluation() {
    for generator in GENERATORS {
        for log_size in 0..=7 {
            for backend in backends() {
                let d = domain(log_size, generator, backend);
                let x = values(d.size(), u64::from(log_size));
                for shift in [None, Some(Scalar::from(7)), Some(-Scalar::from(3).invert().unwrap())] {
                    for t in transforms(shift) {
                        let mut y = x.clone();
                        host::transform(&d, &mut y, &t).unwrap();
                        assert!(
                            y == naive::transform(&d, &x, &t).unwrap(),
                            "2^{log_size}, {generator}, {backend:?}, {t:?}"
                        );
                    }
                }
            }
        }
    }
}

/// From 2^8 to 2^11 the definition costs millions of products for each transform, so it is computed once
/// for each size and generator, and every order is a permutation of it.
#[test]
fn m1_sizes_2_8_to_2_11_equal_direct_evaluation_in_every_order() {
    let cosets = [None, Some(Scalar::from(7))];
    for (generator, shift) in GENERATORS.into_iter().flat_map(|g| cosets.map(|shift| (g, shift))) {
        for log_size in 8..=11 {
            let natural = Domain::new(1 << log_size, generator).unwrap();
            let x = values(natural.size(), u64::from(log_size));
            let direct = |direction| {
                let t = Transform { direction, shift, input: Order::Natural, output: Order::Natural };
                naive::transform(&natural, &x, &t).unwrap()
            };
            for direction in DIRECTIONS {
                let expected = direct(direction);
                for t in transforms(shift).into_iter().filter(|t| t.direction == direction) {
                    for backend in backends() {
                        let d = domain(log_size, generator, backend);
                        let mut y: Vec<Scalar> = (0..d.size()).map(|i| at(&x, t.input, i)).collect();
                        host::transform(&d, &mut y, &t).unwrap();
                        for (i, e) in expected.iter().enumerate() {
                            assert!(at(&y, t.output, i) == *e, "{i} of 2^{log_size}, {backend:?}, {t:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn m1_sizes_2_12_to_2_18_by_random_points_and_round_trips() {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for log_size in 12..=18 {
        for backend in backends() {
            // Every order, direction and coset has its turn; each size tries a different half.
            let generator = GENERATORS[log_size as usize % 2];
            let d = domain(log_size, generator, backend);
            let x = values(d.size(), u64::from(log_size));
            for (round, t) in
                transforms(None).into_iter().chain(transforms(Some(Scalar::from(7)))).enumerate()
            {
                if t.direction == Direction::Inverse
                    || (round + log_size as usize).is_multiple_of(2) && log_size > 14
                {
                    continue;
                }
                let mut y = x.clone();
                host::transform(&d, &mut y, &t).unwrap();
                let shift = t.shift.unwrap_or(Scalar::ONE);
                spot_check(&d, shift, (&x, t.input), (&y, t.output), &mut rng);
                let back = Transform { direction: Direction::Inverse, input: t.output, output: t.input, ..t };
                host::transform(&d, &mut y, &back).unwrap();
                assert!(x == y, "2^{log_size}, {backend:?}, {t:?}");
            }
        }
    }
}

#[test]
fn m1_2_22_and_three_levels_by_random_points_and_round_trip() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    for (log_size, generator) in [(22, 7), (23, 5)] {
        let d = Domain::new(1 << log_size, generator).unwrap();
        let mut rng_x = ChaCha8Rng::seed_from_u64(11);
        let x: Vec<Scalar> = (0..d.size()).map(|_| Scalar::from(rng_x.next_u64())).collect();
        let shift = d.double_root().unwrap();
        let mut y = x.clone();
        let t = Transform::forward().on_coset(shift).to(Order::Reversed);
        host::transform(&d, &mut y, &t).unwrap();
        let i = rng.next_u32() as usize % d.size();
        assert_eq!(at(&y, Order::Reversed, i), naive::evaluate(&x, shift * d.element(i)));
        host::transform(&d, &mut y, &Transform::inverse().on_coset(shift).from(Order::Reversed)).unwrap();
        assert!(x == y);
    }
}

#[test]
fn m1_wrong_sizes_are_typed_errors() {
    let d = Domain::new(8, 7).unwrap();
    for len in [0, 1, 7, 9, 16] {
        let mut v = vec![Scalar::ONE; len];
        let t = Transform::forward();
        refused!(host::transform(&d, &mut v, &t), Error::Length { expected: 8, got } if got == len);
        refused!(host::coset_evaluations(&d, &mut v, Scalar::ONE), Error::Length { expected: 8, got } if got == len);
        refused!(naive::transform(&d, &v, &t), Error::Length { expected: 8, got } if got == len);
    }
    let mut v = vec![Scalar::ONE; 8];
    for t in transforms(Some(Scalar::ZERO)) {
        refused!(host::transform(&d, &mut v, &t), Error::ZeroShift);
    }
    refused!(host::coset_evaluations(&d, &mut v, Scalar::ZERO), Error::ZeroShift);
    refused!(host::coset_coefficients(&d, &mut v, Scalar::ZERO), Error::ZeroShift);
    refused!(
        host::mul_sub_scale(&mut v, &[Scalar::ONE; 7], &[Scalar::ONE; 8], Scalar::ONE),
        Error::Length { expected: 8, got: 7 }
    );
    refused!(host::combine(&mut v, &[Scalar::ONE; 9], Combine::Mul), Error::Length { expected: 8, got: 9 });
}

#[test]
fn generators_are_checked() {
    for generator in [0, 1, 2, 3, 4, 9, 25, 49] {
        let residue = Scalar::from(generator).pow_vartime([
            0x7fff_ffff_8000_0000,
            0xa9de_d201_7fff_2dff,
            0x199c_ec04_04d0_ec02,
            0x39f6_d3a9_94ce_bea4,
        ]);
        // Euler's criterion: a non-residue gives -1.
        let expected = residue == -Scalar::ONE;
        assert_eq!(Domain::new(4, generator).is_ok(), expected, "{generator}");
        if !expected {
            refused!(Domain::new(4, generator), Error::Generator { generator: g } if g == generator);
        }
    }
    assert_eq!(Domain::new(1 << 32, 7).unwrap().root(), Scalar::ROOT_OF_UNITY);
    let d = Domain::new(1 << 10, 5).unwrap();
    assert_eq!(d.root() * d.root_inverse(), Scalar::ONE);
    assert_eq!(d.size_inverse() * Scalar::from(1 << 10), Scalar::ONE);
    assert_eq!(d.double_root().unwrap().square(), d.root());
    assert_eq!(d.vanishing(d.element(77)), Scalar::ZERO);
    assert_eq!(d.vanishing(d.double_root().unwrap()), -Scalar::from(2));
    assert_ne!(d.root(), Domain::new(1 << 10, 7).unwrap().root());
}

#[test]
fn fused_steps_equal_the_transforms_they_are_made_of() {
    for log_size in (0..=14).chain([17]) {
        for backend in backends() {
            let d = domain(log_size, 5, backend);
            let x = values(d.size(), 100 + u64::from(log_size));
            for shift in [Scalar::ONE, Scalar::from(7), -Scalar::from(11)] {
                let mut expected = x.clone();
                host::transform(&d, &mut expected, &Transform::inverse()).unwrap();
                host::transform(&d, &mut expected, &Transform::forward().on_coset(shift)).unwrap();
                let mut y = x.clone();
                host::coset_evaluations(&d, &mut y, shift).unwrap();
                assert!(y == expected, "2^{log_size}, {backend:?}");
            }
        }
    }
}

#[test]
fn pointwise_steps_equal_the_formula() {
    for n in (0..20).chain([1000, 4099]) {
        let (a, b, c) = (values(n, 1), values(n, 2), values(n, 3));
        for scale in [Scalar::ONE, Scalar::ZERO, Scalar::from(9).invert().unwrap()] {
            let mut y = a.clone();
            host::mul_sub_scale(&mut y, &b, &c, scale).unwrap();
            let mut z = a.clone();
            host::combine(&mut z, &b, Combine::Mul).unwrap();
            for i in 0..n {
                assert_eq!(z[i], a[i] * b[i]);
                assert_eq!(y[i], (a[i] * b[i] - c[i]) * scale);
            }
            host::combine(&mut z, &c, Combine::SubScale(scale)).unwrap();
            assert_eq!(y, z);
        }
    }
}

/// The quotient of a satisfied system is a polynomial: `a b - c` vanishes on the domain.
#[test]
fn quotient_times_vanishing_polynomial_is_ab_minus_c() {
    let d = Domain::new(1 << 9, 7).unwrap();
    let (a, b) = (values(d.size(), 5), values(d.size(), 6));
    let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    let coefficients = |x: &[Scalar]| {
        let mut x = x.to_vec();
        host::transform(&d, &mut x, &Transform::inverse()).unwrap();
        x
    };
    let (pa, pb, pc) = (coefficients(&a), coefficients(&b), coefficients(&c));
    let shift = Scalar::from(7);
    let (mut h, mut b, mut c) = (a, b, c);
    for x in [&mut h, &mut b, &mut c] {
        host::coset_evaluations(&d, x, shift).unwrap();
    }
    host::mul_sub_scale(&mut h, &b, &c, d.vanishing(shift).invert().unwrap()).unwrap();
    host::coset_coefficients(&d, &mut h, shift).unwrap();
    assert_eq!(h[d.size() - 1], Scalar::ZERO);
    let x = Scalar::from(0xdead_beef);
    let at = |p: &[Scalar]| naive::evaluate(p, x);
    assert_eq!(at(&h) * d.vanishing(x), at(&pa) * at(&pb) - at(&pc));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn transforms_are_linear_and_invertible(
        log_size in 0u32..13, seed in any::<u64>(), which in 0usize..8, shift in 1u64.., five in any::<bool>(),
    ) {
        let backend = backends()[usize::from(seed % 2 == 1).min(backends().len() - 1)];
        let d = domain(log_size, if five { 5 } else { 7 }, backend);
        let (x, y) = (values(d.size(), seed), values(d.size(), !seed));
        let t = transforms(Some(Scalar::from(shift)))[which];
        let run = |v: &[Scalar], t: &Transform| {
            let mut v = v.to_vec();
            host::transform(&d, &mut v, t).unwrap();
            v
        };
        let k = Scalar::from(seed);
        let mixed: Vec<Scalar> = x.iter().zip(&y).map(|(x, y)| *x * k + y).collect();
        let expected: Vec<Scalar> = run(&x, &t).iter().zip(run(&y, &t)).map(|(x, y)| *x * k + y).collect();
        prop_assert!(run(&mixed, &t) == expected);
        let other = if t.direction == Direction::Forward { Direction::Inverse } else { Direction::Forward };
        let back = Transform { direction: other, input: t.output, output: t.input, ..t };
        prop_assert!(run(&run(&x, &t), &back) == x);
    }

    #[test]
    fn folding_keeps_the_values_on_the_coset(
        log_size in 0u32..8, len in 0usize..700, seed in any::<u64>(), shift in 1u64..,
    ) {
        let d = Domain::new(1 << log_size, 7).unwrap();
        let c = values(len, seed);
        let shift = Scalar::from(shift);
        let y = polynomial::evaluate_on_coset(&d, &c, shift).unwrap();
        for (i, y) in y.iter().enumerate() {
            prop_assert_eq!(*y, naive::evaluate(&c, shift * d.element(i)));
        }
    }
}
