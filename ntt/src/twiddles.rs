//! Tables on a device, and the steps that need them, on buffers and lanes.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use blstrs::Scalar;
use prestage_transfer::Lane;
use prestage_vram::{Buf, Bytes, Class};

use crate::host::{Combine, check_shift};
use crate::{Error, Ntt, Plan, Step, Transform, Work};

/// The twiddle tables of a [`Plan`] in device memory: [`crate::Footprint::tables`] bytes.
///
/// Every method enqueues on the lane that it is given and returns at once. Buffers are claimed for that
/// lane first, so their uploads are waited for by the lane, not by the host.
pub struct Twiddles<'a, D: Ntt> {
    plan: Plan,
    layout: D::Layout,
    tables: Buf<'a, D, u64>,
}

impl<'a, D: Ntt> Twiddles<'a, D> {
    /// Tables for the turn, computed on `lane`.
    ///
    /// # Errors
    /// [`Error::Transfer`] when the memory is refused; [`Error::Device`].
    pub fn for_turn(lane: &Lane<'a, D>, plan: Plan) -> Result<Self, Error> {
        let device = lane.device();
        let tables = lane.alloc_charged("twiddles", words(device, &plan), device.table_charge(&plan))?;
        // SAFETY: the block is new, and at home on this lane.
        unsafe { Self::computed(lane, plan, tables) }
    }

    /// Tables that outlive the turn; `device` is the turn's.
    ///
    /// # Errors
    /// As [`Twiddles::for_turn`].
    pub fn resident(lane: &Lane<'_, D>, device: &'a D, plan: Plan) -> Result<Self, Error> {
        let (words, charge) = (words(device, &plan), device.table_charge(&plan));
        let (class, queue) = (Class::default(), lane.queue());
        let tables = lane.turn().alloc_resident_charged(device, "twiddles", words, charge, class, queue)?;
        // SAFETY: as in `for_turn`; `alloc_resident_charged` refuses another device.
        unsafe { Self::computed(lane, plan, tables) }
    }

    /// Computes the tables in memory that has the bytes which the device asked for.
    ///
    /// # Safety
    /// The memory is of the lane's device, nothing uses it, and the lane need not wait for it.
    unsafe fn computed(
        lane: &Lane<'_, D>,
        plan: Plan,
        mut tables: Buf<'a, D, MaybeUninit<u64>>,
    ) -> Result<Self, Error> {
        let device = lane.device();
        let layout = device.layout(&plan, tables.block())?;
        let (name, step) = ("twiddles".into(), Step::Tables);
        let work = Work { name, plan: &plan, tables: tables.block(), layout: &layout, step };
        // SAFETY: this function's contract.
        unsafe { device.enqueue(lane.queue(), work)? };
        tables.claim(lane.queue())?;
        // SAFETY: `Step::Tables` writes all of the tables, by the contract of `Ntt`.
        Ok(Self { plan, layout, tables: unsafe { tables.assume_init() } })
    }

