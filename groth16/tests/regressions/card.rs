//! What went wrong on NVIDIA cards. Without one these tests say that they were skipped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use prestage_groth16::{
    Assignment, Circom, Error, Libsnark, Options, Policy, Prover, R1cs, Reduction, Residency, Witness,
    setup_insecure_from_seed, verify,
};
use prestage_vram::conformance::{OnCuda, Subject, run};
use prestage_vram::cuda::Cuda;
use prestage_vram::{Bytes, Device, Host, HostConfig, LedgerConfig, Op, Worker};

use super::common::{Circuit, blinding, reference, squares};

fn on_a_card(name: &str, ledger: LedgerConfig, test: impl FnOnce(&Cuda)) {
    run(&OnCuda, name, |on| test(&on.open(Bytes::gib(4), ledger)));
}

/// More allocations than there are.
const FAR: usize = usize::MAX / 2;

fn fixed(policy: Policy) -> Options {
    Options::default().policy(policy).insecure_blinding(blinding(4))
}

/// The proof of the card is that of the formulas.
fn proves<R: Reduction>(card: &Cuda, (r1cs, witness): &(R1cs, Witness), policies: &[Policy]) {
    let key = setup_insecure_from_seed::<R>(r1cs, [9; 32]).unwrap();
    let expected = reference(&key, r1cs, witness, blinding(4));
    let prover = Prover::new(card, key).unwrap();
    let assignment = Assignment::new(&prover, r1cs, witness).unwrap();
    for policy in policies {
        let proof = prover.prove(&mut Worker::new(0), &assignment, &fixed(*policy)).unwrap().proof;
        assert_eq!(proof, expected, "{policy}, {} rows, {}", r1cs.n_rows(), R::NAME);
    }
}

/// Few kernels of each kind, for running under compute-sanitizer.
#[test]
fn b181_f041_a_small_proof_touches_no_memory_of_others() {
    on_a_card("b181_f041", LedgerConfig::default(), |card| {
        let policies = [Policy::Full, Policy::AThenBc, Policy::Chunked(4), Policy::None];
        proves::<Libsnark>(card, &squares(200, 3), &policies);
        let circuit = Circuit { seed: 5, constraints: 300, public: 3, free: 5, unused: 2 };
        proves::<Circom>(card, &circuit.build(), &policies[..1]);
    });
}

/// Each model of a card runs the same circuits, and says which it is.
#[test]
fn b177_f022_f038_this_model_gives_the_proofs_of_the_cpu() {
    on_a_card("b177_f022_f038", LedgerConfig::default(), |card| {
        let info = card.info();
        let (major, minor) = info.compute;
        println!("{} (sm_{major}{minor}), {} multiprocessors", info.name, info.multiprocessors);
        for constraints in [1, 2, 3, 7, 8, 9, 100, 1000, 20_000] {
            let circuit = Circuit { seed: 1, constraints, public: 2, free: 3, unused: 1 }.build();
            proves::<Libsnark>(card, &circuit, &[Policy::Auto]);
            proves::<Circom>(card, &circuit, &[Policy::Auto]);
        }
    });
}

#[test]
fn b011_whatever_allocation_fails_the_proof_is_right_or_there_is_none() {
    // Allocations until the first that fails; after it the retry fails as well, and no more.
    let left = Arc::new(AtomicUsize::new(FAR));
    let count = Arc::clone(&left);
    let faults = move |op| {
        op == Op::Allocate && {
            let before =
                count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_sub(1)));
            match before {
                // One more fails, then all is well again.
                Ok(1) => true,
                Ok(0) => {
                    count.store(FAR, Ordering::SeqCst);
                    true
                }
                _ => false,
            }
        }
    };
    let ledger = LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
    on_a_card("b011", ledger, |card| {
        let (r1cs, witness) = squares(500, 3);
        let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [9; 32]).unwrap();
        let prover = Prover::new(card, key).unwrap().keeping(Residency::None);
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        let mut failed = 0;
        for nth in 1..200 {
            left.store(nth, Ordering::SeqCst);
            // Not verified by the prover, which would hide a wrong one.
            let options = Options::default().unverified();
            let outcome = prover.prove(&mut Worker::new(0), &assignment, &options);
            let reached = !(2..200).contains(&left.swap(FAR, Ordering::SeqCst));
            match outcome {
                Ok(proved) => {
                    assert!(verify(prover.key().vk(), assignment.public(), &proved.proof).unwrap(), "{nth}");
                }
                Err(Error::NotVerified) => panic!("{nth}"),
                Err(_) => failed += 1,
            }
            assert_eq!(card.ledger().level().used(), Bytes::ZERO, "{nth}");
            if !reached {
                break;
            }
        }
        assert!(failed > 3, "{failed}");
    });
}

/// 500 proofs, among them 250 with the same r and s.
#[test]
fn f023_f032_f040_hundreds_of_proofs_are_equal_and_leave_nothing() {
    on_a_card("f023_f032_f040", LedgerConfig::default(), |card| {
        let (r1cs, witness) = Circuit { seed: 2, constraints: 900, public: 3, free: 4, unused: 1 }.build();
        let key = setup_insecure_from_seed::<Circom>(&r1cs, [9; 32]).unwrap();
        let expected = reference(&key, &r1cs, &witness, blinding(4));
        let prover = Prover::new(card, key).unwrap();
        let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
        let mut worker = Worker::new(0);
        let mut before = None;
        for i in 0..250 {
            let proof = prover.prove(&mut worker, &assignment, &fixed(Policy::Full)).unwrap().proof;
            assert_eq!(proof, expected, "proof {i}");
            // Verified by the prover, each.
            let fresh = prover.prove(&mut worker, &assignment, &Options::default()).unwrap().proof;
            assert_ne!(fresh, expected);
            let now = (card.free_memory().unwrap(), card.pool().unwrap(), card.ledger().locked().bytes());
            assert_eq!(*before.get_or_insert(now), now, "after {i}");
        }
    });
}

/// What a small proof takes on the card and on the CPU: told, not judged.
#[test]
fn f028_small_proofs_on_the_card_and_on_the_cpu() {
    on_a_card("f028", LedgerConfig::default(), |card| {
        let host = Host::open(HostConfig::default()).unwrap();
        for log in [4, 8, 12, 14] {
            let (r1cs, witness) = squares((1 << log) - 2, 3);
            let key = setup_insecure_from_seed::<Libsnark>(&r1cs, [9; 32]).unwrap();
            let on_card = time(&Prover::new(card, key.clone()).unwrap(), &r1cs, &witness);
            let on_cpu = time(&Prover::new(&host, key).unwrap(), &r1cs, &witness);
            println!("2^{log} rows: {on_card:.2} ms on the card, {on_cpu:.2} ms on the CPU");
        }
    });
}

/// The median of five, in milliseconds, without the verification.
fn time<D: prestage_ntt::Ntt + prestage_msm::Msm>(
    prover: &Prover<'_, D, Libsnark>,
    r1cs: &R1cs,
    witness: &Witness,
) -> f64 {
    let assignment = Assignment::new(prover, r1cs, witness).unwrap();
    let options = Options::default().unverified();
    let mut times: Vec<f64> = (0..6)
        .map(|_| {
            let start = Instant::now();
            prover.prove(&mut Worker::new(0), &assignment, &options).unwrap();
            start.elapsed().as_secs_f64() * 1e3
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    times[2]
}
