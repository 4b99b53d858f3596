//! Faults that other provers had with files and encodings. `fNNN` and `bNNN` are rows of the list of faults.

use std::io::{Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::{Field, PrimeField};
use group::Group;
use group::prime::PrimeCurveAffine;
use num_bigint::BigUint;
use prestage_groth16::format::{
    Fault, FormatError, LoadOptions, PointChecks, ark, json, load_proving_key, params, proof, r1cs, wtns,
    zkey,
};
use prestage_groth16::{AnyKey, Circom, Libsnark, Proof, Reduction, ShapeError};

use crate::{fixture, path};

fn written(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

fn r() -> BigUint {
    BigUint::from_bytes_le(&(-Scalar::ONE).to_repr()) + 1u8
}

fn q() -> BigUint {
    // The prime of a zkey's header.
    BigUint::from_bytes_le(&container(&fixture("multiplier/circuit.zkey"))[1].1[4..52])
}

/// The sections of a container, in order.
fn container(file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut sections = Vec::new();
    let mut at = 12;
    while at < file.len() {
        let id = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let length = u64::from_le_bytes(file[at + 4..at + 12].try_into().unwrap()) as usize;
        sections.push((id, file[at + 12..at + 12 + length].to_vec()));
        at += 12 + length;
    }
    sections
}

fn rebuilt(file: &[u8], sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = file[..8].to_vec();
    out.extend((sections.len() as u32).to_le_bytes());
    for (id, bytes) in sections {
        out.extend(id.to_le_bytes());
        out.extend((bytes.len() as u64).to_le_bytes());
        out.extend(bytes);
    }
    out
}

/// A point of G1's curve outside the subgroup: the first x from 1 that gives one.
fn g1_outside() -> G1Affine {
    (1u8..)
        .map(|x| {
            let mut bytes = [0; 48];
            (bytes[0], bytes[47]) = (0x80, x);
            G1Affine::from_compressed_unchecked(&bytes)
        })
        .filter_map(Option::from)
        .find(|p: &G1Affine| !bool::from(p.is_torsion_free()))
        .unwrap()
}

fn g2_outside() -> G2Affine {
    (1u8..)
        .map(|x| {
            let mut bytes = [0; 96];
            (bytes[0], bytes[95]) = (0x80, x);
            G2Affine::from_compressed_unchecked(&bytes)
        })
        .filter_map(Option::from)
        .find(|p: &G2Affine| !bool::from(p.is_torsion_free()))
        .unwrap()
}

/// r·P by doubling and adding: what is left is the part of P whose order divides the cofactor.
fn times_r<P: Group>(p: P) -> P {
    let r = r();
    (0..r.bits()).rev().fold(P::identity(), |sum, bit| {
        let sum = sum.double();
        if r.bit(bit) { sum + p } else { sum }
    })
}

fn sq10_proof() -> Proof {
    json::read_proof(&fixture("sq10/proof.json")).unwrap()
}

fn json_of(proof: &Proof) -> serde_json::Value {
    serde_json::from_slice(&written(|w| json::write_proof(w, proof))).unwrap()
}

fn fault(result: Result<impl Sized, FormatError>) -> Fault {
    match result {
        Ok(_) => panic!("it was read"),
        Err(e) => e.fault().unwrap_or_else(|| panic!("{e}")).clone(),
    }
}

#[test]
fn b152_an_input_plus_r_is_another_number_not_the_same_input() {
    for x in [0u8, 1, 2, 3] {
        assert_eq!(json::read_public(format!("[\"{x}\"]").as_bytes()).unwrap(), [Scalar::from(u64::from(x))]);
        let text = format!("[\"{}\"]", r() + x);
        assert_eq!(fault(json::read_public(text.as_bytes())), Fault::Scalar);
    }
    assert_eq!(json::read_public(format!("[\"{}\"]", r() - 1u8).as_bytes()).unwrap(), [-Scalar::ONE]);
    assert_eq!(fault(json::read_public(format!("[\"{}\"]", r() - 1u8 + r()).as_bytes())), Fault::Scalar);
}

#[test]
fn b153_no_reader_of_scalars_reduces() {
    let r_bytes = (r() + 5u8).to_bytes_le();
    let mut witness = fixture("multiplier/witness.wtns");
    let end = witness.len();
    witness[end - 32..].copy_from_slice(&r_bytes);
    assert_eq!(fault(wtns::read(&witness)), Fault::Scalar);
    let mut circuit = fixture("multiplier/circuit.r1cs");
    let minus_one = (-Scalar::ONE).to_repr();
    let at = circuit.windows(32).rposition(|w| w == minus_one).unwrap();
    circuit[at..at + 32].copy_from_slice(&r_bytes);
    assert_eq!(fault(r1cs::read(&circuit)), Fault::Scalar);
}

#[test]
fn b154_inputs_out_of_range_are_refused() {
    let one = BigUint::from(1u8);
    for n in [r(), r() + 1u8, (&one << 256u32) - 1u8, &one << 255u32] {
        assert_eq!(fault(json::read_public(format!("[\"0\", \"{n}\"]").as_bytes())), Fault::Scalar);
    }
}

#[test]
fn b156_a_proof_with_a_torsion_part_is_refused_at_decoding() {
    let (t1, t2) = (times_r(G1Projective::from(g1_outside())), times_r(G2Projective::from(g2_outside())));
    assert!(!bool::from(t1.is_identity()) && !bool::from(t2.is_identity()));
    let good = sq10_proof();
    let bad = [
        Proof { a: (t1 + good.a).into(), ..good },
        Proof { b: (t2 + good.b).into(), ..good },
        Proof { c: (t1 + good.c).into(), ..good },
    ];
    for (bad, section) in bad.iter().zip(["A", "B", "C"]) {
        let error = proof::read(&proof::to_bytes(bad)).unwrap_err();
        assert_eq!((error.fault(), error.place().unwrap().section), (Some(&Fault::Subgroup), section));
        assert_eq!(fault(json::read_proof(json_of(bad).to_string().as_bytes())), Fault::Subgroup);
    }
}

#[test]
fn b157_every_way_in_tests_the_subgroup() {
    let (p1, p2) = (g1_outside(), g2_outside());
    // Compressed: proofs and arkworks keys. Uncompressed: parameters. Montgomery: zkeys. Decimal: JSON.
    let mut vk = fixture("ark_sq10/vk_compressed.bin");
    vk[..48].copy_from_slice(&p1.to_compressed());
    assert_eq!(fault(ark::read_verifying_key(&vk)), Fault::Subgroup);
    let mut vk = fixture("ark_sq10/vk_compressed.bin");
    vk[48..144].copy_from_slice(&p2.to_compressed());
    assert_eq!(fault(ark::read_verifying_key(&vk)), Fault::Subgroup);
    let key = fixture("ark_sq10/pk_uncompressed.bin");
    for (at, point) in [(0, &p1.to_uncompressed()[..]), (96, &p2.to_uncompressed()[..])] {
        let mut bad = key.clone();
        bad[at..at + point.len()].copy_from_slice(point);
        assert_eq!(fault(ark::read(&bad, PointChecks::Unchecked)), Fault::Subgroup);
    }
    let key = fixture("bellman_sq10/sq10.params");
    let last = key.len() - 192;
    for (at, point) in
        [(0, &p1.to_uncompressed()[..]), (192, &p2.to_uncompressed()[..]), (last, &p2.to_uncompressed()[..])]
    {
        let mut bad = key.clone();
        bad[at..at + point.len()].copy_from_slice(point);
        assert_eq!(fault(params::read(&bad, PointChecks::Full)), Fault::Subgroup);
    }
    let file = fixture("multiplier/circuit.zkey");
    let limbs = |l: &[[u64; 6]]| l.concat().iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<u8>>();
    let (m1, m2) = (p1.as_ref(), p2.as_ref());
    for (id, point) in
        [(9, limbs(&[m1.x.l, m1.y.l])), (7, limbs(&[m2.x.fp[0].l, m2.x.fp[1].l, m2.y.fp[0].l, m2.y.fp[1].l]))]
    {
        let mut sections = container(&file);
        let section = sections.iter_mut().find(|(i, _)| *i == id).unwrap();
        section.1[..point.len()].copy_from_slice(&point);
        assert_eq!(fault(zkey::read(&rebuilt(&file, &sections), PointChecks::Full)), Fault::Subgroup);
    }
    let good = sq10_proof();
    for bad in [Proof { a: p1, ..good }, Proof { b: p2, ..good }, Proof { c: p1, ..good }] {
        assert_eq!(fault(proof::read(&proof::to_bytes(&bad))), Fault::Subgroup);
        assert_eq!(fault(json::read_proof(json_of(&bad).to_string().as_bytes())), Fault::Subgroup);
    }
}

#[test]
fn b158_infinity_with_a_body_is_refused() {
    let o = Proof { a: G1Affine::identity(), b: G2Affine::identity(), c: G1Affine::identity() };
    let good = proof::to_bytes(&o);
    assert_eq!(proof::read(&good).unwrap(), o);
    for (start, length) in [(0, 48), (48, 96), (144, 48)] {
        for bit in 0..length * 8 {
            let mut bad = good;
            bad[start + bit / 8] ^= 0x80 >> (bit % 8);
            let fault = fault(proof::read(&bad));
            match bit {
                // The compressed flag or the infinity flag gone.
                0 => assert_eq!(fault, Fault::Flags { got: 0b010 }),
                1 => assert_ne!(fault, Fault::Infinity),
                // A sign, or a body.
                2 => assert_eq!(fault, Fault::Flags { got: 0b111 }),
                _ => assert_eq!(fault, Fault::DirtyInfinity, "bit {bit}"),
            }
        }
    }
    // Uncompressed, in a key that may hold infinities.
    let key = fixture("ark_sq10/pk_uncompressed.bin");
    let at = key.windows(96).position(|w| w[0] == 0x40 && w[1..].iter().all(|&b| b == 0)).unwrap();
    for byte in [1, 47, 48, 95] {
        let mut bad = key.clone();
        bad[at + byte] = 1;
        assert_eq!(fault(ark::read(&bad, PointChecks::Unchecked)), Fault::DirtyInfinity);
    }
    for flags in [0x20, 0x60, 0x80, 0xa0, 0xc0, 0xe0] {
        let mut bad = key.clone();
        bad[at] = flags;
        assert_eq!(fault(ark::read(&bad, PointChecks::Unchecked)), Fault::Flags { got: flags >> 5 });
    }
    // JSON: z is 0 and the rest is not that of infinity; or the coordinates are zeros.
    for (x, y, z) in [("1", "1", "0"), ("0", "2", "0"), ("0", "0", "0"), ("0", "0", "1")] {
        let mut text = json_of(&o);
        text["pi_a"] = serde_json::json!([x, y, z]);
        assert_eq!(fault(json::read_proof(text.to_string().as_bytes())), Fault::DirtyInfinity, "{x} {y} {z}");
    }
}

#[test]
fn b159_infinity_keeps_its_flag() {
    let o = Proof { a: G1Affine::identity(), b: G2Affine::identity(), c: G1Affine::identity() };
    let mut expected = [0; 192];
    (expected[0], expected[48], expected[144]) = (0xc0, 0xc0, 0xc0);
    assert_eq!(proof::to_bytes(&o), expected);
    assert_eq!(proof::read(&expected).unwrap(), o);
    assert_eq!(json::read_proof(json_of(&o).to_string().as_bytes()).unwrap(), o);
    // Uncompressed: the one that arkworks wrote for the wires that B does not name.
    let key = ark::read(&fixture("ark_sq10/pk_uncompressed.bin"), PointChecks::Full).unwrap();
    assert!(!key.b_g1().density().is_full());
}

#[test]
fn b160_a_coordinate_plus_q_is_refused() {
    let good = sq10_proof();
    // 381 bits hold x + q when x is small enough: one point in five.
    let room = (BigUint::from(1u8) << 381u32) - q();
    let multiples = || (1u64..).map(Scalar::from);
    let plus_q = |bytes: &[u8], at: usize| {
        let mut coordinate = bytes[at..at + 48].to_vec();
        let flags = if at == 0 { coordinate[0] & 0xe0 } else { 0 };
        coordinate[0] ^= flags;
        let x = BigUint::from_bytes_be(&coordinate);
        (x < room).then(|| {
            let mut sum = (x + q()).to_bytes_be();
            assert_eq!(sum.len(), 48);
            sum[0] |= flags;
            let mut bytes = bytes.to_vec();
            bytes[at..at + 48].copy_from_slice(&sum);
            bytes
        })
    };
    let g1 = multiples()
        .find_map(|k| plus_q(&G1Affine::from(G1Affine::generator() * k).to_compressed(), 0))
        .unwrap();
    let mut bytes = proof::to_bytes(&good);
    bytes[..48].copy_from_slice(&g1);
    assert_eq!(fault(proof::read(&bytes)), Fault::Coordinate);
    let mut bytes = proof::to_bytes(&good);
    bytes[144..].copy_from_slice(&g1);
    assert_eq!(fault(proof::read(&bytes)), Fault::Coordinate);
    for half in [0, 48] {
        let g2 = multiples()
            .find_map(|k| plus_q(&G2Affine::from(G2Affine::generator() * k).to_compressed(), half))
            .unwrap();
        let mut bytes = proof::to_bytes(&good);
        bytes[48..144].copy_from_slice(&g2);
        assert_eq!(fault(proof::read(&bytes)), Fault::Coordinate);
    }
    // In decimal any coordinate has room.
    for pointer in
        ["/pi_a/0", "/pi_a/1", "/pi_b/0/0", "/pi_b/0/1", "/pi_b/1/0", "/pi_b/1/1", "/pi_c/0", "/pi_c/1"]
    {
        let mut text = json_of(&good);
        let value = text.pointer_mut(pointer).unwrap();
        let x: BigUint = value.as_str().unwrap().parse().unwrap();
        *value = (x + q()).to_string().into();
        assert_eq!(fault(json::read_proof(text.to_string().as_bytes())), Fault::Coordinate, "{pointer}");
    }
}

#[test]
fn b172_what_is_not_verified_is_not_accepted() {
    let mut text = json_of(&sq10_proof());
    text["commitments"] = serde_json::json!([]);
    assert!(matches!(fault(json::read_proof(text.to_string().as_bytes())), Fault::Json { .. }));
    let mut vk: serde_json::Value = serde_json::from_slice(&fixture("sq10/vkey.json")).unwrap();
    vk["commitmentKeys"] = serde_json::json!([]);
    assert!(matches!(fault(json::read_verifying_key(vk.to_string().as_bytes())), Fault::Json { .. }));
    let longer = |name: &str| [fixture(name), vec![0]].concat();
    assert!(matches!(
        fault(proof::read(&longer("sq10/proof192.bin"))),
        Fault::SectionLength { got: 193, .. }
    ));
    assert_eq!(
        fault(ark::read_verifying_key(&longer("ark_sq10/vk_compressed.bin"))),
        Fault::Trailing { bytes: 1 }
    );
    assert_eq!(
        fault(ark::read(&longer("ark_sq10/pk_uncompressed.bin"), PointChecks::Unchecked)),
        Fault::Trailing { bytes: 1 }
    );
    assert_eq!(fault(zkey::read_verifying_key(&longer("sq10/circuit.zkey"))), Fault::Trailing { bytes: 1 });
    // A stated pairing that is not that of α and β.
    let mut vk: serde_json::Value = serde_json::from_slice(&fixture("sq10/vkey.json")).unwrap();
    vk["vk_alphabeta_12"][0][0][0] = "1".into();
    assert_eq!(fault(json::read_verifying_key(vk.to_string().as_bytes())), Fault::Pairing);
}

#[test]
fn b182_a_wire_that_does_not_exist_is_refused_by_every_file() {
    let file = fixture("multiplier/circuit.zkey");
    for wire in [4u32, u32::MAX] {
        let mut sections = container(&file);
        let section = sections.iter_mut().find(|(id, _)| *id == 4).unwrap();
        section.1[4 + 8..4 + 12].copy_from_slice(&wire.to_le_bytes());
        let expected = Fault::OutOfRange { what: "wire", got: wire.into(), limit: 4 };
        assert_eq!(fault(zkey::read(&rebuilt(&file, &sections), PointChecks::Full)), expected);
    }
    let file = fixture("multiplier/circuit.r1cs");
    for wire in [4u32, u32::MAX] {
        let mut sections = container(&file);
        let section = sections.iter_mut().find(|(id, _)| *id == 2).unwrap();
        section.1[4..8].copy_from_slice(&wire.to_le_bytes());
        let expected = ShapeError::Wire { row: 0, wire: wire.into(), n_wires: 4 };
        assert_eq!(fault(r1cs::read(&rebuilt(&file, &sections))), Fault::Shape(expected));
    }
}

#[test]
fn b184_f001_the_generator_comes_with_the_key() {
    // The type that a zkey is read as says 5; the one of the other files says 7.
    let generator = |key: AnyKey| match key {
        AnyKey::Circom(_) => Circom::GENERATOR,
        AnyKey::Libsnark(_) => Libsnark::GENERATOR,
    };
    let options = LoadOptions { checks: PointChecks::Unchecked, cache: None };
    for name in ["multiplier", "allpublic", "boundary_full", "sq10"] {
        let key = load_proving_key(&path(&format!("{name}/circuit.zkey")), None, &options).unwrap().value;
        assert_eq!(generator(key), 5, "{name}");
    }
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    for name in ["bellman_sq10/sq10.params", "ark_sq10/pk_uncompressed.bin"] {
        assert_eq!(generator(load_proving_key(&path(name), Some(&circuit), &options).unwrap().value), 7);
    }
}

#[test]
fn b190_f010_files_above_4_gib_are_read() {
    // An unknown section of 5 GiB of nothing before the key's own: the file takes no room on the disk.
    const HOLE: u64 = 5 << 30;
    let file = fixture("boundary_full/circuit.zkey");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("large.zkey");
    let mut w = std::fs::File::create(&at).unwrap();
    w.write_all(&file[..8]).unwrap();
    w.write_all(&11u32.to_le_bytes()).unwrap();
    w.write_all(&77u32.to_le_bytes()).unwrap();
    w.write_all(&HOLE.to_le_bytes()).unwrap();
    w.seek(SeekFrom::Current(HOLE as i64)).unwrap();
    w.write_all(&file[12..]).unwrap();
    drop(w);
    let options = LoadOptions { checks: PointChecks::Full, cache: None };
    let AnyKey::Circom(large) = load_proving_key(&at, None, &options).unwrap().value else {
        panic!("a zkey")
    };
    let small = zkey::read(&file, PointChecks::Unchecked).unwrap();
    assert_eq!((large.a(), large.h(), large.rows()), (small.a(), small.h(), small.rows()));

    // Cut within the last section: the offset in the error is beyond 2^32 too.
    let length = std::fs::metadata(&at).unwrap().len();
    std::fs::File::options().write(true).open(&at).unwrap().set_len(length - 10).unwrap();
    let error = load_proving_key(&at, None, &options).unwrap_err();
    assert!(error.place().unwrap().offset.unwrap() > HOLE, "{error}");
    // And a length that lies is refused without an attempt to allocate it.
    let error = fault(zkey::read(&fixture("bad/zkey_section_len_huge.zkey"), PointChecks::Full));
    assert!(matches!(error, Fault::Truncated { needed, .. } if needed == (1 << 63) - 1), "{error}");
}

#[test]
fn b191_keys_of_other_protocols_are_refused_by_name() {
    let file = fixture("multiplier/circuit.zkey");
    for (number, name) in [(2u32, "PLONK (2)"), (10, "FFLONK (10)"), (77, "number 77")] {
        let mut sections = container(&file);
        sections.iter_mut().find(|(id, _)| *id == 1).unwrap().1 = number.to_le_bytes().to_vec();
        // Such a key has other sections, too: the protocol is what is said all the same.
        sections.retain(|(id, _)| *id < 5);
        let found = fault(zkey::read(&rebuilt(&file, &sections), PointChecks::Full));
        assert_eq!(found, Fault::Protocol { got: name.into() });
    }
    let text = String::from_utf8(fixture("sq10/proof.json")).unwrap().replace("groth16", "plonk");
    assert_eq!(fault(json::read_proof(text.as_bytes())), Fault::Protocol { got: "plonk".into() });
}

#[test]
fn b193_empty_and_header_only_files_say_so() {
    let zkey = |b: &[u8]| zkey::read(b, PointChecks::Full).unwrap_err().to_string();
    assert_eq!(zkey(b""), "zkey, file header at byte 0: cut short: 4 bytes needed, 0 left");
    assert_eq!(zkey(b"zkey\x01\0\0\0\0\0\0\0"), "zkey, section 1 (protocol): the section is missing");
    for (magic, version, section) in [(b"wtns", 2, "section 1 (header)"), (b"r1cs", 1, "section 1 (header)")]
    {
        let file = [&magic[..], &[version, 0, 0, 0, 0, 0, 0, 0]].concat();
        let error = match magic {
            b"wtns" => wtns::read(&file).map(drop),
            _ => r1cs::read(&file).map(drop),
        };
        assert!(error.unwrap_err().to_string().contains(section));
    }
    assert!(matches!(fault(json::read_proof(b"")), Fault::Json { .. }));
    assert!(matches!(fault(params::read(b"", PointChecks::Full)), Fault::Truncated { .. }));
    assert!(matches!(fault(ark::read(b"", PointChecks::Full)), Fault::Truncated { .. }));
}

#[test]
fn b194_a_witness_of_another_length_is_refused() {
    let circuit = r1cs::read(&fixture("boundary_full/circuit.r1cs")).unwrap();
    let file = fixture("boundary_full/witness.wtns");
    let mut sections = container(&file);
    for (n, change) in [(255u64, -32i64), (257, 32)] {
        let length = (256 * 32 + change) as usize;
        let mut sections = sections.clone();
        sections[0].1[36..].copy_from_slice(&(n as u32).to_le_bytes());
        sections[1].1.resize(length, 0);
        let witness = wtns::read(&rebuilt(&file, &sections)).unwrap();
        let expected = ShapeError::Count { what: "values in the witness", expected: 256, got: n };
        assert_eq!(circuit.first_unsatisfied(&witness), Err(expected));
    }
    // The header says one thing and the data another.
    sections[1].1.truncate(255 * 32);
    let expected = Fault::Count { what: "values", expected: 256, got: 255 };
    assert_eq!(fault(wtns::read(&rebuilt(&file, &sections))), expected);
}

#[test]
fn b195_f005_counts_that_differ_are_both_said() {
    let sq10 = params::read(&fixture("bellman_sq10/sq10.params"), PointChecks::Unchecked).unwrap().value;
    let rangecheck = r1cs::read(&fixture("rangecheck/circuit.r1cs")).unwrap();
    let error = sq10.clone().with_r1cs(&rangecheck).unwrap_err().to_string();
    assert!(error.contains("expected 555, got 1024"), "{error}");
    // An H query of another reduction's length names the basis that is wanted.
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let mut longer = sq10;
    longer.h = longer.h.iter().chain(&longer.h[..1]).copied().collect();
    let error = longer.with_r1cs(&circuit).unwrap_err().to_string();
    assert!(error.contains("monomial basis") && error.contains("got 1024"), "{error}");
}

#[test]
fn b198_sections_in_any_order_and_optional_ones() {
    let file = fixture("multiplier/circuit.r1cs");
    let sections = container(&file);
    let get = |id: u32| sections.iter().find(|(i, _)| *i == id).unwrap().clone();
    let (one, two, three) = (get(1), get(2), get(3));
    let read = |sections: &[&(u32, Vec<u8>)]| {
        r1cs::read(&rebuilt(&file, &sections.iter().map(|&s| s.clone()).collect::<Vec<_>>()))
    };
    let expected = read(&[&one, &two, &three]).unwrap();
    let unknown = (99, vec![1, 2, 3]);
    for order in [
        &[&three, &one, &two][..],
        &[&two, &one],
        &[&one, &two, &three, &unknown],
        &[&unknown, &three, &two, &one],
        &[&one, &two, &three, &(4, vec![]), &(5, vec![])],
        &[&one, &two, &three, &(4, vec![0; 4]), &(5, vec![0; 4])],
    ] {
        assert_eq!(read(order).unwrap(), expected);
    }
    for twice in [&one, &two, &three, &unknown] {
        assert_eq!(fault(read(&[&one, &two, &three, &unknown, twice])), Fault::Twice { id: twice.0 });
    }
    assert_eq!(fault(read(&[&one, &three])), Fault::Missing);
}

#[test]
fn b199_custom_gates_are_refused_not_misread() {
    let file = fixture("multiplier/circuit.r1cs");
    for id in [4u32, 5] {
        let mut sections = container(&file);
        sections.push((id, [1u32.to_le_bytes().to_vec(), b"Gate\0".to_vec(), vec![0; 4]].concat()));
        let error = r1cs::read(&rebuilt(&file, &sections)).unwrap_err();
        assert_eq!(error.fault(), Some(&Fault::CustomGates { count: 1 }));
        assert!(error.to_string().contains("custom gates, which Groth16 cannot prove"));
    }
}

#[test]
fn b200_fields_of_a_small_file_byte_by_byte() {
    // multiplier.circom: c <== a * b, c public. Wires 1, c, a, b; the row is −a · b = −c.
    let file = fixture("multiplier/circuit.r1cs");
    assert_eq!(&file[..12], b"r1cs\x01\0\0\0\x03\0\0\0");
    let sections = container(&file);
    let get = |id: u32| sections.iter().find(|(i, _)| *i == id).unwrap().1.clone();
    let prime = r().to_bytes_le();
    let words = [4u32, 1, 0, 2].map(u32::to_le_bytes).concat();
    let header =
        [&32u32.to_le_bytes()[..], &prime, &words, &4u64.to_le_bytes(), &1u32.to_le_bytes()].concat();
    assert_eq!(get(1), header);
    let term =
        |wire: u32, value: Scalar| [&1u32.to_le_bytes()[..], &wire.to_le_bytes(), &value.to_repr()].concat();
    let row = [term(2, -Scalar::ONE), term(3, Scalar::ONE), term(1, -Scalar::ONE)].concat();
    assert_eq!(get(2), row);
    let circuit = r1cs::read(&file).unwrap();
    assert_eq!(
        (circuit.n_wires(), circuit.n_public(), circuit.n_outputs(), circuit.n_constraints()),
        (4, 1, 1, 1)
    );
    assert_eq!(circuit.a().row(0).collect::<Vec<_>>(), [(2, -Scalar::ONE)]);
    assert_eq!(circuit.b().row(0).collect::<Vec<_>>(), [(3, Scalar::ONE)]);
    assert_eq!(circuit.c().row(0).collect::<Vec<_>>(), [(1, -Scalar::ONE)]);
}

#[test]
fn b201_a_value_at_or_above_the_prime_is_refused() {
    for n in [r(), r() + 1u8, r() + 5u8, (BigUint::from(1u8) << 256u32) - 1u8] {
        let mut file = fixture("multiplier/witness.wtns");
        let at = file.len() - 64;
        file[at..at + 32].copy_from_slice(&n.to_bytes_le());
        let error = wtns::read(&file).unwrap_err();
        assert_eq!((error.fault(), error.place().unwrap().index), (Some(&Fault::Scalar), Some(2)));
    }
}

#[test]
fn b203_curve_and_limb_order_of_written_json() {
    let text =
        json_of(&Proof { a: G1Affine::generator(), b: G2Affine::generator(), c: G1Affine::generator() });
    assert_eq!((text["protocol"].as_str(), text["curve"].as_str()), (Some("groth16"), Some("bls12381")));
    // c0 of the generator's x first; its bytes have c1 first.
    let bytes = G2Affine::generator().to_uncompressed();
    for (pointer, at) in [("/pi_b/0/0", 48), ("/pi_b/0/1", 0), ("/pi_b/1/0", 144), ("/pi_b/1/1", 96)] {
        let expected = BigUint::from_bytes_be(&bytes[at..at + 48]).to_string();
        assert_eq!(text.pointer(pointer).unwrap().as_str(), Some(&expected[..]), "{pointer}");
    }
    // A proof of another curve with the right label does not pass for one of this curve.
    let wrong = String::from_utf8(fixture("bn128_rangecheck/proof.json")).unwrap();
    assert_eq!(fault(json::read_proof(wrong.as_bytes())), Fault::Curve { got: "bn128".into() });
    assert_eq!(fault(json::read_proof(wrong.replace("bn128", "bls12381").as_bytes())), Fault::OffCurve);
}

#[test]
fn b205_f020_a_flipped_bit_is_blamed_on_the_file() {
    let file = fixture("boundary_full/circuit.zkey");
    for (id, name, size) in [(5, "A", 96), (6, "B1", 96), (7, "B2", 192), (8, "L", 96), (9, "H", 96)] {
        let mut sections = container(&file);
        let section = &mut sections.iter_mut().find(|(i, _)| *i == id).unwrap().1;
        let index = section.chunks_exact(size).rposition(|p| p.iter().any(|&b| b != 0)).unwrap();
        section[index * size + 7] ^= 1;
        let error = zkey::read(&rebuilt(&file, &sections), PointChecks::Full).unwrap_err().to_string();
        let expected = format!("zkey, section {id} ({name})[{index}] at byte ");
        assert!(error.starts_with(&expected) && error.ends_with("point is not on the curve"), "{error}");
    }
    // A point of H off the curve, in parameters.
    let mut file = fixture("bellman_sq10/sq10.params");
    let h = 864 + 4 + 2 * 96 + 4;
    file[h + 5 * 96 + 95] ^= 1;
    let error = params::read(&file, PointChecks::Full).unwrap_err().to_string();
    assert!(error.contains("H[5] at byte") && error.ends_with("point is not on the curve"), "{error}");
}

#[test]
fn f006_a_second_load_is_faster() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Some(prestage_groth16::format::CheckCache::new(folder.path()));
    let remembered = LoadOptions { checks: PointChecks::Full, cache };
    let always = LoadOptions { checks: PointChecks::Full, cache: None };
    let key = path("sq10/circuit.zkey");
    let time = |options: &LoadOptions| {
        let start = Instant::now();
        load_proving_key(&key, None, options).unwrap();
        start.elapsed()
    };
    time(&remembered);
    let (mut checked, mut second) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        checked = checked.min(time(&always));
        second = second.min(time(&remembered));
    }
    assert!(second * 3 < checked, "checked {checked:?}, remembered {second:?}");
}

