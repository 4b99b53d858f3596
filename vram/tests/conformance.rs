//! The host device keeps the contract of all devices.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::time::Duration;

use prestage_vram::conformance::Subject;
use prestage_vram::{Bytes, Host, HostConfig, HostQueue, LedgerConfig, Nanos, Op};

struct OnHost;

impl Subject for OnHost {
    type Device = Host;

    fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Host {
        Host::open(HostConfig { capacity: usable, ledger }).unwrap()
    }

    fn busy(&self, host: &Host, queue: &HostQueue, time: Nanos) {
        let job = move || std::thread::sleep(Duration::from_nanos(time.get()));
        // SAFETY: the job touches no memory.
        unsafe { host.submit(queue, Op::Launch, "busy", Bytes::ZERO, job) }.unwrap();
    }
}

prestage_vram::conformance!(OnHost);
