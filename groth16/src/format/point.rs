//! Points as files encode them: decoded strictly, tested for curve and subgroup.

use blst::{blst_p1_affine, blst_p2_affine};
use blstrs::{Fp, Fp2, G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

use super::error::Fault;
use super::field::COORDINATE;
use super::subgroup::Batch;

/// Whether points are tested to be on the curve and in the subgroup of order r.
///
/// Ranges of coordinates and the encoding of infinity are tested always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointChecks {
    /// Every point is tested.
    #[default]
    Full,
    /// Points are believed. With a key from somebody else this gives proofs that leak or do not verify.
    Unchecked,
}

/// How a point is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Affine coordinates in Montgomery form (R = 2^384), little-endian; infinity is all zeros. snarkjs.
    Montgomery,
    /// Affine coordinates, big-endian, c1 before c0, flags in the top three bits. Zcash's encoding.
    Uncompressed,
    /// The x coordinate alone, otherwise the same.
    Compressed,
}

const COMPRESSED: u8 = 0b100;
const INFINITY: u8 = 0b010;
const SIGN: u8 = 0b001;

/// What the readers need of G1 and G2.
pub(crate) trait Point: Batch + Send + Sync {
    /// Bytes of the coordinates x and y.
    const BYTES: usize;

    /// From `BYTES` bytes of x and y. `swap`: c1 comes before c0. Infinity has been dealt with, so (0, 0) is
    /// another spelling of it and refused.
    fn from_coordinates(
        bytes: &[u8],
        coordinate: fn(&[u8]) -> Result<Fp, Fault>,
        swap: bool,
    ) -> Result<Self, Fault>;

    /// From x and a sign, flags included, all of which have been checked.
    fn from_x(bytes: &[u8]) -> Option<Self>;

    fn on_curve(&self) -> bool;

    fn in_subgroup(&self) -> bool;
}

impl Point for G1Affine {
    const BYTES: usize = 2 * COORDINATE;

    fn from_coordinates(
        bytes: &[u8],
        coordinate: fn(&[u8]) -> Result<Fp, Fault>,
        _: bool,
    ) -> Result<Self, Fault> {
        let (x, y) = bytes.split_at(COORDINATE);
        from_g1(coordinate(x)?, coordinate(y)?).ok_or(Fault::DirtyInfinity)
    }

    fn from_x(bytes: &[u8]) -> Option<Self> {
        Self::from_compressed_unchecked(bytes.try_into().ok()?).into()
    }

    fn on_curve(&self) -> bool {
        self.is_on_curve().into()
    }

    fn in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

impl Point for G2Affine {
    const BYTES: usize = 4 * COORDINATE;

    fn from_coordinates(
        bytes: &[u8],
        coordinate: fn(&[u8]) -> Result<Fp, Fault>,
        swap: bool,
    ) -> Result<Self, Fault> {
        let quadratic = |bytes: &[u8]| {
            let (first, second) = bytes.split_at(COORDINATE);
            let (first, second) = (coordinate(first)?, coordinate(second)?);
            Ok::<_, Fault>(if swap { Fp2::new(second, first) } else { Fp2::new(first, second) })
        };
        let (x, y) = bytes.split_at(2 * COORDINATE);
        from_g2(quadratic(x)?, quadratic(y)?).ok_or(Fault::DirtyInfinity)
    }

    fn from_x(bytes: &[u8]) -> Option<Self> {
        Self::from_compressed_unchecked(bytes.try_into().ok()?).into()
    }

    fn on_curve(&self) -> bool {
        self.is_on_curve().into()
    }

    fn in_subgroup(&self) -> bool {
        self.is_torsion_free().into()
    }
}

impl Encoding {
    /// Bytes of one point.
    pub(crate) fn size<P: Point>(self) -> usize {
        match self {
            Self::Montgomery | Self::Uncompressed => P::BYTES,
            Self::Compressed => P::BYTES / 2,
        }
    }

    /// Whether `bytes` is the one encoding of infinity. Anything near it is left for [`decode`](Self::decode)
    /// to refuse.
    pub(crate) fn is_infinity(self, bytes: &[u8]) -> bool {
        let Some((&first, rest)) = bytes.split_first() else { return false };
        let expected = match self {
            Self::Montgomery => 0,
            Self::Uncompressed => INFINITY << 5,
            Self::Compressed => (COMPRESSED | INFINITY) << 5,
        };
        first == expected && rest.iter().all(|&b| b == 0)
    }

