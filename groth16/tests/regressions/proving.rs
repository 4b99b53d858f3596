//! Setup and proving.

use std::sync::{Arc, OnceLock};

use blstrs::{G1Affine, Scalar};
use group::prime::PrimeCurveAffine;
use prestage_groth16::format::{PointChecks, json, wtns, zkey};
use prestage_groth16::{
    Assignment, Circom, Counts, Density, DeviceFootprints, Error, Libsnark, MatrixName, Options, Plan,
    Policy, Prover, ProvingKey, Query, R1cs, Reduction, Shape, Witness, setup_insecure_from_seed, verify,
};
use prestage_ntt::Domain;
use prestage_vram::{Bytes, Device, Host, HostConfig, Ledger, LedgerConfig, Op, Worker};

use super::common::{Circuit, blinding, evaluations, host, host_with, reference, squares, with_two_threads};
use super::fixture;

fn open() -> Host {
    Host::open(HostConfig::default()).unwrap()
}

fn key<R: Reduction>(r1cs: &R1cs) -> ProvingKey<R> {
    setup_insecure_from_seed(r1cs, [9; 32]).unwrap()
}

fn fixed() -> Options {
    Options::default().insecure_blinding(blinding(4))
}

/// Setup, staged proof, verification, under both reductions.
fn proves(r1cs: &R1cs, witness: &Witness) {
    fn under<R: Reduction>(r1cs: &R1cs, witness: &Witness) {
        let device = open();
        let prover = Prover::new(&device, key::<R>(r1cs)).unwrap();
        let assignment = Assignment::new(&prover, r1cs, witness).unwrap();
        let proof = prover.prove(&mut Worker::new(0), &assignment, &fixed()).unwrap().proof;
        assert!(verify(prover.key().vk(), assignment.public(), &proof).unwrap());
        assert_eq!(proof, reference(prover.key(), r1cs, witness, blinding(4)), "{}", R::NAME);
    }
    under::<Libsnark>(r1cs, witness);
    under::<Circom>(r1cs, witness);
}

/// A circuit from its rows, each side a list of (wire, coefficient).
fn circuit(wires: u32, public: u32, rows: &[[&[(u32, i64)]; 3]]) -> R1cs {
    let scalar = |k: i64| {
        let k_abs = Scalar::from(k.unsigned_abs());
        if k < 0 { -k_abs } else { k_abs }
    };
    let mut builder = R1cs::builder(wires, public).unwrap();
    for row in rows {
        let [a, b, c] = row.map(|side| side.iter().map(|(i, k)| (*i, scalar(*k))).collect::<Vec<_>>());
        builder.constraint(&a, &b, &c).unwrap();
    }
    builder.finish()
}

fn witness(values: &[u64]) -> Witness {
    Witness::new(values.iter().map(|v| Scalar::from(*v)).collect()).unwrap()
}

/// A device that failed for good fails fast, and gives no proof whenever it happens.
#[test]
fn b098_b099_a_poisoned_device_gives_no_proof() {
    let (r1cs, witness) = squares(20, 3);
    let ledger: Arc<OnceLock<Ledger>> = Arc::default();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(usize::MAX));
    for after in 0..40 {
        let trap = {
            let (ledger, count) = (Arc::clone(&ledger), Arc::clone(&count));
            move |op: Op| {
                use std::sync::atomic::Ordering::SeqCst;
                let hit = op == Op::Launch && count.fetch_sub(1, SeqCst) == 0;
                if let (true, Some(ledger)) = (hit, ledger.get()) {
                    ledger.poison("trap");
                }
                hit
            }
        };
        let config = LedgerConfig { faults: Some(Arc::new(trap)), ..LedgerConfig::default() };
        let device = host_with(Bytes::gib(1), config);
        let _ = ledger.set(device.ledger().clone());
        let prover = Prover::new(&device, key::<Libsnark>(&r1cs)).unwrap();
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        count.store(after, std::sync::atomic::Ordering::SeqCst);
        let first = prover.prove(&mut Worker::new(0), &assignment, &fixed());
        let Err(_) = first else {
            assert!(after > 5, "the trap is never reached");
            return;
        };
        device.ledger().poison("trap");
        for _ in 0..2 {
            let again = prover.prove(&mut Worker::new(0), &assignment, &fixed());
            assert!(matches!(again, Err(Error::Device(prestage_vram::Error::Poisoned { .. }))), "{again:?}");
        }
    }
    panic!("a proof of more than 40 launches");
}

