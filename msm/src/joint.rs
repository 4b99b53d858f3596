//! One sum by several devices: its terms are given out in pieces, and what comes of them is added up on the host.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use group::Group;

use crate::Affine;

/// A sum that several devices compute together. Each takes the next piece when it is free, so that a device does as much of the
/// sum as it is fast, and what a device fails at is there for the others again.
///
/// The sum is the same, however its terms are divided. It allocates nothing and waits for nobody.
///
/// ```
/// use blstrs::{G1Affine, Scalar};
/// use group::prime::PrimeCurveAffine;
/// use prestage_msm::{Joint, msm};
///
/// let (bases, scalars) = (vec![G1Affine::generator(); 1000], vec![Scalar::from(3); 1000]);
/// let joint = Joint::<G1Affine>::new(bases.len());
/// std::thread::scope(|scope| {
///     for most in [100, 300] {
///         let (joint, bases, scalars) = (&joint, &bases, &scalars);
///         scope.spawn(move || {
///             while let Some(piece) = joint.take(most) {
///                 let terms = piece.terms();
///                 let sum = msm(&bases[terms.clone()], &scalars[terms]).expect("as many bases as scalars");
///                 piece.done(sum);
///             }
///         });
///     }
/// });
/// assert_eq!(joint.sum(), Some(G1Affine::generator() * Scalar::from(3000)));
/// ```
pub struct Joint<A: Affine>(Mutex<State<A>>);

struct State<A: Affine> {
    /// Terms that nobody has taken, the next last. No range is empty.
    waiting: Vec<Range<usize>>,
    /// Terms that are not in the sum yet.
    left: usize,
    sum: A::Curve,
}

impl<A: Affine> Joint<A> {
    /// A sum of `len` terms.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let waiting = Some(0..len).filter(|all| !all.is_empty()).into_iter().collect();
        Self(Mutex::new(State { waiting, left: len, sum: A::Curve::identity() }))
    }

    /// The next terms that nobody has, at most `most` of them (0 counts as 1). `None` when all have been taken, which is not to
    /// say that all have been summed.
    #[must_use]
    pub fn take(&self, most: usize) -> Option<Piece<'_, A>> {
        let mut state = self.lock();
        let Range { start, end } = state.waiting.pop()?;
        let cut = end.min(start.saturating_add(most.max(1)));
        if cut < end {
            state.waiting.push(cut..end);
        }
        Some(Piece { joint: self, terms: start..cut })
    }

    /// Whether there are terms to take.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// The sum, once every term is in it.
    #[must_use]
    pub fn sum(&self) -> Option<A::Curve> {
        let state = self.lock();
        (state.left == 0).then_some(state.sum)
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A: Affine> fmt::Debug for Joint<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joint")
            .field("group", &A::NAME)
            .field("left", &self.lock().left)
            .finish_non_exhaustive()
    }
}

/// Terms that somebody sums. When it is dropped before they are [`Piece::done`], they wait for the next who asks.
#[must_use = "say what came of it: `done`"]
pub struct Piece<'j, A: Affine> {
    joint: &'j Joint<A>,
    /// Empty once they are done.
    terms: Range<usize>,
}

impl<A: Affine> Piece<'_, A> {
    /// Which terms.
    #[must_use]
    pub fn terms(&self) -> Range<usize> {
        self.terms.clone()
    }

    /// Adds their sum.
    pub fn done(mut self, sum: A::Curve) {
        let terms = std::mem::take(&mut self.terms);
        let mut state = self.joint.lock();
        state.left -= terms.len();
        state.sum += sum;
    }
}

impl<A: Affine> Drop for Piece<'_, A> {
    fn drop(&mut self) {
        if !self.terms.is_empty() {
            self.joint.lock().waiting.push(self.terms.clone());
        }
    }
}

impl<A: Affine> fmt::Debug for Piece<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece").field("group", &A::NAME).field("terms", &self.terms).finish()
    }
}
