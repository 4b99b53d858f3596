//! Transforms on an NVIDIA card.

use prestage_kernels::ntt::{Fr, Generator};
use prestage_kernels::{Family, card};
use prestage_vram::cuda::{Cuda, CudaBlock, CudaQueue};
use prestage_vram::{Bytes, Device as _, Error, Op};

use crate::launches::{Layout, generator};
use crate::{Ntt, Plan, Work};

// SAFETY: every step's launches write canonical scalars to all values that the step owns, or the queue fails.
unsafe impl Ntt for Cuda {
    type Layout = Layout;

    fn table_bytes(&self, plan: &Plan) -> Bytes {
        // A generator that kernels do not know is refused when the tables are to be filled.
        let generator = generator(plan.domain()).unwrap_or(Generator::Seven);
        Bytes::new(Layout::new(plan, generator, std::ptr::null_mut()).bytes)
    }

    fn layout(&self, plan: &Plan, tables: &CudaBlock) -> Result<Layout, Error> {
        let generator = generator(plan.domain()).ok_or_else(|| Error::Device {
            op: Op::Launch,
            device: self.name().to_owned(),
            detail: format!("no kernels for domains generated from {}", plan.domain().generator()),
        })?;
        Ok(Layout::new(plan, generator, tables.as_ptr()))
    }

    fn prepare(&self) -> Result<(), Error> {
        card::load(self, Family::Ntt).map(drop)
    }

    unsafe fn enqueue(&self, queue: &CudaQueue, work: Work<'_, &CudaBlock, Layout>) -> Result<(), Error> {
        let Work { name, plan, layout, step, .. } = work;
        let bytes = step.bytes(plan);
        let launches = layout.launches(plan, step.map(CudaBlock::as_ptr::<Fr>));
        // SAFETY: blocks are claimed, different, initialised and of the sizes that the step states, by the contract.
        unsafe { card::enqueue(self, queue, prestage_vram::Work::launch(name, bytes), &launches) }
    }
}
