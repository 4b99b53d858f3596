//! Row M6 for transforms by columns: the host build of their steps against the definition, and in sequence, as a
//! device runs them, against the transform of the whole.
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
    host::Order as Threads,
    ntt::{Columns, Combine, Flavour, Form, Fr, Generator, Plan, powers},
};

const GENERATORS: [Generator; 2] = [Generator::Seven, Generator::Five];
const THREADS: [Threads; 3] = [Threads::Forwards, Threads::Backwards, Threads::Shuffled(3)];

fn random(n: usize, seed: u64) -> Vec<Scalar> {
    (0..n as u64).map(|i| random_scalar(seed << 32 | i)).collect()
}
/// The table of squarings.
fn squarings(root: Scalar, shift: Scalar, threads: Threads) -> Vec<Fr> {
    let mut table = vec![Fr([0; 8]); 64];
    run(&[powers(table.as_mut_ptr(), to_fr(root), to_fr(shift))], threads);
    table
}
/// Runs a step on a slot and checks that it stays within it.
fn on_slot(slot: &[Scalar], step: impl FnOnce(*mut Fr)) -> Vec<Scalar> {
    let mut memory: Vec<Fr> = slot.iter().map(|&s| to_fr(s)).collect();
    memory.push(Fr([7; 8]));
    step(memory.as_mut_ptr());
    assert_eq!(memory.pop(), Some(Fr([7; 8])), "nothing past the slot is written");
    values(&memory)
}

/// Every number of rows, widths from one column to several blocks of them, some slots of the domain, both directions.
#[test]
fn m6_columns_by_their_definition() {
    let mut case = 0;
    for lk in 1..=6u32 {
        // One column a slot, a few, and more than a block takes.
        for log_width in [0, 2, 10 - lk] {
            let lg = 2 * lk + log_width;
            let (k, m, width) = (1usize << lk, 1u64 << (lg - lk), 1usize << log_width);
            for generator in GENERATORS {
                case += 1;
                let threads = THREADS[case % 3];
                let (w, g) = (root(lg, generator), Scalar::from(7));
                let inverse = w.invert().unwrap();
                let scale = Scalar::from(k as u64).invert().unwrap();
                let columns = Columns { lg, log_chunks: lk };
                let chunk = [0, k as u64 - 1, case as u64 % k as u64][case % 3];
                let first = chunk * width as u64;
                let slot = random(k * width, case as u64);

                let table = squarings(inverse, g, threads);
                let y = on_slot(&slot, |at| {
                    run(&[columns.first(at, first, table.as_ptr(), to_fr(scale))], threads);
                });
                for i in 0..k {
                    let at = inverse.pow_vartime([m * i as u64]);
                    for c in 0..width {
                        let x: Vec<Scalar> = (0..k).map(|r| slot[r * width + c]).collect();
                        let factor = inverse.pow_vartime([i as u64 * (first + c as u64)]);
                        let expected = horner(&x, at) * factor * g.pow_vartime([i as u64]) * scale;
                        assert_eq!(y[i * width + c], expected, "first: 2^{lg}, {k} rows, ({i}, {c})");
                    }
                }

                let table = squarings(w, Scalar::ZERO, threads);
                let y = on_slot(&slot, |at| run(&[columns.last(at, first, table.as_ptr())], threads));
                for c in 0..width {
                    let x: Vec<Scalar> = (0..k as u64)
                        .zip(slot[c..].iter().step_by(width))
                        .map(|(i, x)| x * w.pow_vartime([i * (first + c as u64)]))
                        .collect();
                    for i in 0..k {
                        let expected = horner(&x, w.pow_vartime([m * i as u64]));
                        assert_eq!(y[i * width + c], expected, "last: 2^{lg}, {k} rows, ({i}, {c})");
                    }
                }
            }
        }
    }
}

/// Values at the edges of the field in every place: the bounds that the host build checks hold for them.
#[test]
fn m6_columns_of_edge_values() {
    let (lg, lk) = (8u32, 3u32);
    let columns = Columns { lg, log_chunks: lk };
    let w = root(lg, Generator::Seven);
    let table = squarings(w, -Scalar::ONE, Threads::Forwards);
    let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE];
    for (i, threads) in THREADS.into_iter().enumerate() {
        let slot: Vec<Scalar> = (0..32).map(|e| edges[[2, e, e / 4][i] % 3]).collect();
        let y = on_slot(&slot, |at| run(&[columns.last(at, 4, table.as_ptr())], threads));
        for c in 0..4 {
            let x: Vec<Scalar> =
                (0..8).map(|r| slot[4 * r + c] * w.pow_vartime([(r * (4 + c)) as u64])).collect();
            assert_eq!(y[c], x.iter().sum::<Scalar>());
        }
        let y = on_slot(&slot, |at| {
            run(&[columns.first(at, 4, table.as_ptr(), to_fr(-Scalar::ONE))], threads);
        });
        for c in 0..4 {
            assert_eq!(y[c], -(0..8).map(|r| slot[4 * r + c]).sum::<Scalar>());
        }
    }
}

