//! Eight lanes at once with AVX-512 IFMA, on five limbs of 52 bits (radix `2^260`).
//!
//! `vpmadd52luq` / `vpmadd52huq` add the low or high 52 bits of a 52x52-bit product to a 64-bit
//! accumulator, eight lanes at a time. A product costs 100 of them, about 60 clocks for eight lanes
//! where two such units exist.
//!
//! **Form.** Memory holds `x 2^256 mod r`. A multiplier is kept as `m 2^260 mod r`, and the
//! reduction divides by `2^260`, so data keeps its factor `2^256` and loading is only a cut into
//! limbs.
//!
//! **Range.** `2^260 > 35 r`. For `x < 35r` and a multiplier below `1.07 r` a product is below
//! `35 * 1.07 r^2 / 2^260 + r < 2.07 r / 2 + r`; the operands that occur (`x < 27r`) give less than
//! `1.9 r`. Limbs are signed 64-bit numbers that may exceed 52 bits until [`Ifma::carry`]: a product
//! leaves limbs below `21 * 2^52`, and eleven additions of such keep them below `2^60`.

use std::arch::x86_64::*;

use blstrs::Scalar;
use ff::Field;

use super::{LANES, Lanes};
use crate::field::{self, Limbs};
use crate::tables::Words;
use crate::tile::{Fused, Pass, Pointwise, Tile};

const MASK: u64 = (1 << 52) - 1;

/// Five limbs of 52 bits of a number below `2^256`.
const fn cut(x: Limbs) -> [u64; 5] {
    [
        x[0] & MASK,
        (x[0] >> 52 | x[1] << 12) & MASK,
        (x[1] >> 40 | x[2] << 24) & MASK,
        (x[2] >> 28 | x[3] << 36) & MASK,
        x[3] >> 16,
    ]
}

const R: [u64; 5] = cut(field::R);
const TWICE_R: [u64; 5] = cut(field::R2);
/// `2^260 - r`: adding it subtracts r modulo `2^260`.
const MINUS_R: [u64; 5] = [(1 << 52) - R[0], MASK - R[1], MASK - R[2], MASK - R[3], MASK - R[4]];
/// `-1/r mod 2^52`: since `r = 1 - 2^32 mod 2^52`, it is `-(1 + 2^32)`.
const DIGIT: u64 = (1 << 52) - (1 << 32) - 1;
/// `2^98 / (top limb of r + 1)`, below `2^52`: see [`Ifma::settle`].
#[allow(clippy::cast_possible_truncation)] // Below 2^52.
const QUOTIENT: u64 = ((1u128 << 98) / (R[4] as u128 + 1)) as u64;

/// Five expressions, one per limb. No closure: code outside the functions that enable AVX-512 must not be
/// left to the inliner's judgement.
macro_rules! each {
    ($j:ident => $e:expr) => {
        [
            { const $j: usize = 0; $e },
            { const $j: usize = 1; $e },
            { const $j: usize = 2; $e },
            { const $j: usize = 3; $e },
            { const $j: usize = 4; $e },
        ]
    };
}

/// The factor 16: `2^264 mod r`.
const SIXTEEN: [u64; 5] =
    [0x0_0234_ffff_fdcb, 0x6_1039_ef63_5000, 0xd_ce3c_3e2e_7505, 0x7_fa6f_1563_642b, 0x0_247d_b575_276a];

/// Limb by limb, eight lanes each.
#[derive(Clone, Copy)]
pub(crate) struct Ifma([__m512i; 5]);

/// The place within a vector of the element loaded as lane `l`.
const PLACE: [usize; LANES] = [0, 2, 1, 3, 4, 6, 5, 7];

macro_rules! op {
    ($f:ident($($x:expr),*)) => {
        // SAFETY: the implementation is only named once the processor is known to have AVX-512F and
        // IFMA (see `Lanes`); the intrinsic touches registers only.
        unsafe { $f($($x),*) }
    };
    ($f:ident::<$n:literal>($($x:expr),*)) => {
        // SAFETY: as above.
        unsafe { $f::<$n>($($x),*) }
    };
}

#[inline(always)]
fn all(x: u64) -> __m512i {
    op!(_mm512_set1_epi64(x.cast_signed()))
}

#[inline(always)]
fn add(a: __m512i, b: __m512i) -> __m512i {
    op!(_mm512_add_epi64(a, b))
}

#[inline(always)]
fn or(a: __m512i, b: __m512i) -> __m512i {
    op!(_mm512_or_si512(a, b))
}

#[inline(always)]
fn low52(a: __m512i) -> __m512i {
    op!(_mm512_and_si512(a, all(MASK)))
}

#[inline(always)]
fn shl<const N: u32>(a: __m512i) -> __m512i {
    // SAFETY: as in `op`.
    unsafe { _mm512_slli_epi64::<N>(a) }
}

