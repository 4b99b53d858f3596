//! Rows F6 and F7: files cut anywhere, with any byte changed, with lengths that lie, with bad points.

use prestage_groth16::format::{Fault, FormatError, PointChecks, ark, json, params, proof, r1cs, wtns, zkey};

use super::fixture;

type Reader = fn(&[u8]) -> Result<(), FormatError>;

const READERS: [(&str, Reader); 10] = [
    ("multiplier/circuit.zkey", |b| zkey::read(b, PointChecks::Full).map(drop)),
    ("multiplier/circuit.zkey", |b| zkey::read_verifying_key(b).map(drop)),
    ("multiplier/circuit.r1cs", |b| r1cs::read(b).map(drop)),
    ("multiplier/witness.wtns", |b| wtns::read(b).map(drop)),
    ("multiplier/vkey.json", |b| json::read_verifying_key(b).map(drop)),
    ("multiplier/proof.json", |b| json::read_proof(b).map(drop)),
    ("multiplier/public.json", |b| json::read_public(b).map(drop)),
    ("multiplier/proof192.bin", |b| proof::read(b).map(drop)),
    ("ark_sq10/vk_compressed.bin", |b| ark::read_verifying_key(b).map(drop)),
    ("bellman_sq10/sq10.params", |b| params::read_verifying_key(&b[..b.len().min(1060)]).map(drop)),
];

#[test]
fn f6_files_cut_at_any_byte_are_refused_in_one_line() {
    for (name, read) in READERS {
        let mut whole = fixture(name);
        whole.truncate(if name.ends_with("params") { 1060 } else { whole.len() });
        if name.ends_with("json") {
            whole.truncate(whole.trim_ascii_end().len());
        }
        read(&whole).unwrap();
        let step = 1 + whole.len() / 500;
        for n in (0..whole.len()).step_by(step) {
            let error = read(&whole[..n]).expect_err(name).to_string();
            assert!(!error.contains('\n') && error.len() < 250, "{name} cut to {n}: {error}");
        }
    }
}

#[test]
fn f6_any_changed_byte_is_read_or_refused_without_panic() {
    for (name, read) in READERS {
        let whole = fixture(name);
        let step = 1 + whole.len() / 400;
        for at in (0..whole.len()).step_by(step) {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                if let Err(e) = read(&bytes) {
                    let error = e.to_string();
                    assert!(!error.contains('\n') && error.len() < 400, "{name}, byte {at}: {error}");
                }
            }
        }
    }
}

/// Start and length of a section of a container.
fn section(file: &[u8], wanted: u32) -> (usize, usize) {
    let mut at = 12;
    loop {
        let id = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let length = u64::from_le_bytes(file[at + 4..at + 12].try_into().unwrap()) as usize;
        if id == wanted {
            return (at + 12, length);
        }
        at += 12 + length;
    }
}

/// Each container with one lie, and what is said about it.
#[test]
fn f6_each_lie_of_a_container_is_named() {
    let readers: [(&str, Reader, u32); 3] = [
        ("multiplier/circuit.zkey", |b| zkey::read(b, PointChecks::Full).map(drop), 10),
        ("multiplier/circuit.r1cs", |b| r1cs::read(b).map(drop), 3),
        ("multiplier/witness.wtns", |b| wtns::read(b).map(drop), 2),
    ];
    for (name, read, sections) in readers {
        let whole = fixture(name);
        let said = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = whole.clone();
            change(&mut bytes);
            let error = read(&bytes).expect_err(name);
            assert!(!error.to_string().contains('\n'), "{error}");
            error.fault().unwrap().clone()
        };
        let count = |n: u32| move |b: &mut Vec<u8>| b[8..12].copy_from_slice(&n.to_le_bytes());
        assert!(matches!(said(&|b| b[0] ^= 1), Fault::Magic { .. }));
        assert!(matches!(said(&|b| b[4] = 9), Fault::Version { got: 9, .. }));
        assert!(matches!(said(&count(sections + 1)), Fault::Truncated { .. }));
        assert!(matches!(said(&count(sections - 1)), Fault::Trailing { .. }));
        assert!(matches!(said(&count(u32::MAX)), Fault::Truncated { available, .. } if available < 1 << 14));
        assert!(matches!(said(&|b| b.push(0)), Fault::Trailing { bytes: 1 }));
        assert!(matches!(said(&|b| b.truncate(b.len() - 1)), Fault::Truncated { .. }));
        // The first section takes the number of the last, or one that nobody knows.
        let (last, _) = (1..=sections).map(|id| (id, section(&whole, id).0)).max_by_key(|s| s.1).unwrap();
        assert_eq!(said(&|b| b[12..16].copy_from_slice(&last.to_le_bytes())), Fault::Twice { id: last });
        assert_eq!(said(&|b| b[12..16].copy_from_slice(&99u32.to_le_bytes())), Fault::Missing);
        for length in [u64::MAX, 1 << 63, 1 << 32, 1 << 20] {
            let fault = said(&|b| b[16..24].copy_from_slice(&length.to_le_bytes()));
            assert!(matches!(fault, Fault::Truncated { needed, .. } if needed == length), "{fault}");
        }
    }
}

