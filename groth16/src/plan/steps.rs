//! A plan as a ledger that a person could have written by hand: what is taken, what is given back, what is held then.

use prestage_vram::Bytes;

use super::{Plan, Policy, Sum};

/// One line of a plan's ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The phase that it belongs to.
    pub phase: &'static str,
    /// What is taken or given back.
    pub what: &'static str,
    /// Whether it is taken or given back.
    pub change: Change,
    /// What the proof holds afterwards.
    pub held: Bytes,
}

/// What a step does to the memory that a proof holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It takes that much.
    Takes(Bytes),
    /// It gives that much back.
    Frees(Bytes),
    /// It writes over memory that is held already.
    Reuses(Bytes),
}

/// Writes lines and keeps the running total.
struct Ledger {
    steps: Vec<Step>,
    held: Bytes,
}

impl Ledger {
    fn write(&mut self, phase: &'static str, what: &'static str, change: Change) {
        let (Change::Takes(bytes) | Change::Frees(bytes) | Change::Reuses(bytes)) = change;
        if bytes == Bytes::ZERO {
            return;
        }
        match change {
            Change::Takes(bytes) => self.held += bytes,
            Change::Frees(bytes) => self.held = self.held.saturating_sub(bytes),
            Change::Reuses(_) => {}
        }
        self.steps.push(Step { phase, what, change, held: self.held });
    }

    fn take(&mut self, phase: &'static str, what: &'static str, bytes: Bytes) {
        self.write(phase, what, Change::Takes(bytes));
    }

    fn free(&mut self, phase: &'static str, what: &'static str, bytes: Bytes) {
        self.write(phase, what, Change::Frees(bytes));
    }
}

impl Plan {
    /// The plan step by step, in the order in which a proof takes and frees its memory. The highest total within a
    /// phase is that phase's peak; after the last step nothing is held.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let n = self.polynomial;
        let mut ledger = Ledger { steps: Vec::new(), held: Bytes::ZERO };
        let after: &[(&'static str, Bytes)] = match self.policy {
            Policy::Full | Policy::Auto => {
                ledger.take("stage", "a", n);
                ledger.take("stage", "b", n);
                ledger.take("stage", "c", n);
                &[("b", n), ("c", n)]
            }
            Policy::AThenBc => {
                ledger.take("stage", "a", n);
                ledger.take("stage", "b", n);
                &[("c", n)]
            }
            Policy::Chunked(k) => {
                ledger.take("stage", "a", n);
                &[("two pieces of b and c", Bytes::new(2 * n.get() / u64::from(k)))]
            }
            Policy::None => &[("c", n)],
        };
        ledger.take("quotient", "twiddle tables", self.tables);
        match self.policy {
            Policy::Full | Policy::Auto => {}
            Policy::AThenBc => ledger.write("quotient", "c, in the place of b", Change::Reuses(n)),
            Policy::Chunked(_) => {
                after.iter().for_each(|(what, bytes)| ledger.take("quotient", what, *bytes));
            }
            Policy::None => {
                ledger.take("quotient", "a", n);
                ledger.take("quotient", "b", n);
                ledger.write("quotient", "c, in the place of b", Change::Reuses(n));
            }
        }
        after.iter().for_each(|(what, bytes)| ledger.free("quotient", what, *bytes));
        ledger.free("quotient", "twiddle tables", self.tables);
        for sum in Sum::ALL {
            let name = sum.name();
            let peak = self.phases.iter().find(|phase| phase.name == name).map_or(Bytes::ZERO, |p| p.peak);
            let scratch = peak.saturating_sub(ledger.held);
            ledger.take(name, "sum: buckets, scalars, results", scratch);
            ledger.free(name, "sum: buckets, scalars, results", scratch);
            if sum == Sum::H {
                ledger.free(name, "a, which held the quotient", n);
            }
        }
        ledger.steps
    }
}
