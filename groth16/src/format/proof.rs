//! Proofs of 192 bytes: A, B, C, each compressed in Zcash's encoding. bellman, bellperson and `ark-groth16`
//! write the same bytes.

use super::cursor::Cursor;
use super::error::{FileKind, FormatError};
use super::point::{Encoding, Point};
use crate::proof::Proof;

/// Reads a proof. Each point is on the curve, in the subgroup and in its one encoding.
///
/// # Errors
///
/// [`FormatError::Content`] names the point that is wrong, or the length.
pub fn read(bytes: &[u8]) -> Result<Proof, FormatError> {
    let mut cursor = Cursor::new(FileKind::ProofBytes, "proof", 0, bytes);
    cursor.expect_length(Proof::COMPRESSED_BYTES as u64)?;
    Ok(Proof { a: point(&mut cursor, "A")?, b: point(&mut cursor, "B")?, c: point(&mut cursor, "C")? })
}

fn point<P: Point>(cursor: &mut Cursor<'_>, section: &'static str) -> Result<P, FormatError> {
    cursor.enter(section);
    let at = cursor.clone();
    let bytes = cursor.take(Encoding::Compressed.size::<P>() as u64)?;
    Encoding::Compressed.decode(bytes).map_err(|fault| at.fail(fault))
}

/// The 192 bytes of a proof.
#[must_use]
pub fn to_bytes(proof: &Proof) -> [u8; Proof::COMPRESSED_BYTES] {
    let mut bytes = [0; Proof::COMPRESSED_BYTES];
    bytes[..48].copy_from_slice(&proof.a.to_compressed());
    bytes[48..144].copy_from_slice(&proof.b.to_compressed());
    bytes[144..].copy_from_slice(&proof.c.to_compressed());
    bytes
}
