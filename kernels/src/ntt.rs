//! Which launches make a transform: the host side of `cuda/ntt.cuh`.
//!
//! Nothing here touches a device. A [`Plan`] says how a transform is split into passes, [`Tables`] which launches
//! fill the tables of one [`Flavour`] of it in memory that the caller provides, and [`Plan::transform`] and its
//! like which launches, in order, run it. They are the same on a device and on the host build.

mod columns;
mod pointwise;
mod tables;

pub use columns::{Columns, Combine};
pub use pointwise::{
    combine_product, combine_sub_scale, powers, quotient_pointwise, reverse_in_place, scale,
};
pub use tables::Tables;

use crate::{Args, Argument, Launch};

/// An element of Fr: 8 little-endian limbs, Montgomery form, as in blst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Fr(pub [u32; 8]);

/// A pointer to elements of Fr, in device memory or on the host.
pub type FrPtr = *mut Fr;

// SAFETY: `repr(C)`, the layout of `Fr` in cuda/fr.cuh.
unsafe impl Argument for Fr {}

impl Fr {
    /// 2^256 mod r: one in Montgomery form.
    pub const ONE: Self = Self([
        0xffff_fffe,
        0x0000_0001,
        0x0003_4802,
        0x5884_b7fa,
        0xecbc_4ff5,
        0x998c_4fef,
        0xacc5_056f,
        0x1824_b159,
    ]);
}

/// The non-residue that a domain's roots come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generator {
    /// 7: bellman, blstrs, arkworks.
    Seven,
    /// 5: circom, snarkjs.
    Five,
}

/// The parameters of a pass: `NttPass` of cuda/ntt.cuh.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Pass {
    input: [*const Fr; 3],
    output: [*mut Fr; 3],
    inner: *const Fr,
    inner_next: *const Fr,
    factors: *const Fr,
    low: *const Fr,
    high: *const Fr,
    shift: *const Fr,
    form: u32,
    low_bits: u32,
    lg: u32,
    lr: u32,
    lc: u32,
    sh: u32,
    canonical: u32,
    natural: u32,
    flip: u32,
}

// SAFETY: `repr(C)`, the layout of `NttPass`.
unsafe impl Argument for Pass {}

/// How the factors of a pass are kept: memory against speed. The first pass has one for each of n values, the one after
/// a pass of b bits one for each of n / 2^b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 32 bytes a factor; 112 wide multiplications a value.
    One,
    /// 64 bytes a factor, in two prepared parts; 94: the fastest.
    Split,
    /// Two tables of about the square root of the factors, 128 bytes an entry; 164, and 82 more with a shift or a scale.
    Levels,
}

/// The order of a transform's input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Natural in, bit-reversed out; may run in place. A shift multiplies the output: y_k·f^k.
    NaturalToReversed,
    /// Bit-reversed in, natural out; may run in place. A shift multiplies the input: x_j·f^j.
    ReversedToNatural,
    /// Natural in and out. A shift multiplies the output: y_k·f^k.
    Natural,
}

/// One direction of a transform with what is folded into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flavour {
    /// The root of order 2^lg to transform by: w, or 1/w for an inverse.
    pub root: Fr,
    /// Whether `root` is 1/w.
    pub inverse: bool,
    /// The shift f.
    pub shift: Option<Fr>,
    /// A factor c on every value.
    pub scale: Option<Fr>,
}

/// How a transform of 2^lg values is split into passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    lg: u32,
    passes: Vec<u32>,
    generator: Generator,
}

/// The bytes of an element.
const FR_BYTES: u64 = 32;

/// The most bits of a tile: 2^10 elements in 32 KiB of shared memory, eight a thread.
const TILE_BITS: u32 = 10;

impl Plan {
    /// The default split: one pass up to 2^10, two up to 2^18, three up to 2^27, four above.
    #[must_use]
    pub fn new(lg: u32, generator: Generator) -> Self {
        let passes = match lg {
            0..=2 => vec![],
            3..=10 => vec![lg],
            11..=18 => vec![lg.div_ceil(2), lg / 2],
            // Wide passes first: 8 + 6 + 6 at 2^20, 9 + 9 + 6 at 2^24, 9 + 9 + 9 at 2^27.
            19..=27 => {
                let last = lg.saturating_sub(18).clamp(6, 9);
                let rest = lg - last;
                let first = rest.div_ceil(2).max(8.min(rest - 6));
                vec![first, rest - first, last]
            }
            _ => {
                let mut bits = vec![lg / 4; 4];
                for b in bits.iter_mut().take((lg % 4) as usize) {
                    *b += 1;
                }
                bits
            }
        };
        Self { lg, passes, generator }
    }

    /// A split of the caller's: passes of 3 to 10 bits, at most 32 in all. `None` if it is not such a one.
    #[must_use]
    pub fn with_passes(passes: &[u32], generator: Generator) -> Option<Self> {
        let lg = passes.iter().sum();
        let valid = !passes.is_empty() && passes.iter().all(|b| (3..=TILE_BITS).contains(b)) && lg <= 32;
        valid.then(|| Self { lg, passes: passes.to_vec(), generator })
    }

    /// The logarithm of the size.
    #[must_use]
    pub const fn log_size(&self) -> u32 {
        self.lg
    }

    /// The bits of each pass, in the order of decimation in frequency; none below 2^3.
    #[must_use]
    pub fn passes(&self) -> &[u32] {
        &self.passes
    }

    /// The bits that the passes before `i` have taken.
    fn digit(&self, i: usize) -> u32 {
        self.passes[..i].iter().sum()
    }

    fn stride_log(&self, i: usize) -> u32 {
        self.lg - self.digit(i + 1)
    }