/// Columns, rows, columns, slot by slot, are the transform to the coset; and slots combine into the values.
#[test]
fn m6_columns_and_rows_make_the_whole() {
    for (case, (lg, lk)) in
        [(2u32, 1u32), (6, 1), (8, 2), (9, 3), (10, 4), (11, 5), (12, 6)].into_iter().enumerate()
    {
        let generator = GENERATORS[case % 2];
        let threads = THREADS[case % 3];
        let (n, k) = (1usize << lg, 1usize << lk);
        let (m, width) = (n / k, n / k / k);
        let (w, g) = (root(lg, generator), Scalar::from(7));
        let x = random(n, case as u64);

        // The whole: coefficients by the inverse, their values on the coset by Horner's rule.
        let inverse = w.invert().unwrap();
        let n_inverse = Scalar::from(n as u64).invert().unwrap();
        let step = n / 16 + 1;
        let coefficients: Vec<Scalar> =
            (0..n as u64).map(|i| horner(&x, inverse.pow_vartime([i])) * n_inverse).collect();

        let columns = Columns { lg, log_chunks: lk };
        let mut values: Vec<Scalar> = x;
        let table = squarings(inverse, g, threads);
        let k_inverse = to_fr(Scalar::from(k as u64).invert().unwrap());
        each_slot(&mut values, m, width, |slot, first| {
            on_slot(slot, |at| run(&[columns.first(at, first, table.as_ptr(), k_inverse)], threads))
        });
        let plan = Plan::new(lg - lk, generator);
        let (root, m_inverse) = (w.pow_vartime([k as u64]), Scalar::from(m as u64).invert().unwrap());
        let there = Flavour {
            root: to_fr(root.invert().unwrap()),
            inverse: true,
            shift: Some(to_fr(g.pow_vartime([k as u64]))),
            scale: Some(to_fr(m_inverse)),
        };
        let back = Flavour { root: to_fr(root), inverse: false, shift: None, scale: None };
        let (there, back) =
            (fill(&plan, there, Form::Levels, threads), fill(&plan, back, Form::One, threads));
        for row in values.chunks_exact_mut(m) {
            let y = on_slot(row, |at| run(&plan.to_coset(&there.tables, &back.tables, &[at]), threads));
            row.copy_from_slice(&y);
        }
        let table = squarings(w, Scalar::ZERO, threads);
        each_slot(&mut values, m, width, |slot, first| {
            on_slot(slot, |at| run(&[columns.last(at, first, table.as_ptr())], threads))
        });
        for i in (0..n).step_by(step).chain([n - 1]) {
            let expected = horner(&coefficients, g * w.pow_vartime([i as u64]));
            assert_eq!(values[i], expected, "2^{lg} in {k} rows, value {i}");
        }

        for how in [Combine::Mul, Combine::SubScale(to_fr(g))] {
            let a = random(n, 100 + case as u64);
            let resident = on_slot(&a, |at| {
                each_slot(&mut values, m, width, |slot, first| {
                    let memory: Vec<Fr> = slot.iter().map(|&s| to_fr(s)).collect();
                    run(&[columns.combine(at, memory.as_ptr(), first, how)], threads);
                    slot.to_vec()
                });
            });
            for (i, y) in resident.into_iter().enumerate() {
                let expected = if how == Combine::Mul { a[i] * values[i] } else { (a[i] - values[i]) * g };
                assert_eq!(y, expected, "{how:?} {i}");
            }
        }
    }
}

/// Gathers the columns of each slot, hands them over with their first column, and puts back what comes.
fn each_slot(
    values: &mut [Scalar],
    m: usize,
    width: usize,
    mut step: impl FnMut(&[Scalar], u64) -> Vec<Scalar>,
) {
    for first in (0..m).step_by(width) {
        let slot: Vec<Scalar> =
            values.chunks_exact(m).flat_map(|row| row[first..first + width].to_vec()).collect();
        let slot = step(&slot, first as u64);
        for (row, from) in values.chunks_exact_mut(m).zip(slot.chunks_exact(width)) {
            row[first..first + width].copy_from_slice(from);
        }
    }
}
