//! Devices behind one trait, so that a test is written once for all of them.

use prestage_msm::Msm;
use prestage_ntt::Ntt;
use prestage_vram::{Bytes, Card, Host, HostConfig, LedgerConfig, Margin, Sim, SimConfig, WorkerId};

/// A device on which whole proofs are made.
pub trait Subject: Ntt + Msm {
    /// Opens it with 14,131 MiB to grant. On a simulated card a domain of 2^`log` points stands for 2^27.
    fn open_for(log: u32, ledger: LedgerConfig) -> Self;

    /// Runs `n` workers, numbered from 0, and returns what they return.
    fn crew<T: Send>(&self, n: u32, work: impl Fn(WorkerId) -> T + Sync) -> Vec<T>;
}

const USABLE: Bytes = Bytes::mib(14_643);
const MARGIN: Margin = Margin::Fixed(Bytes::mib(512));

impl Subject for Host {
    fn open_for(_: u32, ledger: LedgerConfig) -> Self {
        Self::open(HostConfig { capacity: USABLE, ledger: LedgerConfig { margin: MARGIN, ..ledger } })
            .unwrap()
    }

    fn crew<T: Send>(&self, n: u32, work: impl Fn(WorkerId) -> T + Sync) -> Vec<T> {
        threads(n, &work)
    }
}

fn threads<T: Send>(n: u32, work: &(impl Fn(WorkerId) -> T + Sync)) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n).map(|id| scope.spawn(move || work(WorkerId(id)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Call it inside of [`on_a_card`] alone.
#[cfg(feature = "cuda")]
impl Subject for prestage_vram::cuda::Cuda {
    fn open_for(_: u32, ledger: LedgerConfig) -> Self {
        use prestage_vram::conformance::{OnCuda, Subject as _};
        OnCuda.open(USABLE, LedgerConfig { margin: MARGIN, ..ledger })
    }

    fn crew<T: Send>(&self, n: u32, work: impl Fn(WorkerId) -> T + Sync) -> Vec<T> {
        threads(n, &work)
    }
}

/// Runs a test where there is an NVIDIA card, which it has to itself; says why not where there is none.
#[cfg(feature = "cuda")]
pub fn on_a_card(name: &str, test: impl FnOnce()) {
    prestage_vram::conformance::run(&prestage_vram::conformance::OnCuda, name, |_| test());
}

impl Subject for Sim {
    fn open_for(log: u32, ledger: LedgerConfig) -> Self {
        let mut card = Card::preset("rtx-5070-ti-16g").unwrap();
        card.capacity = USABLE + card.context;
        let ledger = LedgerConfig { margin: MARGIN, ..ledger };
        Self::open(SimConfig { card, scale: 1 << (27 - log), ledger }).unwrap()
    }

    fn crew<T: Send>(&self, n: u32, work: impl Fn(WorkerId) -> T + Sync) -> Vec<T> {
        self.workers(n, work).into_iter().map(Result::unwrap).collect()
    }
}
