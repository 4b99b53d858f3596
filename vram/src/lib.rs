#![doc = include_str!("../README.md")]

mod buf;
mod bytes;
#[cfg(not(loom))]
pub mod conformance;
#[cfg(feature = "cuda")]
pub mod cuda;
mod device;
mod error;
mod event;
mod host;
mod ledger;
mod locked;
pub mod sim;
mod sync;
mod turn;
mod work;

pub use buf::Buf;
pub use bytes::{Bytes, Nanos, ParseBytesError};
pub use device::Device;
pub use error::{Error, Holding, Op, Refused};
pub use event::{Cause, Change, Event, Level, NoSink, Recorded, Sink, Span, Track};
pub use host::{Host, HostBlock, HostConfig, HostMark, HostPtr, HostQueue, host_work};
pub use ledger::{Class, Lease, Ledger, LedgerConfig, Margin, Reading, WorkerId};
pub use locked::{Locked, LockedPages};
pub use sim::{Card, Sim, SimConfig};
pub use turn::{Freed, Turn, Worker};
pub use work::{Cost, Cpu, Units, Work};
