//! Circuits to prove, and a prover written from the formulas alone, in host memory, as the reference for the staged
//! one.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub)]

pub mod devices;

use blstrs::{G1Projective, Scalar};
use ff::Field;
use group::Curve;
use prestage_groth16::{Blinding, Proof, ProvingKey, R1cs, Reduction, Witness};
use prestage_ntt::{Domain, host};
use rand_core::{RngCore, SeedableRng};

pub type Rng = rand_chacha::ChaCha20Rng;

pub fn rng(seed: u64) -> Rng {
    Rng::seed_from_u64(seed)
}

/// y = x^(2^n): n constraints, y public.
pub fn squares(n: u32, x: u64) -> (R1cs, Witness) {
    let one = Scalar::ONE;
    let mut b = R1cs::builder(n + 2, 1).unwrap();
    let mut values = vec![one, Scalar::ZERO, Scalar::from(x)];
    for i in 0..n {
        let out = if i + 1 == n { 1 } else { i + 3 };
        b.constraint(&[(i + 2, one)], &[(i + 2, one)], &[(out, one)]).unwrap();
        let square = values[i as usize + 2].square();
        if out == 1 { values[1] = square } else { values.push(square) }
    }
    (b.finish(), Witness::new(values).unwrap())
}

#[derive(Clone, Copy, Debug)]
pub struct Circuit {
    pub seed: u64,
    pub constraints: u32,
    pub public: u32,
    pub free: u32,
    pub unused: u32,
}

impl Circuit {
    /// Random sparse rows that the returned witness satisfies: each makes one new wire. Some rows are linear, some
    /// wires appear nowhere, and many values are zero or one.
    pub fn build(self) -> (R1cs, Witness) {
        let mut rng = rng(self.seed);
        let first = 1 + self.public + self.free;
        let n_wires = first + self.constraints + self.unused;
        let mut builder = R1cs::builder(n_wires, self.public).unwrap();
        let mut values = vec![Scalar::ONE];
        values.extend((1..first).map(|_| value(&mut rng)));
        for row in 0..self.constraints {
            let known = first + row;
            let mut side = |most: u32| -> Vec<(u32, Scalar)> {
                (0..rng.next_u32() % (most + 1)).map(|_| (rng.next_u32() % known, value(&mut rng))).collect()
            };
            let (a, b, mut c) = (side(3), side(3), side(2));
            let dot =
                |side: &[(u32, Scalar)]| side.iter().map(|(i, k)| values[*i as usize] * k).sum::<Scalar>();
            let new = dot(&a) * dot(&b) - dot(&c);
            c.push((known, Scalar::ONE));
            builder.constraint(&a, &b, &c).unwrap();
            values.push(new);
        }
        values.extend((0..self.unused).map(|_| value(&mut rng)));
        (builder.finish(), Witness::new(values).unwrap())
    }
}

/// 0, 1, −1, small or anything.
pub fn value(rng: &mut Rng) -> Scalar {
    match rng.next_u32() % 6 {
        0 => Scalar::ZERO,
        1 => Scalar::ONE,
        2 => -Scalar::ONE,
        3 => Scalar::from(u64::from(rng.next_u32() % 100)),
        _ => Scalar::random(rng),
    }
}

pub fn blinding(seed: u8) -> Blinding {
    Blinding::insecure_from_seed([seed; 32]).unwrap()
}

/// A·w, B·w, C·w over the domain, by rows.
pub fn evaluations(r1cs: &R1cs, witness: &Witness) -> [Vec<Scalar>; 3] {
    let w = witness.values();
    let size = usize::try_from(r1cs.domain_size()).unwrap();
    [r1cs.a(), r1cs.b(), r1cs.c()].map(|matrix| {
        let mut rows: Vec<Scalar> = (0..matrix.n_rows())
            .map(|row| matrix.row(row).map(|(wire, k)| k * w[wire as usize]).sum())
            .collect();
        if std::ptr::eq(matrix, r1cs.a()) {
            rows.extend(&w[..=r1cs.n_public() as usize]);
        }
        rows.resize(size, Scalar::ZERO);
        rows
    })
}

/// The scalars of the H query.
pub fn h_scalars<R: Reduction>(abc: [Vec<Scalar>; 3]) -> Vec<Scalar> {
    let domain = Domain::new(abc[0].len(), R::GENERATOR).unwrap();
    let form = R::quotient(&domain).unwrap();
    let [mut a, b, c] = abc.map(|mut values| {
        host::coset_evaluations(&domain, &mut values, form.shift).unwrap();
        values
    });
    host::mul_sub_scale(&mut a, &b, &c, form.scale).unwrap();
    if form.coefficients {
        host::coset_coefficients(&domain, &mut a, form.shift).unwrap();
        // The quotient has degree m − 2.
        assert_eq!(a.pop(), Some(Scalar::ZERO));
    }
    a
}

/// A proof by the formulas, term by term.
pub fn reference<R: Reduction>(
    key: &ProvingKey<R>,
    r1cs: &R1cs,
    witness: &Witness,
    blinding: Blinding,
) -> Proof {
    let w = witness.values();
    let Blinding { r, s } = blinding;
    let sum = |points: &[blstrs::G1Affine], scalars: &[Scalar]| -> G1Projective {
        prestage_msm::host::msm(points, scalars).unwrap()
    };
    let over = |query: &prestage_groth16::Query<blstrs::G1Affine>, w: &[Scalar]| {
        sum(query.points(), &query.density().gather(w).unwrap())
    };
    let a = key.vk().alpha_g1 + over(key.a(), w) + key.delta_g1() * r;
    let b2 = prestage_msm::host::msm(key.b_g2().points(), &key.b_g2().density().gather(w).unwrap()).unwrap();
    let b = key.vk().beta_g2 + b2 + key.vk().delta_g2 * s;
    let b1 = key.beta_g1() + over(key.b_g1(), w) + key.delta_g1() * s;
    let h = sum(key.h(), &h_scalars::<R>(evaluations(r1cs, witness)));
    let l = over(key.l(), &w[key.n_public() + 1..]);
    let c = l + h + a * s + b1 * r - key.delta_g1() * (r * s);
    Proof { a: a.to_affine(), b: b.to_affine(), c: c.to_affine() }
}

/// A host device with exactly `budget` bytes to grant and no margin.
pub fn host(budget: prestage_vram::Bytes) -> prestage_vram::Host {
    host_with(budget, prestage_vram::LedgerConfig::default())
}

pub fn host_with(budget: prestage_vram::Bytes, config: prestage_vram::LedgerConfig) -> prestage_vram::Host {
    let margin = prestage_vram::Margin::Fixed(prestage_vram::Bytes::ZERO);
    let ledger = prestage_vram::LedgerConfig { margin, ..config };
    prestage_vram::Host::open(prestage_vram::HostConfig { capacity: budget, ledger }).unwrap()
}

/// Runs a test whose budgets are tight with two threads, on any machine: scratch grows with their number.
pub fn with_two_threads(test: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap().install(test);
}
