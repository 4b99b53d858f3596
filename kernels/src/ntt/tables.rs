//! The tables of a transform: what lies where, and which launches fill it.

use super::pointwise::{self, elementwise};
use super::{FR_BYTES, Flavour, Form, Fr, FrPtr, Order, Pass, Plan};
use crate::{Args, Launch, launch::Cursor};

/// The tables of one flavour of a plan, laid out in one block of memory.
#[derive(Debug, Clone)]
pub struct Tables {
    pub(super) flavour: Flavour,
    base: FrPtr,
    bytes: u64,
    /// Squarings of the root and of the shift.
    powers: FrPtr,
    /// Inner twiddles by the bits of a pass.
    inner: Vec<(u32, FrPtr)>,
    factors: Vec<Factors>,
    launches: Vec<Launch>,
}

/// The factors of a pass.
#[derive(Debug, Clone, Copy)]
enum Factors {
    None,
    One(FrPtr),
    Split(FrPtr),
    Levels { root: Option<Levels>, shift: Option<FrPtr> },
}

/// The powers of the root of a pass, each the product of one of `low` and one of `high`.
#[derive(Debug, Clone, Copy)]
struct Levels {
    low: FrPtr,
    high: FrPtr,
    low_bits: u32,
}

impl Tables {
    /// Tables at `base`, which must be aligned to 32 bytes, with the factors of each pass in one of `forms`; passes that
    /// `forms` lacks have [`Form::Levels`]. They are filled by [`Tables::launches`].
    ///
    /// What depends on the root alone is taken from `other` where it has it: tables of the same plan and root, which are
    /// filled first and stay. Addresses are computed and never followed: with none for a base, [`Tables::bytes`] says how
    /// much memory is needed.
    #[must_use]
    pub fn new(plan: &Plan, flavour: &Flavour, forms: &[Form], other: Option<&Self>, base: FrPtr) -> Self {
        let mut cursor = Cursor::new(base.cast());
        let powers = cursor.take(64 * FR_BYTES);
        let shift = flavour.shift.unwrap_or(Fr::ONE);
        let mut tables = Self {
            flavour: *flavour,
            base,
            bytes: 0,
            powers,
            inner: other.map(|other| other.inner.clone()).unwrap_or_default(),
            factors: Vec::with_capacity(plan.passes.len()),
            launches: vec![pointwise::powers(powers, flavour.root, shift)],
        };
        for (i, &lr) in plan.passes.iter().enumerate() {
            if tables.inner(lr).is_null() {
                tables.add_inner(&mut cursor, plan.lg, lr);
            }
            let form = forms.get(i).copied().unwrap_or(Form::Levels);
            let levels = other.and_then(|other| match other.factors.get(i) {
                Some(Factors::Levels { root, .. }) => *root,
                _ => None,
            });
            tables.add_factors(&mut cursor, plan, i, form, levels);
        }
        tables.bytes = cursor.used();
        tables
    }

    /// The bytes at the base, a multiple of 32.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The launches that fill the tables, in order.
    #[must_use]
    pub fn launches(&self) -> &[Launch] {
        &self.launches
    }

    /// Where the tables lie.
    #[must_use]
    pub const fn base(&self) -> FrPtr {
        self.base
    }

    pub(super) fn inner(&self, lr: u32) -> *const Fr {
        self.inner.iter().find(|(bits, _)| *bits == lr).map_or(std::ptr::null(), |(_, p)| p.cast_const())
    }

    /// Writes the factors of pass `i` into its parameters.
    pub(super) fn fill(&self, i: usize, pass: &mut Pass) {
        match self.factors[i] {
            Factors::None => {}
            Factors::One(p) => (pass.form, pass.factors) = (1, p),
            Factors::Split(p) => (pass.form, pass.factors) = (2, p),
            Factors::Levels { root, shift } => {
                pass.form = 3;
                if let Some(Levels { low, high, low_bits }) = root {
                    (pass.low, pass.high, pass.low_bits) = (low, high, low_bits);
                }
                pass.shift = shift.map_or(std::ptr::null(), <*mut Fr>::cast_const);
            }
        }
    }

    /// A transform of fewer values than a pass has.
    pub(super) fn tiny(&self, lg: u32, order: Order, input: FrPtr, output: FrPtr) -> Launch {
        let time = order == Order::ReversedToNatural;
        let args = Args::new().with(output).with(input.cast_const()).with(self.powers.cast_const());
        let args = args.with(self.flavour.scale.unwrap_or(Fr::ONE)).with(lg).with(u32::from(!time));
        let args = args.with(u32::from(time)).with(u32::from(order == Order::NaturalToReversed));
        Launch { kernel: "ntt_tiny", grid: (1, 1), block: 32, shared_bytes: 0, args }
    }

    fn add_inner(&mut self, cursor: &mut Cursor, lg: u32, lr: u32) {
        let at: FrPtr = cursor.take((FR_BYTES * 4) << lr);
        let args = Args::new().with(at).with(self.powers.cast_const()).with(lg).with(lr);
        self.launches.push(elementwise("ntt_inner", 1 << lr, args));
        self.inner.push((lr, at));
    }

    fn add_factors(
        &mut self,
        cursor: &mut Cursor,
        plan: &Plan,
        i: usize,
        form: Form,
        levels: Option<Levels>,
    ) {
        let (lr, sh, digit) = (plan.passes[i], plan.stride_log(i), plan.digit(i));
        let scale = if i == 0 { self.flavour.scale } else { None };
        let shifted = self.flavour.shift.is_some() || scale.is_some();
        let scale = scale.unwrap_or(Fr::ONE);
        let factors = match form {
            _ if sh == 0 && !shifted => Factors::None,
            Form::One | Form::Split => {
                let parts = if form == Form::One { 1u32 } else { 2 };
                let n = 1u64 << (lr + sh);
                let at: FrPtr = cursor.take(FR_BYTES * n * u64::from(parts));
                let args = Args::new().with(at).with(self.powers.cast_const()).with(scale);
                let args = args.with(plan.lg).with(lr).with(sh).with(digit).with(parts);
                self.launches.push(elementwise("ntt_factors", n, args));
                if parts == 1 { Factors::One(at) } else { Factors::Split(at) }
            }
            Form::Levels => {
                let (root_powers, shift_powers) = (self.powers, self.powers.wrapping_add(32));
                let mut level = |bits: u32, squarings: FrPtr, skip: u32, scale: Fr| {
                    let at: FrPtr = cursor.take((FR_BYTES * 4) << bits);
                    let args = Args::new().with(at).with(squarings.cast_const()).with(scale);
                    self.launches.push(elementwise(
                        "ntt_level",
                        1 << bits,
                        args.with(skip).with(1u32 << bits),
                    ));
                    at
                };
                // w of order 2^(lr + sh) is the root to the power 2^digit.
                let low_bits = (lr + sh).div_ceil(2);
                let mut levels_of_root = || Levels {
                    low: level(low_bits, root_powers, digit, Fr::ONE),
                    high: level(lr + sh - low_bits, root_powers, digit + low_bits, Fr::ONE),
                    low_bits,
                };
                let root = (sh != 0).then(|| levels.unwrap_or_else(&mut levels_of_root));
                let shift = shifted.then(|| level(lr, shift_powers, digit, scale));
                Factors::Levels { root, shift }
            }
        };
        self.factors.push(factors);
    }
}
