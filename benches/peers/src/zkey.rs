//! Proving keys as snarkjs writes them, for provers that load such files. Points are written as blst has them in
//! memory, and section 10, where a ceremony's contributions are, is left empty.
//!
//! The layout is described in `prestage_groth16::format::zkey`, which reads what is written here.

use std::io::{self, Write};

use blst::{blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use prestage_groth16::{Circom, Matrix, ProvingKey, Query};

use crate::convert::by_wire;

/// Modulus of the base field, little-endian words.
const Q: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// Bytes of a record of section 4.
const RECORD: usize = 44;

/// Writes a key of circom.
///
/// # Errors
/// What `w` says; [`io::ErrorKind::InvalidInput`] for a key with more wires, rows or terms than 32 bits count.
pub fn write(w: &mut dyn Write, key: &ProvingKey<Circom>) -> io::Result<()> {
    w.write_all(b"zkey")?;
    words(w, &[1, 10])?;
    section(w, 1, 4, |w| words(w, &[1]))?;
    let header = header(key)?;
    section(w, 2, header.len(), |w| w.write_all(&header))?;
    g1_section(w, 3, key.vk().ic.iter())?;
    coefficients(w, &[&key.rows().a, &key.rows().b])?;
    g1_section(w, 5, wires(key.a()).iter())?;
    g1_section(w, 6, wires(key.b_g1()).iter())?;
    let b_g2 = wires(key.b_g2());
    section(w, 7, 192 * b_g2.len(), |w| b_g2.iter().try_for_each(|p| g2(w, p)))?;
    g1_section(w, 8, wires(key.l()).iter())?;
    g1_section(w, 9, key.h().iter())?;
    section(w, 10, 0, |_| Ok(()))
}

fn header(key: &ProvingKey<Circom>) -> io::Result<Vec<u8>> {
    let (mut out, vk) = (Vec::new(), key.vk());
    words(&mut out, &[48])?;
    out.extend(Q.iter().flat_map(|word| word.to_le_bytes()));
    words(&mut out, &[32])?;
    // r − 1, and one more: r is odd, so nothing is carried.
    let mut r = (-Scalar::ONE).to_repr();
    r[0] += 1;
    out.extend(r);
    let domain = usize::try_from(key.domain_size()).map_err(io::Error::other)?;
    words(&mut out, &[count(key.n_vars())?, count(key.n_public())?, count(domain)?])?;
    g1(&mut out, &vk.alpha_g1)?;
    g1(&mut out, key.beta_g1())?;
    g2(&mut out, &vk.beta_g2)?;
    g2(&mut out, &vk.gamma_g2)?;
    g1(&mut out, key.delta_g1())?;
    g2(&mut out, &vk.delta_g2)?;
    Ok(out)
}

/// Section 4: the terms of A and B, their coefficients times R² with R = 2^256.
fn coefficients(w: &mut dyn Write, matrices: &[&Matrix; 2]) -> io::Result<()> {
    let terms = matrices.iter().map(|m| m.n_terms()).sum();
    let n = count(terms)?;
    let scale = Scalar::from(2).pow_vartime([2 * 256]);
    section(w, 4, 4 + RECORD * terms, |w| {
        words(w, &[n])?;
        for (which, matrix) in (0..).zip(matrices) {
            for row in 0..matrix.n_rows() {
                for (wire, coefficient) in matrix.row(row) {
                    words(w, &[which, count(row)?, wire])?;
                    w.write_all(&(coefficient * scale).to_repr())?;
                }
            }
        }
        Ok(())
    })
}

fn g1_section<'p>(
    w: &mut dyn Write,
    id: u32,
    points: impl ExactSizeIterator<Item = &'p G1Affine>,
) -> io::Result<()> {
    section(w, id, 96 * points.len(), |w| points.into_iter().try_for_each(|p| g1(w, p)))
}

fn section(
    w: &mut dyn Write,
    id: u32,
    len: usize,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    words(w, &[id])?;
    w.write_all(&(len as u64).to_le_bytes())?;
    fill(w)
}

fn wires<P: PrimeCurveAffine>(query: &Query<P>) -> Vec<P> {
    by_wire(query, P::identity(), |p| *p)
}

fn g1(w: &mut dyn Write, p: &G1Affine) -> io::Result<()> {
    let raw: &blst_p1_affine = p.as_ref();
    [raw.x, raw.y].iter().try_for_each(|x| limbs(w, &x.l))
}

fn g2(w: &mut dyn Write, p: &G2Affine) -> io::Result<()> {
    let raw: &blst_p2_affine = p.as_ref();
    [raw.x, raw.y].iter().flat_map(|x| x.fp).try_for_each(|x| limbs(w, &x.l))
}

fn limbs(w: &mut dyn Write, limbs: &[u64; 6]) -> io::Result<()> {
    limbs.iter().try_for_each(|limb| w.write_all(&limb.to_le_bytes()))
}

fn words(w: &mut dyn Write, words: &[u32]) -> io::Result<()> {
    words.iter().try_for_each(|word| w.write_all(&word.to_le_bytes()))
}

fn count(n: usize) -> io::Result<u32> {
    let too_many = |_| io::Error::new(io::ErrorKind::InvalidInput, "more than a 32-bit count can say");
    u32::try_from(n).map_err(too_many)
}

#[cfg(test)]
mod tests {
    use prestage_benches::rng;
    use prestage_groth16::format::{PointChecks, zkey};
    use prestage_harness::circuits::{bits, squares};

    use super::*;
    use crate::{Keys, Statement};

    #[test]
    fn what_is_written_is_read_again_with_every_test() {
        for circuit in [squares(4, rng(1)).unwrap(), bits(5, rng(2)).unwrap()] {
            let keys = Keys::new(&Statement::from(circuit));
            let key = keys.circom().unwrap();
            let mut file = Vec::new();
            write(&mut file, key).unwrap();
            let read = zkey::read(&file, PointChecks::Full).unwrap();
            assert_eq!(read.rows(), key.rows());
            assert_eq!((read.a(), read.b_g1(), read.b_g2()), (key.a(), key.b_g1(), key.b_g2()));
            assert_eq!((read.l(), read.h(), &read.vk().ic), (key.l(), key.h(), &key.vk().ic));
            assert_eq!((read.domain_size(), read.n_public()), (key.domain_size(), key.n_public()));
        }
    }
}
