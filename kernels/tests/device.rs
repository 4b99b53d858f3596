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

use std::{collections::HashMap, ffi::CString, ptr, time::Instant};

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use common::*;
use cudarc::driver::sys::{self as cuda, CUdevice_attribute_enum as Attribute, CUresult};
use ff::Field;
use group::{Curve as _, Group};
use prestage_kernels::{
    Args, Cache, Capability, Error, Family, Launch, check_driver, driver_version,
    fixed_base::{self, Window},
    host::{self, Order as Threads},
    module,
    msm::{self, Curve, Form as ScalarForm, Ones, Plan as MsmPlan},
    ntt::{self, Flavour, Form, Fr, Generator, Order, Plan, Tables},
};

/// Memory and launches, on the host or on a device.
trait Machine {
    fn alloc(&mut self, bytes: usize) -> *mut u8;
    fn write(&mut self, to: *mut u8, bytes: &[u8]);
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8>;
    fn launch(&mut self, launch: &Launch);

    fn run(&mut self, launches: &[Launch]) {
        for l in launches {
            self.launch(l);
        }
    }
}

fn bytes_of<T: Copy>(values: &[T]) -> &[u8] {
    // SAFETY: plain integers without padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) }
}
/// The values in memory of the machine.
fn place<T: Copy>(m: &mut dyn Machine, values: &[T]) -> *mut T {
    let at = m.alloc(size_of_val(values));
    m.write(at, bytes_of(values));
    at.cast()
}

#[derive(Default)]
struct Host {
    memory: Vec<Vec<[u64; 4]>>,
}

impl Machine for Host {
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        self.memory.push(vec![[0; 4]; bytes.div_ceil(32).max(1)]);
        self.memory.last_mut().unwrap().as_mut_ptr().cast()
    }
    fn write(&mut self, to: *mut u8, bytes: &[u8]) {
        // SAFETY: `to` comes from `alloc` with at least as many bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8> {
        // SAFETY: `from` comes from `alloc` with at least as many bytes.
        unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec()
    }
    fn launch(&mut self, launch: &Launch) {
        // SAFETY: arguments point into memory of this machine, of the sizes that the launches ask for.
        unsafe { host::launch(launch, Threads::Forwards).unwrap() };
    }
}

struct Gpu {
    modules: Vec<cuda::CUmodule>,
    functions: HashMap<&'static str, cuda::CUfunction>,
    allocations: Vec<u64>,
}

fn ok(status: CUresult) {
    assert_eq!(status, CUresult::CUDA_SUCCESS);
}

impl Gpu {
    /// Device 0 with all families loaded, or why not.
    fn open() -> Result<Self, Error> {
        let driver = driver_version()?;
        let (mut count, mut context) = (0, ptr::null_mut());
        // SAFETY: the driver is there, and the pointers are valid for the calls.
        unsafe {
            if cuda::cuInit(0) != CUresult::CUDA_SUCCESS
                || cuda::cuDeviceGetCount(&mut count) != CUresult::CUDA_SUCCESS
            {
                return Err(Error::NoDriver);
            }
            if count == 0 {
                return Err(Error::NoDriver);
            }
            ok(cuda::cuDevicePrimaryCtxRetain(&mut context, 0));
            ok(cuda::cuCtxSetCurrent(context));
        }
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: device 0 exists.
            unsafe { ok(cuda::cuDeviceGetAttribute(&mut value, which, 0)) };
            value.unsigned_abs()
        };
        let capability = Capability {
            major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        };
        let cache = Cache::from_env()?;
        let mut modules = Vec::new();
        for &family in Family::ALL {
            let image = module(&cache, family, capability)?;
            check_driver(driver, &image)?;
            let mut loaded = ptr::null_mut();
            // SAFETY: the image is a whole cubin, or PTX that ends in NUL.
            unsafe { ok(cuda::cuModuleLoadData(&mut loaded, image.bytes.as_ptr().cast())) };
            modules.push(loaded);
        }
        Ok(Self { modules, functions: HashMap::new(), allocations: Vec::new() })
    }

    fn function(&mut self, name: &'static str) -> cuda::CUfunction {
        if let Some(&f) = self.functions.get(name) {
            return f;
        }
        let c = CString::new(name).unwrap();
        for &m in &self.modules {
            let mut f = ptr::null_mut();
            // SAFETY: a loaded module and a NUL-terminated name.
            if unsafe { cuda::cuModuleGetFunction(&mut f, m, c.as_ptr()) } == CUresult::CUDA_SUCCESS {
                self.functions.insert(name, f);
                return f;
            }
        }
        panic!("no kernel {name}")
    }

    fn synchronize(&self) {
        // SAFETY: the context is current.
        unsafe { ok(cuda::cuCtxSynchronize()) };
    }

    /// The median time of seven runs in milliseconds, by the host's clock around synchronised work.
    fn time(&mut self, launches: &[Launch]) -> f64 {
        self.run(launches);
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                self.synchronize();
                let start = Instant::now();
                for l in launches {
                    self.enqueue(l);
                }
                self.synchronize();
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[3]
    }

    fn enqueue(&mut self, l: &Launch) {
        let f = self.function(l.kernel);
        let mut pointers = l.args.pointers();
        // SAFETY: arguments have the types of the kernel's parameters and point into this device's memory.
        unsafe {
            ok(cuda::cuLaunchKernel(
                f,
                l.grid.0,
                l.grid.1,
                1,
                l.block,
                1,
                1,
                l.shared_bytes,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            ));
        }
    }
}

