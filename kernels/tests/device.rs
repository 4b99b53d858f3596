//! The kernels on a device against the host build of the same sources, byte for byte.
//!
//! Every test runs a sequence of launches on both machines and compares all that they wrote. Without a driver or a
//! device there is nothing to compare, and the tests check that this is said by a typed error; with `PRESTAGE_REQUIRE_CUDA`
//! set they fail then. The test binary runs on a machine without Rust. `PRESTAGE_DEVICE_TIMES=1` adds times by device events.
#![cfg(all(feature = "cuda", feature = "host"))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod common;

use blstrs::Scalar;
use common::{machine::*, *};
use ff::Field;
use prestage_kernels::{
    Args, Launch,
    fixed_base::{self, Window},
    msm::{self, Curve},
    ntt::{self, Flavour, Form, Fr, Generator, Order, Plan, Tables},
};

fn fq_values(n: usize, seed: u64) -> Vec<Fq12> {
    let edges =
        [small(0), small(1), minus(P, small(1)).0, P, plus(P, small(1)).0, minus(times(P, 2), small(1)).0];
    (0..n)
        .map(|i| {
            edges
                .get((i * 7 + seed as usize) % 64)
                .copied()
                .unwrap_or(limbs(&random_fp(seed << 32 | i as u64)))
        })
        .collect()
}

/// Every routine of the fields over edge and random values.
#[test]
fn device_fields_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    let n = 20_000;
    let (a, b) = (fr_values(n, 1), fr_values(n, 2));
    let canonical: Vec<Fr8> = b.iter().map(|&v| modulo(v, R)).collect();
    for op in 0..7u32 {
        let b = if op == 0 { &canonical } else { &b };
        compare(&mut gpu, &format!("fr_check {op}"), |m| {
            let (out, a, b) = (m.alloc(32 * n), place(m, &a), place(m, b));
            let args =
                Args::new().with(op).with(out).with(a.cast_const()).with(b.cast_const()).with(n as u64);
            m.launch(&Launch::elementwise("fr_check", n as u64, 128, args));
            m.read(out, 32 * n)
        });
    }
    let x: Vec<Vec<Fq12>> = (0..4).map(|k| fq_values(n, 3 + k)).collect();
    for op in 0..10u32 {
        compare(&mut gpu, &format!("fq_check {op}"), |m| {
            let out = m.alloc(48 * n);
            let args =
                x.iter().fold(Args::new().with(op).with(out), |args, v| args.with(place(m, v).cast_const()));
            m.launch(&Launch::elementwise("fq_check", n as u64, 128, args.with(n as u64)));
            m.read(out, 48 * n)
        });
        if op == 8 {
            continue;
        }
        compare(&mut gpu, &format!("fq2_check {op}"), |m| {
            let out = m.alloc(48 * n);
            let args =
                x.iter().fold(Args::new().with(op).with(out), |args, v| args.with(place(m, v).cast_const()));
            m.launch(&Launch::elementwise("fq2_check", n as u64 / 2, 128, args.with(n as u64 / 2)));
            m.read(out, 48 * n)
        });
    }
}

/// Every sum of points, exceptional ones in every place. Results are affine, so equal to the byte.
#[test]
fn device_curves_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    let n = 2048usize;
    let z = fq_values(2 * n, 9)
        .iter()
        .map(|&v| if modulo(v, P) == small(0) { small(1) } else { v })
        .collect::<Vec<_>>();
    let a = g1_points(n);
    let b: Vec<_> = (0..n).map(|i| a[(i * 5 + 3) % n]).collect();
    let (a2, b2): (Vec<_>, Vec<_>) = {
        let a = g2_points(n);
        (a.clone(), (0..n).map(|i| a[(i * 5 + 3) % n]).collect())
    };
    for op in 0..5u32 {
        compare(&mut gpu, &format!("g1_check {op}"), |m| {
            let (out, a, b, z) = (m.alloc(96 * n), place(m, &a), place(m, &b), place(m, &z));
            let args = Args::new().with(op).with(out).with(a.cast_const()).with(b.cast_const());
            m.launch(&Launch::elementwise(
                "g1_check",
                n as u64,
                64,
                args.with(z.cast_const()).with(n as u64),
            ));
            m.read(out, 96 * n)
        });
        compare(&mut gpu, &format!("g2_check {op}"), |m| {
            let (out, a, b, z) = (m.alloc(192 * n), place(m, &a2), place(m, &b2), place(m, &z));
            let args = Args::new().with(op).with(out).with(a.cast_const()).with(b.cast_const());
            m.launch(&Launch::elementwise(
                "g2_check",
                n as u64,
                64,
                args.with(z.cast_const()).with(n as u64),
            ));
            m.read(out, 192 * n)
        });
    }
}

