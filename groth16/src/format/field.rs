//! The two fields as files write them: primes, canonical scalars, decimal numbers.

use std::borrow::Cow;

use blstrs::{Fp, Scalar};
use ff::PrimeField;
use num_bigint::BigUint;

use super::cursor::Cursor;
use super::error::{Fault, FormatError};

/// Bytes of a scalar.
pub(crate) const SCALAR: usize = 32;
/// Bytes of a coordinate.
pub(crate) const COORDINATE: usize = 48;

/// The primes that circom and snarkjs know, for a refusal that names the curve. Decimal.
const NAMES: [(&str, &str); 10] = [
    ("21888242871839275222246405745257275088548364400416034343698204186575808495617", "bn128"),
    (
        "21888242871839275222246405745257275088696311157297823662689037894645226208583",
        "bn128 (its base field) or grumpkin",
    ),
    ("8444461749428370424248824938781546531375899335154063827935233455917409239041", "bls12377"),
    (
        "258664426012969094010652733694893533536393512754914660539884262666720468348340822774968888139573360124440321458177",
        "bls12377 (its base field)",
    ),
    ("28948022309329048855892746252171976963363056481941560715954676764349967630337", "pallas"),
    ("28948022309329048855892746252171976963363056481941647379679742748393362948097", "vesta"),
    ("115792089210356248762697446949407573530086143415290314195533631308867097853951", "secq256r1"),
    ("18446744069414584321", "goldilocks"),
    (
        "52435875175126190479447740508185965837690552500527637822603658699938581184513",
        "bls12381 (its scalar field)",
    ),
    (
        "4002409555221667393417789825735904156556882819939007885332058136124031650490837864442687629129015664037894272559787",
        "bls12381 (its base field)",
    ),
];

/// The modulus r, little-endian.
pub(crate) fn r_bytes() -> [u8; SCALAR] {
    let mut bytes = (-Scalar::from(1)).to_repr();
    // r − 1 is even.
    bytes[0] |= 1;
    bytes
}

/// The modulus q, little-endian.
pub(crate) fn q_bytes() -> [u8; COORDINATE] {
    Fp::char()
}

fn name_of(prime: &[u8]) -> Cow<'static, str> {
    let decimal = BigUint::from_bytes_le(prime).to_string();
    match NAMES.iter().find(|(p, _)| *p == decimal) {
        Some(&(_, name)) => name.into(),
        None => format!("one of the unknown prime {decimal}").into(),
    }
}

/// Reads `u32 size, prime[size]` and checks that the prime is `expected`.
pub(crate) fn read_prime(cursor: &mut Cursor<'_>, expected: &[u8]) -> Result<(), FormatError> {
    /// No prime that a file could name in earnest is longer; what an error prints stays short.
    const LONGEST: u32 = 128;
    let start = cursor.clone();
    let size = cursor.u32_le()?;
    if size > LONGEST {
        let what = "bytes of the prime";
        return Err(start.fail(Fault::OutOfRange { what, got: size.into(), limit: u64::from(LONGEST) + 1 }));
    }
    let prime = cursor.take(size.into())?;
    if prime == expected { Ok(()) } else { Err(start.fail(Fault::Curve { got: name_of(prime) })) }
}

/// A canonical little-endian scalar.
pub(crate) fn scalar(bytes: &[u8; SCALAR]) -> Result<Scalar, Fault> {
    Scalar::from_repr_vartime(*bytes).ok_or(Fault::Scalar)
}

/// A decimal number below r. There is no reducing path: a second spelling of a scalar is refused.
pub(crate) fn scalar_from_decimal(text: &str) -> Result<Scalar, Fault> {
    scalar(&decimal(text)?.ok_or(Fault::Scalar)?)
}

/// A decimal number below q.
pub(crate) fn coordinate_from_decimal(text: &str) -> Result<Fp, Fault> {
    Option::from(Fp::from_bytes_le(&decimal(text)?.ok_or(Fault::Coordinate)?)).ok_or(Fault::Coordinate)
}

/// The number in `N` little-endian bytes, or `None` when it takes more.
fn decimal<const N: usize>(text: &str) -> Result<Option<[u8; N]>, Fault> {
    let canonical = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if !canonical {
        return Err(Fault::Decimal);
    }
    // Conversion takes quadratic time: stop at lengths that cannot fit. A byte is 2.41 decimal digits.
    if text.len() > N * 5 / 2 {
        return Ok(None);
    }
    let number = BigUint::parse_bytes(text.as_bytes(), 10).ok_or(Fault::Decimal)?;
    let bytes = number.to_bytes_le();
    let mut out = [0; N];
    Ok(out.get_mut(..bytes.len()).map(|head| head.copy_from_slice(&bytes)).map(|()| out))
}

/// The scalar in decimal.
pub(crate) fn scalar_to_decimal(value: &Scalar) -> String {
    BigUint::from_bytes_le(&value.to_repr()).to_string()
}

/// The coordinate in decimal.
pub(crate) fn coordinate_to_decimal(value: &Fp) -> String {
    BigUint::from_bytes_le(&value.to_bytes_le()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[test]
    fn the_primes_are_those_of_bls12_381() {
        assert_eq!(name_of(&r_bytes()), "bls12381 (its scalar field)");
        assert_eq!(name_of(&q_bytes()), "bls12381 (its base field)");
    }

    #[test]
    fn b154_aliases_are_refused() {
        let r = BigUint::from_bytes_le(&r_bytes());
        for n in [
            r.clone(),
            &r + 1u8,
            (BigUint::from(1u8) << 256u32) - 1u8,
            BigUint::from(1u8) << 255u32,
            &r << 64u32,
        ] {
            assert_eq!(scalar_from_decimal(&n.to_string()), Err(Fault::Scalar));
        }
        assert_eq!(scalar_from_decimal(&(&r - 1u8).to_string()).unwrap(), -Scalar::ONE);
        let q = BigUint::from_bytes_le(&q_bytes());
        assert_eq!(coordinate_from_decimal(&q.to_string()), Err(Fault::Coordinate));
        assert_eq!(coordinate_from_decimal(&(&q - 1u8).to_string()).unwrap(), -Fp::ONE);
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in ["", "+1", "-1", "01", "00", " 1", "1 ", "0x1", "1_0", "1.0", "1e3", "١"] {
            assert_eq!(scalar_from_decimal(text), Err(Fault::Decimal), "{text:?}");
        }
        assert_eq!(scalar_from_decimal(&"9".repeat(1 << 20)), Err(Fault::Scalar));
        assert_eq!(scalar_from_decimal("0").unwrap(), Scalar::ZERO);
        let x = Scalar::from(1234567);
        assert_eq!(scalar_to_decimal(&x), "1234567");
    }
}