    /// The plan that they are for.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Their size.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.tables.bytes()
    }

    /// Enqueues [`crate::host::transform`].
    ///
    /// # Errors
    /// [`Error::Length`] unless there are n values; [`Error::ZeroShift`]; [`Error::Device`].
    pub fn transform(
        &mut self,
        lane: &Lane<'_, D>,
        values: &mut Buf<'_, D, Scalar>,
        transform: &Transform,
    ) -> Result<(), Error> {
        transform.shift.map_or(Ok(()), check_shift)?;
        let name = named("ntt", values);
        let values = self.whole(lane, values)?;
        // SAFETY: n values, claimed for the lane; the shift was checked.
        unsafe { self.enqueue(lane, name, Step::Transform { values, transform: *transform }) }
    }

    /// Enqueues [`crate::host::coset_evaluations`].
    ///
    /// # Errors
    /// As [`Twiddles::transform`].
    pub fn coset_evaluations(
        &mut self,
        lane: &Lane<'_, D>,
        values: &mut Buf<'_, D, Scalar>,
        shift: Scalar,
    ) -> Result<(), Error> {
        check_shift(shift)?;
        let name = named("ntt", values);
        let values = self.whole(lane, values)?;
        // SAFETY: n values, claimed for the lane; the shift was checked.
        unsafe { self.enqueue(lane, name, Step::CosetEvaluations { values, shift }) }
    }

    /// Enqueues `a := (a b - c) scale`.
    ///
    /// # Errors
    /// [`Error::Length`] unless each has n values; [`Error::Device`].
    pub fn quotient(
        &mut self,
        lane: &Lane<'_, D>,
        a: &mut Buf<'_, D, Scalar>,
        b: &mut Buf<'_, D, Scalar>,
        c: &mut Buf<'_, D, Scalar>,
        scale: Scalar,
    ) -> Result<(), Error> {
        let (a, b, c) = (self.whole(lane, a)?, self.whole(lane, b)?, self.whole(lane, c)?);
        // SAFETY: n values each, claimed for the lane; exclusive borrows are of different buffers.
        unsafe { self.enqueue(lane, "quotient".into(), Step::Quotient { a, b, c, scale }) }
    }

    /// Enqueues `a :=` the coefficients of the polynomial whose values on the coset `shift * H` are `(a b - c) scale`, both in
    /// natural order: for Groth16 the quotient, where `scale` is the inverse of the vanishing polynomial's one value there.
    /// Without b it is `(a - c) scale`, without c `a b scale`. What c holds afterwards is of no use.
    ///
    /// # Errors
    /// [`Error::Length`] unless each has n values; [`Error::ZeroShift`]; [`Error::Device`].
    pub fn quotient_coefficients(
        &mut self,
        lane: &Lane<'_, D>,
        a: &mut Buf<'_, D, Scalar>,
        b: Option<&mut Buf<'_, D, Scalar>>,
        c: Option<&mut Buf<'_, D, Scalar>>,
        shift: Scalar,
        scale: Scalar,
    ) -> Result<(), Error> {
        check_shift(shift)?;
        let a = self.whole(lane, a)?;
        let b = b.map(|b| self.whole(lane, b)).transpose()?;
        let c = c.map(|c| self.whole(lane, c)).transpose()?;
        let step = Step::QuotientCoefficients { a, b, c, shift, scale };
        // SAFETY: as in `quotient`; the shift was checked.
        unsafe { self.enqueue(lane, "quotient".into(), step) }
    }

    /// Enqueues [`crate::host::combine`].
    ///
    /// # Errors
    /// As [`Twiddles::quotient`].
    pub fn combine(
        &mut self,
        lane: &Lane<'_, D>,
        a: &mut Buf<'_, D, Scalar>,
        other: &mut Buf<'_, D, Scalar>,
        how: Combine,
    ) -> Result<(), Error> {
        let name = named("combine", other);
        let (a, other) = (self.whole(lane, a)?, self.whole(lane, other)?);
        // SAFETY: as in `quotient`.
        unsafe { self.enqueue(lane, name, Step::Combine { a, other, how }) }
    }

    /// Checks that a buffer holds n values and claims it for the lane.
    fn whole<'b>(&self, lane: &Lane<'_, D>, buf: &'b mut Buf<'_, D, Scalar>) -> Result<&'b D::Block, Error> {
        let expected = self.plan.domain().size();
        if buf.len() != expected {
            return Err(Error::Length { expected, got: buf.len() });
        }
        buf.claim(lane.queue())?;
        Ok(buf.block())
    }

    /// Enqueues a step.
    ///
    /// # Safety
    /// As for [`Ntt::enqueue`], but for the tables.
    pub(crate) unsafe fn enqueue(
        &mut self,
        lane: &Lane<'_, D>,
        name: Cow<'static, str>,
        step: Step<&D::Block>,
    ) -> Result<(), Error> {
        self.tables.claim(lane.queue())?;
        let work = Work { name, plan: &self.plan, tables: self.tables.block(), layout: &self.layout, step };
        // SAFETY: the caller's promise; the tables were computed on a lane that this one has waited for.
        Ok(unsafe { lane.device().enqueue(lane.queue(), work) }?)
    }
}

/// Words of the tables of a plan.
fn words<D: Ntt>(device: &D, plan: &Plan) -> usize {
    let bytes = device.table_bytes(plan);
    bytes.to_usize().unwrap_or(usize::MAX).div_ceil(size_of::<u64>())
}

fn named<D: Ntt>(what: &str, buf: &Buf<'_, D, Scalar>) -> Cow<'static, str> {
    format!("{what} {}", buf.label()).into()
}

impl<D: Ntt> std::fmt::Debug for Twiddles<'_, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Twiddles").field("plan", &self.plan).field("bytes", &self.bytes()).finish()
    }
}
