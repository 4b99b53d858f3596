//! Runs of encoded points, decoded and tested in parallel.

use std::sync::Arc;

use rayon::prelude::*;

use super::cursor::Cursor;
use super::error::{Fault, FormatError};
use super::point::{Encoding, Point, PointChecks};
use super::subgroup::first_outside;
use crate::key::Query;

/// Points per piece of parallel work.
const PIECE: usize = 64;

/// A run of points of one encoding.
pub(crate) struct Run<'a> {
    /// For errors: where the first point is.
    cursor: Cursor<'a>,
    bytes: &'a [u8],
    encoding: Encoding,
    checks: PointChecks,
}

impl<'a> Run<'a> {
    /// Takes `n` points off the cursor.
    pub(crate) fn take<P: Point>(
        cursor: &mut Cursor<'a>,
        n: u64,
        encoding: Encoding,
        checks: PointChecks,
    ) -> Result<Self, FormatError> {
        let at = cursor.clone();
        // A u64 count of points whose bytes overflow a u64 is refused as too long by `take`.
        let bytes = cursor.take(n.saturating_mul(encoding.size::<P>() as u64))?;
        Ok(Self { cursor: at, bytes, encoding, checks })
    }

    fn at<P: Point>(&self, i: usize) -> &'a [u8] {
        let size = self.encoding.size::<P>();
        &self.bytes[i * size..(i + 1) * size]
    }

    fn len<P: Point>(&self) -> usize {
        self.bytes.len() / self.encoding.size::<P>()
    }

    fn fail<P: Point>(&self, (index, fault): (usize, Fault)) -> FormatError {
        let offset = self.cursor.offset() + (index * self.encoding.size::<P>()) as u64;
        self.cursor.fail_at(Some(index as u64), offset, fault)
    }

    /// A point that may still be outside the subgroup.
    fn decode<P: Point>(&self, i: usize) -> Result<P, Fault> {
        let point: P = self.encoding.decode_untested(self.at::<P>(i))?;
        let believed = self.checks == PointChecks::Unchecked;
        if believed || point.on_curve() { Ok(point) } else { Err(Fault::OffCurve) }
    }

    /// The first point outside the subgroup, unless points are believed.
    fn first_outside<P: Point>(&self, points: &[P]) -> Option<usize> {
        if self.checks == PointChecks::Unchecked { None } else { first_outside(points) }
    }

    /// All points, infinities in their places.
    pub(crate) fn all<P: Point>(&self) -> Result<Arc<[P]>, FormatError> {
        self.decode_all(|i| self.decode(i))
    }

    /// All points, none of them at infinity.
    pub(crate) fn finite<P: Point>(&self) -> Result<Arc<[P]>, FormatError> {
        self.decode_all(|i| {
            if self.encoding.is_infinity(self.at::<P>(i)) { Err(Fault::Infinity) } else { self.decode(i) }
        })
    }

    fn decode_all<P: Point>(
        &self,
        decode: impl Fn(usize) -> Result<P, Fault> + Sync,
    ) -> Result<Arc<[P]>, FormatError> {
        let mut points: Arc<[P]> = std::iter::repeat_n(P::identity(), self.len::<P>()).collect();
        let slots = Arc::get_mut(&mut points).unwrap_or_default();
        let failed =
            slots.par_iter_mut().with_min_len(PIECE).enumerate().find_map_first(|(i, slot)| {
                decode(i).map(|point| *slot = point).err().map(|fault| (i, fault))
            });
        match failed.or_else(|| self.first_outside(&points).map(|i| (i, Fault::Subgroup))) {
            Some(at) => Err(self.fail::<P>(at)),
            None => Ok(points),
        }
    }

    /// One point per wire; those at infinity are left out.
    pub(crate) fn query<P: Point>(&self) -> Result<Query<P>, FormatError> {
        let present = |i| !self.encoding.is_infinity(self.at::<P>(i));
        let query = Query::try_from_fn(self.len::<P>(), present, |i| self.decode(i))
            .map_err(|at| self.fail::<P>(at))?;
        match self.first_outside(query.points()) {
            Some(i) => {
                let wire = query.density().ones().nth(i).unwrap_or(i);
                Err(self.fail::<P>((wire, Fault::Subgroup)))
            }
            None => Ok(query),
        }
    }
}

/// Takes one point that must not be at infinity. `name` is the section that an error will say.
pub(crate) fn finite_point<P: Point>(
    cursor: &mut Cursor<'_>,
    name: &'static str,
    encoding: Encoding,
) -> Result<P, FormatError> {
    cursor.enter(name);
    let at = cursor.clone();
    let bytes = cursor.take(encoding.size::<P>() as u64)?;
    encoding.decode_finite(bytes).map_err(|fault| at.fail(fault))
}
