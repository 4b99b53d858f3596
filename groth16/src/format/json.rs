//! snarkjs' JSON: `verification_key.json`, `proof.json`, `public.json`.
//!
//! Numbers are decimal strings. A point of G1 is `[x, y, "1"]`, one of G2
//! `[[x.c0, x.c1], [y.c0, y.c1], ["1", "0"]]`; infinity is `["0", "1", "0"]` and likewise. A number that is
//! not below its modulus is refused, never reduced: `x + r` is not another way to write `x`.

use std::borrow::Cow;
use std::io;

use blst::{blst_fp2, blst_fp12};
use blstrs::{Fp, Fp2, Fp12, G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use serde::{Deserialize, Serialize};

use super::error::{Fault, FileKind, FormatError, Place};
use super::field::{coordinate_from_decimal, coordinate_to_decimal, scalar_from_decimal, scalar_to_decimal};
use super::point::{check, from_g1, from_g2, g2_coordinates};
use crate::key::VerifyingKey;
use crate::proof::Proof;

const PROTOCOL: &str = "groth16";
const CURVE: &str = "bls12381";

type G1Text = [String; 3];
type G2Text = [[String; 2]; 3];
type GtText = [[[String; 2]; 3]; 2];

/// Nothing else may stand beside these: an extension that a verifier does not know, it does not verify.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ProofText {
    pi_a: G1Text,
    pi_b: G2Text,
    pi_c: G1Text,
    protocol: String,
    curve: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct VerifyingKeyText {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    n_public: u64,
    vk_alpha_1: G1Text,
    vk_beta_2: G2Text,
    vk_gamma_2: G2Text,
    vk_delta_2: G2Text,
    /// e(α, β) as its six coefficients over the quadratic extension. A verifier computes it from α and β, so
    /// it may be absent, but must not contradict them.
    vk_alphabeta_12: Option<GtText>,
    #[serde(rename = "IC")]
    ic: Vec<G1Text>,
}

/// What every file says before its points are worth looking at. Numbers of another curve would only show
/// as coordinates out of range.
#[derive(Deserialize)]
struct Label<'a> {
    #[serde(borrow)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    curve: Cow<'a, str>,
}

/// Reads a verifying key. Every point is tested; α, β, γ and δ must not be at infinity.
///
/// # Errors
///
/// [`FormatError::Content`] names the field, and the index within IC, of what is wrong.
pub fn read_verifying_key(bytes: &[u8]) -> Result<VerifyingKey, FormatError> {
    const KIND: FileKind = FileKind::JsonVerifyingKey;
    let text: VerifyingKeyText = parse_labelled(KIND, bytes)?;
    let n_ic = text.ic.len() as u64;
    if text.n_public.checked_add(1) != Some(n_ic) {
        let expected = text.n_public.saturating_add(1);
        return Err(fail(KIND, "IC", None, Fault::Count { what: "points", expected, got: n_ic }));
    }
    let finite_g2 = |field, text: &G2Text| {
        let point = g2(text).map_err(|fault| fail(KIND, field, None, fault))?;
        if point.is_identity().into() { Err(fail(KIND, field, None, Fault::Infinity)) } else { Ok(point) }
    };
    let alpha_g1 = g1(&text.vk_alpha_1).map_err(|fault| fail(KIND, "vk_alpha_1", None, fault))?;
    if alpha_g1.is_identity().into() {
        return Err(fail(KIND, "vk_alpha_1", None, Fault::Infinity));
    }
    let beta_g2 = finite_g2("vk_beta_2", &text.vk_beta_2)?;
    if text.vk_alphabeta_12.is_some_and(|gt| gt != pairing_text(&alpha_g1, &beta_g2)) {
        return Err(fail(KIND, "vk_alphabeta_12", None, Fault::Pairing));
    }
    let ic = text.ic.iter().enumerate();
    let ic = ic.map(|(i, text)| g1(text).map_err(|fault| fail(KIND, "IC", Some(i), fault)));
    Ok(VerifyingKey {
        alpha_g1,
        beta_g1: None,
        beta_g2,
        gamma_g2: finite_g2("vk_gamma_2", &text.vk_gamma_2)?,
        delta_g1: None,
        delta_g2: finite_g2("vk_delta_2", &text.vk_delta_2)?,
        ic: ic.collect::<Result<_, _>>()?,
    })
}

/// Reads a proof. Every point is tested.
///
/// # Errors
///
/// [`FormatError::Content`] names the field that is wrong.
pub fn read_proof(bytes: &[u8]) -> Result<Proof, FormatError> {
    const KIND: FileKind = FileKind::JsonProof;
    let text: ProofText = parse_labelled(KIND, bytes)?;
    Ok(Proof {
        a: g1(&text.pi_a).map_err(|fault| fail(KIND, "pi_a", None, fault))?,
        b: g2(&text.pi_b).map_err(|fault| fail(KIND, "pi_b", None, fault))?,
        c: g1(&text.pi_c).map_err(|fault| fail(KIND, "pi_c", None, fault))?,
    })
}

/// Reads public inputs.
///
/// # Errors
///
/// [`FormatError::Content`] with the index of the first number that is not canonical or not below r.
pub fn read_public(bytes: &[u8]) -> Result<Vec<Scalar>, FormatError> {
    const KIND: FileKind = FileKind::JsonPublic;
    let text: Vec<Cow<'_, str>> = parse(KIND, bytes)?;
    let values = text.iter().enumerate();
    values
        .map(|(i, text)| scalar_from_decimal(text).map_err(|fault| fail(KIND, "inputs", Some(i), fault)))
        .collect()
}

