//! The run behind the verbs: proofs in turn, verified, with a report that adds up.

use prestage_groth16::{
    Assignment, Blinding, Libsnark, Options, Policy, Prover, ProvingKey, setup_insecure_from_seed,
};
use prestage_harness::circuits::{Circuit, bits, squares};
use prestage_harness::session::{About, Run, prove_in_turn, recorded};
use prestage_vram::{Bytes, Host, HostConfig, Margin, WorkerId, host_work};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

fn run(circuit: &Circuit, policy: Policy, capacity: Bytes) -> Run {
    let key: ProvingKey<Libsnark> = setup_insecure_from_seed(&circuit.r1cs, [7; 32]).unwrap();
    let (ledger, recorder) = recorded(Margin::Fixed(Bytes::ZERO));
    let host = Host::open(HostConfig { capacity, ledger }).unwrap();
    let prover = Prover::new(&host, key).unwrap();
    let assignment = host_work(&host, WorkerId(0), "evaluate", || {
        Assignment::new(&prover, &circuit.r1cs, &circuit.witness).unwrap()
    });
    let options = [1, 2].map(|i| {
        let blinding = Blinding::insecure_from_seed([i; 32]).unwrap();
        Options::default().policy(policy).insecure_blinding(blinding)
    });
    let about = About {
        scenario: "test".into(),
        device: "host".into(),
        circuit: "test".into(),
        constraints: circuit.r1cs.n_constraints() as u64,
        parameters: Default::default(),
    };
    prove_in_turn(&prover, &assignment, &options, &recorder, about).unwrap()
}

#[test]
fn p4_equal_proofs_and_different_memory_under_every_policy() {
    for circuit in
        [squares(8, ChaCha8Rng::seed_from_u64(1)).unwrap(), bits(7, ChaCha8Rng::seed_from_u64(2)).unwrap()]
    {
        let policies = [Policy::Full, Policy::AThenBc, Policy::Chunked(2), Policy::Chunked(8), Policy::None];
        let runs = policies.map(|policy| run(&circuit, policy, Bytes::gib(1)));
        for (run, policy) in runs.iter().zip(policies) {
            assert_eq!(run.plan.policy(), policy);
            assert_eq!(run.proofs, runs[0].proofs);
            assert_ne!(run.proofs[0], run.proofs[1]);
            let times = &run.report.times;
            assert_eq!(times.busy() + times.idle().total(), times.wall());
            // The ledger saw what the plan had said, phase by phase.
            let peaks = |f: fn(&prestage_harness::timeline::Phase) -> u64| -> Vec<u64> {
                run.report.phases.iter().map(f).collect()
            };
            assert_eq!(peaks(|p| p.measured_bytes), peaks(|p| p.predicted_bytes), "{policy}");
        }
        let of = |run: &Run, phase: &str| {
            run.report.phases.iter().find(|p| p.name == phase).unwrap().measured_bytes
        };
        let stage = runs.each_ref().map(|r| of(r, "stage"));
        let n = stage[2];
        assert_eq!(stage, [3 * n, 2 * n, n, n, 0]);
    }
}

#[test]
fn t2_almost_all_idle_time_is_explained() {
    let circuit = squares(10, ChaCha8Rng::seed_from_u64(3)).unwrap();
    // A thread that others keep from running between two events leaves a piece open that no code of ours could explain.
    let mut runs = (0..5).map(|_| run(&circuit, Policy::Auto, Bytes::gib(1)));
    let run = runs.find(|run| run.report.complaint().is_none()).expect("one of five on a busy machine");
    assert_eq!(run.report.plans.len(), 1);
    assert_eq!((run.report.plans[0].policy.as_str(), run.report.plans[0].proofs), ("full", 2));
}
