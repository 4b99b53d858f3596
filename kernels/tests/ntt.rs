//! Row M6 for the transforms: the host build of each pass, combined as on a device, against evaluation by Horner's
//! rule with blstrs; every order, direction, shift, factor form and generator; thread order forwards, backwards
//! and shuffled.
#![cfg(feature = "host")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::Scalar;
use common::{transforms::*, *};
use ff::Field;
use prestage_kernels::{
    Args, Launch,
    host::Order as Threads,
    ntt::{
        Flavour, Form, Fr, Generator, Order, Plan, Tables, combine_product, combine_sub_scale, powers,
        quotient_pointwise, reverse_in_place, scale,
    },
};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Case {
    order: Order,
    inverse: bool,
    shifted: bool,
    form: Form,
    generator: Generator,
    threads: Threads,
}

/// A transform of random values against its definition, at every point or at some.
fn check(plan: &Plan, case: Case, seed: u64, polynomials: usize) {
    let (lg, n) = (plan.log_size(), 1usize << plan.log_size());
    let w = root(lg, case.generator);
    let (f, n_inverse) = (Scalar::from(7), Scalar::from(n as u64).invert().unwrap());
    let w = if case.inverse { w.invert().unwrap() } else { w };
    let flavour = Flavour {
        root: to_fr(w),
        inverse: case.inverse,
        shift: case.shifted.then(|| to_fr(f)),
        scale: case.inverse.then(|| to_fr(n_inverse)),
    };
    // Other forms for other passes, and on odd seeds beside tables that have what depends on the root alone.
    let forms: Vec<Form> =
        FORMS.into_iter().cycle().skip(case.form as usize).take(plan.passes().len()).collect();
    let plain = Flavour { shift: None, scale: None, ..flavour };
    let other = (seed % 2 == 1).then(|| fill(plan, plain, Form::Levels, case.threads));
    let filled = fill_beside(plan, flavour, &forms, other.as_ref(), case.threads);
    let x: Vec<Vec<Scalar>> = (0..polynomials as u64)
        .map(|p| (0..n as u64).map(|i| random_scalar(seed ^ p << 40 ^ i)).collect())
        .collect();
    let place = |i: usize, is_reversed: bool| if is_reversed { reversed(i, lg) } else { i };
    let mut input: Vec<Vec<Fr>> = x
        .iter()
        .map(|x| (0..n).map(|i| to_fr(x[place(i, case.order == Order::ReversedToNatural)])).collect())
        .collect();
    let mut output = vec![vec![Fr([0xffff_ffff; 8]); n]; polynomials];
    let ins: Vec<*mut Fr> = input.iter_mut().map(Vec::as_mut_ptr).collect();
    let outs: Vec<*mut Fr> = output.iter_mut().map(Vec::as_mut_ptr).collect();
    // In place for every other seed, where that is allowed.
    let in_place = seed.is_multiple_of(2) && case.order != Order::Natural;
    run(&plan.transform(case.order, &filled.tables, &ins, if in_place { &ins } else { &outs }), case.threads);
    for (x, y) in x.iter().zip(if in_place { &input } else { &output }) {
        let y = values(y);
        let step = (n / 64).max(1) | 1;
        for k in (0..n).step_by(step).chain([n - 1]) {
            let point = w.pow_vartime([k as u64]);
            let scale = if case.inverse { n_inverse } else { Scalar::ONE };
            let expected = match (case.shifted, case.order) {
                (false, _) => horner(x, point) * scale,
                (true, Order::ReversedToNatural) => horner(x, point * f) * scale,
                (true, _) => horner(x, point) * scale * f.pow_vartime([k as u64]),
            };
            assert_eq!(
                y[place(k, case.order == Order::NaturalToReversed)],
                expected,
                "2^{lg} {case:?} output {k}"
            );
        }
    }
}

const ORDERS: [Order; 3] = [Order::NaturalToReversed, Order::ReversedToNatural, Order::Natural];
const FORMS: [Form; 3] = [Form::One, Form::Split, Form::Levels];
const GENERATORS: [Generator; 2] = [Generator::Seven, Generator::Five];

