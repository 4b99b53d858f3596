//! The plan of a proof as a ledger, made without touching any device.

use std::fmt;

use prestage_groth16::{Change, DeviceFootprints, Plan, Policy, Residency, Shape};
use prestage_msm::Msm;
use prestage_ntt::{Domain, Ntt};
use prestage_vram::Bytes;
use serde::Serialize;

use super::Wanted;
use crate::Error;

/// What a plan makes of a proof on a device: the ledger phase by phase, and what is left for the next proof.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Outlook {
    pub shape: String,
    pub device: String,
    pub policy: String,
    /// Why this policy, in words.
    pub reason: String,
    pub domain: u64,
    /// One of a, b, c.
    pub polynomial_bytes: u64,
    /// Rows of the domain that are zero in all of them.
    pub padding: u64,
    /// Points of the key: H, L, A, B in G1, B in G2.
    pub key_bytes: [u64; 5],
    /// Those of them that stay on the device; zero where they are streamed.
    pub resident_bytes: [u64; 5],
    /// T: tables of the quotient.
    pub tables_bytes: u64,
    pub phases: Vec<PhaseLedger>,
    pub peak_bytes: u64,
    /// What the peak leaves of the budget.
    pub remaining_bytes: u64,
    pub capacity_bytes: u64,
    pub context_bytes: u64,
    pub margin_bytes: u64,
    pub budget_bytes: u64,
    pub workers: u32,
    /// With more than one worker: what the next proof may stage from each phase on.
    pub ahead: Vec<Beside>,
}

/// One phase of the ledger.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct PhaseLedger {
    pub name: &'static str,
    pub peak_bytes: u64,
    pub steps: Vec<StepLine>,
}

/// One line of the ledger.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct StepLine {
    pub what: &'static str,
    /// Positive when memory is taken, negative when it is freed, zero when it is written over.
    pub change_bytes: i64,
    pub held_bytes: u64,
}

/// What the next proof may stage.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Beside {
    /// From this phase of the running proof on.
    pub phase: &'static str,
    /// What the running proof leaves from there on.
    pub free_bytes: u64,
    /// How many of the polynomials that the plan stages fit.
    pub polynomials: u64,
}

impl Outlook {
    /// Plans a proof of `shape` over `domain` on `device`, as the device's ledger stands. Memory of the device is only
    /// reckoned with.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn new<D: Ntt + Msm>(
        shape: (&str, &Shape),
        domain: &Domain,
        device: (&str, &D),
        (wanted, residency): (Wanted, Residency),
        workers: u32,
    ) -> Result<Self, Error> {
        let ((shape_name, shape), (device_name, device)) = (shape, device);
        let ledger = device.ledger();
        let (level, reading, margin) = (ledger.level(), ledger.reading(), ledger.margin());
        let footprints = DeviceFootprints::new(device, domain);
        let ahead = ledger.ahead() && workers > 1;
        let (_, plan) = wanted.first(|policy| {
            Plan::beside_points(shape, &footprints, (policy, residency), level.budget, margin, ahead)
        })?;
        let points = plan.points().into_iter().sum::<Bytes>();
        Ok(Self {
            shape: shape_name.to_owned(),
            device: device_name.to_owned(),
            policy: plan.policy().to_string(),
            reason: plan.reason().to_owned(),
            domain: shape.domain,
            polynomial_bytes: plan.polynomial().get(),
            padding: shape.padding(),
            key_bytes: shape.key_bytes().map(Bytes::get),
            resident_bytes: plan.points().map(Bytes::get),
            tables_bytes: plan.tables().get(),
            phases: phases(&plan),
            peak_bytes: plan.peak().get(),
            remaining_bytes: level.budget.saturating_sub(points + plan.peak()).get(),
            capacity_bytes: reading.capacity.get(),
            context_bytes: reading.context.get(),
            margin_bytes: margin.get(),
            budget_bytes: level.budget.get(),
            workers,
            ahead: if ahead { beside(&plan, level.budget.saturating_sub(points)) } else { Vec::new() },
        })
    }
}