/// Writes a verifying key as snarkjs does.
///
/// # Errors
///
/// Whatever `w` says.
pub fn write_verifying_key(w: &mut dyn io::Write, vk: &VerifyingKey) -> io::Result<()> {
    write_pretty(
        w,
        &VerifyingKeyText {
            protocol: PROTOCOL.into(),
            curve: CURVE.into(),
            n_public: vk.n_public() as u64,
            vk_alpha_1: g1_text(&vk.alpha_g1),
            vk_beta_2: g2_text(&vk.beta_g2),
            vk_gamma_2: g2_text(&vk.gamma_g2),
            vk_delta_2: g2_text(&vk.delta_g2),
            vk_alphabeta_12: Some(pairing_text(&vk.alpha_g1, &vk.beta_g2)),
            ic: vk.ic.iter().map(g1_text).collect(),
        },
    )
}

/// Writes a proof as snarkjs does.
///
/// # Errors
///
/// Whatever `w` says.
pub fn write_proof(w: &mut dyn io::Write, proof: &Proof) -> io::Result<()> {
    write_pretty(
        w,
        &ProofText {
            pi_a: g1_text(&proof.a),
            pi_b: g2_text(&proof.b),
            pi_c: g1_text(&proof.c),
            protocol: PROTOCOL.into(),
            curve: CURVE.into(),
        },
    )
}

/// Writes public inputs as snarkjs does.
///
/// # Errors
///
/// Whatever `w` says.
pub fn write_public(w: &mut dyn io::Write, inputs: &[Scalar]) -> io::Result<()> {
    write_pretty(w, &inputs.iter().map(scalar_to_decimal).collect::<Vec<_>>())
}

/// JSON with one space of indentation.
fn write_pretty(w: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    value.serialize(&mut serde_json::Serializer::with_formatter(w, format)).map_err(io::Error::from)
}

fn parse_labelled<'a, T: Deserialize<'a>>(kind: FileKind, bytes: &'a [u8]) -> Result<T, FormatError> {
    let Label { protocol, curve } = parse(kind, bytes)?;
    if protocol != PROTOCOL {
        return Err(fail(kind, "protocol", None, Fault::Protocol { got: shown(&protocol) }));
    }
    if curve != CURVE {
        return Err(fail(kind, "curve", None, Fault::Curve { got: shown(&curve) }));
    }
    parse(kind, bytes)
}

/// A name from a file, short and on one line.
fn shown(name: &str) -> Cow<'static, str> {
    name.chars().take(32).flat_map(char::escape_default).collect::<String>().into()
}

fn parse<'a, T: Deserialize<'a>>(kind: FileKind, bytes: &'a [u8]) -> Result<T, FormatError> {
    serde_json::from_slice(bytes).map_err(|e| {
        let (line, column) = (e.line() as u64, e.column() as u64);
        let text = e.to_string();
        // The position is in fields of its own, and a message quotes what it found, whatever its length.
        let message = text.split(" at line ").next().unwrap_or_default();
        let message = message.chars().take(120).flat_map(char::escape_debug).collect();
        fail(kind, "text", None, Fault::Json { line, column, message })
    })
}

fn fail(kind: FileKind, section: &'static str, index: Option<usize>, fault: Fault) -> FormatError {
    let place = Place { section, index: index.map(|i| i as u64), offset: None };
    FormatError::content(kind, place, fault)
}

fn g1(text: &G1Text) -> Result<G1Affine, Fault> {
    let [x, y, z] = text;
    match (x.as_str(), y.as_str(), z.as_str()) {
        ("0", "1", "0") => return Ok(G1Affine::identity()),
        (_, _, "0") => return Err(Fault::DirtyInfinity),
        (_, _, "1") => {}
        _ => return Err(Fault::NotAffine),
    }
    let point =
        from_g1(coordinate_from_decimal(x)?, coordinate_from_decimal(y)?).ok_or(Fault::DirtyInfinity)?;
    check(&point)?;
    Ok(point)
}

fn g2(text: &G2Text) -> Result<G2Affine, Fault> {
    let [x, y, z] = text;
    let is = |pair: &[String; 2], c0, c1| pair[0] == c0 && pair[1] == c1;
    if is(z, "0", "0") {
        let infinity = is(x, "0", "0") && is(y, "1", "0");
        return if infinity { Ok(G2Affine::identity()) } else { Err(Fault::DirtyInfinity) };
    }
    if !is(z, "1", "0") {
        return Err(Fault::NotAffine);
    }
    let quadratic = |[c0, c1]: &[String; 2]| {
        Ok::<_, Fault>(Fp2::new(coordinate_from_decimal(c0)?, coordinate_from_decimal(c1)?))
    };
    let point = from_g2(quadratic(x)?, quadratic(y)?).ok_or(Fault::DirtyInfinity)?;
    check(&point)?;
    Ok(point)
}

fn g1_text(point: &G1Affine) -> G1Text {
    if point.is_identity().into() {
        return ["0", "1", "0"].map(String::from);
    }
    [coordinate_to_decimal(&point.x()), coordinate_to_decimal(&point.y()), "1".into()]
}

fn g2_text(point: &G2Affine) -> G2Text {
    if point.is_identity().into() {
        return [["0", "0"], ["1", "0"], ["0", "0"]].map(|c| c.map(String::from));
    }
    let [x, y] = g2_coordinates(point).map(|c| c.map(|c| coordinate_to_decimal(&c)));
    [x, y, ["1", "0"].map(String::from)]
}

fn pairing_text(p: &G1Affine, q: &G2Affine) -> GtText {
    let value: Fp12 = blstrs::pairing(p, q).into();
    blst_fp12::from(value).fp6.map(|c| c.fp2.map(fp2_text))
}

fn fp2_text(value: blst_fp2) -> [String; 2] {
    value.fp.map(|c| coordinate_to_decimal(&Fp::from(c)))
}
