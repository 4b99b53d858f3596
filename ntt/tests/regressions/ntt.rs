//! Domains, cosets and sizes.

use blstrs::Scalar;
use ff::Field;
use prestage_ntt::{Domain, Error, Transform, host, naive, polynomial};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

fn random(n: usize, seed: u64) -> Vec<Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| Scalar::random(&mut rng)).collect()
}

/// A 32-bit product of index and stride overflowed in the coset scaling of a small transform from a
/// large table: 2^17 with the generator -1, at 2^16.
#[test]
fn b138_coset_scaling_of_every_kind_of_shift() {
    for log_size in [1, 6, 13, 16, 17] {
        let d = Domain::new(1 << log_size, 7).unwrap();
        let c = random(d.size(), 138);
        for shift in [Scalar::ONE, -Scalar::ONE, d.double_root().unwrap(), Scalar::from(7), random(1, 1)[0]] {
            let mut y = c.clone();
            host::transform(&d, &mut y, &Transform::forward().on_coset(shift)).unwrap();
            for i in [0, 1, d.size() / 2, d.size() - 1] {
                assert_eq!(y[i], naive::evaluate(&c, shift * d.element(i)), "2^{log_size}, value {i}");
            }
            host::coset_coefficients(&d, &mut y, shift).unwrap();
            assert!(y == c, "2^{log_size}");
        }
    }
    // Exponents beyond 32 bits: the last point of the largest domain.
    let d = Domain::new(1 << 32, 7).unwrap();
    assert_eq!(d.element((1 << 32) - 1) * d.root(), Scalar::ONE);
    assert_eq!(d.element(1 << 31), -Scalar::ONE);
}

#[test]
fn b139_size_that_is_no_power_of_two_is_an_error() {
    let edges = (1..63).flat_map(|k| [(1usize << k) - 1, (1usize << k) + 1]);
    for size in [0, 3, 5, 6, 7].into_iter().chain(edges).chain([usize::MAX]) {
        if !size.is_power_of_two() {
            assert!(matches!(Domain::new(size, 7), Err(Error::NotPowerOfTwo { size: s }) if s == size));
        }
    }
}

/// A global table made the first size win.
#[test]
fn b141_domains_do_not_share_a_global_table() {
    let check = |log_size: u32, generator: u64| {
        let d = Domain::new(1 << log_size, generator).unwrap();
        let c = random(d.size(), 141);
        let mut y = c.clone();
        host::transform(&d, &mut y, &Transform::forward()).unwrap();
        assert_eq!(y[5], naive::evaluate(&c, d.element(5)));
        d
    };
    // A second size, the first again, and use after release.
    let first = check(10, 7);
    check(12, 7);
    check(10, 5);
    drop(first);
    check(10, 7);
    // Eight threads make and use domains, and share one that has no tables yet.
    let shared = Domain::new(1 << 11, 7).unwrap();
    let c = random(shared.size(), 8);
    let expected = naive::evaluate(&c, shared.element(9));
    std::thread::scope(|s| {
        for t in 0..8u32 {
            let (shared, c) = (&shared, &c);
            s.spawn(move || {
                let mut y = c.clone();
                host::transform(shared, &mut y, &Transform::forward()).unwrap();
                assert_eq!(y[9], expected);
                check(8 + t % 4, 7);
            });
        }
    });
}

#[test]
fn b143_polynomial_longer_than_the_domain_on_a_coset() {
    for n in [1usize, 2, 8, 64] {
        let d = Domain::new(n, 7).unwrap();
        for degree in [n, n + 1, 2 * n - 1, 2 * n, 5 * n + 3] {
            let c = random(degree + 1, degree as u64);
            for shift in [Scalar::ONE, Scalar::from(7), -Scalar::ONE] {
                let y = polynomial::evaluate_on_coset(&d, &c, shift).unwrap();
                for (i, y) in y.iter().enumerate() {
                    assert_eq!(*y, naive::evaluate(&c, shift * d.element(i)), "degree {degree} on {n}");
                }
            }
        }
    }
}

#[test]
fn b144_size_above_the_two_adicity_is_named() {
    let size = 1usize << 33;
    let error = Domain::new(size, 7).unwrap_err();
    assert!(matches!(error, Error::TooLarge { size: s, max: 32 } if s == size), "{error:?}");
    assert!(error.to_string().contains("2^32"), "{error}");
}

#[test]
fn b145_size_near_the_end_of_the_address_space() {
    for log_size in 33..64 {
        let size = 1usize << log_size;
        assert!(matches!(Domain::new(size, 5), Err(Error::TooLarge { size: s, max: 32 }) if s == size));
    }
    let domain = Domain::new(1 << 32, 5).unwrap();
    assert_eq!(domain.size(), 1 << 32);
    assert!(matches!(domain.double_root(), Err(Error::TooLarge { size: 0x2_0000_0000, max: 32 })));
}

#[test]
fn b146_empty_zero_and_constant_polynomials() {
    for n in [1usize, 2, 16, 256] {
        let d = Domain::new(n, 7).unwrap();
        let zero = vec![Scalar::ZERO; n];
        let shift = Scalar::from(7);
        assert_eq!(polynomial::evaluate_on_coset(&d, &[], shift).unwrap(), zero);
        assert_eq!(polynomial::evaluate_on_coset(&d, &zero, shift).unwrap(), zero);
        let constant = Scalar::from(9);
        assert_eq!(polynomial::evaluate_on_coset(&d, &[constant], shift).unwrap(), vec![constant; n]);
        for t in [Transform::forward(), Transform::inverse()] {
            let mut y = zero.clone();
            host::transform(&d, &mut y, &t.on_coset(shift)).unwrap();
            assert_eq!(y, zero);
        }
    }
    // No rows at all still have a domain.
    assert_eq!(Domain::at_least(0, 7).unwrap().size(), 1);
    assert_eq!(naive::evaluate(&[], Scalar::from(3)), Scalar::ZERO);
}

#[test]
fn b149_circuit_beyond_the_largest_domain_is_refused_by_count() {
    for rows in [(1usize << 32) + 1, 5_000_000_000, 1 << 63, usize::MAX] {
        let error = Domain::at_least(rows, 7).unwrap_err();
        assert!(matches!(error, Error::TooLarge { size, max: 32 } if size == rows), "{error:?}");
        assert!(error.to_string().contains(&rows.to_string()), "{error}");
    }
    assert_eq!(Domain::at_least(1 << 32, 7).unwrap().log_size(), 32);
    assert_eq!(Domain::at_least(130_278_869, 7).unwrap().size(), 134_217_728);
}
