//! Sums over points whose logarithms are known.

use std::ptr;

use super::{Fr8, cast, g1_limbs, g2_limbs, machine::*, random_scalar};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::Group;
use prestage_kernels::Launch;
use prestage_kernels::msm::{Form, Ones, Plan};

/// Points repeat after so many.
const PERIOD: usize = 1 << 16;

/// A curve whose points the kernels add up.
pub trait Known: Group<Scalar = Scalar> {
    /// Points in the kernels' layout.
    fn bytes(points: &[Self]) -> Vec<u8>;
    const AFFINE: usize;
}
impl Known for G1Projective {
    fn bytes(points: &[Self]) -> Vec<u8> {
        let mut affine = vec![G1Affine::default(); points.len()];
        <Self as group::Curve>::batch_normalize(points, &mut affine);
        affine.iter().flat_map(|p| bytes_of(&g1_limbs(p)).to_vec()).collect()
    }
    const AFFINE: usize = 96;
}
impl Known for G2Projective {
    fn bytes(points: &[Self]) -> Vec<u8> {
        let mut affine = vec![G2Affine::default(); points.len()];
        <Self as group::Curve>::batch_normalize(points, &mut affine);
        affine.iter().flat_map(|p| bytes_of(&g2_limbs(p)).to_vec()).collect()
    }
    const AFFINE: usize = 192;
}

/// A canonical element of Fr from a seed, fast.
pub fn random_limbs(seed: u64) -> Fr8 {
    let words: [u64; 4] = std::array::from_fn(|k| {
        let mut z = (seed * 4 + k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    });
    // r is above 0x73ed·2^240.
    cast(&[words[0], words[1], words[2], words[3] % 0x73ed_0000_0000_0000])
}

/// n points and scalars in memory of the device, and their sum.
pub struct KnownSum<C> {
    n: usize,
    bases: *mut u8,
    scalars: *mut Fr8,
    pub expected: C,
}

impl<C: Known> KnownSum<C> {
    pub fn place(gpu: &mut Gpu, n: usize, scalars: &[Fr8]) -> Self {
        let (first, step) = (random_scalar(4), random_scalar(5));
        let (mut point, add) = (C::generator() * first, C::generator() * step);
        let points: Vec<C> = (0..PERIOD.min(n))
            .map(|_| {
                let own = point;
                point += add;
                own
            })
            .collect();
        let some = C::bytes(&points);
        let bases = gpu.alloc(C::AFFINE * n);
        gpu.write(bases, &some);
        gpu.repeat(bases, some.len(), C::AFFINE * n);
        let mut folded = vec![Scalar::ZERO; points.len()];
        for (i, s) in scalars.iter().enumerate() {
            folded[i % points.len()] += cast::<Fr8, Scalar>(s);
        }
        let mut log = Scalar::ZERO;
        let mut own = first;
        for s in folded {
            log += s * own;
            own += step;
        }
        Self { n, bases, scalars: place(gpu, scalars), expected: C::generator() * log }
    }

    /// The launches, and where their results will be.
    pub fn launches(&self, gpu: &mut Gpu, plan: &Plan, ones: Ones) -> (Vec<Launch>, *mut u8) {
        let scratch = gpu.alloc(plan.scratch_bytes() as usize);
        let out = gpu.alloc(4 * size_of::<C>() * plan.results() as usize);
        let n = self.n as u64;
        let form = Form::Montgomery;
        (plan.launches(ones, form, self.scalars.cast(), self.bases, n, scratch, out), out)
    }

    /// The sum from the results.
    pub fn fold(gpu: &mut Gpu, plan: &Plan, results: *mut u8) -> C {
        let bytes = size_of::<C>() * plan.results() as usize;
        let out = gpu.alloc(bytes);
        gpu.launch(&plan.to_jacobian(results, out));
        let bytes = gpu.read(out, bytes);
        // SAFETY: blstrs' projective points are blst's, three coordinates in Montgomery form.
        let point = |p: &[u8]| unsafe { ptr::read_unaligned(p.as_ptr().cast::<C>()) };
        let points: Vec<C> = bytes.chunks_exact(size_of::<C>()).map(point).collect();
        plan.fold(&points, C::identity(), |p| p.double(), |p, q| p + q)
    }

    pub fn run(&self, gpu: &mut Gpu, plan: &Plan, ones: Ones) -> C {
        let (launches, out) = self.launches(gpu, plan, ones);
        gpu.run(&launches);
        Self::fold(gpu, plan, out)
    }
}
