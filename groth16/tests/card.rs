//! Proofs on an NVIDIA card, byte for byte those of the CPU.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Circuit, blinding, reference, squares};
use prestage_groth16::{
    Assignment, Circom, Error, Libsnark, Options, Policy, Prover, R1cs, Reduction, Residency, Witness,
    setup_insecure_from_seed,
};
use prestage_vram::conformance::{OnCuda, Subject, run};
use prestage_vram::cuda::Cuda;
use prestage_vram::{Bytes, Device, LedgerConfig, Op, Worker};

const POLICIES: [Policy; 5] =
    [Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::Chunked(4), Policy::None];

fn on_a_card(name: &str, ledger: LedgerConfig, test: impl FnOnce(&Cuda)) {
    run(&OnCuda, name, |on| test(&on.open(Bytes::gib(4), ledger)));
}

fn options(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(1))
}

fn all_policies<R: Reduction>(card: &Cuda, r1cs: &R1cs, witness: &Witness) {
    let key = setup_insecure_from_seed::<R>(r1cs, [7; 32]).unwrap();
    let expected = reference(&key, r1cs, witness, blinding(1));
    // Points streamed, and points that stay.
    for residency in [Residency::None, Residency::All] {
        let prover = Prover::new(card, key.clone()).unwrap().keeping(residency);
        let assignment = Assignment::new(&prover, r1cs, witness).unwrap();
        for policy in POLICIES {
            let proved = prover.prove(&mut Worker::new(0), &assignment, &options(policy)).unwrap();
            let what = format!("{policy}, {} rows, {}, {residency}", r1cs.n_rows(), R::NAME);
            assert_eq!(proved.proof, expected, "{what}");
            let phases: Vec<_> = proved.plan.phases().iter().map(|phase| (phase.name, phase.peak)).collect();
            assert_eq!(proved.peaks, phases, "the plan is what was held: {what}");
            assert_eq!(card.ledger().level().used(), proved.plan.points().into_iter().sum(), "{what}");
        }
        drop((assignment, prover));
        assert_eq!(card.ledger().held(), []);
    }
}

#[test]
fn p4_l10_every_policy_gives_the_proof_of_the_cpu() {
    on_a_card("p4_l10", LedgerConfig::default(), |card| {
        for n in [20, 500, 4000] {
            let (r1cs, witness) = squares(n, 3);
            all_policies::<Libsnark>(card, &r1cs, &witness);
            all_policies::<Circom>(card, &r1cs, &witness);
        }
        for seed in 0..4 {
            let circuit = Circuit { seed, constraints: 700, public: 3, free: 5, unused: 2 };
            let (r1cs, witness) = circuit.build();
            all_policies::<Libsnark>(card, &r1cs, &witness);
            all_policies::<Circom>(card, &r1cs, &witness);
        }
    });
}

/// The n-th operation of a kind fails, for every n: a typed error or the right proof, nothing held, and the next proof right.
#[test]
fn f1_every_operation_may_fail() {
    let (r1cs, witness) = squares(200, 3);
    let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [7; 32]).unwrap();
    let expected = reference(&key, &r1cs, &witness, blinding(1));
    let armed = Arc::new(AtomicUsize::new(usize::MAX));
    let kind = Arc::new(AtomicUsize::new(0));
    let kinds = [Op::Allocate, Op::Copy, Op::Launch, Op::Mark, Op::Lane];
    let (countdown, which) = (Arc::clone(&armed), Arc::clone(&kind));
    let faults = move |op| {
        kinds[which.load(Ordering::SeqCst)] == op
            && countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) == Err(0)
    };
    let ledger = LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
    on_a_card("f1", ledger, |card| {
        let prover = Prover::new(card, key).unwrap().keeping(Residency::None);
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        let pinned = card.ledger().locked().bytes();
        let prove = |policy| prover.prove(&mut Worker::new(0), &assignment, &options(policy));
        for (number, op) in kinds.into_iter().enumerate() {
            kind.store(number, Ordering::SeqCst);
            let mut failures = 0;
            for policy in [Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::None] {
                for nth in 0.. {
                    // From the n-th on all of that kind fail, until the proof has ended.
                    armed.store(nth, Ordering::SeqCst);
                    let outcome = prove(policy);
                    let reached = armed.swap(usize::MAX, Ordering::SeqCst) == 0;
                    match outcome {
                        Ok(proved) => assert_eq!(proved.proof, expected, "{op} {nth} {policy}"),
                        Err(error) => {
                            failures += 1;
                            assert!(!matches!(error, Error::NotVerified), "{op} {nth} {policy}: {error}");
                        }
                    }
                    assert_eq!(card.ledger().level().used(), Bytes::ZERO, "{op} {nth} {policy}");
                    assert!(
                        card.ledger().locked().bytes() <= pinned + prover.memory().idle(),
                        "{op} {nth} {policy}"
                    );
                    if !reached {
                        break;
                    }
                }
            }
            assert!(failures > 0, "{op}");
            assert_eq!(prove(Policy::Auto).unwrap().proof, expected, "after {op}");
        }
    });
}