    /// Decodes one point from exactly [`size`](Self::size) bytes, without a test for curve or subgroup.
    pub(crate) fn decode_untested<P: Point>(self, bytes: &[u8]) -> Result<P, Fault> {
        if self.is_infinity(bytes) {
            return Ok(P::identity());
        }
        match self {
            Self::Montgomery => P::from_coordinates(bytes, montgomery, false),
            Self::Uncompressed => {
                flags(bytes, 0, 0)?;
                P::from_coordinates(bytes, big_endian, true)
            }
            Self::Compressed => {
                let flags = flags(bytes, COMPRESSED, SIGN)?;
                for (i, part) in bytes.chunks_exact(COORDINATE).enumerate() {
                    let mut part: [u8; COORDINATE] = part.try_into().map_err(|_| Fault::Coordinate)?;
                    if i == 0 {
                        part[0] ^= flags << 5;
                    }
                    big_endian(&part)?;
                }
                P::from_x(bytes).ok_or(Fault::OffCurve)
            }
        }
    }

    /// Decodes and tests one point.
    pub(crate) fn decode<P: Point>(self, bytes: &[u8]) -> Result<P, Fault> {
        let point = self.decode_untested(bytes)?;
        check(&point)?;
        Ok(point)
    }

    /// Decodes and tests a point that must not be at infinity, whatever the checks on the long queries are.
    pub(crate) fn decode_finite<P: Point>(self, bytes: &[u8]) -> Result<P, Fault> {
        let point: P = self.decode(bytes)?;
        if point.is_identity().into() { Err(Fault::Infinity) } else { Ok(point) }
    }
}

/// Tests for the curve, then for the subgroup.
pub(crate) fn check<P: Point>(point: &P) -> Result<(), Fault> {
    if !point.on_curve() {
        return Err(Fault::OffCurve);
    }
    if !point.in_subgroup() {
        return Err(Fault::Subgroup);
    }
    Ok(())
}

/// The flags of a point that is not infinity: exactly those of `required`, and any of `allowed`.
fn flags(bytes: &[u8], required: u8, allowed: u8) -> Result<u8, Fault> {
    let got = bytes.first().map_or(0, |b| b >> 5);
    if got & !(COMPRESSED | INFINITY) == 0 && got & INFINITY != 0 && got & COMPRESSED == required {
        return Err(Fault::DirtyInfinity);
    }
    if got & !allowed != required { Err(Fault::Flags { got }) } else { Ok(got) }
}

fn big_endian(bytes: &[u8]) -> Result<Fp, Fault> {
    let bytes = bytes.try_into().map_err(|_| Fault::Coordinate)?;
    Option::from(Fp::from_bytes_be(bytes)).ok_or(Fault::Coordinate)
}

/// Limbs that are Montgomery form already. The bound on them is the same as on the number they stand for.
fn montgomery(bytes: &[u8]) -> Result<Fp, Fault> {
    let mut limbs = [0; 6];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(bytes.try_into().map_err(|_| Fault::Coordinate)?);
    }
    let below_q = limbs.iter().rev().cmp(Q_LIMBS.iter().rev()).is_lt();
    if below_q { Ok(Fp::from_raw_unchecked(limbs)) } else { Err(Fault::Coordinate) }
}

/// q in little-endian limbs; `Fp::char()` gives the same bytes.
const Q_LIMBS: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// A point of those coordinates, not tested. (0, 0) is `None`: memory has no other way to say infinity.
pub(crate) fn from_g1(x: Fp, y: Fp) -> Option<G1Affine> {
    let mut point = G1Affine::identity();
    *point.as_mut() = blst_p1_affine { x: x.into(), y: y.into() };
    (!bool::from(point.is_identity())).then_some(point)
}

/// As [`from_g1`].
pub(crate) fn from_g2(x: Fp2, y: Fp2) -> Option<G2Affine> {
    let mut point = G2Affine::identity();
    *point.as_mut() = blst_p2_affine { x: x.into(), y: y.into() };
    (!bool::from(point.is_identity())).then_some(point)
}

/// The coordinates of a point in the order in which snarkjs writes them.
pub(crate) fn g2_coordinates(point: &G2Affine) -> [[Fp; 2]; 2] {
    let split = |c: Fp2| [c.c0(), c.c1()];
    [split(point.x()), split(point.y())]
}