impl Machine for Gpu {
    fn alloc(&mut self, bytes: usize) -> *mut u8 {
        let mut at = 0;
        // SAFETY: the context is current.
        unsafe { ok(cuda::cuMemAlloc_v2(&mut at, bytes.max(32))) };
        self.allocations.push(at);
        at as *mut u8
    }
    fn write(&mut self, to: *mut u8, bytes: &[u8]) {
        // SAFETY: `to` comes from `alloc` with at least as many bytes.
        unsafe { ok(cuda::cuMemcpyHtoD_v2(to as u64, bytes.as_ptr().cast(), bytes.len())) };
    }
    fn read(&mut self, from: *const u8, bytes: usize) -> Vec<u8> {
        let mut out = vec![0u8; bytes];
        // SAFETY: `from` comes from `alloc` with at least as many bytes.
        unsafe { ok(cuda::cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), from as u64, bytes)) };
        out
    }
    fn launch(&mut self, launch: &Launch) {
        self.enqueue(launch);
        // A fault names its kernel: the next call would report it as its own.
        // SAFETY: the context is current.
        let status = unsafe { cuda::cuCtxSynchronize() };
        assert_eq!(status, CUresult::CUDA_SUCCESS, "after {}", launch.kernel);
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        for &a in &self.allocations {
            // SAFETY: allocated once, freed once.
            unsafe { cuda::cuMemFree_v2(a) };
        }
        for &m in &self.modules {
            // SAFETY: loaded once, unloaded once.
            unsafe { cuda::cuModuleUnload(m) };
        }
    }
}

/// The device, or nothing where there is none.
fn device() -> Option<Gpu> {
    match Gpu::open() {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            let typed =
                matches!(error, Error::NoDriver | Error::NoCompiler { .. } | Error::DriverTooOld { .. });
            assert!(typed, "{error}");
            assert!(std::env::var_os("PRESTAGE_REQUIRE_CUDA").is_none(), "{error}");
            println!("nothing to compare with: {error}");
            None
        }
    }
}

/// Runs `job` on both machines and compares what it returns.
fn compare(gpu: &mut Gpu, what: &str, job: impl Fn(&mut dyn Machine) -> Vec<u8>) {
    let expected = job(&mut Host::default());
    assert!(job(gpu) == expected, "{what}: the device and the host build differ");
}

