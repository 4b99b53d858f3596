//! What the scenarios of the tests share: the small circuit of PoRep proportions, the card of the rows, and a run.
#![allow(dead_code)] // Each test binary uses a part of it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use prestage_groth16::{Assignment, Libsnark, Policy, Prover, ProvingKey, setup_insecure_from_seed};
use prestage_harness::circuits::Circuit;
use prestage_harness::scenario::{Crew, HostTime, Outcome, Scenario, Synthetic, Target, run};
use prestage_harness::session::About;
use prestage_harness::timeline::{Recorder, Timeline};
use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, Card, Event, Host, HostConfig, LedgerConfig, Margin, Nanos, Sim, Span, Track};

/// Rows of the circuit that stands for the PoRep shape, as a power of two.
pub(crate) const LOG: u32 = 8;
pub(crate) const SCALE: u64 = 1 << (27 - LOG);

pub(crate) fn porep() -> Synthetic {
    Synthetic::named("porep-32g").unwrap()
}

/// The small circuit of PoRep proportions and its key, made once.
pub(crate) fn small() -> &'static (Circuit, ProvingKey<Libsnark>) {
    static SMALL: OnceLock<(Circuit, ProvingKey<Libsnark>)> = OnceLock::new();
    SMALL.get_or_init(|| {
        let circuit = porep().realise(LOG, 1).unwrap();
        let key = setup_insecure_from_seed(&circuit.r1cs, [7; 32]).unwrap();
        (circuit, key)
    })
}

/// The card of the rows, with this much usable memory.
pub(crate) fn card(usable: Bytes) -> Card {
    let mut card = Card::preset("rtx-5070-ti-16g").unwrap();
    card.capacity = usable + card.context;
    card
}

pub(crate) fn recorded(margin: Bytes, ahead: bool) -> (LedgerConfig, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::new());
    let sink = Arc::clone(&recorder) as Arc<_>;
    (LedgerConfig { margin: Margin::Fixed(margin), ahead, sink, ..LedgerConfig::default() }, recorder)
}

/// A simulated card at PoRep scale, margin 512 MiB.
pub(crate) fn open(card: Card, ahead: bool) -> (Sim, Arc<Recorder>) {
    let (ledger, recorder) = recorded(Bytes::mib(512), ahead);
    (Target::open_sim(card, SCALE, ledger).unwrap(), recorder)
}

/// A device of the rows, with 14,643 MiB to use.
pub(crate) trait Opens: Ntt + Msm + Crew {
    fn opened(ledger: LedgerConfig) -> Self;
}

impl Opens for Host {
    fn opened(ledger: LedgerConfig) -> Self {
        Self::open(HostConfig { capacity: Bytes::mib(14_643), ledger }).unwrap()
    }
}

impl Opens for Sim {
    fn opened(ledger: LedgerConfig) -> Self {
        Target::open_sim(card(Bytes::mib(14_643)), SCALE, ledger).unwrap()
    }
}

/// Call it inside of a test that has the card to itself ([`prestage_vram::conformance::run`]).
#[cfg(feature = "cuda")]
impl Opens for prestage_vram::cuda::Cuda {
    fn opened(ledger: LedgerConfig) -> Self {
        use prestage_vram::conformance::{OnCuda, Subject};
        OnCuda.open(Bytes::mib(14_643), ledger)
    }
}

pub(crate) fn about(device: &str) -> About {
    About {
        scenario: "test".into(),
        device: device.into(),
        circuit: "porep-32g".into(),
        constraints: 130_278_869,
        parameters: BTreeMap::new(),
    }
}

pub(crate) fn scenario(workers: u32, partitions: u32, policy: Policy) -> Scenario<'static> {
    Scenario { workers, partitions, policy, host: porep().host(), opened: None }
}

/// Runs a scenario on a simulated card with the small circuit.
pub(crate) fn prove(sim: &Sim, recorder: &Recorder, scenario: &Scenario<'_>) -> Outcome {
    let (circuit, key) = small();
    let prover = Prover::new(sim, key.clone()).unwrap();
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    run(&prover, scenario, assignment, recorder, about("sim"), &AtomicBool::new(false)).unwrap()
}

pub(crate) fn spans(timeline: &Timeline, track: Track) -> Vec<Span> {
    timeline.on(track).cloned().collect()
}

/// Checks that the account never went past the budget.
pub(crate) fn within_budget(timeline: &Timeline) {
    for event in timeline.events() {
        if let Event::Level { at, label, level } = event {
            assert!(level.used() <= level.budget, "{label} at {at}: {} of {}", level.used(), level.budget);
        }
    }
}

pub(crate) fn no_host_time() -> HostTime {
    HostTime { prepare: Nanos::ZERO, finish: Nanos::ZERO }
}

/// The partitions that were proved, counted from 1.
pub(crate) fn partitions(outcome: &Outcome) -> Vec<u32> {
    outcome.proofs.iter().map(|(partition, _)| *partition).collect()
}