fn root(lg: u32) -> Scalar {
    use ff::PrimeField;
    (lg..32).fold(Scalar::ROOT_OF_UNITY, |w, _| w.square())
}
fn flavour(lg: u32, inverse: bool, shift: Option<Scalar>) -> Flavour {
    let n = Scalar::from(1u64 << lg);
    let w = root(lg);
    Flavour {
        root: Fr(limbs(&if inverse { w.invert().unwrap() } else { w })),
        inverse,
        shift: shift.map(|s| Fr(limbs(&s))),
        scale: inverse.then(|| Fr(limbs(&n.invert().unwrap()))),
    }
}
fn tables(m: &mut dyn Machine, plan: &Plan, flavour: Flavour, form: Form) -> Tables {
    let forms = vec![form; plan.passes().len()];
    let bytes = Tables::new(plan, &flavour, &forms, None, std::ptr::null_mut()).bytes();
    let tables = Tables::new(plan, &flavour, &forms, None, m.alloc(bytes as usize).cast());
    m.run(tables.launches());
    tables
}

/// Transforms of every size to 2^16, their tables included.
#[test]
fn device_transforms_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    for lg in 0..=16u32 {
        let n = 1usize << lg;
        let plan = Plan::new(lg, Generator::Seven);
        let x: Vec<Fr8> = fr_values(n, u64::from(lg)).into_iter().map(|v| modulo(v, R)).collect();
        let orders = [Order::NaturalToReversed, Order::ReversedToNatural, Order::Natural];
        for (i, order) in orders.into_iter().enumerate() {
            let form = [Form::One, Form::Split, Form::Levels][(i + lg as usize) % 3];
            let inverse = (i + lg as usize).is_multiple_of(2);
            compare(&mut gpu, &format!("2^{lg} {order:?} {form:?} inverse {inverse}"), |m| {
                let t = tables(m, &plan, flavour(lg, inverse, Some(Scalar::from(7))), form);
                let (input, output) = (place(m, &x).cast(), m.alloc(32 * n).cast());
                m.run(&plan.transform(order, &t, &[input], &[output]));
                m.read(output.cast(), 32 * n)
            });
        }
        compare(&mut gpu, &format!("2^{lg} quotient"), |m| {
            let onto = tables(m, &plan, flavour(lg, true, Some(Scalar::from(7))), Form::Split);
            let forward = tables(m, &plan, flavour(lg, false, None), Form::One);
            let back = tables(m, &plan, flavour(lg, true, Scalar::from(7).invert().into()), Form::Levels);
            let p: Vec<*mut Fr> = (0..3)
                .map(|k| place(m, &x[..].iter().cycle().skip(k).take(n).copied().collect::<Vec<_>>()).cast())
                .collect();
            m.run(&plan.to_coset(&onto, &forward, &p));
            m.run(&plan.quotient(&back, p[0], Some(p[1]), p[2]));
            m.read(p[0].cast(), 32 * n)
        });
    }
}

