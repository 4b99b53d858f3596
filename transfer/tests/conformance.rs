//! The host, and the host behind the rules of a driver, put through what every device that copies must do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

mod common;

use common::probe::Probe;
use prestage_vram::conformance::Subject;
use prestage_vram::sim::SimQueue;
use prestage_vram::{
    Bytes, Card, Cost, Cpu, Host, HostConfig, HostQueue, LedgerConfig, Nanos, Op, Sim, SimConfig, Work,
};

fn busy(host: &Host, queue: &HostQueue, time: Nanos) {
    let job = move || std::thread::sleep(std::time::Duration::from_nanos(time.get()));
    // SAFETY: the job touches no memory.
    unsafe { host.submit(queue, Op::Launch, "busy", Bytes::ZERO, job) }.unwrap();
}

struct OnHost;

impl Subject for OnHost {
    type Device = Host;
    fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Host {
        Host::open(HostConfig { capacity: usable, ledger }).unwrap()
    }
    fn busy(&self, host: &Host, queue: &HostQueue, time: Nanos) {
        busy(host, queue, time);
    }
}

struct OnProbe;

impl Subject for OnProbe {
    type Device = Probe;
    fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Probe {
        Probe::new(OnHost.open(usable, ledger))
    }
    fn busy(&self, probe: &Probe, queue: &HostQueue, time: Nanos) {
        busy(&probe.host, queue, time);
    }
}

mod on_host {
    prestage_transfer::conformance!(super::OnHost);
}

mod on_probe {
    prestage_transfer::conformance!(super::OnProbe);
}

struct OnSim;

impl Subject for OnSim {
    type Device = Sim;
    fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Sim {
        let mut card = Card::preset("h200-141g").unwrap();
        card.capacity = usable + card.context;
        Sim::open(SimConfig { card, scale: 1, ledger }).unwrap()
    }
    fn busy(&self, sim: &Sim, queue: &SimQueue, time: Nanos) {
        // SAFETY: the job touches no memory.
        unsafe { sim.perform(queue, Work::launch("busy", Bytes::ZERO), move || Cost::Time(time)) }.unwrap();
    }
}

mod on_sim {
    prestage_transfer::conformance!(super::OnSim);
}