#[test]
fn f008_empty_queries_are_read() {
    let read = |name: &str| zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Full).unwrap();
    assert!(read("allpublic").l().points().is_empty());
    assert_eq!(read("nopublic").vk().ic.len(), 1);
    assert_eq!(json::read_public(&fixture("nopublic/public.json")).unwrap(), []);
    assert!(!read("linear").b_g2().density().is_full());
}

#[test]
fn f009_circuits_of_other_compilers_are_read() {
    for (name, wires, rows) in [("bellman_sq10/sq10", 1024, 1022), ("sapling/output", 7827, 7827)] {
        let circuit = r1cs::read(&fixture(&format!("{name}.r1cs"))).unwrap();
        assert_eq!((circuit.n_wires(), circuit.n_constraints()), (wires, rows));
        let witness = wtns::read(&fixture(&format!("{name}.wtns"))).unwrap();
        assert_eq!(circuit.first_unsatisfied(&witness), Ok(None));
    }
}

#[test]
fn f014_the_first_fault_is_said_not_the_last() {
    let error = zkey::read(&fixture("bn128_rangecheck/circuit.zkey"), PointChecks::Full).unwrap_err();
    assert!(error.to_string().contains("expected the curve bls12381, got bn128"), "{error}");
    assert!(matches!(
        fault(zkey::read(&fixture("bad/zkey_empty.zkey"), PointChecks::Full)),
        Fault::Truncated { .. }
    ));
}
