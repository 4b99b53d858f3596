//! Field by field: what the readers make of real files, against the bytes read here by hand.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use prestage_groth16::format::{Note, PointChecks, ark, json, params, proof, r1cs, wtns, zkey};
use prestage_groth16::{Circom, Libsnark, Proof, Reduction, VerifyingKey};

use super::{SNARKJS, fixture};

/// The bytes of a section: the naive reading of the container.
fn section(file: &[u8], wanted: u32) -> &[u8] {
    let u32_at = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut at = 12;
    for _ in 0..u32_at(8) {
        let (id, length) = (u32_at(at), u64::from_le_bytes(file[at + 4..at + 12].try_into().unwrap()));
        let end = at + 12 + length as usize;
        if id == wanted {
            return &file[at + 12..end];
        }
        at = end;
    }
    panic!("no section {wanted}");
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// e(A, B) = e(α, β) · e(IC(x), γ) · e(C, δ), by four plain pairings.
fn verifies(vk: &VerifyingKey, inputs: &[Scalar], proof: &Proof) -> bool {
    let mut ic = blstrs::G1Projective::from(vk.ic[0]);
    for (point, x) in vk.ic[1..].iter().zip(inputs) {
        ic += point * x;
    }
    let e = blstrs::pairing;
    e(&proof.a, &proof.b)
        == e(&vk.alpha_g1, &vk.beta_g2) + e(&G1Affine::from(ic), &vk.gamma_g2) + e(&proof.c, &vk.delta_g2)
}

#[test]
fn r1cs_header_and_every_row() {
    let file = fixture("sq10/circuit.r1cs");
    let circuit = r1cs::read(&file).unwrap();
    let header = section(&file, 1);
    let words = u32s(&header[36..]);
    assert_eq!(&words[..4], [1024, 1, 0, 1]);
    assert_eq!((circuit.n_wires(), circuit.n_outputs(), circuit.n_public()), (1024, 1, 1));
    assert_eq!((circuit.n_constraints(), words[6]), (1022, 1022));
    assert_eq!(circuit.domain_size(), 1024);
    // circom stores −a · b = −c: row 0 squares the input.
    let minus_one = -Scalar::ONE;
    for (matrix, wire, value) in
        [(circuit.a(), 2, minus_one), (circuit.b(), 2, Scalar::ONE), (circuit.c(), 3, minus_one)]
    {
        assert_eq!(matrix.row(0).collect::<Vec<_>>(), [(wire, value)]);
    }
    // Every term of every row, read by hand.
    let constraints = section(&file, 2);
    let mut at = 0;
    for i in 0..circuit.n_constraints() {
        for matrix in [circuit.a(), circuit.b(), circuit.c()] {
            let n = u32s(&constraints[at..at + 4])[0] as usize;
            let terms: Vec<(u32, Scalar)> = constraints[at + 4..at + 4 + 36 * n]
                .chunks_exact(36)
                .map(|t| (u32s(&t[..4])[0], Scalar::from_repr(t[4..].try_into().unwrap()).unwrap()))
                .collect();
            assert_eq!(matrix.row(i).collect::<Vec<_>>(), terms);
            at += 4 + 36 * n;
        }
    }
    assert_eq!(at, constraints.len());
}

#[test]
fn wtns_values() {
    let file = fixture("sq10/witness.wtns");
    let witness = wtns::read(&file).unwrap();
    let values = section(&file, 2);
    assert_eq!(witness.values().len(), 1024);
    for (value, bytes) in witness.values().iter().zip(values.chunks_exact(32)) {
        assert_eq!(value.to_repr(), bytes);
    }
    assert_eq!(witness.values()[0], Scalar::ONE);
}

#[test]
fn zkey_fields() {
    for name in SNARKJS {
        let file = fixture(&format!("{name}/circuit.zkey"));
        let key = zkey::read(&file, PointChecks::Full).unwrap();
        let header = section(&file, 2);
        let counts = u32s(&header[88..100]);
        assert_eq!(
            [key.n_vars() as u32, key.n_public() as u32, key.domain_size() as u32],
            counts[..],
            "{name}"
        );
        // Points are in the file as they are in memory.
        let g1 = |p: &G1Affine| {
            [p.as_ref().x.l, p.as_ref().y.l].concat().iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<_>>()
        };
        let g2 = |p: &G2Affine| {
            let (x, y) = (p.as_ref().x.fp, p.as_ref().y.fp);
            [x[0].l, x[1].l, y[0].l, y[1].l].concat().iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<_>>()
        };
        let vk = key.vk();
        let fixed = [
            g1(&vk.alpha_g1),
            g1(key.beta_g1()),
            g2(&vk.beta_g2),
            g2(&vk.gamma_g2),
            g1(key.delta_g1()),
            g2(&vk.delta_g2),
        ]
        .concat();
        assert_eq!(fixed, header[100..], "{name}");
        assert_eq!(vk.ic.iter().flat_map(g1).collect::<Vec<_>>(), section(&file, 3), "{name}");
        assert_eq!(key.h().iter().flat_map(g1).collect::<Vec<_>>(), section(&file, 9), "{name}");
        for (query, id) in [(key.a(), 5), (key.b_g1(), 6), (key.l(), 8)] {
            let mut points = query.points().iter();
            for (wire, bytes) in section(&file, id).chunks_exact(96).enumerate() {
                let infinity = bytes.iter().all(|&b| b == 0);
                assert_eq!(query.density().get(wire), !infinity, "{name} section {id} wire {wire}");
                if !infinity {
                    assert_eq!(g1(points.next().unwrap()), bytes, "{name} section {id} wire {wire}");
                }
            }
            assert!(points.next().is_none());
        }
        let mut points = key.b_g2().points().iter();
        for (wire, bytes) in section(&file, 7).chunks_exact(192).enumerate() {
            if key.b_g2().density().get(wire) {
                assert_eq!(g2(points.next().unwrap()), bytes, "{name} wire {wire}");
            } else {
                assert!(bytes.iter().all(|&b| b == 0));
            }
        }
        assert_eq!(Circom::h_len(key.domain_size()), key.h().len() as u64);
    }
}

#[test]
fn zkey_rows_are_those_of_the_r1cs() {
    for name in SNARKJS {
        let key = zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Full).unwrap();
        let circuit = r1cs::read(&fixture(&format!("{name}/circuit.r1cs"))).unwrap();
        key.fits(&circuit).unwrap();
        let sorted = |row: &mut dyn Iterator<Item = (u32, Scalar)>| {
            let mut row: Vec<_> = row.map(|(wire, c)| (wire, c.to_repr())).collect();
            row.sort_unstable();
            row
        };
        let n = circuit.n_constraints();
        for i in 0..n {
            for (ours, theirs) in [(&key.rows().a, circuit.a()), (&key.rows().b, circuit.b())] {
                assert_eq!(sorted(&mut ours.row(i)), sorted(&mut theirs.row(i)), "{name} row {i}");
            }
        }
        for i in n..key.domain_size() as usize {
            let public: Vec<_> =
                if i - n <= key.n_public() { vec![((i - n) as u32, Scalar::ONE)] } else { vec![] };
            assert_eq!(key.rows().a.row(i).collect::<Vec<_>>(), public, "{name} row {i}");
            assert_eq!(key.rows().b.row(i).len(), 0);
        }
        // And so are the densities.
        assert_eq!(**key.a().density(), circuit.density_a(), "{name}");
        assert_eq!(**key.b_g1().density(), circuit.density_b(), "{name}");
        assert_eq!(key.b_g1().density(), key.b_g2().density(), "{name}");
    }
}

