//! A card for the checks.

use std::any::Any;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock};

use super::Subject;
use crate::cuda::{Cap, Cuda, CudaConfig, CudaQueue, Grid};
use crate::sync::lock;
use crate::{Bytes, Error, LedgerConfig, Nanos, Work};

/// PTX of the kernels `spin(u64 ns)`, `add(u64* at, u64 n, u64 value)`, `deep(u32* at, u64 there, u64 here)`, `poke(u32* at)`
/// and `give_up()`.
pub const KERNELS: &str = include_str!("kernels.ptx");

/// Card 0 as a subject. Checks on it run one after the other. Where there is none they are skipped, or fail when the
/// environment variable `PRESTAGE_REQUIRE_CUDA` is set.
#[derive(Clone, Copy, Debug)]
pub struct OnCuda;

impl Subject for OnCuda {
    type Device = Cuda;

    fn open(&self, usable: Bytes, ledger: LedgerConfig) -> Cuda {
        let cap = Some(Cap { total: usable, context: Some(Bytes::ZERO) });
        Cuda::open(CudaConfig { cap, ledger, ..CudaConfig::default() }).expect("the card is opened")
    }

    fn busy(&self, card: &Cuda, queue: &CudaQueue, time: Nanos) {
        // SAFETY: the image is whole PTX.
        let module = unsafe { card.module("checks", || Ok::<_, Error>(KERNELS.into())) };
        let spin = module.and_then(|module| module.kernel("spin")).expect("the kernel is there");
        let mut ns = time.get();
        let mut args = [(&raw mut ns).cast::<c_void>()];
        let work = Work::launch("busy", Bytes::ZERO);
        // SAFETY: the kernel takes one 64-bit number and touches no memory.
        unsafe { card.enqueue(queue, work, |stream| stream.launch(&spin, Grid::line(1, 1), &mut args)) }
            .expect("the kernel is launched");
    }

    fn ready(&self) -> Result<Box<dyn Any>, String> {
        static ONE: Mutex<()> = Mutex::new(());
        // Keeps the context from check to check: making one takes longer than most of them.
        static FIRST: OnceLock<Result<Cuda, Error>> = OnceLock::new();
        let one = lock(&ONE);
        match FIRST.get_or_init(|| Cuda::open(CudaConfig::default())) {
            Ok(_) => Ok(Box::new(one)),
            Err(why) if std::env::var_os("PRESTAGE_REQUIRE_CUDA").is_some() => panic!("{why}"),
            Err(why) => Err(why.to_string()),
        }
    }
}
