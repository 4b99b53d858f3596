//! circom constraint systems, version 1.
//! <https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md> describes it, with some fields
//! mislabelled; the files agree on this:
//!
//! | section | holds |
//! |---|---|
//! | 1 | `u32 32, r, u32 nWires, nPubOut, nPubIn, nPrvIn, u64 nLabels, u32 nConstraints` |
//! | 2 | per constraint A, B, C: `u32 n`, then n times `u32 wire, value[32]`, canonical |
//! | 3 | nWires labels of u64; not read |
//! | 4, 5 | custom gates declared and used: `u32 count`, …; refused unless the count is 0 |

use blstrs::Scalar;
use ff::PrimeField;

use super::container::{self, Container};
use super::cursor::Cursor;
use super::error::{Fault, FileKind, FormatError};
use super::field::{self, SCALAR};
use crate::r1cs::R1cs;

const MAGIC: &str = "r1cs";
const VERSION: u32 = 1;
/// Bytes of a term: wire and value.
const TERM: u64 = 4 + SCALAR as u64;

fn section_name(id: u32) -> &'static str {
    match id {
        1 => "section 1 (header)",
        2 => "section 2 (constraints)",
        3 => "section 3 (labels)",
        4 => "section 4 (custom gates)",
        5 => "section 5 (uses of custom gates)",
        _ => "unknown section",
    }
}

/// Reads a constraint system.
///
/// # Errors
///
/// [`FormatError::Content`]: not such a file, another field, custom gates, a wire that does not exist, a
/// coefficient not below r, or a length that lies. Errors in the constraints carry the constraint's number.
pub fn read(bytes: &[u8]) -> Result<R1cs, FormatError> {
    let file = Container::parse(FileKind::R1cs, bytes, MAGIC, VERSION, section_name)?;
    let mut header = file.section(1)?;
    field::read_prime(&mut header, &field::r_bytes())?;
    let counts = header.clone();
    let n_wires = header.u32_le()?;
    let (n_outputs, n_inputs, n_private) = (header.u32_le()?, header.u32_le()?, header.u32_le()?);
    header.u64_le()?;
    let n_constraints = header.u32_le()?;
    header.end()?;
    for id in [4, 5] {
        refuse_custom_gates(file.find(id))?;
    }
    // A wire costs a label of 8 bytes, or at least a term: a file cannot have more wires than bytes.
    let (named, limit) =
        (u64::from(n_outputs) + u64::from(n_inputs) + u64::from(n_private), bytes.len() as u64);
    if u64::from(n_wires) > limit {
        return Err(counts.fail(Fault::OutOfRange { what: "number of wires", got: n_wires.into(), limit }));
    }
    if named >= u64::from(n_wires) {
        let what = "number of outputs and inputs";
        return Err(counts.fail(Fault::OutOfRange { what, got: named, limit: n_wires.into() }));
    }
    let mut r1cs = R1cs::builder(n_wires, n_outputs + n_inputs).map_err(|e| counts.fail(e))?;
    r1cs.outputs(n_outputs).map_err(|e| counts.fail(e))?;
    let mut cursor = file.section(2)?;
    for constraint in 0..u64::from(n_constraints) {
        for matrix in r1cs.matrices() {
            let at = cursor.clone();
            let n = u64::from(cursor.u32_le()?);
            let mut terms = cursor.clone();
            let available = cursor.remaining();
            cursor.take(n * TERM).map_err(|_| {
                at.fail_at(Some(constraint), at.offset(), Fault::Truncated { needed: n * TERM, available })
            })?;
            for _ in 0..n {
                let at = terms.clone();
                let fail = |fault: Fault| at.fail_at(Some(constraint), at.offset(), fault);
                let wire = terms.u32_le()?;
                let value = field::scalar(terms.array::<SCALAR>()?).map_err(fail)?;
                matrix.term(wire, value).map_err(|e| fail(e.into()))?;
            }
            matrix.end_row();
        }
    }
    cursor.end()?;
    Ok(r1cs.finish())
}

/// circom writes both sections, empty, when the circuit uses none.
fn refuse_custom_gates(section: Option<Cursor<'_>>) -> Result<(), FormatError> {
    let Some(mut cursor) = section.filter(|s| s.remaining() != 0) else { return Ok(()) };
    let start = cursor.clone();
    match cursor.u32_le()? {
        0 => cursor.end(),
        count => Err(start.fail(Fault::CustomGates { count })),
    }
}

/// Writes a constraint system, with labels equal to the wires' numbers.
///
/// # Errors
///
/// Whatever `w` says, and more than 2^32 − 1 constraints or terms in one.
pub fn write(w: &mut dyn std::io::Write, r1cs: &R1cs) -> std::io::Result<()> {
    let n_inputs = r1cs.n_public() - r1cs.n_outputs();
    let n_constraints = u32::try_from(r1cs.n_constraints()).map_err(std::io::Error::other)?;
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(field::r_bytes());
    for count in [r1cs.n_wires(), r1cs.n_outputs(), n_inputs, 0] {
        header.extend(count.to_le_bytes());
    }
    header.extend(u64::from(r1cs.n_wires()).to_le_bytes());
    header.extend(n_constraints.to_le_bytes());
    let mut constraints = Vec::new();
    for i in 0..r1cs.n_constraints() {
        for matrix in [r1cs.a(), r1cs.b(), r1cs.c()] {
            let row = matrix.row(i);
            constraints.extend(u32::try_from(row.len()).map_err(std::io::Error::other)?.to_le_bytes());
            for (wire, value) in row {
                constraints.extend(wire.to_le_bytes());
                constraints.extend(Scalar::to_repr(&value));
            }
        }
    }
    let labels = (0..u64::from(r1cs.n_wires())).flat_map(u64::to_le_bytes).collect();
    container::write(w, MAGIC, VERSION, &[(1, header), (2, constraints), (3, labels)])
}