#[test]
fn empty_queries_and_unused_wires_are_read() {
    let load = |name: &str| zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Full).unwrap();
    let allpublic = load("allpublic");
    assert_eq!((allpublic.l().points().len(), allpublic.n_private()), (0, 0));
    assert_eq!(load("nopublic").vk().ic.len(), 1);
    let linear = load("linear");
    assert!(!linear.a().density().is_full() && !linear.l().density().is_full());
    let manypublic = load("manypublic");
    assert_eq!((manypublic.n_vars(), manypublic.b_g2().points().len()), (222, 20));
}

#[test]
fn every_witness_satisfies_its_circuit() {
    for name in SNARKJS {
        let circuit = r1cs::read(&fixture(&format!("{name}/circuit.r1cs"))).unwrap();
        let witness = wtns::read(&fixture(&format!("{name}/witness.wtns"))).unwrap();
        assert_eq!(circuit.first_unsatisfied(&witness), Ok(None), "{name}");
        let public = json::read_public(&fixture(&format!("{name}/public.json"))).unwrap();
        assert_eq!(witness.public(circuit.n_public()).unwrap(), public, "{name}");
    }
    for (circuit, witness) in [
        ("bellman_sq10/sq10.r1cs", "bellman_sq10/sq10.wtns"),
        ("sapling/output.r1cs", "sapling/output.wtns"),
        ("sq10/circuit.r1cs", "sq10/witness_x0.wtns"),
        ("sq10/circuit.r1cs", "sq10/witness_x1.wtns"),
    ] {
        let circuit = r1cs::read(&fixture(circuit)).unwrap();
        assert_eq!(circuit.first_unsatisfied(&wtns::read(&fixture(witness)).unwrap()), Ok(None));
    }
}

