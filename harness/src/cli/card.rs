//! Two workers on one simulated 16 GiB card, at the size of a 32 GiB proof of replication: as the original of this system
//! did it, and as it is done here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prestage_groth16::{Assignment, Libsnark, Policy, Prover, ProvingKey, setup};
use prestage_vram::{Card, Device, LedgerConfig, Margin};

use super::output::Failure;
use super::written;
use crate::scenario::{Scenario, Synthetic, Target, run};
use crate::script::{Replay, Script};
use crate::session::About;
use crate::timeline::{Recorder, Report, Timeline};

/// The card of both.
pub(super) const CARD: &str = "cascade-16g";
const SHAPE: &str = "porep-32g";
const WORKERS: u32 = 2;
const PARTITIONS: u32 = 6;
/// Rows of the circuit that is proved in fact, as a power of two; the card charges the full size.
const SMALL: u32 = 10;

/// What the original did: the last of its schedules that was refused.
pub(super) struct Before {
    pub(super) script: Script,
    pub(super) replay: Replay,
}

/// What is done here.
pub(super) struct After {
    pub(super) report: Report,
    pub(super) timeline: Timeline,
    /// The script of it, where it was asked for.
    pub(super) script: Option<Script>,
}

/// Replays the shipped script, with two workers.
pub(super) fn before() -> Result<Before, Failure> {
    let mut script = Script::named("c4")?;
    script.set("workers", WORKERS.to_string().as_str())?;
    script.set("proofs", PARTITIONS.to_string().as_str())?;
    let replay = script.replay(Card::preset(CARD)?)?;
    Ok(Before { script, replay })
}

/// Proves as many partitions with as many workers on the same card, staging ahead, each proof verified.
pub(super) fn after(write_down: bool) -> Result<After, Failure> {
    let synthetic = Synthetic::named(SHAPE)?;
    let full = synthetic.log_domain()?;
    let circuit = synthetic.realise(SMALL.min(full), 0)?;
    let key: ProvingKey<Libsnark> = setup(&circuit.r1cs)?;
    let card = Card::preset(CARD)?;
    let recorder = Arc::new(Recorder::new());
    let (sink, scribe) = written::sink(&recorder, write_down);
    let margin = Margin::Fixed(card.margin);
    let ledger = LedgerConfig { margin, ahead: true, sink, ..LedgerConfig::default() };
    let sim = Target::open_sim(card, 1 << full.saturating_sub(SMALL), ledger)?;
    let prover = Prover::new(&sim, key)?;
    let scenario = Scenario {
        workers: WORKERS,
        partitions: PARTITIONS,
        policy: Policy::Auto,
        host: synthetic.host(),
        opened: None,
    };
    let about = About {
        scenario: format!("{SHAPE}, {WORKERS} workers, staged"),
        device: format!("sim:{CARD}"),
        circuit: SHAPE.to_owned(),
        constraints: synthetic.counts().rows,
        parameters: BTreeMap::from([
            ("workers".to_owned(), WORKERS.to_string()),
            ("margin".to_owned(), sim.ledger().margin().to_string()),
            ("staging ahead".to_owned(), "on".to_owned()),
            ("scale".to_owned(), format!("one element stands for {}", sim.scale())),
        ]),
    };
    let assignment = |_| Assignment::new(&prover, &circuit.r1cs, &circuit.witness);
    let outcome = run(&prover, &scenario, assignment, &recorder, about, &AtomicBool::new(false))?;
    if let Some(first) = outcome.failed.first() {
        return Err(Failure::new(format!("partition {} on {CARD}: {}", first.partition, first.error)));
    }
    let report = outcome.report.ok_or_else(|| Failure::new(format!("no proof was made on {CARD}")))?;
    let script = scribe.map(|scribe| scribe.script("demo", sim.ledger()));
    Ok(After { report, timeline: outcome.timeline, script })
}