#[test]
fn one_flipped_bit_names_the_query_and_the_point() {
    let whole = fixture("boundary_full/circuit.zkey");
    for (id, name, size, index) in [
        (3, "section 3 (IC)", 96, 2),
        (5, "section 5 (A)", 96, 17),
        (6, "section 6 (B1)", 96, 100),
        (7, "section 7 (B2)", 192, 101),
        (8, "section 8 (L)", 96, 3),
        (9, "section 9 (H)", 96, 255),
    ] {
        let (start, _) = section(&whole, id);
        for bit in [0, 5 * 8, (size - 1) * 8] {
            let mut bytes = whole.clone();
            bytes[start + index * size + bit / 8] ^= 1;
            let error = zkey::read(&bytes, PointChecks::Full).unwrap_err();
            let place = error.place().unwrap();
            assert_eq!((place.section, place.index), (name, Some(index as u64)), "{error}");
            assert_eq!(place.offset, Some((start + index * size) as u64));
            assert!(matches!(error.fault(), Some(Fault::OffCurve | Fault::Coordinate)), "{error}");
            // Unchecked, the long queries are believed; the verifying key never is.
            if id != 3 && matches!(error.fault(), Some(Fault::OffCurve)) {
                zkey::read(&bytes, PointChecks::Unchecked).unwrap();
            }
        }
    }

    let whole = fixture("bellman_sq10/sq10.params");
    let mut at = 864;
    for (query, name) in ["IC", "H", "L", "A", "B1", "B2"].into_iter().enumerate() {
        let size = if query == 5 { 192 } else { 96 };
        let n = u32::from_be_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        let index = n - 1;
        let mut bytes = whole.clone();
        bytes[at + 4 + index * size + 50] ^= 4;
        let error = params::read(&bytes, PointChecks::Full).unwrap_err();
        let place = error.place().unwrap();
        assert_eq!((place.section, place.index), (name, Some(index as u64)), "{error}");
        assert_eq!(place.offset, Some((at + 4 + index * size) as u64));
        at += 4 + n * size;
    }
}

#[test]
fn f7_infinity_has_one_encoding_in_a_zkey() {
    let whole = fixture("linear/circuit.zkey");
    let (start, length) = section(&whole, 6);
    let index = (0..length / 96).find(|i| whole[start + i * 96..][..96].iter().all(|&b| b == 0)).unwrap();
    // A set bit anywhere in the zeros of a point at infinity.
    for byte in 0..96 {
        let mut bytes = whole.clone();
        bytes[start + index * 96 + byte] = 1;
        let error = zkey::read(&bytes, PointChecks::Full).unwrap_err();
        assert_eq!(error.place().unwrap().index, Some(index as u64), "{error}");
    }
    // q itself in place of zero: the same residue, not the same bytes.
    let mut bytes = whole.clone();
    let (q, _) = section(&whole, 2);
    let q: [u8; 48] = whole[q + 4..q + 52].try_into().unwrap();
    bytes[start + index * 96..][..48].copy_from_slice(&q);
    let error = zkey::read(&bytes, PointChecks::Unchecked).unwrap_err();
    assert_eq!(error.fault(), Some(&Fault::Coordinate));
}

#[test]
fn unchecked_still_refuses_what_costs_nothing_to_see() {
    for name in ["zkey_nvars_plus1.zkey", "zkey_delta1_identity.zkey", "zkey_coef_signal_oob.zkey"] {
        assert!(zkey::read(&fixture(&format!("bad/{name}")), PointChecks::Unchecked).is_err(), "{name}");
    }
    zkey::read(&fixture("bad/zkey_b2_wrong_subgroup.zkey"), PointChecks::Unchecked).unwrap();
    assert!(params::read(&fixture("bad/bellman_h_infinity.params"), PointChecks::Unchecked).is_err());
}
