//! What went wrong elsewhere and must not go wrong here. Each test is named after its row in the list of faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod admission;
mod errors;
mod pool;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prestage_vram::{Bytes, Host, HostConfig, HostQueue, LedgerConfig, Margin, Op};

/// No margin: every byte of `mib` MiB may be granted.
fn host(mib: u64, ledger: LedgerConfig) -> Host {
    let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..ledger };
    Host::open(HostConfig { capacity: Bytes::mib(mib), ledger }).unwrap()
}

/// Work that takes a while and touches no memory.
fn busy(host: &Host, queue: &HostQueue) {
    let job = || std::thread::sleep(Duration::from_millis(100));
    // SAFETY: the job touches no memory.
    unsafe { host.submit(queue, Op::Launch, "busy", Bytes::ZERO, job) }.unwrap();
}

/// Makes the allocations fail whose numbers `fails` names, counted from 0. Returns the count as well.
fn failing(fails: impl Fn(usize) -> bool + Send + Sync + 'static) -> (LedgerConfig, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let faults = move |op: Op| op == Op::Allocate && fails(counted.fetch_add(1, Ordering::SeqCst));
    (LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() }, count)
}