/// The steps that are not passes: pointwise, permutations, columns of every number of rows.
#[test]
fn device_steps_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    let factor = Fr(limbs(&random_scalar(8)));
    for n in [1usize, 127, 128, 5000] {
        let x: Vec<Vec<Fr8>> =
            (0..3).map(|k| fr_values(n, 20 + k).into_iter().map(|v| modulo(v, R)).collect()).collect();
        for step in 0..3 {
            compare(&mut gpu, &format!("pointwise step {step} of {n}"), |m| {
                let [a, b, c] = [0, 1, 2].map(|k: usize| place(m, &x[k]).cast::<Fr>());
                m.launch(&match step {
                    0 => ntt::combine_product(a, b, n as u64),
                    1 => ntt::combine_sub_scale(a, b, factor, n as u64),
                    _ => ntt::quotient_pointwise(a, b, c, factor, n as u64),
                });
                m.read(a.cast(), 32 * n)
            });
        }
    }
    for lg in [0u32, 1, 7, 12] {
        let n = 1usize << lg;
        let x: Vec<Fr8> = fr_values(n, 30).into_iter().map(|v| modulo(v, R)).collect();
        compare(&mut gpu, &format!("2^{lg} reversed and scaled"), |m| {
            let (a, table) = (place(m, &x).cast::<Fr>(), m.alloc(64 * 32).cast::<Fr>());
            m.launch(&ntt::reverse_in_place(a, lg));
            m.launch(&ntt::powers(table, factor, Fr(limbs(&Scalar::from(7)))));
            m.launch(&ntt::scale(a, table, factor, lg, false));
            m.launch(&ntt::scale(a, table, factor, lg, true));
            m.read(a.cast(), 32 * n)
        });
    }
    for lk in 1..=6u32 {
        for log_width in [0, 3, 10 - lk] {
            let lg = 2 * lk + log_width;
            let (n, m_len, width) = (1usize << lg, 1usize << (lg - lk), 1u64 << log_width);
            let first = width * ((1 << lk) - 1);
            let columns = ntt::Columns { lg, log_chunks: lk };
            let (w, g) = (root(lg), Fr(limbs(&Scalar::from(7))));
            let roots = [w.invert().unwrap(), w].map(|w| Fr(limbs(&w)));
            let slot: Vec<Fr8> = fr_values(m_len, 40).into_iter().map(|v| modulo(v, R)).collect();
            let a: Vec<Fr8> = fr_values(n, 41).into_iter().map(|v| modulo(v, R)).collect();
            compare(&mut gpu, &format!("columns of 2^{lg} in 2^{lk} rows"), |m| {
                let (a, slot) = (place(m, &a).cast::<Fr>(), place(m, &slot).cast::<Fr>());
                let tables = roots.map(|root| {
                    let at = m.alloc(64 * 32).cast::<Fr>();
                    m.launch(&ntt::powers(at, root, g));
                    at
                });
                m.launch(&columns.first(slot, first, tables[0], factor));
                m.launch(&columns.combine(a, slot, first, ntt::Combine::Mul));
                m.launch(&columns.last(slot, first, tables[1]));
                m.launch(&columns.combine(a, slot, first, ntt::Combine::SubScale(factor)));
                [m.read(slot.cast(), 32 * m_len), m.read(a.cast(), 32 * n)].concat()
            });
        }
    }
}

/// The column steps of a slot of 2^24 values: their times.
#[test]
fn device_large_columns_round_trip() {
    let Some(mut gpu) = device() else { return };
    let timed = std::env::var_os("PRESTAGE_DEVICE_TIMES").is_some();
    for lk in [1u32, 3, 6] {
        let (lg, n) = (24 + lk, 1usize << 24);
        let columns = ntt::Columns { lg, log_chunks: lk };
        let (w, k) = (root(lg), Scalar::from(1 << lk));
        let x: Vec<Fr8> = {
            let s = fr_values(1 << 12, 7);
            (0..n).map(|i| modulo(s[(i ^ i >> 12) % s.len()], R)).collect()
        };
        let slot: *mut Fr = place(&mut gpu, &x).cast();
        let tables = [w.invert().unwrap(), w].map(|w| {
            let at = gpu.alloc(64 * 32).cast::<Fr>();
            gpu.launch(&ntt::powers(at, Fr(limbs(&w)), Fr::ONE));
            at
        });
        let first = 1 << (24 - lk);
        let there = columns.first(slot, first, tables[0], Fr(limbs(&k.invert().unwrap())));
        let back = columns.last(slot, first, tables[1]);
        gpu.run(&[there.clone(), back.clone()]);
        assert!(gpu.read(slot.cast(), 32 * n) == bytes_of(&x), "2^{lk} rows");
        if timed {
            let (there, back) = (gpu.time(&[there]), gpu.time(&[back]));
            println!("columns of 2^{lk} rows, 2^24 values: {there:.3} ms first, {back:.3} ms last");
        }
    }
}

