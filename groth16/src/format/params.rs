//! Parameter files of bellman and bellperson, and of the ceremonies that used them.
//!
//! α1 β1 β2 γ2 δ1 δ2, then with u32 counts IC, H, L, A, B1, B2. Everything is big-endian, points are
//! uncompressed. Infinity is never written: it is left out of A, B1 and B2, and only the constraint system
//! tells which wires the points belong to. Ceremonies append a transcript, which is tolerated and reported.

use std::io;
use std::sync::Arc;

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

use super::cursor::Cursor;
use super::error::{FileKind, FormatError};
use super::point::{Encoding, Point, PointChecks};
use super::query::{Run, finite_point};
use super::{Loaded, Note};
use crate::density::Density;
use crate::key::{Libsnark, ProvingKey, ProvingKeyParts, Query, VerifyingKey, libsnark_domain};
use crate::r1cs::R1cs;
use crate::shape::{ShapeError, expect_count};

const KIND: FileKind = FileKind::Params;
const ENCODING: Encoding = Encoding::Uncompressed;

/// The content of a parameter file, before it is known which wires the points of A and B belong to.
#[derive(Clone, Debug)]
pub struct Params {
    /// The verifying key, with β and δ in G1.
    pub vk: VerifyingKey,
    /// β in G1.
    pub beta_g1: G1Affine,
    /// δ in G1.
    pub delta_g1: G1Affine,
    /// The quotient's points, one fewer than the domain has rows.
    pub h: Arc<[G1Affine]>,
    /// One point per private wire.
    pub l: Arc<[G1Affine]>,
    /// The points of A that are not at infinity, public wires first.
    pub a: Arc<[G1Affine]>,
    /// The points of B in G1 that are not at infinity.
    pub b_g1: Arc<[G1Affine]>,
    /// The points of B in G2 that are not at infinity.
    pub b_g2: Arc<[G2Affine]>,
}

impl Params {
    /// Joins the parameters with the circuit that they were made for.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] when the counts show that they were made for another one.
    pub fn with_r1cs(self, r1cs: &R1cs) -> Result<ProvingKey<Libsnark>, ShapeError> {
        let key = self.with_densities(r1cs.density_a(), r1cs.density_b())?;
        key.fits(r1cs)?;
        Ok(key)
    }

    /// Joins the parameters with the wires that A and B name, over all wires of the circuit.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] when the counts do not agree with them.
    pub fn with_densities(self, a: Density, b: Density) -> Result<ProvingKey<Libsnark>, ShapeError> {
        let b = Arc::new(b);
        expect_count("points of A in the parameters", a.count() as u64, self.a.len() as u64)?;
        expect_count("points of B1 in the parameters", b.count() as u64, self.b_g1.len() as u64)?;
        expect_count("points of B2 in the parameters", b.count() as u64, self.b_g2.len() as u64)?;
        let l = Arc::new(Density::full(self.l.len()));
        ProvingKey::new(ProvingKeyParts {
            vk: self.vk,
            beta_g1: self.beta_g1,
            delta_g1: self.delta_g1,
            domain_size: libsnark_domain(&self.h)?,
            a: Query::new(self.a, Arc::new(a))?,
            b_g1: Query::new(self.b_g1, Arc::clone(&b))?,
            b_g2: Query::new(self.b_g2, b)?,
            l: Query::new(self.l, l)?,
            h: self.h,
            rows: (),
        })
    }
}

/// Reads a parameter file.
///
/// # Errors
///
/// [`FormatError::Content`] names the query, the index and the offset of the first thing that is wrong.
pub fn read(bytes: &[u8], checks: PointChecks) -> Result<Loaded<Params>, FormatError> {
    let mut cursor = Cursor::new(KIND, "header", 0, bytes);
    let (vk, beta_g1, delta_g1) = head(&mut cursor)?;
    // All lengths are walked before the first long query is decoded: a file that lies fails at once.
    let h = run::<G1Affine>(&mut cursor, "H", checks)?;
    let l = run::<G1Affine>(&mut cursor, "L", checks)?;
    let a = run::<G1Affine>(&mut cursor, "A", checks)?;
    let b_g1 = run::<G1Affine>(&mut cursor, "B1", checks)?;
    let b_g2 = run::<G2Affine>(&mut cursor, "B2", checks)?;
    let params = Params {
        vk,
        beta_g1,
        delta_g1,
        h: h.finite()?,
        l: l.finite()?,
        a: a.finite()?,
        b_g1: b_g1.finite()?,
        b_g2: b_g2.finite()?,
    };
    let mut loaded = Loaded::new(params);
    if cursor.remaining() != 0 {
        loaded.notes.push(Note::Trailing { offset: cursor.offset(), bytes: cursor.remaining() });
    }
    Ok(loaded)
}

