//! snarkjs proving keys, version 1.
//!
//! | section | holds |
//! |---|---|
//! | 1 | u32 protocol: 1 is Groth16 |
//! | 2 | `u32 48, q, u32 32, r, u32 nVars, u32 nPublic, u32 domain`, α1 β1 β2 γ2 δ1 δ2 |
//! | 3 | IC, nPublic + 1 points of G1 |
//! | 4 | u32 count, then records `u32 matrix (0 A, 1 B), u32 row, u32 wire, value[32]` |
//! | 5, 6, 7 | A, B1 in G1 and B2 in G2, nVars points each |
//! | 8 | L, nVars − nPublic − 1 points of G1 |
//! | 9 | H, one point of G1 per row of the domain |
//! | 10 | the circuit's hash and the contributions; not read |
//!
//! Points are in Montgomery form, as blst has them in memory; infinity is zeros. The values of section 4 are
//! `c·R²` with R = 2^256, so that one Montgomery product with a canonical word gives a Montgomery result.

use std::borrow::Cow;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::{Field, PrimeField};

use super::container::Container;
use super::cursor::Cursor;
use super::error::{Fault, FileKind, FormatError};
use super::field::{self, SCALAR};
use super::point::{Encoding, Point, PointChecks};
use super::query::{Run, finite_point};
use crate::key::{Circom, ProvingKey, ProvingKeyParts, Rows, VerifyingKey};
use crate::matrix::MatrixScatter;

const MAGIC: &str = "zkey";
const VERSION: u32 = 1;
const GROTH16: u32 = 1;
/// Bytes of a record of section 4.
const RECORD: u64 = 44;
const ENCODING: Encoding = Encoding::Montgomery;

fn section_name(id: u32) -> &'static str {
    match id {
        1 => "section 1 (protocol)",
        2 => "section 2 (header)",
        3 => "section 3 (IC)",
        4 => "section 4 (coefficients)",
        5 => "section 5 (A)",
        6 => "section 6 (B1)",
        7 => "section 7 (B2)",
        8 => "section 8 (L)",
        9 => "section 9 (H)",
        10 => "section 10 (contributions)",
        _ => "unknown section",
    }
}

struct Header {
    n_vars: u32,
    n_public: u32,
    domain_size: u32,
    alpha_g1: G1Affine,
    beta_g1: G1Affine,
    beta_g2: G2Affine,
    gamma_g2: G2Affine,
    delta_g1: G1Affine,
    delta_g2: G2Affine,
}

/// Reads a proving key.
///
/// # Errors
///
/// [`FormatError::Content`] names the section, the index and the offset of the first thing that is wrong.
pub fn read(bytes: &[u8], checks: PointChecks) -> Result<ProvingKey<Circom>, FormatError> {
    let file = container(bytes)?;
    let header = header(&file)?;
    // Every count is held against the length of its section before anything of its size is allocated.
    let (n_vars, n_fixed) = (u64::from(header.n_vars), u64::from(header.n_public) + 1);
    let a = points::<G1Affine>(&file, 5, n_vars, checks)?;
    let b_g1 = points::<G1Affine>(&file, 6, n_vars, checks)?;
    let b_g2 = points::<G2Affine>(&file, 7, n_vars, checks)?;
    let l = points::<G1Affine>(&file, 8, n_vars - n_fixed, checks)?;
    let h = points::<G1Affine>(&file, 9, header.domain_size.into(), checks)?;
    let parts = ProvingKeyParts {
        vk: verifying_key(&file, &header)?,
        beta_g1: header.beta_g1,
        delta_g1: header.delta_g1,
        domain_size: header.domain_size.into(),
        rows: rows(&file, &header)?,
        a: a.query()?,
        b_g1: b_g1.query()?,
        b_g2: b_g2.query()?,
        l: l.query()?,
        h: h.all()?,
    };
    ProvingKey::new(parts).map_err(|e| fail_header(&file, e))
}

/// Reads the verifying key that a proving key holds, always with full checks.
///
/// # Errors
///
/// As [`read`].
pub fn read_verifying_key(bytes: &[u8]) -> Result<VerifyingKey, FormatError> {
    let file = container(bytes)?;
    verifying_key(&file, &header(&file)?)
}

fn container(bytes: &[u8]) -> Result<Container<'_>, FormatError> {
    Container::parse(FileKind::Zkey, bytes, MAGIC, VERSION, section_name)
}

fn fail_header(file: &Container<'_>, fault: impl Into<Fault>) -> FormatError {
    match file.section(2) {
        Ok(cursor) => cursor.fail(fault),
        Err(e) => e,
    }
}