fn phases(plan: &Plan) -> Vec<PhaseLedger> {
    let steps = plan.steps();
    let signed = |bytes: Bytes| i64::try_from(bytes.get()).unwrap_or(i64::MAX);
    plan.phases()
        .iter()
        .map(|phase| PhaseLedger {
            name: phase.name,
            peak_bytes: phase.peak.get(),
            steps: steps
                .iter()
                .filter(|step| step.phase == phase.name)
                .map(|step| StepLine {
                    what: step.what,
                    change_bytes: match step.change {
                        Change::Takes(bytes) => signed(bytes),
                        Change::Frees(bytes) => -signed(bytes),
                        Change::Reuses(_) => 0,
                    },
                    held_bytes: step.held.get(),
                })
                .collect(),
        })
        .collect()
}

fn beside(plan: &Plan, budget: Bytes) -> Vec<Beside> {
    let staged = match plan.policy() {
        Policy::Full | Policy::Auto => 3,
        Policy::AThenBc => 2,
        Policy::Chunked(_) => 1,
        _ => 0,
    };
    plan.phases()
        .iter()
        .skip(1)
        .map(|phase| {
            let free = budget.saturating_sub(plan.peak_from(phase.name));
            let fit = free.get().checked_div(plan.polynomial().get()).unwrap_or(0);
            Beside { phase: phase.name, free_bytes: free.get(), polynomials: fit.min(staged) }
        })
        .collect()
}

/// The ledger for people.
impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |n: u64| Bytes::new(n).to_string();
        writeln!(f, "{} on {}: {}", self.shape, self.device, self.policy)?;
        writeln!(f, "  {}", self.reason)?;
        writeln!(
            f,
            "  domain {}, {} per polynomial, {} rows of padding",
            self.domain,
            bytes(self.polynomial_bytes),
            self.padding
        )?;
        let [h, l, a, b1, b2] = self.key_bytes.map(bytes);
        let sizes = [
            format!("H {h}"),
            format!("L {l}"),
            format!("A {a}"),
            format!("B in G1 {b1}"),
            format!("B in G2 {b2}"),
        ];
        let (mut stay, mut streamed) = (Vec::new(), Vec::new());
        for (size, resident) in sizes.into_iter().zip(self.resident_bytes) {
            if resident > 0 { stay.push(size) } else { streamed.push(size) }
        }
        for (how, which) in [("that stay on the device", stay), ("streamed from the host", streamed)] {
            if !which.is_empty() {
                writeln!(f, "  key points, {how}: {}", which.join(", "))?;
            }
        }
        writeln!(
            f,
            "  capacity {} - context {} - margin {} = budget {}\n",
            bytes(self.capacity_bytes),
            bytes(self.context_bytes),
            bytes(self.margin_bytes),
            bytes(self.budget_bytes)
        )?;
        writeln!(f, "{:<10}{:<32}{:>14}{:>14}", "phase", "step", "change", "held")?;
        for phase in &self.phases {
            for (i, step) in phase.steps.iter().enumerate() {
                let sign = match step.change_bytes.signum() {
                    1 => "+",
                    -1 => "-",
                    _ => "",
                };
                let change = match step.change_bytes {
                    0 => "in place".to_owned(),
                    n => format!("{sign} {}", bytes(n.unsigned_abs())),
                };
                let name = if i == 0 { phase.name } else { "" };
                writeln!(f, "{name:<10}{:<32}{change:>14}{:>14}", step.what, bytes(step.held_bytes))?;
            }
        }
        let peak = self.phases.iter().find(|phase| phase.peak_bytes == self.peak_bytes);
        write!(
            f,
            "\npeak {} in {}; {} of the budget remain",
            bytes(self.peak_bytes),
            peak.map_or("no phase", |phase| phase.name),
            bytes(self.remaining_bytes)
        )?;
        if !self.ahead.is_empty() {
            write!(f, "\nstaged ahead by the next of {} workers while this proof is in", self.workers)?;
            for beside in &self.ahead {
                let n = beside.polynomials;
                let what = match n {
                    0 => "nothing".to_owned(),
                    1 => "1 polynomial".to_owned(),
                    n => format!("{n} polynomials"),
                };
                write!(f, "\n  {:<10}{:>10} free: {what}", beside.phase, bytes(beside.free_bytes))?;
            }
        }
        Ok(())
    }
}
