//! What a ledger is opened with, and the small types that name things in it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Bytes, Ledger, Nanos, NoSink, Op, Sink};

/// How an allocation is made, and so who may reuse it once it is freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A synchronous allocation (`cuMemAlloc`): freeing it gives the memory back to the device at once.
    Direct,
    /// A stream-ordered allocation (`cuMemAllocAsync`): freeing it gives the memory back to the pool, which may
    /// retain it; only `Pooled` requests can reuse that.
    #[default]
    Pooled,
}

/// Memory kept free on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Margin {
    /// That many bytes.
    Fixed(Bytes),
    /// That many thousandths of the capacity.
    Permille(u16),
}

impl Default for Margin {
    /// 512 MiB.
    fn default() -> Self {
        Self::Fixed(Bytes::mib(512))
    }
}

impl Margin {
    /// The margin of a device with `capacity`.
    #[must_use]
    pub fn bytes(self, capacity: Bytes) -> Bytes {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Permille(n) => {
                let wide = u128::from(capacity.get()) * u128::from(n) / 1000;
                Bytes::new(u64::try_from(wide).unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Display for Margin {
    /// `512.00 MiB` or `50 permille`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}"),
            Self::Permille(n) => write!(f, "{n} permille"),
        }
    }
}

impl std::str::FromStr for Margin {
    type Err = crate::ParseBytesError;

    /// `512MiB` or `50permille`.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s.trim().strip_suffix("permille") {
            Some(n) => {
                n.trim().parse().map(Self::Permille).map_err(|_| crate::bytes::ParseBytesError(s.to_owned()))
            }
            None => s.parse().map(Self::Fixed),
        }
    }
}

/// What a device says about its memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// All memory of the device.
    pub capacity: Bytes,
    /// What the driver keeps for this process: context, kernels, stacks.
    pub context: Bytes,
    /// What other processes hold.
    pub foreign: Bytes,
}

impl Reading {
    /// capacity − context − foreign, never below zero.
    #[must_use]
    pub fn usable(&self) -> Bytes {
        self.capacity.saturating_sub(self.context).saturating_sub(self.foreign)
    }
}

/// How a ledger is opened.
#[derive(Clone)]
pub struct LedgerConfig {
    /// Memory kept free.
    pub margin: Margin,
    /// Bytes that the pool may retain past a synchronisation (its release threshold).
    pub threshold: Bytes,
    /// Host memory that may be page-locked for the device, pinned and registered together.
    pub pinned: Bytes,
    /// True when a second worker may stage while the first computes.
    pub ahead: bool,
    /// Where events go.
    pub sink: Arc<dyn Sink>,
    /// Asked before each operation of that kind; true makes it fail. For fault-injection tests.
    pub faults: Option<Arc<dyn Fn(Op) -> bool + Send + Sync>>,
    /// The account of a device that was opened before this one and works beside it: both have its clock, and its account of
    /// page-locked host memory. Simulated cards share a clock in a way of their own ([`crate::Sim::open_beside`]).
    pub beside: Option<Ledger>,
}

impl LedgerConfig {
    /// Time zero of the clock of a real device that is opened now.
    pub(crate) fn epoch(&self) -> Instant {
        let now = Instant::now();
        let passed = self.beside.as_ref().map_or(Nanos::ZERO, Ledger::now);
        now.checked_sub(Duration::from_nanos(passed.get())).unwrap_or(now)
    }
}

impl Default for LedgerConfig {
    /// Margin 512 MiB, threshold 0, no limit on pinned memory, no staging ahead, events dropped, no faults.
    fn default() -> Self {
        Self {
            margin: Margin::default(),
            threshold: Bytes::ZERO,
            pinned: Bytes::MAX,
            ahead: false,
            sink: Arc::new(NoSink),
            faults: None,
            beside: None,
        }
    }
}

impl fmt::Debug for LedgerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerConfig")
            .field("margin", &self.margin)
            .field("threshold", &self.threshold)
            .field("pinned", &self.pinned)
            .field("ahead", &self.ahead)
            .finish_non_exhaustive()
    }
}

/// Names a worker in events and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {}", self.0)
    }
}