fn header(file: &Container<'_>) -> Result<Header, FormatError> {
    let mut protocol = file.section(1)?;
    let start = protocol.clone();
    let got = protocol.u32_le()?;
    if got != GROTH16 {
        let got = match got {
            2 => Cow::from("PLONK (2)"),
            10 => Cow::from("FFLONK (10)"),
            other => format!("number {other}").into(),
        };
        return Err(start.fail(Fault::Protocol { got }));
    }
    protocol.end()?;

    let mut cursor = file.section(2)?;
    field::read_prime(&mut cursor, &field::q_bytes())?;
    field::read_prime(&mut cursor, &field::r_bytes())?;
    let counts = cursor.clone();
    let (n_vars, n_public, domain_size) = (cursor.u32_le()?, cursor.u32_le()?, cursor.u32_le()?);
    if n_public >= n_vars {
        let fault =
            Fault::OutOfRange { what: "number of public wires", got: n_public.into(), limit: n_vars.into() };
        return Err(counts.fail(fault));
    }
    if !domain_size.is_power_of_two() {
        return Err(counts.fail(crate::ShapeError::Domain { size: domain_size.into() }));
    }
    let header = Header {
        n_vars,
        n_public,
        domain_size,
        alpha_g1: finite_point(&mut cursor, "section 2 (alpha in G1)", ENCODING)?,
        beta_g1: finite_point(&mut cursor, "section 2 (beta in G1)", ENCODING)?,
        beta_g2: finite_point(&mut cursor, "section 2 (beta in G2)", ENCODING)?,
        gamma_g2: finite_point(&mut cursor, "section 2 (gamma in G2)", ENCODING)?,
        delta_g1: finite_point(&mut cursor, "section 2 (delta in G1)", ENCODING)?,
        delta_g2: finite_point(&mut cursor, "section 2 (delta in G2)", ENCODING)?,
    };
    cursor.end()?;
    Ok(header)
}

fn verifying_key(file: &Container<'_>, header: &Header) -> Result<VerifyingKey, FormatError> {
    let ic = points::<G1Affine>(file, 3, u64::from(header.n_public) + 1, PointChecks::Full)?;
    Ok(VerifyingKey {
        alpha_g1: header.alpha_g1,
        beta_g1: Some(header.beta_g1),
        beta_g2: header.beta_g2,
        gamma_g2: header.gamma_g2,
        delta_g1: Some(header.delta_g1),
        delta_g2: header.delta_g2,
        ic: ic.all()?,
    })
}

/// The points of a section that holds `n` of them and nothing else.
fn points<'a, P: Point>(
    file: &Container<'a>,
    id: u32,
    n: u64,
    checks: PointChecks,
) -> Result<Run<'a>, FormatError> {
    let mut cursor = file.section(id)?;
    cursor.expect_items("points", n, ENCODING.size::<P>() as u64)?;
    Run::take::<P>(&mut cursor, n, ENCODING, checks)
}

/// A term of A or B as section 4 has it.
struct Record {
    in_b: bool,
    row: usize,
    wire: u32,
    /// The coefficient times R².
    value: Scalar,
}

/// Section 4 as two matrices. Its records come in any order, so one pass counts the terms of each row and a
/// second places them.
fn rows(file: &Container<'_>, header: &Header) -> Result<Rows, FormatError> {
    let mut cursor = file.section(4)?;
    let count = u64::from(cursor.u32_le()?);
    cursor.expect_items("coefficients", count, RECORD)?;
    let domain = header.domain_size as usize;
    let mut lengths = [vec![0u32; domain], vec![0u32; domain]];
    let start = cursor.clone();
    for index in 0..count {
        let record = record(&mut cursor, index, header)?;
        // At most 2^32 − 1 records, so no row counts further.
        lengths[usize::from(record.in_b)][record.row] += 1;
    }
    let mut matrices = lengths.map(|lengths| MatrixScatter::new(&lengths, header.n_vars));
    let mut cursor = start;
    let unscale = inverse_of_r_squared();
    for index in 0..count {
        let at = cursor.clone();
        let record = record(&mut cursor, index, header)?;
        matrices[usize::from(record.in_b)]
            .place(record.row, record.wire, record.value * unscale)
            .map_err(|e| at.fail(e))?;
    }
    let [a, b] = matrices.map(MatrixScatter::finish);
    Ok(Rows { a, b })
}

/// `R^-2` for R = 2^256: takes the values of section 4 to the coefficients that they stand for.
fn inverse_of_r_squared() -> Scalar {
    let half: Scalar = Scalar::TWO_INV;
    half.pow_vartime([2 * 256])
}

fn record(cursor: &mut Cursor<'_>, index: u64, header: &Header) -> Result<Record, FormatError> {
    let start = cursor.clone();
    let fail = |fault| start.fail_at(Some(index), start.offset(), fault);
    let below = |what, got: u32, limit: u32| {
        if got < limit {
            Ok(got)
        } else {
            Err(fail(Fault::OutOfRange { what, got: got.into(), limit: limit.into() }))
        }
    };
    let matrix = below("matrix", cursor.u32_le()?, 2)?;
    let row = below("row", cursor.u32_le()?, header.domain_size)?;
    let wire = below("wire", cursor.u32_le()?, header.n_vars)?;
    let value = field::scalar(cursor.array::<SCALAR>()?).map_err(fail)?;
    Ok(Record { in_b: matrix == 1, row: row as usize, wire, value })
}