#[test]
fn keys_and_proofs_of_snarkjs_verify_and_agree() {
    for name in SNARKJS {
        let vk = json::read_verifying_key(&fixture(&format!("{name}/vkey.json"))).unwrap();
        let from_zkey = zkey::read_verifying_key(&fixture(&format!("{name}/circuit.zkey"))).unwrap();
        assert_eq!(VerifyingKey { beta_g1: None, delta_g1: None, ..from_zkey }, vk, "{name}");
        let public = json::read_public(&fixture(&format!("{name}/public.json"))).unwrap();
        let from_json = json::read_proof(&fixture(&format!("{name}/proof.json"))).unwrap();
        let from_bytes = proof::read(&fixture(&format!("{name}/proof192.bin"))).unwrap();
        assert_eq!(from_json, from_bytes, "{name}");
        assert!(verifies(&vk, &public, &from_json), "{name}");
    }
}

#[test]
fn bellman_keys_take_their_wires_from_the_r1cs() {
    // The ceremony's file goes on after the key, with its transcript.
    for (name, circuit, witness, theirs, transcript) in [
        (
            "bellman_sq10/sq10.params",
            "bellman_sq10/sq10.r1cs",
            "bellman_sq10/sq10.wtns",
            "bellman_sq10/proof192.bin",
            0,
        ),
        (
            "sapling/sapling-output.params",
            "sapling/output.r1cs",
            "sapling/output.wtns",
            "sapling/output_proof192.bin",
            52_836,
        ),
    ] {
        let file = fixture(name);
        let read = params::read(&file, PointChecks::Full).unwrap();
        let noted: Vec<u64> = read
            .notes
            .iter()
            .map(|note| match note {
                Note::Trailing { bytes, .. } => *bytes,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(noted.iter().sum::<u64>(), transcript, "{name}");
        let circuit = r1cs::read(&fixture(circuit)).unwrap();
        let key = read.value.with_r1cs(&circuit).unwrap();
        assert_eq!(Libsnark::h_len(key.domain_size()), key.h().len() as u64);
        assert_eq!(params::read_verifying_key(&file).unwrap(), *key.vk());
        let witness = wtns::read(&fixture(witness)).unwrap();
        let public = witness.public(circuit.n_public()).unwrap();
        assert!(verifies(key.vk(), public, &proof::read(&fixture(theirs)).unwrap()), "{name}");
        // The naive reading: α, β, β, γ, δ, δ, the counts, and the first point of each query.
        assert_eq!(key.vk().alpha_g1.to_uncompressed(), file[..96]);
        assert_eq!(key.beta_g1().to_uncompressed(), file[96..192]);
        assert_eq!(key.vk().delta_g2.to_uncompressed(), file[672..864]);
        let mut at = 864;
        for query in [&key.vk().ic, key.h(), key.l().points(), key.a().points(), key.b_g1().points()] {
            assert_eq!(u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize, query.len());
            assert_eq!(query[0].to_uncompressed(), file[at + 4..at + 100]);
            at += 4 + 96 * query.len();
        }
        let end = at + 4 + 192 * key.b_g2().points().len();
        assert_eq!(end as u64 + transcript, file.len() as u64);
    }
}

#[test]
fn arkworks_keys_are_read_in_both_encodings() {
    let circuit = r1cs::read(&fixture("bellman_sq10/sq10.r1cs")).unwrap();
    let key = ark::read(&fixture("ark_sq10/pk_uncompressed.bin"), PointChecks::Full).unwrap();
    key.fits(&circuit).unwrap();
    assert_eq!(**key.a().density(), circuit.density_a());
    assert_eq!(**key.b_g2().density(), circuit.density_b());
    let vk = ark::read_verifying_key(&fixture("ark_sq10/vk_compressed.bin")).unwrap();
    assert_eq!(VerifyingKey { beta_g1: None, delta_g1: None, ..key.vk().clone() }, vk);
    let witness = wtns::read(&fixture("bellman_sq10/sq10.wtns")).unwrap();
    let theirs = proof::read(&fixture("ark_sq10/proof_compressed.bin")).unwrap();
    assert!(verifies(&vk, witness.public(1).unwrap(), &theirs));

    // The same key, compressed here: counts as they are, each point in half its bytes.
    let g1 = |p: &[G1Affine]| p.iter().flat_map(G1Affine::to_compressed).collect::<Vec<u8>>();
    let g2 = |p: &[G2Affine]| p.iter().flat_map(G2Affine::to_compressed).collect::<Vec<u8>>();
    let all = |query: &prestage_groth16::Query<G1Affine>| {
        let mut points = query.points().iter();
        (0..query.density().len())
            .map(|i| if query.density().get(i) { *points.next().unwrap() } else { G1Affine::identity() })
            .collect::<Vec<_>>()
    };
    let mut points = key.b_g2().points().iter();
    let b_g2: Vec<G2Affine> = (0..key.n_vars())
        .map(|i| if key.b_g2().density().get(i) { *points.next().unwrap() } else { G2Affine::identity() })
        .collect();
    let n = |n: usize| (n as u64).to_le_bytes().to_vec();
    let v = key.vk();
    let compressed = [
        g1(&[v.alpha_g1]),
        g2(&[v.beta_g2, v.gamma_g2, v.delta_g2]),
        n(v.ic.len()),
        g1(&v.ic),
        g1(&[*key.beta_g1(), *key.delta_g1()]),
        n(key.n_vars()),
        g1(&all(key.a())),
        n(key.n_vars()),
        g1(&all(key.b_g1())),
        n(key.n_vars()),
        g2(&b_g2),
        n(key.h().len()),
        g1(key.h()),
        n(key.n_private()),
        g1(&all(key.l())),
    ]
    .concat();
    let again = ark::read(&compressed, PointChecks::Full).unwrap();
    assert_eq!(again.a(), key.a());
    assert_eq!(again.b_g2(), key.b_g2());
    assert_eq!((again.l(), again.h()), (key.l(), key.h()));
}

#[test]
fn generators_and_names_of_the_reductions() {
    assert_eq!((Circom::GENERATOR, Libsnark::GENERATOR), (5, 7));
    assert_ne!(Circom::H_BASIS, Libsnark::H_BASIS);
    // 5 and 7 give different eighth roots of unity, equal fourth roots up to order: see FORMATS.md.
    let t = |g: u64, log: u32| {
        let mut x = Scalar::from(g);
        // (r − 1) / 2^32, by its four words.
        x = x.pow_vartime([0xfffe_5bfe_ffff_ffff, 0x09a1_d805_53bd_a402, 0x299d_7d48_3339_d808, 0x73ed_a753]);
        for _ in log..32 {
            x = x.square();
        }
        x
    };
    assert_eq!(t(7, 32), Scalar::ROOT_OF_UNITY);
    assert_eq!(t(5, 2), t(7, 2));
    assert_ne!(t(5, 3), t(7, 3));
}