/// Sorted scalars to integers.
#[test]
fn device_expansion_equals_the_host() {
    let Some(mut gpu) = device() else { return };
    for (n, shift) in [(1usize, 63u32), (64, 0), (65, 63), (5000, 17), (300_000, 1)] {
        let width = (n + shift as usize).div_ceil(64) + 1;
        let random = fr_values(n, 50);
        let mut words = vec![0u64; 2 * width];
        for (i, s) in random.iter().enumerate() {
            let at = i + shift as usize;
            match s[1] % 4 {
                0 => words[at / 64] |= 1 << (at % 64),
                1 => words[width + at / 64] |= 1 << (at % 64),
                _ => {}
            }
        }
        // Bits that are no scalars of the batch.
        words[0] |= (1 << shift) - 1;
        words.extend(random.iter().filter(|s| s[1] % 4 == 0).flat_map(cast::<Fr8, [u64; 4]>));
        compare(&mut gpu, &format!("{n} scalars, shift {shift}"), |m| {
            let (words, out) = (place(m, &words), m.alloc(32 * n));
            let ranks = m.alloc(msm::expand_scratch_bytes(n as u64) as usize).cast();
            m.run(&msm::ranks(words, shift, n as u64, ranks));
            let half = n as u64 / 2;
            for (first, n) in [(0, half), (half, n as u64 - half)] {
                let at = out.wrapping_byte_add(32 * first as usize).cast();
                m.launch(&msm::expand(words, width as u64, shift, first, n, ranks, at));
            }
            m.read(out, 32 * n)
        });
    }
}

/// Large transforms: there and back is the identity, on the device alone; their times.
#[test]
fn device_large_transforms_round_trip() {
    let Some(mut gpu) = device() else { return };
    let timed = std::env::var_os("PRESTAGE_DEVICE_TIMES").is_some();
    for lg in [18u32, 20, 22, 24] {
        let n = 1usize << lg;
        let plan = Plan::new(lg, Generator::Seven);
        let x: Vec<Fr8> = {
            let s = fr_values(1 << 12, 7);
            (0..n).map(|i| modulo(s[(i ^ i >> 12) % s.len()], R)).collect()
        };
        let forward = tables(&mut gpu, &plan, flavour(lg, false, None), Form::Split);
        let inverse = tables(&mut gpu, &plan, flavour(lg, true, None), Form::Split);
        let p: *mut Fr = place(&mut gpu, &x).cast();
        let there = plan.transform(Order::NaturalToReversed, &inverse, &[p], &[p]);
        let back = plan.transform(Order::ReversedToNatural, &forward, &[p], &[p]);
        gpu.run(&there);
        gpu.run(&back);
        assert!(gpu.read(p.cast(), 32 * n) == bytes_of(&x), "2^{lg}");
        if timed {
            println!(
                "NTT 2^{lg}: {:.3} ms natural to reversed, {:.3} ms reversed to natural",
                gpu.time(&there),
                gpu.time(&back)
            );
        }
    }
}

/// Multiples of one point: byte for byte, with tables of arbitrary points, infinity among them.
#[test]
fn device_multiples_of_one_point_equal_the_host() {
    let Some(mut gpu) = device() else { return };
    for (window, n) in
        [(Window::Bits4, 1usize), (Window::Bits4, 300), (Window::Bits8, 3001), (Window::Bits16, 700)]
    {
        let scalars: Vec<Fr8> = fr_values(n, 60).into_iter().map(|v| modulo(v, R)).collect();
        let (some1, some2) = (g1_points(997), g2_points(499));
        let table1: Vec<_> = (0..window.table_len()).map(|i| some1[i * 31 % some1.len()]).collect();
        let table2: Vec<_> = (0..window.table_len()).map(|i| some2[i * 31 % some2.len()]).collect();
        let mut check = |curve: Curve, table: &[u8]| {
            compare(&mut gpu, &format!("{n} multiples in {curve:?}, {window:?}"), |m| {
                let (table, s) = (place(m, table), place(m, &scalars));
                let sums = m.alloc(n * curve.xyzz_bytes() as usize);
                let out = m.alloc(n * curve.affine_bytes() as usize);
                m.launch(&fixed_base::multiples(curve, window, table, s.cast_const().cast(), n as u64, sums));
                m.launch(&fixed_base::normalise(curve, sums, n as u64, out));
                m.read(out, n * curve.affine_bytes() as usize)
            });
        };
        check(Curve::G1, bytes_of(&table1));
        check(Curve::G2, bytes_of(&table2));
    }
}
