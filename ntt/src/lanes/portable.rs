//! Eight lanes one after the other on 64-bit limbs; every value is kept below `2r`.

use std::array::from_fn;

use blstrs::Scalar;

use super::{LANES, Lanes};
use crate::field::{self, Limbs};
use crate::tables::Words;
use crate::tile::{Fused, Pass, Pointwise, Tile};

/// Eight residues below `2r` in Montgomery form.
#[derive(Clone, Copy)]
pub(crate) struct Portable([Limbs; LANES]);

impl Portable {
    #[inline(always)]
    fn map(self, f: impl Fn(&Limbs) -> Limbs) -> Self {
        Self(from_fn(|l| f(&self.0[l])))
    }

    #[inline(always)]
    fn zip(self, other: &Self, f: impl Fn(&Limbs, &Limbs) -> Limbs) -> Self {
        Self(from_fn(|l| f(&self.0[l], &other.0[l])))
    }
}

// SAFETY: vectors of words in an array.
unsafe impl Words for Portable {}

// SAFETY: no instruction beyond the target's baseline is used.
unsafe impl Lanes for Portable {
    type Factor = Limbs;

    #[inline(always)]
    fn factor(x: &Scalar) -> Limbs {
        field::limbs(x)
    }

    #[inline(always)]
    fn multipliers(x: &[Scalar; LANES]) -> Self {
        Self(from_fn(|l| field::limbs(&x[l])))
    }

    #[inline(always)]
    unsafe fn load(p: *const Scalar, stride: usize) -> Self {
        // SAFETY: the caller says that the eight places are readable; `Scalar` is `repr(transparent)`
        // over `blst_fr`, which is four limbs.
        Self(from_fn(|l| unsafe { p.add(l * stride).cast::<Limbs>().read() }))
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut Scalar, stride: usize) {
        for (l, x) in self.0.into_iter().enumerate() {
            // SAFETY: the caller says that the eight places are writable; layout as in `load`.
            unsafe { p.add(l * stride).cast::<Limbs>().write(x) }
        }
    }

    #[inline(always)]
    fn settle(self) -> Self {
        self
    }

    #[inline(always)]
    fn canonical(self) -> Self {
        self.map(field::reduce)
    }

    #[inline(always)]
    fn mul(self, f: &Limbs) -> Self {
        self.map(|x| field::mul(x, f))
    }

    #[inline(always)]
    fn multiplier(self) -> Self {
        self.canonical()
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        self.mul_each(&other)
    }

    #[inline(always)]
    fn mul_each(self, m: &Self) -> Self {
        self.zip(m, field::mul)
    }

    #[inline(always)]
    fn mul_lane(self, m: &Self, lane: usize) -> Self {
        self.mul(&m.0[lane])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(&other, field::add)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(&other, field::sub)
    }

    #[inline(always)]
    fn sub_twice(self, other: Self) -> Self {
        self.sub(other)
    }

    unsafe fn pass(pass: &Pass<'_, Self>, tile: Tile, scratch: &mut [Self]) {
        // SAFETY: passed on from the caller.
        unsafe { pass.body(tile, scratch) }
    }

    unsafe fn fused(fused: &Fused<'_, Self>, tile: Tile, scratch: &mut [Self]) {
        // SAFETY: passed on from the caller.
        unsafe { fused.body(tile, scratch) }
    }

    unsafe fn pointwise(op: &Pointwise<Self>, at: usize, a: *mut Scalar, b: *const Scalar, c: *const Scalar) {
        // SAFETY: passed on from the caller.
        unsafe { op.body(at, a, b, c) }
    }
}
