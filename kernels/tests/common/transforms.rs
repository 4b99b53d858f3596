//! Roots, values and tables for the tests of transforms.

use blstrs::Scalar;
use ff::Field;
use prestage_kernels::{
    Launch,
    host::{self, Order as Threads},
    ntt::{Flavour, Form, Fr, Generator, Plan, Tables},
};

use super::{R, less, limbs, scalar};

pub fn root(lg: u32, generator: Generator) -> Scalar {
    let g = Scalar::from(if generator == Generator::Seven { 7 } else { 5 });
    // r - 1 = 2^32·t.
    let t = (-Scalar::ONE).to_bytes_le();
    let t: [u64; 4] = std::array::from_fn(|i| u64::from_le_bytes(t[8 * i..8 * i + 8].try_into().unwrap()));
    let shifted: [u64; 4] = std::array::from_fn(|i| t[i] >> 32 | if i < 3 { t[i + 1] << 32 } else { 0 });
    let mut w = g.pow_vartime(shifted);
    for _ in lg..32 {
        w = w.square();
    }
    w
}
pub fn to_fr(s: Scalar) -> Fr {
    Fr(limbs(&s))
}
pub fn values(v: &[Fr]) -> Vec<Scalar> {
    v.iter()
        .map(|x| {
            assert!(less(x.0, R), "stored values are canonical");
            scalar(x.0)
        })
        .collect()
}
pub fn reversed(i: usize, lg: u32) -> usize {
    if lg == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - lg) }
}
pub fn run(launches: &[Launch], threads: Threads) {
    for launch in launches {
        // SAFETY: the launches come from the crate, over buffers of the sizes that it asks for.
        unsafe { host::launch(launch, threads).unwrap() };
    }
}
/// Σ x_j z^j.
pub fn horner(x: &[Scalar], z: Scalar) -> Scalar {
    x.iter().rev().fold(Scalar::ZERO, |s, c| s * z + c)
}
/// Tables in their own memory.
pub struct Filled {
    pub tables: Tables,
    _memory: Vec<Fr>,
}
pub fn fill(plan: &Plan, flavour: Flavour, form: Form, threads: Threads) -> Filled {
    fill_beside(plan, flavour, &vec![form; plan.passes().len()], None, threads)
}
/// The same with a form for each pass, beside tables of the same root.
pub fn fill_beside(
    plan: &Plan,
    flavour: Flavour,
    forms: &[Form],
    other: Option<&Filled>,
    threads: Threads,
) -> Filled {
    let other = other.map(|other| &other.tables);
    let bytes = Tables::new(plan, &flavour, forms, other, std::ptr::null_mut()).bytes();
    let mut memory = vec![Fr([0xffff_ffff; 8]); bytes as usize / 32];
    let tables = Tables::new(plan, &flavour, forms, other, memory.as_mut_ptr());
    run(tables.launches(), threads);
    Filled { tables, _memory: memory }
}
