//! A query: the points of a proving key that belong to wires.

use std::convert::Infallible;
use std::sync::Arc;

use group::prime::PrimeCurveAffine;

use crate::density::Density;
use crate::shape::{ShapeError, expect_count};

/// Points of a proving key, one per wire of its density map, in the order of the wires; points at infinity
/// are left out. `Σ w_i·P_i` is the multi-scalar multiplication of `points` with `density.gather(w)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query<P> {
    points: Arc<[P]>,
    density: Arc<Density>,
}

impl<P> Query<P> {
    /// Joins points with the wires that they belong to.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when there are more or fewer points than wires set in the map.
    pub fn new(points: Arc<[P]>, density: Arc<Density>) -> Result<Self, ShapeError> {
        expect_count("points for the wires of a query", density.count() as u64, points.len() as u64)?;
        Ok(Self { points, density })
    }

    /// The points, none of them needed to be at infinity.
    #[must_use]
    pub fn points(&self) -> &Arc<[P]> {
        &self.points
    }

    /// The wires that the points belong to.
    #[must_use]
    pub fn density(&self) -> &Arc<Density> {
        &self.density
    }

    /// Lets two queries of equal density share one map.
    pub(crate) fn share_density<Q>(&mut self, other: &Query<Q>) {
        if self.density == other.density {
            self.density = Arc::clone(&other.density);
        }
    }
}

impl<P: PrimeCurveAffine + Send + Sync> Query<P> {
    /// Takes one point per wire and leaves out those at infinity.
    #[must_use]
    pub fn from_wires(points: &[P]) -> Self {
        let present = |i: usize| !bool::from(points[i].is_identity());
        match Self::try_from_fn(points.len(), present, |i| Ok::<_, Infallible>(points[i])) {
            Ok(query) => query,
        }
    }

    /// For `len` wires, takes `point(i)` where `present(i)`. Both run in parallel, into memory that is
    /// allocated once at its final size. The error is that of the first wire that has one.
    pub(crate) fn try_from_fn<E: Send>(
        len: usize,
        present: impl Fn(usize) -> bool + Sync,
        point: impl Fn(usize) -> Result<P, E> + Sync,
    ) -> Result<Self, (usize, E)> {
        let density = Density::from_fn(len, present);
        let mut points: Arc<[P]> = std::iter::repeat_n(P::identity(), density.count()).collect();
        let slots = Arc::get_mut(&mut points).unwrap_or_default();
        density.try_fill(slots, |slot, i| point(i).map(|point| *slot = point).map_err(|e| (i, e)))?;
        Ok(Self { points, density: Arc::new(density) })
    }
}
