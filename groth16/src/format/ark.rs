//! Keys of `ark-groth16`, as `CanonicalSerialize` writes them, compressed or not.
//!
//! The verifying key is α1 β2 γ2 δ2 IC; a proving key continues with β1 δ1 A B1 B2 H L. Counts are u64,
//! little-endian; points have Zcash's encoding; infinities are kept. Which of the two encodings a file uses
//! shows in its first bit.

use blstrs::{G1Affine, G2Affine};

use super::cursor::Cursor;
use super::error::{FileKind, FormatError};
use super::point::{Encoding, Point, PointChecks};
use super::query::{Run, finite_point};
use crate::key::{Libsnark, ProvingKey, ProvingKeyParts, VerifyingKey, libsnark_domain};
use crate::shape::ShapeError;

/// Reads a proving key.
///
/// # Errors
///
/// [`FormatError::Content`] names the query, the index and the offset of the first thing that is wrong.
pub fn read(bytes: &[u8], checks: PointChecks) -> Result<ProvingKey<Libsnark>, FormatError> {
    let (mut cursor, encoding) = start(FileKind::ArkProvingKey, bytes);
    let vk = verifying_key(&mut cursor, encoding)?;
    let beta_g1 = finite_point(&mut cursor, "beta in G1", encoding)?;
    let delta_g1 = finite_point(&mut cursor, "delta in G1", encoding)?;
    let a = run::<G1Affine>(&mut cursor, "A", encoding, checks)?;
    let b_g1 = run::<G1Affine>(&mut cursor, "B1", encoding, checks)?;
    let b_g2 = run::<G2Affine>(&mut cursor, "B2", encoding, checks)?;
    cursor.enter("H");
    let h_at = cursor.clone();
    let h = run::<G1Affine>(&mut cursor, "H", encoding, checks)?;
    let l = run::<G1Affine>(&mut cursor, "L", encoding, checks)?;
    cursor.end()?;
    let h = h.all::<G1Affine>()?;
    let parts = ProvingKeyParts {
        vk: VerifyingKey { beta_g1: Some(beta_g1), delta_g1: Some(delta_g1), ..vk },
        beta_g1,
        delta_g1,
        domain_size: libsnark_domain(&h).map_err(|e| h_at.fail(e))?,
        a: a.query()?,
        b_g1: b_g1.query()?,
        b_g2: b_g2.query()?,
        l: l.query()?,
        h,
        rows: (),
    };
    cursor.enter("counts");
    ProvingKey::new(parts).map_err(|e| cursor.fail(e))
}

/// Reads a verifying key, always with full checks.
///
/// # Errors
///
/// As [`read`]. Nothing may follow it; for the key in a proving key see [`read`] and [`ProvingKey::vk`].
pub fn read_verifying_key(bytes: &[u8]) -> Result<VerifyingKey, FormatError> {
    let (mut cursor, encoding) = start(FileKind::ArkVerifyingKey, bytes);
    let vk = verifying_key(&mut cursor, encoding)?;
    cursor.end()?;
    Ok(vk)
}

fn start(kind: FileKind, bytes: &[u8]) -> (Cursor<'_>, Encoding) {
    let compressed = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let encoding = if compressed { Encoding::Compressed } else { Encoding::Uncompressed };
    (Cursor::new(kind, "alpha in G1", 0, bytes), encoding)
}

fn verifying_key(cursor: &mut Cursor<'_>, encoding: Encoding) -> Result<VerifyingKey, FormatError> {
    let alpha_g1 = finite_point(cursor, "alpha in G1", encoding)?;
    let beta_g2 = finite_point(cursor, "beta in G2", encoding)?;
    let gamma_g2 = finite_point(cursor, "gamma in G2", encoding)?;
    let delta_g2 = finite_point(cursor, "delta in G2", encoding)?;
    let ic = run::<G1Affine>(cursor, "IC", encoding, PointChecks::Full)?.all()?;
    if ic.is_empty() {
        return Err(cursor.fail(ShapeError::Count { what: "points in IC, at least", expected: 1, got: 0 }));
    }
    Ok(VerifyingKey { alpha_g1, beta_g1: None, beta_g2, gamma_g2, delta_g1: None, delta_g2, ic })
}

fn run<'a, P: Point>(
    cursor: &mut Cursor<'a>,
    section: &'static str,
    encoding: Encoding,
    checks: PointChecks,
) -> Result<Run<'a>, FormatError> {
    cursor.enter(section);
    let n = cursor.u64_le()?;
    Run::take::<P>(cursor, n, encoding, checks)
}