/// Elements below `bound` (a power of two of limbs is enough): edges first, then random.
fn fr_values(n: usize, seed: u64) -> Vec<Fr8> {
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

fn g1_points(n: usize) -> Vec<[u32; 24]> {
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
fn g2_points(n: usize) -> Vec<[u32; 48]> {
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
    let at = m.alloc(Tables::bytes(plan, &flavour, form) as usize);
    let tables = Tables::new(plan, &flavour, form, at.cast());
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
            m.run(&plan.quotient(&back, [p[0], p[1], p[2]], p[0]));
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

/// A plan's results as blst's points.
fn points_of<P: Copy>(m: &mut dyn Machine, plan: &MsmPlan, results: *mut u8) -> Vec<P> {
    let bytes = size_of::<P>() * plan.results() as usize;
    let out = m.alloc(bytes);
    m.launch(&plan.to_jacobian(results, out));
    let bytes = m.read(out, bytes);
    // SAFETY: blstrs' projective points are blst's, three coordinates in Montgomery form.
    bytes.chunks_exact(size_of::<P>()).map(|p| unsafe { ptr::read_unaligned(p.as_ptr().cast()) }).collect()
}

/// Multi-scalar multiplications against the host build's window sums (small) and blst's sum (large).
#[test]
fn device_multi_scalar_multiplications() {
    let Some(mut gpu) = device() else { return };
    let timed = std::env::var_os("PRESTAGE_DEVICE_TIMES").is_some();
    for n in [0usize, 1, 33, 1000, 5000] {
        let (bases, scalars) =
            (g1_points(n), fr_values(n, 3).into_iter().map(|v| modulo(v, R)).collect::<Vec<_>>());
        let plan = MsmPlan::new(Curve::G1, n as u64);
        compare(&mut gpu, &format!("G1 MSM of {n}"), |m| {
            let (b, s) = (place(m, &bases), place(m, &scalars));
            let (scratch, results) =
                (m.alloc(plan.scratch_bytes() as usize), m.alloc(192 * plan.results() as usize));
            let affine = m.alloc(96 * plan.results() as usize);
            m.run(&plan.launches(
                Ones::Apart,
                ScalarForm::Montgomery,
                s.cast(),
                b.cast(),
                n as u64,
                scratch,
                results,
            ));
            let args = Args::new().with(affine).with(results.cast_const()).with(plan.results());
            m.launch(&Launch::elementwise("g1_to_affine", plan.results(), 32, args));
            let jacobian: Vec<G1Projective> = points_of(m, &plan, results);
            let jacobian: Vec<_> = jacobian.iter().map(|p| g1_limbs(&p.to_affine())).collect();
            [m.read(affine, 96 * plan.results() as usize), bytes_of(&jacobian).to_vec()].concat()
        });
        let n = n.min(1000);
        let bases = g2_points(n);
        let plan = MsmPlan::new(Curve::G2, n as u64);
        compare(&mut gpu, &format!("G2 MSM of {n}"), |m| {
            let (b, s) = (place(m, &bases), place(m, &scalars[..n]));
            let (scratch, results) =
                (m.alloc(plan.scratch_bytes() as usize), m.alloc(384 * plan.results() as usize));
            let affine = m.alloc(192 * plan.results() as usize);
            m.run(&plan.launches(
                Ones::Digits,
                ScalarForm::Montgomery,
                s.cast(),
                b.cast(),
                n as u64,
                scratch,
                results,
            ));
            let args = Args::new().with(affine).with(results.cast_const()).with(plan.results());
            m.launch(&Launch::elementwise("g2_to_affine", plan.results(), 32, args));
            let jacobian: Vec<G2Projective> = points_of(m, &plan, results);
            let jacobian: Vec<_> = jacobian.iter().map(|p| g2_limbs(&p.to_affine())).collect();
            [m.read(affine, 192 * plan.results() as usize), bytes_of(&jacobian).to_vec()].concat()
        });
    }
    for lg in [16u32, 20] {
        // The points repeat with period 2^12, so that the expected sum is one of 2^12 terms.
        let (n, period) = (1usize << lg, 1usize << 12);
        let some = g1_points(period);
        let bases: Vec<[u32; 24]> = (0..n).map(|i| some[i % period]).collect();
        let scalars: Vec<Fr8> = (0..n as u64).map(|i| limbs(&random_scalar(i))).collect();
        let mut folded = vec![Scalar::ZERO; period];
        for (i, s) in scalars.iter().enumerate() {
            folded[i % period] += scalar(*s);
        }
        let points: Vec<G1Projective> = some.iter().map(|l| g1_from(l).into()).collect();
        let expected = points.iter().zip(&folded).fold(G1Projective::identity(), |s, (p, k)| s + p * k);

        let plan = MsmPlan::new(Curve::G1, n as u64);
        let (b, s) = (place(&mut gpu, &bases), place(&mut gpu, &scalars));
        let (scratch, results) =
            (gpu.alloc(plan.scratch_bytes() as usize), gpu.alloc(192 * plan.results() as usize));
        let (form, b) = (ScalarForm::Montgomery, b.cast());
        let launches = plan.launches(Ones::Apart, form, s.cast(), b, n as u64, scratch, results);
        gpu.run(&launches);
        let sums = points_of(&mut gpu, &plan, results);
        let sum = plan.fold(&sums, G1Projective::identity(), |p| p.double(), |p, q| p + q);
        assert_eq!(sum, expected, "2^{lg}");
        if timed {
            println!("G1 MSM 2^{lg}: {:.3} ms", gpu.time(&launches));
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