/// Every size to 2^11 in every order, direction, with and without a shift, both generators.
#[test]
fn m6_every_size_order_direction_and_shift() {
    for lg in 0..=11u32 {
        let plan = |generator| Plan::new(lg, generator);
        for (i, order) in ORDERS.into_iter().enumerate() {
            for bits in 0..8u32 {
                let (inverse, shifted) = (bits & 1 == 1, bits & 2 == 2);
                let generator = GENERATORS[(bits >> 2) as usize];
                let form = FORMS[(i + bits as usize + lg as usize) % 3];
                let threads = [Threads::Forwards, Threads::Backwards, Threads::Shuffled(u64::from(lg))]
                    [(i + lg as usize + bits as usize / 3) % 3];
                let case = Case { order, inverse, shifted, form, generator, threads };
                check(&plan(generator), case, u64::from(lg * 8 + bits), 1);
            }
        }
    }
}

/// Splits into two, three and four passes, equal and not, with every remainder of the bits by three.
#[test]
fn m6_every_kind_of_split() {
    let splits: [&[u32]; 14] = [
        &[3, 3],
        &[3, 4],
        &[5, 3],
        &[4, 6],
        &[7, 3],
        &[6, 5],
        &[8, 4],
        &[3, 3, 3],
        &[4, 3, 5],
        &[3, 5, 4],
        &[3, 3, 3, 3],
        &[10, 3],
        &[3, 10],
        &[4, 9],
    ];
    for (i, split) in splits.into_iter().enumerate() {
        for (j, order) in ORDERS.into_iter().enumerate() {
            let generator = GENERATORS[(i + j) % 2];
            let plan = Plan::with_passes(split, generator).unwrap();
            let threads = [Threads::Backwards, Threads::Shuffled(i as u64), Threads::Forwards][(i + j) % 3];
            let case = Case {
                order,
                inverse: (i + j) % 2 == 0,
                shifted: i % 3 != 0,
                form: FORMS[(i + 2 * j) % 3],
                generator,
                threads,
            };
            check(&plan, case, i as u64, 1 + j % 3);
        }
    }
    assert_eq!(Plan::with_passes(&[2, 5], Generator::Seven), None);
    assert_eq!(Plan::with_passes(&[11], Generator::Seven), None);
    assert_eq!(Plan::with_passes(&[], Generator::Seven), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn m6_any_split_any_values(
        split in prop::collection::vec(3u32..=5, 1..=3), order in prop::sample::select(&ORDERS[..]), inverse: bool, shifted: bool,
        form in prop::sample::select(&FORMS[..]), generator in prop::sample::select(&GENERATORS[..]), threads in order(), seed: u64,
    ) {
        prop_assume!(split.iter().sum::<u32>() <= 12);
        let plan = Plan::with_passes(&split, generator).unwrap();
        check(&plan, Case { order, inverse, shifted, form, generator, threads }, seed, 1);
    }
}

/// The default plans cover every size with passes that fit a tile.
#[test]
fn plans_cover_every_size() {
    for lg in 0..=32 {
        let plan = Plan::new(lg, Generator::Seven);
        assert!(lg < 3 || plan.passes().iter().sum::<u32>() == lg, "{plan:?}");
        assert!(plan.passes().iter().all(|b| (3..=10).contains(b)), "{plan:?}");
    }
    assert_eq!(Plan::new(27, Generator::Seven).passes(), [9, 9, 9]);
    assert_eq!(Plan::new(20, Generator::Seven).passes(), [8, 6, 6]);
}

/// Table memory at full size, per direction: 64 bytes a value in two parts, half of that in one, and a few megabytes
/// in levels.
#[test]
fn tables_have_the_stated_sizes() {
    let plan = Plan::new(27, Generator::Seven);
    let flavour = Flavour { root: Fr::ONE, inverse: false, shift: None, scale: None };
    let bytes_of = |flavour: &Flavour, form, other: Option<&Tables>| {
        Tables::new(&plan, flavour, &[form; 3], other, std::ptr::null_mut()).bytes()
    };
    let bytes = |form| bytes_of(&flavour, form, None);
    let n = 1u64 << 27;
    // The first pass has a factor for every value, the second one for every 2^9.
    assert!((64 * n..64 * n + n / 4).contains(&bytes(Form::Split)), "{}", bytes(Form::Split));
    assert!((32 * n..32 * n + n / 4).contains(&bytes(Form::One)), "{}", bytes(Form::One));
    assert!(bytes(Form::Levels) < 4 << 20, "{}", bytes(Form::Levels));
    // A shift adds a table to the last pass, no more than a tile's rows.
    let shifted = Flavour { shift: Some(Fr::ONE), scale: Some(Fr::ONE), ..flavour };
    assert!(bytes_of(&shifted, Form::Levels, None) < 5 << 20);
    // What depends on the root is there once.
    let other = Tables::new(&plan, &flavour, &[Form::Levels; 3], None, std::ptr::null_mut());
    assert!(bytes_of(&shifted, Form::Levels, Some(&other)) < 1 << 18);
}

/// Inputs at the edges of the field: zeros, ones, r − 1 everywhere, one value alone.
#[test]
fn m6_structured_values() {
    let lg = 9;
    let n = 1usize << lg;
    for generator in GENERATORS {
        let plan = Plan::with_passes(&[5, 4], generator).unwrap();
        let w = root(lg, generator);
        let flavour = Flavour { root: to_fr(w), inverse: false, shift: None, scale: None };
        let filled = fill(&plan, flavour, Form::Split, Threads::Forwards);
        let inputs: [Box<dyn Fn(usize) -> Scalar>; 5] = [
            Box::new(|_| Scalar::ZERO),
            Box::new(|_| Scalar::ONE),
            Box::new(|_| -Scalar::ONE),
            Box::new(|i| if i == 17 { -Scalar::ONE } else { Scalar::ZERO }),
            Box::new(|i| if i % 2 == 0 { Scalar::ONE } else { -Scalar::ONE }),
        ];
        for value in inputs {
            let x: Vec<Scalar> = (0..n).map(value).collect();
            let mut v: Vec<Fr> = x.iter().map(|&s| to_fr(s)).collect();
            let p = v.as_mut_ptr();
            run(&plan.transform(Order::NaturalToReversed, &filled.tables, &[p], &[p]), Threads::Backwards);
            let y = values(&v);
            for k in 0..n {
                assert_eq!(y[reversed(k, lg)], horner(&x, w.pow_vartime([k as u64])), "output {k}");
            }
        }
    }
}

/// The whole quotient as the prover runs it: a, b, c to the coset, then the inverse of (a·b − c)/z. Its
/// coefficients satisfy A·B − C = H·(X^n − 1) at a random point.
#[test]
fn m6_quotient() {
    let splits: [&[u32]; 8] = [&[], &[], &[3], &[7], &[4, 3], &[5, 5], &[3, 4, 3], &[4, 3, 5]];
    for (i, split) in splits.into_iter().enumerate() {
        for generator in GENERATORS {
            let plan = if split.is_empty() {
                Plan::new(2, generator)
            } else {
                Plan::with_passes(split, generator).unwrap()
            };
            let (lg, n) = (plan.log_size(), 1usize << plan.log_size());
            let threads = [Threads::Forwards, Threads::Backwards, Threads::Shuffled(5)][i % 3];
            let (w, g) = (root(lg, generator), Scalar::from(7));
            let n_inverse = Scalar::from(n as u64).invert().unwrap();
            let z_inverse = (g.pow_vartime([n as u64]) - Scalar::ONE).invert().unwrap();
            let w_inverse = w.invert().unwrap();
            let make = |root, inverse, shift: Option<Scalar>, scale: Option<Scalar>, form| {
                let flavour =
                    Flavour { root: to_fr(root), inverse, shift: shift.map(to_fr), scale: scale.map(to_fr) };
                fill(&plan, flavour, form, threads)
            };
            let onto = make(w_inverse, true, Some(g), Some(n_inverse), FORMS[i % 3]);
            let forward = make(w, false, None, None, FORMS[(i + 1) % 3]);
            let back =
                make(w_inverse, true, g.invert().into(), Some(n_inverse * z_inverse), FORMS[(i + 2) % 3]);

            let a: Vec<Scalar> = (0..n as u64).map(|k| random_scalar(k + 1000)).collect();
            let b: Vec<Scalar> = (0..n as u64).map(|k| random_scalar(k + 2000)).collect();
            let c: Vec<Scalar> = a.iter().zip(&b).map(|(x, y)| x * y).collect();
            let mut v: Vec<Vec<Fr>> =
                [&a, &b, &c].iter().map(|x| x.iter().map(|&s| to_fr(s)).collect()).collect();
            let p: Vec<*mut Fr> = v.iter_mut().map(Vec::as_mut_ptr).collect();
            run(&plan.to_coset(&onto.tables, &forward.tables, &p), threads);
            // With the product made before there is no b.
            let with_b = i % 2 == 0;
            if !with_b {
                run(&[combine_product(p[0], p[1], n as u64)], threads);
            }
            run(&plan.quotient(&back.tables, p[0], with_b.then_some(p[1]), p[2]), threads);
            let h = values(&v[0]);
            assert_eq!(h[n - 1], Scalar::ZERO);

            // A polynomial's value off the domain, from its values on it (Lagrange).
            let x = random_scalar(77);
            let zx = x.pow_vartime([n as u64]) - Scalar::ONE;
            let at = |values: &[Scalar]| {
                (0..n as u64).fold(Scalar::ZERO, |s, k| {
                    let wk = w.pow_vartime([k]);
                    s + values[k as usize] * wk * zx * n_inverse * (x - wk).invert().unwrap()
                })
            };
            assert_eq!(at(&a) * at(&b) - at(&c), horner(&h, x) * zx, "{split:?} {generator:?}");
        }
    }
}

/// The pointwise steps, with values at the edges of the field, at sizes around the block's.
#[test]
fn m6_pointwise() {
    let k = Scalar::from(11);
    for (lg, threads) in [(0, Threads::Forwards), (6, Threads::Backwards), (8, Threads::Shuffled(1))] {
        let n = (1u64 << lg) + lg;
        let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE];
        let value = |i: u64, k: u64| match (i / 3u64.pow(k as u32) % 5) as usize {
            e @ 0..3 => edges[e],
            _ => random_scalar(i + 1000 * k),
        };
        let s: Vec<Vec<Scalar>> = (0..3).map(|k| (0..n).map(|i| value(i, k)).collect()).collect();
        let v: Vec<Vec<Fr>> = s.iter().map(|x| x.iter().map(|&s| to_fr(s)).collect()).collect();
        let check = |launch: &dyn Fn(*mut Fr) -> Launch, expected: &dyn Fn(usize) -> Scalar| {
            let mut a = v[0].clone();
            a.push(Fr([7; 8]));
            run(&[launch(a.as_mut_ptr())], threads);
            assert_eq!(a.pop(), Some(Fr([7; 8])), "nothing past the end is written");
            assert_eq!(values(&a), (0..n as usize).map(expected).collect::<Vec<_>>());
        };
        let (b, c) = (v[1].as_ptr(), v[2].as_ptr());
        check(&|a| combine_product(a, b, n), &|i| s[0][i] * s[1][i]);
        check(&|a| combine_sub_scale(a, b, to_fr(k), n), &|i| (s[0][i] - s[1][i]) * k);
        check(&|a| quotient_pointwise(a, b, c, to_fr(k), n), &|i| (s[0][i] * s[1][i] - s[2][i]) * k);
    }
}

