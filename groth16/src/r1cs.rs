//! The constraint system and its witness.

use std::fmt;
use std::sync::OnceLock;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::density::Density;
use crate::matrix::{Matrix, MatrixBuilder};
use crate::shape::{ShapeError, expect_count};

/// A rank-1 constraint system over the scalar field of BLS12-381: rows `⟨A_i, w⟩ · ⟨B_i, w⟩ = ⟨C_i, w⟩`.
///
/// Wires are ordered as every file here has them: the constant one, the public outputs, the public inputs,
/// then the private wires. `n_public` counts outputs and inputs together, without the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs {
    n_wires: u32,
    n_outputs: u32,
    n_public: u32,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    named: Named,
}

/// The wires that A and B name, once someone has asked: it follows from the matrices, so any two are equal.
#[derive(Clone, Debug, Default)]
struct Named(OnceLock<[Density; 2]>);

impl PartialEq for Named {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Named {}

impl R1cs {
    /// Starts a system of `n_wires` wires of which the `n_public` after the first are public.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when there is no room for the one and the public wires.
    pub fn builder(n_wires: u32, n_public: u32) -> Result<R1csBuilder, ShapeError> {
        if n_public >= n_wires {
            let expected = u64::from(n_public) + 1;
            return Err(ShapeError::Count {
                what: "wires for one and the public ones, at least",
                expected,
                got: n_wires.into(),
            });
        }
        let matrix = || MatrixBuilder::new(n_wires);
        Ok(R1csBuilder { n_wires, n_outputs: 0, n_public, a: matrix(), b: matrix(), c: matrix() })
    }

    /// The constraints of `pieces`, one piece after another: parts of a large system can be built on as many threads.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] without a piece, or unless all have the same wires; [`ShapeError::Coefficients`].
    pub fn joined(pieces: Vec<R1csBuilder>) -> Result<Self, ShapeError> {
        let Some(&R1csBuilder { n_wires, n_outputs, n_public, .. }) = pieces.first() else {
            return Err(ShapeError::Count { what: "pieces of a system, at least", expected: 1, got: 0 });
        };
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces {
            expect_count("public wires of a piece", n_public.into(), piece.n_public.into())?;
            a.push(piece.a);
            b.push(piece.b);
            c.push(piece.c);
        }
        let join = |pieces| MatrixBuilder::join(n_wires, pieces);
        let (a, (b, c)) = rayon::join(|| join(a), || rayon::join(|| join(b), || join(c)));
        Ok(Self { n_wires, n_outputs, n_public, a: a?, b: b?, c: c?, named: Named::default() })
    }

    /// Number of wires, the constant one included.
    #[must_use]
    pub fn n_wires(&self) -> u32 {
        self.n_wires
    }

    /// Number of public wires, outputs and inputs, without the constant one.
    #[must_use]
    pub fn n_public(&self) -> u32 {
        self.n_public
    }

    /// How many of the public wires are outputs; they come first.
    #[must_use]
    pub fn n_outputs(&self) -> u32 {
        self.n_outputs
    }

    /// Number of constraints, without the rows that a key adds for the public wires.
    #[must_use]
    pub fn n_constraints(&self) -> usize {
        self.a.n_rows()
    }

    /// Rows that a key has for this circuit: the constraints, then one for the constant one and for each
    /// public wire (that wire in A, nothing in B and C), which keeps the public columns of A independent.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.n_constraints() as u64 + u64::from(self.n_public) + 1
    }

    /// The evaluation domain: the least power of two that is not less than [`n_rows`](Self::n_rows).
    #[must_use]
    pub fn domain_size(&self) -> u64 {
        self.n_rows().next_power_of_two()
    }

    /// The matrix A, constraints only.
    #[must_use]
    pub fn a(&self) -> &Matrix {
        &self.a
    }

    /// The matrix B, constraints only.
    #[must_use]
    pub fn b(&self) -> &Matrix {
        &self.b
    }

    /// The matrix C, constraints only.
    #[must_use]
    pub fn c(&self) -> &Matrix {
        &self.c
    }

    /// The wires that have a point in the A query: those that A names, and by their own rows the one and the
    /// public wires.
    #[must_use]
    pub fn density_a(&self) -> Density {
        self.named()[0].clone()
    }

    /// The wires that have a point in the B queries: those that B names.
    #[must_use]
    pub fn density_b(&self) -> Density {
        self.named()[1].clone()
    }

    /// Both, looked for once.
    pub(crate) fn named(&self) -> &[Density; 2] {
        self.named.0.get_or_init(|| {
            let n = self.n_wires as usize;
            [self.a.wires_named(n, self.n_public as usize + 1), self.b.wires_named(n, 0)]
        })
    }

    /// The number of the first constraint that the witness does not satisfy, if any.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when the witness has not one value per wire.
    pub fn first_unsatisfied(&self, witness: &Witness) -> Result<Option<usize>, ShapeError> {
        let w = witness.values();
        expect_count("values in the witness", self.n_wires.into(), w.len() as u64)?;
        Ok((0..self.n_constraints())
            .into_par_iter()
            .with_min_len(256)
            .find_first(|&i| self.a.dot(i, w) * self.b.dot(i, w) != self.c.dot(i, w)))
    }
}

/// Builds an [`R1cs`] constraint after constraint.
#[derive(Debug)]
pub struct R1csBuilder {
    n_wires: u32,
    n_outputs: u32,
    n_public: u32,
    a: MatrixBuilder,
    b: MatrixBuilder,
    c: MatrixBuilder,
}

