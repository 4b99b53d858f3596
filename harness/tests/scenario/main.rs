//! Plans at full size, workers, and scenarios on simulated cards and on the CPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod devices;
mod faults;
mod interleavings;
mod joint;
mod measured;
#[cfg(feature = "cuda")]
mod nvidia;
mod opened;
mod pipelines;
mod plans;
mod published;
mod rig;
mod turns;

use rig::{
    Opens, SCALE, about, card, no_host_time, open, partitions, porep, prove, recorded, scenario, small,
    spans, within_budget,
};
