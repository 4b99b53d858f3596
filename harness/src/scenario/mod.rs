//! Scenarios: what is proved, by how many workers, on which device; and what a plan would make of it.
//!
//! A [`Synthetic`] shape gives the counts of a circuit of any size and a small satisfiable circuit of the same
//! proportions. An [`Outlook`] is the plan of a proof as a ledger, for full-size shapes on devices that need not be there.
//! [`run`] proves partitions from one queue with any number of workers and says where the time went; [`run_on`] does so on
//! several devices, and [`run_joint`] makes each proof on all of them at once.

mod auto;
mod joint;
mod made;
mod outlook;
mod policy;
mod run;
mod shape;
mod target;
mod workers;

pub use auto::Auto;
pub use joint::run_joint;
pub use made::{Made, Took};
pub use outlook::{Beside, Outlook, PhaseLedger, StepLine};
pub use policy::{ParseWantedError, Wanted};
pub use run::{Done, Failed, On, Outcome, Outcomes, Scenario, run, run_on};
pub use shape::{HostBytes, HostTime, Mix, ShapeSourceError, Synthetic, marked};
pub use target::{Target, TargetError, Targets};
pub use workers::{Crew, Ended, dispense};
