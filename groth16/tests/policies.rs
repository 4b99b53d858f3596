//! Row P4: every policy gives the same proof, on every device and with any number of workers, and takes the memory that its
//! plan says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::collections::BTreeMap;

use common::devices::Subject;
use common::{Circuit, blinding, reference};
use prestage_groth16::{
    Assignment, Circom, Error, Libsnark, Options, Policy, Prover, R1cs, Reduction, Witness,
    setup_insecure_from_seed,
};
use prestage_vram::{Bytes, Host, LedgerConfig, Sim, Worker};
use proptest::prelude::*;

const POLICIES: [Policy; 6] =
    [Policy::Auto, Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::Chunked(4), Policy::None];

type Curve = Vec<(&'static str, Bytes)>;

/// Each of `workers` workers proves under every policy, beginning with another one. All proofs are equal, and each took the
/// memory of its plan, phase by phase.
fn all_policies<D: Subject, R: Reduction>(r1cs: &R1cs, witness: &Witness, workers: u32) {
    let key = setup_insecure_from_seed::<R>(r1cs, [7; 32]).unwrap();
    let expected = reference(&key, r1cs, witness, blinding(1));
    let rows = r1cs.domain_size();
    let ledger = LedgerConfig { ahead: workers > 1, ..LedgerConfig::default() };
    let device = D::open_for(rows.trailing_zeros(), ledger);
    let prover = Prover::new(&device, key).unwrap();
    let curves = device.crew(workers, |id| {
        let mut worker = Worker::new(id.0);
        let assignment = Assignment::new(&prover, r1cs, witness).unwrap();
        let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
        for i in 0..POLICIES.len() {
            let policy = POLICIES[(i + id.0 as usize) % POLICIES.len()];
            let options = Options::default().policy(policy).insecure_blinding(blinding(1));
            let outcome = prover.prove(&mut worker, &assignment, &options);
            if matches!(policy, Policy::Chunked(k) if u64::from(k * k) > rows) {
                assert!(matches!(outcome, Err(Error::Ntt(_))), "{policy} of {rows} rows");
                continue;
            }
            let proved = outcome.unwrap();
            assert_eq!(proved.proof, expected, "{policy}, {rows} rows, {}, {}", R::NAME, device.name());
            let planned: Curve = proved.plan.phases().iter().map(|phase| (phase.name, phase.peak)).collect();
            assert_eq!(proved.peaks, planned, "{policy}, {}", device.name());
            assert!(proved.plan.policy() != Policy::Auto && !proved.plan.reason().is_empty());
            if policy != Policy::Auto {
                curves.insert(policy.to_string(), planned);
            }
        }
        curves
    });
    for worker in &curves {
        let mut staging: Vec<_> = worker.values().map(|curve| &curve[..2]).collect();
        staging.sort();
        assert!(staging.windows(2).all(|pair| pair[0] != pair[1]), "two policies take the same memory");
    }
    drop(prover);
    let ledger = device.ledger();
    assert_eq!((ledger.held().len(), ledger.locked().bytes()), (0, Bytes::ZERO));
    assert!(ledger.peak() <= ledger.level().budget);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn p4_every_policy_gives_the_same_proof(
        seed: u64,
        constraints in prop_oneof![0u32..70, 200u32..600],
        public in 0u32..5,
        free in 0u32..5,
        unused in 0u32..3,
        workers in 1u32..=3,
        card: bool,
        circom: bool,
    ) {
        let (r1cs, witness) = Circuit { seed, constraints, public, free, unused }.build();
        match (card, circom) {
            (false, false) => all_policies::<Host, Libsnark>(&r1cs, &witness, workers),
            (false, true) => all_policies::<Host, Circom>(&r1cs, &witness, workers),
            (true, false) => all_policies::<Sim, Libsnark>(&r1cs, &witness, workers),
            (true, true) => all_policies::<Sim, Circom>(&r1cs, &witness, workers),
        }
    }
}

#[test]
fn p4_a_larger_circuit() {
    let (r1cs, witness) = Circuit { seed: 1, constraints: 3000, public: 9, free: 50, unused: 10 }.build();
    all_policies::<Host, Libsnark>(&r1cs, &witness, 2);
    all_policies::<Sim, Circom>(&r1cs, &witness, 2);
}

/// Row P4 on an NVIDIA card: circuits of many shapes, up to three workers at once.
#[cfg(feature = "cuda")]
#[test]
fn p4_l10_workers_on_an_nvidia_card() {
    use prestage_vram::cuda::Cuda;
    common::devices::on_a_card("p4_l10", || {
        for (seed, workers) in [(1, 1), (2, 2), (3, 3)] {
            for constraints in [0, 1, 60, 500, 5000] {
                let circuit = Circuit { seed, constraints, public: 3, free: 4, unused: 1 };
                let (r1cs, witness) = circuit.build();
                all_policies::<Cuda, Libsnark>(&r1cs, &witness, workers);
                all_policies::<Cuda, Circom>(&r1cs, &witness, workers);
            }
        }
    });
}
