//! Partitions of one shape on simulated cards, by policies and numbers of workers, in virtual time.

mod page;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;

use prestage_groth16::{
    Assignment, Libsnark, Policy, Prover, ProvingKey, ShapeError, setup_insecure_from_seed,
};
use prestage_harness::circuits::Circuit;
use prestage_harness::scenario::{Scenario, Synthetic, Target, Wanted, run};
use prestage_harness::session::{About, recorded};
use prestage_harness::spec::{DeviceKind, DeviceSpec};
use prestage_vram::LedgerConfig;

use crate::{Error, Outcome};

pub use page::save;

/// The simulated cards: one that a set of polynomials nearly fills, one that holds many.
pub const CARDS: [&str; 2] = ["rtx-5070-ti-16g", "h200-141g"];

/// Ways of bringing the polynomials to the card: a name, and the policy as `prestage run --policy` takes it. Staged is what
/// the plan makes of the card, so full on both.
pub const WAYS: [(&str, Wanted); 4] = [
    ("staged", Wanted::Policy(Policy::Auto)),
    ("a-then-bc", Wanted::Policy(Policy::AThenBc)),
    ("chunked", Wanted::Chunked),
    ("unstaged", Wanted::Policy(Policy::None)),
];

/// Numbers of workers.
pub const WORKERS: [u32; 3] = [1, 2, 3];

/// One scenario: a card, a way, a number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the card's preset.
    pub card: &'static str,
    /// Name of the way.
    pub way: &'static str,
    /// What it asks for.
    pub wanted: Wanted,
    /// Workers that take partitions from one queue.
    pub workers: u32,
}

/// `rtx-5070-ti-16g-staged-2`, also the name of its files.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.card, self.way, self.workers)
    }
}

/// Every scenario: by card, then by way, then by number of workers.
#[must_use]
pub fn cases() -> Vec<Case> {
    let cards = CARDS.into_iter();
    let ways = cards.flat_map(|card| WAYS.into_iter().map(move |(way, wanted)| (card, way, wanted)));
    ways.flat_map(|(card, way, wanted)| {
        WORKERS.into_iter().map(move |workers| Case { card, way, wanted, workers })
    })
    .collect()
}

/// What all scenarios prove: partitions of 32 GiB PoRep, realised small and charged at full size, as `prestage run` does.
#[derive(Debug)]
pub struct Partitions {
    synthetic: Synthetic,
    circuit: Circuit,
    key: ProvingKey<Libsnark>,
    scale: u64,
    count: u32,
}

impl Partitions {
    /// `count` partitions for each scenario; the circuit that is really proved has 2^`log` rows, from 4.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Groth16`] for a `log` that is too small or too large.
    pub fn porep(log: u32, count: u32) -> Result<Self, Error> {
        let synthetic = Synthetic::named("porep-32g")?;
        let full = synthetic.log_domain()?;
        let scale = full.checked_sub(log).and_then(|by| 1u64.checked_shl(by));
        let scale = scale.ok_or(ShapeError::Domain { size: 1u64.checked_shl(log).unwrap_or(u64::MAX) })?;
        let circuit = synthetic.realise(log, 0)?;
        let key = setup_insecure_from_seed(&circuit.r1cs, [0; 32])?;
        Ok(Self { synthetic, circuit, key, scale, count })
    }

    /// Proves the partitions on a new card and verifies every proof. Workers stage ahead of each other where there are
    /// several. The same case gives the same times always.
    ///
    /// # Errors
    /// [`Error::Partition`] when one of them could not be proved; what the card says;
    /// [`prestage_harness::Error::Unverified`].
    pub fn prove(&self, case: &Case) -> Result<Outcome, Error> {
        let spec = DeviceSpec { kind: DeviceKind::Sim(case.card.to_owned()), cap: None, context: None };
        let device = spec.to_string();
        let target = Target::resolve(&spec)?;
        let (ledger, recorder) = recorded(target.margin());
        let Target::Sim(card) = target else { return Err(Error::Real { device }) };
        let ledger = LedgerConfig { ahead: case.workers > 1, ..ledger };
        let ahead = if ledger.ahead { "on" } else { "off" };
        let margin = ledger.margin.to_string();
        let sim = Target::open_sim(card, self.scale, ledger)?;
        let prover = Prover::new(&sim, self.key.clone())?;
        let scenario = Scenario {
            workers: case.workers,
            partitions: self.count,
            policy: case.wanted.of(&prover)?,
            host: self.synthetic.host(),
            opened: None,
        };
        let about = About {
            scenario: format!("{}, workers: {}", case.way, case.workers),
            device,
            circuit: self.synthetic.name().to_owned(),
            constraints: self.synthetic.counts().rows,
            parameters: BTreeMap::from([
                ("workers".to_owned(), case.workers.to_string()),
                ("policy asked for".to_owned(), case.wanted.to_string()),
                ("margin".to_owned(), margin),
                ("staging ahead".to_owned(), ahead.to_owned()),
                ("scale".to_owned(), format!("one element stands for {}", self.scale)),
            ]),
        };
        let assignment = |_| Assignment::new(&prover, &self.circuit.r1cs, &self.circuit.witness);
        let outcome = run(&prover, &scenario, assignment, &recorder, about, &AtomicBool::new(false))?;
        if let Some(failed) = outcome.failed.into_iter().next() {
            let (case, partition) = (case.to_string(), failed.partition);
            return Err(Error::Partition { case, partition, error: failed.error });
        }
        let report = outcome.report.ok_or(prestage_harness::Error::NoProofs)?;
        Ok(Outcome { report, timeline: outcome.timeline })
    }
}