#[inline(always)]
fn shr<const N: u32>(a: __m512i) -> __m512i {
    // SAFETY: as in `op`.
    unsafe { _mm512_srli_epi64::<N>(a) }
}

impl Ifma {
    /// Propagates carries: limbs below `2^52` (the last takes what remains). The value is not negative.
    #[inline(always)]
    fn carry(self) -> Self {
        let [mut a, mut b, mut c, mut d, mut e] = self.0;
        b = add(b, op!(_mm512_srai_epi64::<52>(a)));
        a = low52(a);
        c = add(c, op!(_mm512_srai_epi64::<52>(b)));
        b = low52(b);
        d = add(d, op!(_mm512_srai_epi64::<52>(c)));
        c = low52(c);
        e = add(e, op!(_mm512_srai_epi64::<52>(d)));
        d = low52(d);
        Self([a, b, c, d, e])
    }

    /// Montgomery product of carried operands.
    #[inline(always)]
    fn product_of(x: &[__m512i; 5], y: &[__m512i; 5]) -> Self {
        let zero = op!(_mm512_setzero_si512());
        let mut t = [zero; 5];
        for &d in y {
            let low: [__m512i; 5] = each!(J => op!(_mm512_madd52lo_epu64(t[J], x[J], d)));
            let q = op!(_mm512_madd52lo_epu64(zero, low[0], all(DIGIT)));
            let low: [__m512i; 5] = each!(J => op!(_mm512_madd52lo_epu64(low[J], q, all(R[J]))));
            // The low limb is zero modulo 2^52; its upper bits move to the next, and all shift down.
            let down = [add(low[1], shr::<52>(low[0])), low[2], low[3], low[4], zero];
            let high: [__m512i; 5] = each!(J => op!(_mm512_madd52hi_epu64(down[J], x[J], d)));
            t = each!(J => op!(_mm512_madd52hi_epu64(high[J], q, all(R[J]))));
        }
        Self(t)
    }

    /// Cuts eight numbers of four words into limbs.
    #[inline(always)]
    fn from_words(w: [__m512i; 4]) -> Self {
        Self([
            low52(w[0]),
            low52(or(shr::<52>(w[0]), shl::<12>(w[1]))),
            low52(or(shr::<40>(w[1]), shl::<24>(w[2]))),
            low52(or(shr::<28>(w[2]), shl::<36>(w[3]))),
            shr::<16>(w[3]),
        ])
    }

    /// Joins carried limbs of numbers below `2^256` into four words.
    #[inline(always)]
    fn into_words(self) -> [__m512i; 4] {
        let l = self.0;
        [
            or(l[0], shl::<52>(l[1])),
            or(shr::<12>(l[1]), shl::<40>(l[2])),
            or(shr::<24>(l[2]), shl::<28>(l[3])),
            or(shr::<36>(l[3]), shl::<16>(l[4])),
        ]
    }
}

// SAFETY: vectors of words in an array.
unsafe impl Words for Ifma {}

// SAFETY: named only where the processor has AVX-512F and IFMA.
unsafe impl Lanes for Ifma {
    type Factor = [u64; 5];

    #[inline(always)]
    fn factor(x: &Scalar) -> [u64; 5] {
        // 16 x in Montgomery form is x 2^260.
        cut(field::limbs(&x.double().double().double().double()))
    }

    #[inline(always)]
    fn multipliers(x: &[Scalar; LANES]) -> Self {
        let scaled = x.map(|x| x.double().double().double().double());
        // SAFETY: the array holds eight elements next to each other.
        unsafe { Self::load(scaled.as_ptr(), 1) }
    }