#[test]
fn b164_the_top_coefficient_of_h_may_be_zero() {
    // x·x = y; x·y = z; 0·0 = z − a.
    let square = circuit(3, 1, &[[&[(2, 1)], &[(2, 1)], &[(1, 1)]]]);
    for x in [0, 1, 3] {
        proves(&square, &witness(&[1, x * x, x]));
    }
    let product = circuit(4, 1, &[[&[(2, 1)], &[(3, 1)], &[(1, 1)]]]);
    for (x, y) in [(0, 0), (1, 1), (3, 4)] {
        proves(&product, &witness(&[1, x * y, x, y]));
    }
    let linear = circuit(3, 1, &[[&[], &[], &[(1, 1), (2, -1)]]]);
    proves(&linear, &witness(&[1, 5, 5]));
    // Rows fill the domain to the last: six constraints, the one and a public wire.
    let (full, values) = Circuit { seed: 2, constraints: 6, public: 1, free: 2, unused: 0 }.build();
    assert_eq!(full.n_rows(), full.domain_size());
    proves(&full, &values);
}

#[test]
fn b166_no_constraints_one_constraint_domains_of_one_and_two() {
    for constraints in [0, 1] {
        for (public, free) in [(0, 0), (0, 2), (1, 0), (1, 2), (2, 0)] {
            let (r1cs, witness) = Circuit { seed: 5, constraints, public, free, unused: 0 }.build();
            proves(&r1cs, &witness);
        }
    }
    let size = |constraints, public| {
        Circuit { seed: 5, constraints, public, free: 0, unused: 0 }.build().0.domain_size()
    };
    assert_eq!([size(0, 0), size(0, 1), size(1, 0), size(1, 1)], [1, 2, 2, 4]);
}

/// The same key with every infinity written out.
fn unfiltered(key: &ProvingKey<Libsnark>) -> ProvingKey<Libsnark> {
    fn all<P: PrimeCurveAffine>(query: &Query<P>) -> Query<P> {
        let mut points = vec![P::identity(); query.density().len()];
        for (wire, point) in query.density().ones().zip(query.points().iter()) {
            points[wire] = *point;
        }
        Query::new(points.into(), Arc::new(Density::full(query.density().len()))).unwrap()
    }
    let mut parts = key.parts().clone();
    (parts.a, parts.l) = (all(&parts.a), all(&parts.l));
    (parts.b_g1, parts.b_g2) = (all(&parts.b_g1), all(&parts.b_g2));
    ProvingKey::new(parts).unwrap()
}

#[test]
fn b167_f030_queries_with_and_without_their_infinities() {
    let (r1cs, witness) = Circuit { seed: 6, constraints: 80, public: 3, free: 40, unused: 60 }.build();
    let filtered = key::<Libsnark>(&r1cs);
    assert!(filtered.b_g1().points().len() * 3 < filtered.n_vars() * 2, "many of B are at infinity");
    let device = open();
    let [a, b] = [filtered.clone(), unfiltered(&filtered)].map(|key| {
        let prover = Prover::new(&device, key).unwrap();
        let assignment = Assignment::new_unchecked(&prover, &r1cs, &witness).unwrap();
        prover.prove(&mut Worker::new(0), &assignment, &fixed()).unwrap().proof
    });
    assert_eq!(a, b);
}

#[test]
fn b175_the_smallest_circuits_take_the_same_path() {
    for constraints in 1..=8 {
        let (r1cs, witness) = Circuit { seed: 7, constraints, public: 1, free: 1, unused: 0 }.build();
        proves(&r1cs, &witness);
    }
}

#[test]
fn b183_a_key_of_another_circuit_is_refused_before_proving() {
    let one = circuit(4, 1, &[[&[(2, 1)], &[(2, 1)], &[(1, 1)]]]);
    let other = circuit(4, 1, &[[&[(3, 1)], &[(3, 1)], &[(1, 1)]]]);
    let device = open();
    let prover = Prover::new(&device, key::<Libsnark>(&one)).unwrap();
    let good = witness(&[1, 9, 3, 3]);
    Assignment::new(&prover, &one, &good).unwrap();
    assert!(matches!(
        Assignment::new(&prover, &other, &good),
        Err(Error::OtherCircuit { matrix: MatrixName::A, wire: 2 })
    ));
    // Where the shapes agree and the coefficients do not, the prover's own verification refuses.
    let doubled = circuit(4, 1, &[[&[(2, 2)], &[(2, 1)], &[(1, 1)]]]);
    let assignment = Assignment::new(&prover, &doubled, &witness(&[1, 18, 3, 3])).unwrap();
    assert!(matches!(prover.prove(&mut Worker::new(0), &assignment, &fixed()), Err(Error::NotVerified)));
}