/// Reads the verifying key that a parameter file begins with, always with full checks.
///
/// # Errors
///
/// As [`read`].
pub fn read_verifying_key(bytes: &[u8]) -> Result<VerifyingKey, FormatError> {
    head(&mut Cursor::new(KIND, "header", 0, bytes)).map(|(vk, _, _)| vk)
}

/// The verifying key, and β and δ in G1.
fn head(cursor: &mut Cursor<'_>) -> Result<(VerifyingKey, G1Affine, G1Affine), FormatError> {
    let alpha_g1 = finite_point(cursor, "alpha in G1", ENCODING)?;
    let beta_g1 = finite_point(cursor, "beta in G1", ENCODING)?;
    let beta_g2 = finite_point(cursor, "beta in G2", ENCODING)?;
    let gamma_g2 = finite_point(cursor, "gamma in G2", ENCODING)?;
    let delta_g1 = finite_point(cursor, "delta in G1", ENCODING)?;
    let delta_g2 = finite_point(cursor, "delta in G2", ENCODING)?;
    let ic = run::<G1Affine>(cursor, "IC", PointChecks::Full)?.finite()?;
    if ic.is_empty() {
        return Err(cursor.fail(ShapeError::Count { what: "points in IC, at least", expected: 1, got: 0 }));
    }
    let (beta, delta) = (Some(beta_g1), Some(delta_g1));
    let vk = VerifyingKey { alpha_g1, beta_g1: beta, beta_g2, gamma_g2, delta_g1: delta, delta_g2, ic };
    Ok((vk, beta_g1, delta_g1))
}

fn run<'a, P: Point>(
    cursor: &mut Cursor<'a>,
    section: &'static str,
    checks: PointChecks,
) -> Result<Run<'a>, FormatError> {
    cursor.enter(section);
    let n = cursor.u32_be()?;
    Run::take::<P>(cursor, n.into(), ENCODING, checks)
}

/// Writes a key as a parameter file.
///
/// # Errors
///
/// [`FormatError::NotRepresentable`] when a point at infinity stands where this format can leave none out
/// (IC, H, L), or a query has more than 2^32 − 1 points. The inner result is what `w` says.
pub fn write(w: &mut dyn io::Write, key: &ProvingKey<Libsnark>) -> Result<io::Result<()>, FormatError> {
    let refuse = |reason: &str| Err(FormatError::NotRepresentable { kind: KIND, reason: reason.into() });
    let l = key.l().density();
    if let Some(private) = (0..l.len()).find(|i| !l.get(*i)) {
        return refuse(&format!(
            "no constraint names its private wire {}; take the wire out of the circuit (or make a .zkey with snarkjs, \
             which can hold it)",
            private + key.n_public() + 1
        ));
    }
    if key.vk().ic.iter().chain(key.h().iter()).any(|p| p.is_identity().into()) {
        return refuse("a point of IC or H is at infinity");
    }
    let queries = [&key.vk().ic, key.h(), key.l().points(), key.a().points(), key.b_g1().points()];
    let longest = queries.iter().map(|q| q.len()).chain([key.b_g2().points().len()]).max();
    if longest.is_some_and(|n| u32::try_from(n).is_err()) {
        return refuse("a query has more points than a 32-bit count can say");
    }
    Ok(write_points(w, key, &queries))
}

fn write_points(
    w: &mut dyn io::Write,
    key: &ProvingKey<Libsnark>,
    g1_queries: &[&Arc<[G1Affine]>],
) -> io::Result<()> {
    let vk = key.vk();
    w.write_all(&vk.alpha_g1.to_uncompressed())?;
    w.write_all(&key.beta_g1().to_uncompressed())?;
    w.write_all(&vk.beta_g2.to_uncompressed())?;
    w.write_all(&vk.gamma_g2.to_uncompressed())?;
    w.write_all(&key.delta_g1().to_uncompressed())?;
    w.write_all(&vk.delta_g2.to_uncompressed())?;
    let count = |n: usize| u32::try_from(n).map(u32::to_be_bytes).map_err(io::Error::other);
    for query in g1_queries {
        w.write_all(&count(query.len())?)?;
        for point in query.iter() {
            w.write_all(&point.to_uncompressed())?;
        }
    }
    let query = key.b_g2().points();
    w.write_all(&count(query.len())?)?;
    for point in query.iter() {
        w.write_all(&point.to_uncompressed())?;
    }
    Ok(())
}
