//! How large a proof is, from counts alone: what a planner needs and no file has to be read for.

use prestage_vram::Bytes;

use crate::key::{ProvingKey, Reduction};
use crate::shape::ShapeError;

/// Bytes of a scalar.
const SCALAR: u64 = 32;
/// Bytes of an affine point of G1 in memory.
const G1: u64 = 96;
/// Bytes of an affine point of G2 in memory.
const G2: u64 = 192;

/// The counts that decide what a proof costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of the constraint system, those of the one and of the public inputs included.
    pub rows: u64,
    /// Rows of the evaluation domain, a power of two of at least `rows`.
    pub domain: u64,
    /// Points of the H query.
    pub h: u64,
    /// Points of the L query.
    pub l: u64,
    /// Points of the A query.
    pub a: u64,
    /// Points of the B query in G1.
    pub b_g1: u64,
    /// Points of the B query in G2.
    pub b_g2: u64,
}

/// Counts of an assignment as bellman-like provers keep them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Rows of the constraint system, those of the inputs included.
    pub rows: u64,
    /// Inputs, the one included. Each has a point in A.
    pub inputs: u64,
    /// Auxiliary variables.
    pub aux: u64,
    /// Auxiliary variables that A names.
    pub a_aux: u64,
    /// Inputs that B names.
    pub b_input: u64,
    /// Auxiliary variables that B names.
    pub b_aux: u64,
}

impl Counts {
    /// One partition of a 32 GiB proof of replication (Filecoin), the largest circuit that this is proved with daily.
    pub const POREP_32G: Self = Self {
        rows: 130_278_869,
        inputs: 328,
        aux: 130_169_893,
        a_aux: 129_753_292,
        b_input: 1,
        b_aux: 33_112_281,
    };
}

impl Shape {
    /// The shape of a circuit with these counts under keys of the reduction `R`.
    ///
    /// # Errors
    /// [`ShapeError::Domain`] above 2^32 rows.
    pub fn new<R: Reduction>(counts: &Counts) -> Result<Self, ShapeError> {
        let domain = counts
            .rows
            .checked_next_power_of_two()
            .filter(|m| *m <= 1 << 32)
            .ok_or(ShapeError::Domain { size: counts.rows })?;
        Ok(Self {
            rows: counts.rows,
            domain,
            h: R::h_len(domain),
            l: counts.aux,
            a: counts.inputs + counts.a_aux,
            b_g1: counts.b_input + counts.b_aux,
            b_g2: counts.b_input + counts.b_aux,
        })
    }

    /// The shape of proofs under `key`. A key does not say how many of its domain's rows are used: all count.
    #[must_use]
    pub fn of_key<R: Reduction>(key: &ProvingKey<R>) -> Self {
        Self {
            rows: key.domain_size(),
            domain: key.domain_size(),
            h: key.h().len() as u64,
            l: key.l().points().len() as u64,
            a: key.a().points().len() as u64,
            b_g1: key.b_g1().points().len() as u64,
            b_g2: key.b_g2().points().len() as u64,
        }
    }

    /// Bytes of one polynomial: n of the plans' formulas.
    #[must_use]
    pub const fn polynomial(&self) -> Bytes {
        Bytes::new(self.domain * SCALAR)
    }

    /// Rows of the domain past the last constraint, which are zero in a, b and c.
    #[must_use]
    pub const fn padding(&self) -> u64 {
        self.domain - self.rows
    }

    /// Bytes of the key's points in memory: H, L, A, B in G1, B in G2.
    #[must_use]
    pub const fn key_bytes(&self) -> [Bytes; 5] {
        [
            Bytes::new(self.h * G1),
            Bytes::new(self.l * G1),
            Bytes::new(self.a * G1),
            Bytes::new(self.b_g1 * G1),
            Bytes::new(self.b_g2 * G2),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Libsnark;

    #[test]
    fn l1_sizes_of_the_porep_shape() {
        let shape = Shape::new::<Libsnark>(&Counts::POREP_32G).unwrap();
        assert_eq!(shape.domain, 134_217_728);
        assert_eq!(shape.polynomial(), Bytes::new(4_294_967_296));
        assert_eq!(shape.padding(), 3_938_859);
        let gib = shape.key_bytes().map(|b| format!("{:.2}", b.as_gib()));
        assert_eq!(gib, ["12.00", "11.64", "11.60", "2.96", "5.92"]);
    }

    #[test]
    fn a_domain_past_the_last_root_of_unity_is_refused() {
        let counts = Counts { rows: (1 << 32) + 1, ..Counts::POREP_32G };
        assert_eq!(Shape::new::<Libsnark>(&counts), Err(ShapeError::Domain { size: (1 << 32) + 1 }));
        let counts = Counts { rows: u64::MAX, ..counts };
        assert_eq!(Shape::new::<Libsnark>(&counts), Err(ShapeError::Domain { size: u64::MAX }));
    }
}