/// snarkjs keys are over the domains of 5; with those of 7 the same computation gives no proof.
#[test]
fn f001_f005_the_root_of_unity_decides() {
    let key = zkey::read(&fixture("rangecheck/circuit.zkey"), PointChecks::Unchecked).unwrap();
    let values = wtns::read(&fixture("rangecheck/witness.wtns")).unwrap();
    let public = json::read_public(&fixture("rangecheck/public.json")).unwrap();
    let device = open();
    let prover = Prover::new(&device, key).unwrap();
    let assignment = Assignment::from_key(&prover, &values).unwrap();
    let good = prover.prove(&mut Worker::new(0), &assignment, &fixed()).unwrap().proof;
    assert!(verify(prover.key().vk(), &public, &good).unwrap());

    let circuit = prestage_groth16::format::r1cs::read(&fixture("rangecheck/circuit.r1cs")).unwrap();
    let h = |generator| {
        let abc = evaluations(&circuit, &values);
        let domain = Domain::new(abc[0].len(), generator).unwrap();
        let form = Circom::quotient(&domain).unwrap();
        let [mut a, b, c] = abc.map(|mut values| {
            prestage_ntt::host::coset_evaluations(&domain, &mut values, form.shift).unwrap();
            values
        });
        prestage_ntt::host::mul_sub_scale(&mut a, &b, &c, form.scale).unwrap();
        prestage_msm::host::msm(prover.key().h(), &a).unwrap()
    };
    let (of_5, of_7) = (h(5), h(7));
    assert_ne!(of_5, of_7);
    let wrong = prestage_groth16::Proof { c: G1Affine::from(good.c.to_curve() - of_5 + of_7), ..good };
    assert!(!verify(prover.key().vk(), &public, &wrong).unwrap());
}

#[test]
fn f008_empty_queries_prove() {
    let device = open();
    for (name, empty_l) in [("allpublic", true), ("nopublic", false), ("linear", false)] {
        let key = zkey::read(&fixture(&format!("{name}/circuit.zkey")), PointChecks::Full).unwrap();
        assert_eq!(key.l().points().is_empty(), empty_l);
        let prover = Prover::new(&device, key).unwrap();
        let values = wtns::read(&fixture(&format!("{name}/witness.wtns"))).unwrap();
        let assignment = Assignment::from_key(&prover, &values).unwrap();
        prover.prove(&mut Worker::new(0), &assignment, &Options::default()).unwrap();
    }
}

/// The full-size shape against cards that are too small, with the real footprints and no device work.
#[test]
fn f015_f016_memory_is_told_before_it_is_taken() {
    let device = open();
    let domain = Domain::new(1 << 27, Libsnark::GENERATOR).unwrap();
    let shape = Shape::new::<Libsnark>(&Counts::POREP_32G).unwrap();
    let footprints = DeviceFootprints::new(&device, &domain);
    let plan = |budget| Plan::new(&shape, &footprints, Policy::Auto, budget, Bytes::mib(512));
    let card = plan(Bytes::mib(14_131)).unwrap();
    assert_eq!(card.policy(), Policy::Full);
    assert!(card.tables() <= Bytes::mib(32) && card.peak() <= Bytes::mib(14_131));
    let names: Vec<_> = card.phases().iter().map(|p| p.name).collect();
    assert_eq!(names, ["stage", "quotient", "h", "l", "a", "b1", "b2"]);
    assert!(matches!(plan(Bytes::gib(6) + Bytes::mib(32)).unwrap().policy(), Policy::Chunked(4)));
    let error = plan(Bytes::gib(4)).unwrap_err();
    assert!(matches!(error, Error::PlanRefused { .. }));
    assert!(error.to_string().contains("the budget is 4.00 GiB"), "{error}");
    assert_eq!(device.ledger().peak(), Bytes::ZERO);
}

#[test]
fn f023_f032_f040_many_proofs_in_one_process() {
    let (r1cs, witness) = squares(60, 3);
    let device = open();
    let prover = Prover::new(&device, key::<Circom>(&r1cs)).unwrap();
    let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
    let expected = reference(prover.key(), &r1cs, &witness, blinding(4));
    let mut worker = Worker::new(0);
    let locked = device.ledger().locked().bytes();
    for i in 0..100 {
        if i % 5 == 0 {
            // Fresh randomness, verified by the prover.
            prover.prove(&mut worker, &assignment, &Options::default()).unwrap();
        } else {
            assert_eq!(prover.prove(&mut worker, &assignment, &fixed()).unwrap().proof, expected);
        }
    }
    assert_eq!(device.ledger().held(), []);
    assert_eq!(device.ledger().locked().bytes(), locked);
}

/// A B query of mostly infinities (202 of 222) on a card with next to no memory.
#[test]
fn f036_a_query_full_of_infinities_on_a_small_card() {
    with_two_threads(|| {
        let key = zkey::read(&fixture("manypublic/circuit.zkey"), PointChecks::Full).unwrap();
        assert_eq!((key.b_g2().points().len(), key.n_vars()), (20, 222));
        let values = wtns::read(&fixture("manypublic/witness.wtns")).unwrap();
        let device = host(Bytes::mib(1));
        let prover = Prover::new(&device, key).unwrap();
        let assignment = Assignment::from_key(&prover, &values).unwrap();
        prover.prove(&mut Worker::new(0), &assignment, &Options::default()).unwrap();
        assert_eq!(device.ledger().held(), []);
    });
}
