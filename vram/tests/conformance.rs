//! Every device of this crate keeps the contract of all devices.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod host {
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
}

mod sim {
    use prestage_vram::conformance::Subject;
    use prestage_vram::sim::SimQueue;
    use prestage_vram::{Bytes, Card, Cost, Cpu, LedgerConfig, Nanos, Sim, SimConfig, Work};

    struct OnSim(&'static str);

    impl Subject for OnSim {
        type Device = Sim;

        fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Sim {
            let mut card = Card::preset(self.0).unwrap();
            card.capacity = usable + card.context;
            Sim::open(SimConfig { card, scale: 1, ledger }).unwrap()
        }

        fn busy(&self, sim: &Sim, queue: &SimQueue, time: Nanos) {
            // SAFETY: the job touches no memory.
            unsafe { sim.perform(queue, Work::launch("busy", Bytes::ZERO), move || Cost::Time(time)) }
                .unwrap();
        }
    }

    mod h200 {
        prestage_vram::conformance!(super::OnSim("h200-141g"));
    }

    /// On a card that leaks when it is out of memory: what the account refuses never gets that far.
    mod leaky {
        use prestage_vram::conformance::Subject;
        use prestage_vram::sim::{OutOfMemory, SimQueue};
        use prestage_vram::{Bytes, LedgerConfig, Nanos, Sim, SimConfig};

        struct Leaky;

        impl Subject for Leaky {
            type Device = Sim;

            fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Sim {
                let sim = super::OnSim("rtx-5070-ti-16g").open(usable, ledger.clone());
                let mut card = sim.card().clone();
                card.out_of_memory = OutOfMemory::Leak;
                Sim::open(SimConfig { card, scale: 1, ledger }).unwrap()
            }

            fn busy(&self, sim: &Sim, queue: &SimQueue, time: Nanos) {
                super::OnSim("rtx-5070-ti-16g").busy(sim, queue, time);
            }
        }

        prestage_vram::conformance!(Leaky);
    }
}