    /// The launch of pass `i`.
    fn pass(
        &self,
        i: usize,
        kernel: &'static str,
        io: &Io<'_>,
        tables: &Tables,
        next: Option<&Tables>,
        last: bool,
    ) -> Launch {
        let (lr, sh) = (self.passes[i], self.stride_log(i));
        let mut lc = (TILE_BITS - lr).min(self.lg - lr);
        if sh > 0 {
            lc = lc.min(sh);
        }
        let mut pass = Pass {
            input: [std::ptr::null(); 3],
            output: [std::ptr::null_mut(); 3],
            inner: tables.inner(lr),
            inner_next: next.map_or(std::ptr::null(), |n| n.inner(lr)),
            factors: std::ptr::null(),
            low: std::ptr::null(),
            high: std::ptr::null(),
            shift: std::ptr::null(),
            form: 0,
            low_bits: 0,
            lg: self.lg,
            lr,
            lc,
            sh,
            canonical: u32::from(last),
            natural: u32::from(io.natural),
            flip: u32::from(self.generator == Generator::Five),
        };
        for (to, from) in pass.input.iter_mut().zip(io.input) {
            *to = from.cast_const();
        }
        for (to, from) in pass.output.iter_mut().zip(io.output) {
            *to = *from;
        }
        tables.fill(i, &mut pass);
        let rows = u32::try_from(io.output.len()).unwrap_or(1);
        Launch {
            kernel,
            grid: (1 << (self.lg - lr - lc), rows),
            block: 1 << (lr + lc - 3),
            shared_bytes: 32 << (lr + lc),
            args: Args::new().with(pass),
        }
    }

    /// The launches of a transform of each of `input` into the same place of `output`; one to three polynomials
    /// run side by side. In place where the order allows it; [`Order::Natural`] uses `input` as scratch and needs
    /// another `output`.
    ///
    /// Values are canonical at the end and must be at the start.
    #[must_use]
    pub fn transform(&self, order: Order, tables: &Tables, input: &[FrPtr], output: &[FrPtr]) -> Vec<Launch> {
        let inverse = tables.flavour.inverse;
        if self.passes.is_empty() {
            return input.iter().zip(output).map(|(&i, &o)| tables.tiny(self.lg, order, i, o)).collect();
        }
        let m = self.passes.len();
        let frequency = if inverse { "ntt_dif_inverse" } else { "ntt_dif" };
        let time = if inverse { "ntt_dit_inverse" } else { "ntt_dit" };
        let between = if order == Order::Natural { input } else { output };
        (0..m)
            .map(|step| {
                let (first, last) = (step == 0, step + 1 == m);
                let natural = order == Order::Natural && last;
                let io = Io {
                    input: if first { input } else { between },
                    output: if last { output } else { between },
                    natural,
                };
                match order {
                    Order::ReversedToNatural => self.pass(m - 1 - step, time, &io, tables, None, last),
                    _ => self.pass(step, frequency, &io, tables, None, last),
                }
            })
            .collect()
    }

    /// From values on the domain to values on the coset, natural order in and out, in place: an inverse
    /// transform with the coset's shift (`inverse`, scale 1/n) and a forward one (`forward`, no shift), which
    /// share a kernel in the middle.
    #[must_use]
    pub fn to_coset(&self, inverse: &Tables, forward: &Tables, values: &[FrPtr]) -> Vec<Launch> {
        if self.passes.is_empty() {
            let mut launches = self.transform(Order::NaturalToReversed, inverse, values, values);
            launches.extend(self.transform(Order::ReversedToNatural, forward, values, values));
            return launches;
        }
        let m = self.passes.len();
        let io = Io { input: values, output: values, natural: false };
        let mut launches: Vec<Launch> =
            (0..m - 1).map(|i| self.pass(i, "ntt_dif_inverse", &io, inverse, None, false)).collect();
        launches.push(self.pass(m - 1, "ntt_middle", &io, inverse, Some(forward), m == 1));
        launches.extend((0..m - 1).rev().map(|i| self.pass(i, "ntt_dit", &io, forward, None, i == 0)));
        launches
    }

    /// From values on the coset to the coefficients of the quotient in the place of a, natural order in and out: the
    /// inverse transform of a·b − c, or of a − c without b. `inverse` has the shift 1/g and the scale 1/(n·z), z the
    /// vanishing polynomial on the coset. The passes work in c, so that the last one can leave natural order.
    #[must_use]
    pub fn quotient(&self, inverse: &Tables, a: FrPtr, b: Option<FrPtr>, c: FrPtr) -> Vec<Launch> {
        if self.passes.is_empty() {
            let n = 1 << self.lg;
            let mut launches = match b {
                Some(b) => vec![quotient_pointwise(a, b.cast_const(), c.cast_const(), Fr::ONE, n)],
                None => vec![combine_sub_scale(a, c.cast_const(), Fr::ONE, n)],
            };
            launches.extend(self.transform(Order::Natural, inverse, &[a], &[a]));
            return launches;
        }
        let abc = [a, b.unwrap_or(std::ptr::null_mut()), c];
        let m = self.passes.len();
        (0..m)
            .map(|i| {
                let (first, last) = (i == 0, i + 1 == m);
                let kernel = if first { "ntt_dif_inverse_quotient" } else { "ntt_dif_inverse" };
                let input: &[FrPtr] = if first { &abc } else { &[c] };
                let io = Io { input, output: &[if last { a } else { c }], natural: last };
                self.pass(i, kernel, &io, inverse, None, last)
            })
            .collect()
    }
}

/// What a pass reads and writes.
struct Io<'a> {
    input: &'a [FrPtr],
    output: &'a [FrPtr],
    natural: bool,
}
