//! The staged prover on simulated cards: the proof of the small circuit, the memory and the time of the full size.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{Circuit, blinding, reference};
use prestage_groth16::{
    Assignment, Circom, Error, Libsnark, Options, Policy, Prover, Reduction, setup_insecure_from_seed,
};
use prestage_vram::{Bytes, Card, Device, LedgerConfig, Margin, Nanos, Sim, SimConfig, Worker};

/// The domain has 2^7 points, which stand for 2^27.
const SCALE: u64 = 1 << 20;
const CIRCUIT: Circuit = Circuit { seed: 5, constraints: 100, public: 3, free: 5, unused: 2 };

fn card(usable: Bytes) -> Sim {
    let mut card = Card::preset("rtx-5070-ti-16g").unwrap();
    card.capacity = usable + card.context;
    let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::mib(512)), ..LedgerConfig::default() };
    Sim::open(SimConfig { card, scale: SCALE, ledger }).unwrap()
}

/// Proves on a card with so much usable memory and returns the policy, the peak and the time.
fn prove<R: Reduction>(usable: Bytes, policy: Policy) -> Result<(Policy, Bytes, Nanos), Error> {
    let (r1cs, witness) = CIRCUIT.build();
    assert_eq!(r1cs.domain_size(), 128);
    let key = setup_insecure_from_seed::<R>(&r1cs, [7; 32]).unwrap();
    let expected = reference(&key, &r1cs, &witness, blinding(1));
    let sim = card(usable);
    let prover = Prover::new(&sim, key).unwrap();
    let assignment = Assignment::new(&prover, &r1cs, &witness).unwrap();
    let before = sim.now();
    let options = Options::default().policy(policy).insecure_blinding(blinding(1));
    let proved = prover.prove(&mut Worker::new(0), &assignment, &options)?;
    assert_eq!(proved.proof, expected);
    let phases: Vec<_> = proved.plan.phases().iter().map(|phase| (phase.name, phase.peak)).collect();
    assert_eq!(proved.peaks, phases, "the plan is what was held");
    assert_eq!((sim.ledger().held().len(), sim.usage().free()), (0, usable));
    assert!(sim.ledger().peak() <= sim.ledger().level().budget);
    Ok((proved.plan.policy(), proved.plan.peak(), sim.now().since(before)))
}

#[test]
fn every_policy_gives_the_same_proof_at_full_size() {
    let n = Bytes::gib(4);
    for (policy, quotient) in [
        (Policy::Full, n * 3),
        (Policy::AThenBc, n * 2),
        (Policy::Chunked(4), Bytes::gib(6)),
        (Policy::None, n * 2),
    ] {
        let (_, peak, time) = prove::<Libsnark>(Bytes::mib(14_767), policy).unwrap();
        assert!(peak >= quotient, "{policy}: {peak}");
        assert_eq!(prove::<Circom>(Bytes::mib(14_767), policy).unwrap().0, policy);
        assert!(time > Nanos::new(500_000_000), "{policy}: {time}");
    }
}

/// Rows L2 to L5 on a card of that size: the budget chooses the policy.
#[test]
fn l2_l4_l5_budgets_choose_policies_on_a_card() {
    let margin = Bytes::mib(512);
    for (budget, policy) in [
        (14_131, Policy::Full),
        (12_287, Policy::AThenBc),
        (8_191 + 3, Policy::Chunked(4)),
        (5_120 + 32, Policy::Chunked(8)),
    ] {
        let (chosen, peak, _) = prove::<Libsnark>(Bytes::mib(budget) + margin, Policy::Auto).unwrap();
        assert_eq!(chosen, policy, "budget {budget} MiB");
        assert!(peak <= Bytes::mib(budget));
    }
    let refused = prove::<Libsnark>(Bytes::mib(4_096) + margin, Policy::Auto);
    assert!(
        matches!(refused, Err(Error::PlanRefused { free, .. }) if free == Bytes::mib(4096)),
        "{refused:?}"
    );
}
