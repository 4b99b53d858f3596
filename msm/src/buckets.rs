//! Sums into buckets by affine additions that share their inversions.
//!
//! Each bucket is a slot for at most one point. A point that arrives at an empty slot stays there; at an occupied
//! slot the two leave together as a *pair*. When a batch of pairs is full, one inversion serves them all
//! (Montgomery's trick) and the sums arrive at their slots like new points. So
//!
//! - an addition costs 5M + 1S and 1/[`Field::BATCH`] of an inversion, where mixed XYZZ addition costs 8M + 2S;
//! - n points into b buckets take n − b additions, however they are spread: a bucket that everything falls into
//!   is summed as a tree, with full batches, like any other;
//! - memory does not depend on n.
//!
//! Equal points double and opposite points vanish when the pair is formed, so no denominator is ever zero.

use crate::field::Field;
use crate::scratch::{Arena, Size};

/// An affine point, not infinity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point<F> {
    pub(crate) x: F,
    pub(crate) y: F,
}

/// Two points on their way to their sum: λ = num/den, x₃ = λ² − x_sum, y₃ = λ(x − x₃) − y.
#[derive(Clone, Copy, Debug)]
struct Pair<F> {
    /// One of the points; later the sum.
    point: Point<F>,
    x_sum: F,
    num: F,
    den: F,
    /// Product of the denominators before this one.
    prefix: F,
    slot: usize,
}

/// Slots with what they hold and the batch of pairs under way.
#[derive(Debug)]
pub(crate) struct Buckets<'s, F> {
    points: &'s mut [Point<F>],
    occupied: &'s mut [bool],
    pairs: &'s mut [Pair<F>],
    /// Pairs in the batch.
    len: usize,
    /// Product of their denominators.
    product: F,
    additions: u64,
}

impl<'s, F: Field> Buckets<'s, F> {
    /// What `slots` slots and their batch take.
    pub(crate) const fn size(slots: usize) -> Size {
        Size::ZERO.and::<Point<F>>(slots).and::<bool>(slots).and::<Pair<F>>(F::BATCH)
    }

    /// `slots` empty slots; `None` when the arena is too small.
    pub(crate) fn new(arena: &mut Arena<'s>, slots: usize) -> Option<Self> {
        let zero = Point { x: F::ZERO, y: F::ZERO };
        let pair = Pair { point: zero, x_sum: F::ZERO, num: F::ZERO, den: F::ZERO, prefix: F::ZERO, slot: 0 };
        Some(Self {
            points: arena.take(slots, zero)?,
            occupied: arena.take(slots, false)?,
            pairs: arena.take(F::BATCH, pair)?,
            len: 0,
            product: F::ONE,
            additions: 0,
        })
    }

    /// Additions so far.
    pub(crate) const fn additions(&self) -> u64 {
        self.additions
    }

    /// Adds a point to a slot.
    #[inline]
    pub(crate) fn add(&mut self, slot: usize, point: Point<F>) {
        self.arrive(slot, point);
        while self.len == self.pairs.len() {
            self.add_pairs();
        }
    }

    /// Completes all sums: afterwards each slot holds its own.
    pub(crate) fn settle(&mut self) {
        while self.len > 0 {
            self.add_pairs();
        }
    }

    /// The settled sum of a slot; `None` at infinity.
    pub(crate) fn get(&self, slot: usize) -> Option<Point<F>> {
        if self.occupied[slot] { Some(self.points[slot]) } else { None }
    }

    /// Empties all slots.
    pub(crate) fn clear(&mut self) {
        self.occupied.fill(false);
    }

    #[inline]
    fn arrive(&mut self, slot: usize, point: Point<F>) {
        if self.occupied[slot] {
            self.occupied[slot] = false;
            self.pair(slot, point);
        } else {
            self.points[slot] = point;
            self.occupied[slot] = true;
        }
    }

    /// Puts the slot's point and this one into the batch.
    #[inline]
    fn pair(&mut self, slot: usize, b: Point<F>) {
        let a = self.points[slot];
        let mut den = b.x.sub(&a.x);
        let mut num = b.y.sub(&a.y);
        if den.is_zero() {
            if !num.is_zero() || a.y.is_zero() {
                return;
            }
            let xx = a.x.square();
            num = xx.add(&xx).add(&xx);
            den = a.y.add(&a.y);
        }
        let pair = &mut self.pairs[self.len];
        pair.point = a;
        pair.x_sum = a.x.add(&b.x);
        pair.num = num;
        pair.den = den;
        pair.prefix = self.product;
        pair.slot = slot;
        self.product = self.product.mul(&den);
        self.len += 1;
        self.additions += 1;
    }

    /// Adds the pairs of the batch and sends the sums to their slots.
    fn add_pairs(&mut self) {
        let len = std::mem::take(&mut self.len);
        let mut inverse = std::mem::replace(&mut self.product, F::ONE).invert();
        for pair in self.pairs[..len].iter_mut().rev() {
            let lambda = pair.num.mul(&inverse.mul(&pair.prefix));
            inverse = inverse.mul(&pair.den);
            let x = lambda.square().sub(&pair.x_sum);
            let y = lambda.mul(&pair.point.x.sub(&x)).sub(&pair.point.y);
            pair.point = Point { x, y };
        }
        // A sum forms at most one new pair, so the batch never overtakes the sums still to be read.
        for i in 0..len {
            let Pair { slot, point, .. } = self.pairs[i];
            self.arrive(slot, point);
        }
    }
}