/// Permutations and powers of a shift, at every size to 2^9.
#[test]
fn m6_reversal_and_powers() {
    let (k, f) = (Scalar::from(11), Scalar::from(3));
    for lg in 0..=9u32 {
        let n = 1usize << lg;
        let threads =
            [Threads::Forwards, Threads::Backwards, Threads::Shuffled(u64::from(lg))][lg as usize % 3];
        let s: Vec<Scalar> = (0..n as u64).map(|i| random_scalar(i + 100)).collect();
        let v: Vec<Fr> = s.iter().map(|&s| to_fr(s)).collect();

        let mut out = vec![Fr([0; 8]); n];
        let args = Args::new().with(out.as_mut_ptr()).with(v.as_ptr()).with(lg);
        run(&[Launch::elementwise("fr_bit_reverse", n as u64, 128, args)], threads);
        assert!(values(&out).iter().enumerate().all(|(i, &y)| y == s[reversed(i, lg)]));
        let mut x = v.clone();
        run(&[reverse_in_place(x.as_mut_ptr(), lg)], threads);
        assert_eq!(x, out);

        let mut table = vec![Fr([0; 8]); 64];
        run(&[powers(table.as_mut_ptr(), to_fr(k), to_fr(f))], threads);
        let table_values = values(&table);
        for j in 0..32 {
            assert_eq!(table_values[j], k.pow_vartime([1 << j]));
            assert_eq!(table_values[32 + j], f.pow_vartime([1 << j]));
        }
        for is_reversed in [false, true] {
            let mut x = v.clone();
            run(&[scale(x.as_mut_ptr(), table.as_ptr(), to_fr(k), lg, is_reversed)], threads);
            for (i, y) in values(&x).into_iter().enumerate() {
                let e = if is_reversed { reversed(i, lg) } else { i };
                assert_eq!(y, s[i] * k * f.pow_vartime([e as u64]));
            }
        }
    }
}
