//! snarkjs witnesses, version 2: section 1 is `u32 32, r, u32 n`, section 2 the n values, canonical and
//! little-endian. The first is 1.

use blstrs::Scalar;
use ff::PrimeField;
use rayon::prelude::*;

use super::container::{self, Container};
use super::error::{FileKind, FormatError};
use super::field::{self, SCALAR};
use crate::r1cs::Witness;

const MAGIC: &str = "wtns";
const VERSION: u32 = 2;

fn section_name(id: u32) -> &'static str {
    match id {
        1 => "section 1 (header)",
        2 => "section 2 (values)",
        _ => "unknown section",
    }
}

/// Reads a witness.
///
/// # Errors
///
/// [`FormatError::Content`]: not such a file, another field, a value not below r, a length that lies, or a
/// first value other than 1.
pub fn read(bytes: &[u8]) -> Result<Witness, FormatError> {
    let file = Container::parse(FileKind::Wtns, bytes, MAGIC, VERSION, section_name)?;
    let mut header = file.section(1)?;
    field::read_prime(&mut header, &field::r_bytes())?;
    let n = u64::from(header.u32_le()?);
    header.end()?;
    let mut cursor = file.section(2)?;
    cursor.expect_items("values", n, SCALAR as u64)?;
    let start = cursor.clone();
    let (chunks, _) = cursor.take(n * SCALAR as u64)?.as_chunks::<SCALAR>();
    let mut values = vec![Scalar::from(0); chunks.len()];
    let failed = values.par_iter_mut().zip(chunks).with_min_len(1024).enumerate().find_map_first(
        |(i, (value, bytes))| field::scalar(bytes).map(|v| *value = v).err().map(|fault| (i as u64, fault)),
    );
    if let Some((i, fault)) = failed {
        return Err(start.fail_at(Some(i), start.offset() + i * SCALAR as u64, fault));
    }
    Witness::new(values).map_err(|e| start.fail_at(Some(0), start.offset(), e))
}

/// Writes a witness.
///
/// # Errors
///
/// Whatever `w` says, and more than 2^32 − 1 values.
pub fn write(w: &mut dyn std::io::Write, witness: &Witness) -> std::io::Result<()> {
    let n = u32::try_from(witness.values().len()).map_err(std::io::Error::other)?;
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(field::r_bytes());
    header.extend(n.to_le_bytes());
    let values = witness.values().iter().flat_map(PrimeField::to_repr).collect();
    container::write(w, MAGIC, VERSION, &[(1, header), (2, values)])
}