impl R1csBuilder {
    /// Says how many of the public wires are outputs. Only the `.r1cs` header keeps the difference.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when there are more outputs than public wires.
    pub fn outputs(&mut self, n_outputs: u32) -> Result<(), ShapeError> {
        if n_outputs > self.n_public {
            return Err(ShapeError::Count {
                what: "public outputs, at most",
                expected: self.n_public.into(),
                got: n_outputs.into(),
            });
        }
        self.n_outputs = n_outputs;
        Ok(())
    }

    /// Appends the constraint `a · b = c`; each side lists (wire, coefficient).
    ///
    /// # Errors
    ///
    /// [`ShapeError::Wire`] when a wire does not exist; the builder is then of no further use.
    pub fn constraint(
        &mut self,
        a: &[(u32, Scalar)],
        b: &[(u32, Scalar)],
        c: &[(u32, Scalar)],
    ) -> Result<(), ShapeError> {
        for (matrix, terms) in self.matrices().into_iter().zip([a, b, c]) {
            for &(wire, coefficient) in terms {
                matrix.term(wire, coefficient)?;
            }
            matrix.end_row();
        }
        Ok(())
    }

    pub(crate) fn matrices(&mut self) -> [&mut MatrixBuilder; 3] {
        [&mut self.a, &mut self.b, &mut self.c]
    }

    /// The system of the constraints so far.
    #[must_use]
    pub fn finish(self) -> R1cs {
        let Self { n_wires, n_outputs, n_public, a, b, c } = self;
        let (a, b, c) = (a.finish(), b.finish(), c.finish());
        R1cs { n_wires, n_outputs, n_public, a, b, c, named: Named::default() }
    }
}

/// A value for every wire; the first is one. Its `Debug` form shows how many, never which.
#[derive(Clone, PartialEq, Eq)]
pub struct Witness(Vec<Scalar>);

impl Witness {
    /// Takes the values of all wires.
    ///
    /// # Errors
    ///
    /// [`ShapeError::FirstWire`] unless the first value is there and is one.
    pub fn new(values: Vec<Scalar>) -> Result<Self, ShapeError> {
        if values.first() != Some(&Scalar::ONE) {
            return Err(ShapeError::FirstWire);
        }
        Ok(Self(values))
    }

    /// The values, wire by wire.
    #[must_use]
    pub fn values(&self) -> &[Scalar] {
        &self.0
    }

    /// The values of the `n_public` public wires, for the verifier.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] when the witness is too short to hold them.
    pub fn public(&self, n_public: u32) -> Result<&[Scalar], ShapeError> {
        self.0.get(1..=n_public as usize).ok_or(ShapeError::Count {
            what: "values in the witness, at least",
            expected: u64::from(n_public) + 1,
            got: self.0.len() as u64,
        })
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("len", &self.0.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x · x = y with y public.
    fn square() -> R1cs {
        let one = Scalar::ONE;
        let mut b = R1cs::builder(3, 1).unwrap();
        b.constraint(&[(2, one)], &[(2, one)], &[(1, one)]).unwrap();
        b.finish()
    }

    fn witness(values: &[u64]) -> Witness {
        Witness::new(values.iter().map(|&v| Scalar::from(v)).collect()).unwrap()
    }

    #[test]
    fn finds_the_first_unsatisfied_row() {
        let r = square();
        assert_eq!(r.first_unsatisfied(&witness(&[1, 9, 3])), Ok(None));
        assert_eq!(r.first_unsatisfied(&witness(&[1, 9, 4])), Ok(Some(0)));
        assert!(r.first_unsatisfied(&witness(&[1, 9])).is_err());
        assert_eq!((r.n_rows(), r.domain_size()), (3, 4));
        assert_eq!(r.density_a().ones().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(r.density_b().ones().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn pieces_join_to_the_whole() {
        let (one, rows) = (Scalar::ONE, 40u32);
        let constraint = |b: &mut R1csBuilder, i: u32| {
            let own = Scalar::from(u64::from(i % 7) + 2);
            b.constraint(
                &[(i, one), (i + 1, own)],
                &[(0, -one)],
                &[(i + 2, own), (1, own), (1, one)][..(i % 3) as usize],
            )
        };
        let build = |range: std::ops::Range<u32>| {
            let mut b = R1cs::builder(rows + 2, 1).unwrap();
            range.for_each(|i| constraint(&mut b, i).unwrap());
            b
        };
        let whole = build(0..rows).finish();
        let pieces = [0..0, 0..11, 11..30, 30..30, 30..rows].map(build);
        let joined = R1cs::joined(pieces.into()).unwrap();
        for (whole, joined) in [(whole.a(), joined.a()), (whole.b(), joined.b()), (whole.c(), joined.c())] {
            assert_eq!((whole.n_rows(), whole.n_terms()), (joined.n_rows(), joined.n_terms()));
            assert!((0..whole.n_rows()).all(|i| whole.row(i).eq(joined.row(i))));
        }
        assert_eq!((joined.n_wires(), joined.n_public()), (rows + 2, 1));
        assert!(R1cs::joined(vec![]).is_err());
        assert!(R1cs::joined(vec![build(0..3), R1cs::builder(5, 1).unwrap()]).is_err());
    }

    #[test]
    fn a_witness_starts_with_one_and_hides_its_values() {
        assert_eq!(Witness::new(vec![]), Err(ShapeError::FirstWire));
        assert_eq!(Witness::new(vec![Scalar::from(2)]), Err(ShapeError::FirstWire));
        let w = witness(&[1, 77, 3]);
        assert!(!format!("{w:?}").contains("77"));
        assert_eq!(w.public(1).unwrap(), [Scalar::from(77)]);
        assert!(w.public(3).is_err());
    }
}
