//! Times of multi-scalar multiplications on device 0, everything resident, each checked against the logarithms of its points.
//!
//! `msm_times JOB…` with jobs `CURVE:LOG[:OPTION…]`, for example `g1:20 g1:24:gb3 g2:20:w15:profile`. Options: `wN` windows
//! of N bits, `gN` windows a group, `gbN` at most N GB of scratch, `tree`, `slices`, `halve`, `whole`, `equal` (one scalar for all), `witness` (half
//! zeros, 41 % ones), `profile` (milliseconds by kernel).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs
)]

#[path = "../tests/common/mod.rs"]
mod common;

use blstrs::{G1Projective, G2Projective, Scalar};
use common::{Fr8, known::*, limbs, machine::*};
use prestage_kernels::msm::{Curve, Ones, Plan};

fn number(option: &str, prefix: &str) -> Option<u32> {
    option.strip_prefix(prefix)?.parse().ok()
}

fn job<C: Known>(gpu: &mut Gpu, curve: Curve, log: u32, options: &[&str]) {
    let n = 1usize << log;
    let has = |name: &str| options.contains(&name);
    let value = |prefix: &str| options.iter().find_map(|o| number(o, prefix));
    let scalar = |i: u64| match () {
        () if has("equal") => random_limbs(1),
        () if has("witness") && i * 37 % 100 < 50 => [0; 8],
        () if has("witness") && i * 37 % 100 < 91 => limbs(&Scalar::from(1)),
        () => random_limbs(i),
    };
    let scalars: Vec<Fr8> = (0..n as u64).map(scalar).collect();
    let sum = KnownSum::<C>::place(gpu, n, &scalars);
    let mut plan = Plan::new(curve, n as u64);
    if let Some(width) = value("w") {
        plan = Plan::with_width(curve, n as u64, width).with_tree(plan.is_tree());
    }
    if has("tree") || has("slices") {
        plan = plan.with_tree(has("tree"));
    }
    if has("halve") || has("whole") {
        plan = plan.with_halving(has("halve"));
    }
    plan = plan.within(u64::from(value("gb").unwrap_or(90)) * 1_000_000_000);
    if let Some(group) = value("g") {
        plan = plan.with_group(group);
    }
    let (launches, out) = sum.launches(gpu, &plan, Ones::Apart);
    gpu.run(&launches);
    let right = KnownSum::<C>::fold(gpu, &plan, out) == sum.expected;
    let ms = gpu.time(&launches);
    let says = if right { "right" } else { "WRONG" };
    let gb = plan.scratch_bytes() as f64 / 1e9;
    println!(
        "{curve:?} 2^{log} {options:?} {ms:.3} ms {says} {} launches {gb:.2} GB {plan:?}",
        launches.len()
    );
    if has("profile") {
        gpu.profile(&launches);
        for (kernel, ms, count) in gpu.profile(&launches) {
            println!("    {kernel:20} {ms:8.3} ms {count:4}");
        }
    }
    gpu.free();
}

fn main() {
    let mut gpu = device().expect("a device");
    for text in std::env::args().skip(1) {
        let parts: Vec<&str> = text.split(':').collect();
        let (Some(curve), Some(log)) = (parts.first(), parts.get(1).and_then(|log| log.parse().ok())) else {
            panic!("a job is CURVE:LOG[:OPTION…], not {text}");
        };
        match *curve {
            "g1" => job::<G1Projective>(&mut gpu, Curve::G1, log, &parts[2..]),
            "g2" => job::<G2Projective>(&mut gpu, Curve::G2, log, &parts[2..]),
            other => panic!("g1 or g2, not {other}"),
        }
    }
}