    #[inline(always)]
    unsafe fn load(p: *const Scalar, stride: usize) -> Self {
        // Pairs of elements, two per vector: [e0 | e1], [e2 | e3], [e4 | e5], [e6 | e7].
        let mut z = [op!(_mm512_setzero_si512()); 4];
        for (i, z) in z.iter_mut().enumerate() {
            // SAFETY: the caller says that the eight places are readable; each is four words.
            *z = unsafe {
                if stride == 1 {
                    _mm512_loadu_si512(p.add(2 * i).cast())
                } else {
                    let even = _mm256_loadu_si256(p.add(2 * i * stride).cast());
                    let odd = _mm256_loadu_si256(p.add((2 * i + 1) * stride).cast());
                    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(even), odd)
                }
            };
        }
        // Word 0 and 2 of the elements interleaved, and word 1 and 3.
        let (t0, t1) = (op!(_mm512_unpacklo_epi64(z[0], z[1])), op!(_mm512_unpackhi_epi64(z[0], z[1])));
        let (u0, u1) = (op!(_mm512_unpacklo_epi64(z[2], z[3])), op!(_mm512_unpackhi_epi64(z[2], z[3])));
        Self::from_words([
            op!(_mm512_shuffle_i64x2::<0x88>(t0, u0)),
            op!(_mm512_shuffle_i64x2::<0x88>(t1, u1)),
            op!(_mm512_shuffle_i64x2::<0xdd>(t0, u0)),
            op!(_mm512_shuffle_i64x2::<0xdd>(t1, u1)),
        ])
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut Scalar, stride: usize) {
        let w = self.carry().into_words();
        let even = [op!(_mm512_unpacklo_epi64(w[0], w[1])), op!(_mm512_unpacklo_epi64(w[2], w[3]))];
        let odd = [op!(_mm512_unpackhi_epi64(w[0], w[1])), op!(_mm512_unpackhi_epi64(w[2], w[3]))];
        let first = op!(_mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0));
        let second = op!(_mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4));
        let z = [
            op!(_mm512_permutex2var_epi64(even[0], first, even[1])),
            op!(_mm512_permutex2var_epi64(odd[0], first, odd[1])),
            op!(_mm512_permutex2var_epi64(even[0], second, even[1])),
            op!(_mm512_permutex2var_epi64(odd[0], second, odd[1])),
        ];
        for (i, z) in z.into_iter().enumerate() {
            // SAFETY: the caller says that the eight places are writable; each is four words.
            unsafe {
                if stride == 1 {
                    _mm512_storeu_si512(p.add(2 * i).cast(), z);
                } else {
                    _mm256_storeu_si256(p.add(2 * i * stride).cast(), _mm512_castsi512_si256(z));
                    let high = _mm512_extracti64x4_epi64::<1>(z);
                    _mm256_storeu_si256(p.add((2 * i + 1) * stride).cast(), high);
                }
            }
        }
    }

    /// Barrett with the top limb alone: `q = floor(top / (top of r + 1))` is the true quotient or one
    /// less, because the quotient is below 35.
    #[inline(always)]
    fn settle(self) -> Self {
        let x = self.carry().0;
        let zero = op!(_mm512_setzero_si512());
        // QUOTIENT top / 2^52 = top 2^46 / (top of r + 1).
        let q = shr::<46>(op!(_mm512_madd52hi_epu64(zero, x[4], all(QUOTIENT))));
        let low: [__m512i; 5] = each!(J => op!(_mm512_madd52lo_epu64(x[J], q, all(MINUS_R[J]))));
        let mut l = [low[0]; 5];
        for j in 1..5 {
            l[j] = op!(_mm512_madd52hi_epu64(low[j], q, all(MINUS_R[j - 1])));
        }
        let mut y = Self(l).carry();
        y.0[4] = low52(y.0[4]);
        y
    }

    #[inline(always)]
    fn canonical(self) -> Self {
        let x = self.carry();
        let y = Self(each!(J => add(x.0[J], all(MINUS_R[J])))).carry();
        // x + 2^260 - r reaches 2^260 exactly when x >= r.
        let above = op!(_mm512_test_epi64_mask(y.0[4], all(1 << 52)));
        Self(each!(J => low52(op!(_mm512_mask_blend_epi64(above, x.0[J], y.0[J])))))
    }

    #[inline(always)]
    fn mul(self, f: &[u64; 5]) -> Self {
        Self::product_of(&self.carry().0, &each!(J => all(f[J])))
    }

    #[inline(always)]
    fn multiplier(self) -> Self {
        self.carry()
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        // Two values have a factor 2^512, of which the reduction takes 2^260: 16 is missing.
        self.mul_each(&other).mul(&SIXTEEN)
    }

    #[inline(always)]
    fn mul_each(self, m: &Self) -> Self {
        Self::product_of(&self.carry().0, &m.0)
    }

    #[inline(always)]
    fn mul_lane(self, m: &Self, lane: usize) -> Self {
        let place = all(PLACE[lane & 7] as u64);
        let m = each!(J => op!(_mm512_permutexvar_epi64(place, m.0[J])));
        Self::product_of(&self.carry().0, &m)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(each!(J => add(self.0[J], other.0[J])))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(each!(J => add(op!(_mm512_sub_epi64(self.0[J], other.0[J])), all(TWICE_R[J]))))
    }

    #[inline(always)]
    fn sub_twice(self, other: Self) -> Self {
        Self(each!(J => add(op!(_mm512_sub_epi64(self.0[J], other.0[J])), all(2 * TWICE_R[J]))))
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn pass(pass: &Pass<'_, Self>, tile: Tile, scratch: &mut [Self]) {
        // SAFETY: passed on from the caller.
        unsafe { pass.body(tile, scratch) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn fused(fused: &Fused<'_, Self>, tile: Tile, scratch: &mut [Self]) {
        // SAFETY: passed on from the caller.
        unsafe { fused.body(tile, scratch) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    unsafe fn pointwise(op: &Pointwise<Self>, at: usize, a: *mut Scalar, b: *const Scalar, c: *const Scalar) {
        // SAFETY: passed on from the caller.
        unsafe { op.body(at, a, b, c) }
    }
}
