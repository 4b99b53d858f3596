//! Each step as launches of `prestage_kernels::ntt`, which a card runs, or the host build of the same kernels.
//!
//! Tables lie in one block: the squarings that steps on other cosets and the columns of chunks work with, then for each size
//! a set of tables, with the plan's coset folded in.

use blstrs::Scalar;
use ff::Field;
use prestage_kernels::Launch;
use prestage_kernels::ntt::{
    self as launches, Columns, Flavour, Form, Fr, FrPtr, Generator, Order as CardOrder, Plan as Passes,
    Tables,
};
use prestage_vram::Bytes;

use crate::domain::power_of_half;
use crate::host::Combine;
use crate::{Direction, Domain, Order, Plan, Step, Transform};

/// Squarings of a root and of a shift.
const POWERS: usize = 64;

pub(crate) fn generator(domain: &Domain) -> Option<Generator> {
    match domain.generator() {
        5 => Some(Generator::Five),
        7 => Some(Generator::Seven),
        _ => None,
    }
}

/// The same limbs, by halves.
fn fr(scalar: Scalar) -> Fr {
    let mut limbs = [0; 8];
    for (halves, limb) in limbs.chunks_exact_mut(2).zip(blst::blst_fr::from(scalar).l) {
        // Both halves of a limb.
        #[allow(clippy::cast_possible_truncation)]
        halves.copy_from_slice(&[limb as u32, (limb >> 32) as u32]);
    }
    Fr(limbs)
}

/// Tables of one size.
#[derive(Debug)]
struct Set {
    passes: Passes,
    /// Evaluations on the domain to coefficients.
    inverse: Tables,
    /// Coefficients to evaluations on the domain.
    forward: Tables,
    /// With a coset: evaluations on the domain to coefficients, times the powers of the coset.
    into_coset: Option<Tables>,
    /// With a coset: evaluations on it to coefficients, divided by the vanishing polynomial there.
    quotient: Option<Tables>,
}

/// What the tables of one size are for.
#[derive(Clone, Copy)]
struct Flavours {
    inverse: Flavour,
    forward: Flavour,
    into_coset: Option<Flavour>,
    quotient: Option<Flavour>,
}

impl Flavours {
    /// Those of the subgroup of 2^log points, without the quotient.
    fn new(log: u32, domain: &Domain, coset: Option<Scalar>) -> Self {
        let skipped = domain.log_size() - log;
        let root = |root: Scalar| (0..skipped).fold(root, |root, _| root.square());
        let scale = Some(fr(power_of_half(log)));
        let inverse = Flavour { root: fr(root(domain.root_inverse())), inverse: true, shift: None, scale };
        let forward = Flavour { root: fr(root(domain.root())), inverse: false, shift: None, scale: None };
        let into_coset = coset.map(|coset| Flavour { shift: Some(fr(coset)), ..inverse });
        Self { inverse, forward, into_coset, quotient: None }
    }

    fn with_quotient(mut self, domain: &Domain, division: Division) -> Self {
        let Division { shift, scale } = division;
        // Not zero where steps run; see `Step`.
        let back = shift.invert().unwrap_or(Scalar::ONE);
        let scale = Some(fr(scale * domain.size_inverse()));
        self.quotient = Some(Flavour { shift: Some(fr(back)), scale, ..self.inverse });
        self
    }
}

/// The division that tables are made for: by the vanishing polynomial, on the plan's coset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Division {
    shift: Scalar,
    scale: Scalar,
}

impl Division {
    /// None for a coset that meets the domain.
    fn new(domain: &Domain, shift: Scalar) -> Option<Self> {
        let scale: Option<Scalar> = domain.vanishing(shift).invert().into();
        Some(Self { shift, scale: scale? })
    }
}

impl Set {
    /// Tables with the factors of each pass in one of `forms`. Those that a plan with a coset seldom needs are small.
    fn lay(passes: &Passes, flavours: &Flavours, forms: &[Form], at: &mut Cursor) -> Self {
        let mut lay = |flavour: &Flavour, forms: &[Form], other: Option<&Tables>| {
            let tables = Tables::new(passes, flavour, forms, other, at.place());
            at.used += tables.bytes();
            tables
        };
        let seldom = flavours.into_coset.is_some();
        let inverse = lay(&flavours.inverse, if seldom { &[] } else { forms }, None);
        let forward = lay(&flavours.forward, forms, None);
        let into_coset = flavours.into_coset.map(|flavour| lay(&flavour, forms, Some(&inverse)));
        let quotient = flavours.quotient.map(|flavour| lay(&flavour, forms, Some(&inverse)));
        Self { passes: passes.clone(), inverse, forward, into_coset, quotient }
    }

    /// The fastest forms that fit `room`, chosen from the last pass to the first: the last has the fewest factors.
    fn new(log: u32, generator: Generator, flavours: &Flavours, room: u64, at: &mut Cursor) -> Self {
        let passes = Passes::new(log, generator);
        let mut forms = vec![Form::Levels; passes.passes().len()];
        for pass in (0..forms.len()).rev() {
            for form in [Form::Split, Form::One] {
                forms[pass] = form;
                let mut end = Cursor { base: std::ptr::null_mut(), used: 0 };
                Self::lay(&passes, flavours, &forms, &mut end);
                if end.used <= room {
                    break;
                }
                forms[pass] = Form::Levels;
            }
        }
        Self::lay(&passes, flavours, &forms, at)
    }

    /// In the order in which they are filled.
    fn tables(&self) -> impl Iterator<Item = &Tables> {
        let on_coset = [&self.into_coset, &self.quotient];
        [&self.inverse, &self.forward].into_iter().chain(on_coset.into_iter().flatten())
    }

    /// The launches that take values on the domain to those on the coset that the tables are for, if they are for one.
    fn to_coset(&self, values: FrPtr) -> Option<Vec<Launch>> {
        let into_coset = self.into_coset.as_ref()?;
        Some(self.passes.to_coset(into_coset, &self.forward, &[values]))
    }
}

/// Where the tables lie.
// Public as what a card's `Ntt::Layout` is.
#[allow(unreachable_pub)]
#[derive(Debug)]
pub struct Layout {
    whole: Set,
    division: Option<Division>,
    chunk: Option<Set>,
    /// Squarings for steps on other cosets than the plan's: filled by each such step.
    powers: FrPtr,
    /// Squarings of 1/w and of the coset, and of w, for columns.
    columns: [FrPtr; 2],
    pub(crate) bytes: u64,
}

// SAFETY: addresses of device memory, which are never followed on the host.
unsafe impl Send for Layout {}

struct Cursor {
    base: FrPtr,
    used: u64,
}

impl Cursor {
    fn place(&self) -> FrPtr {
        self.base.wrapping_byte_add(usize::try_from(self.used).unwrap_or(usize::MAX))
    }

    fn take(&mut self, bytes: u64) -> FrPtr {
        let at = self.place();
        self.used = self.used.saturating_add(bytes.next_multiple_of(32));
        at
    }
}

impl Layout {
    pub(crate) fn new(plan: &Plan, generator: Generator, base: FrPtr) -> Self {
        let mut at = Cursor { base, used: 0 };
        let mut powers = || at.take(Bytes::of::<Fr>(POWERS).get());
        let (powers, columns) = (powers(), [powers(), powers()]);
        let (domain, coset) = (plan.domain(), plan.coset());
        let room = plan.table_room().get();
        // The smaller set first: its tables are smaller for the same gain.
        let chunk = (plan.chunks() > 1).then(|| {
            let log = plan.chunk_len().trailing_zeros();
            let of_rows = coset.map(|coset| coset.pow_vartime([plan.chunks() as u64]));
            let flavours = Flavours::new(log, domain, of_rows);
            Set::new(log, generator, &flavours, room / 2, &mut at)
        });
        let log = domain.log_size();
        let mut flavours = Flavours::new(log, domain, coset);
        let division = coset.and_then(|coset| Division::new(domain, coset));
        if let Some(division) = division {
            flavours = flavours.with_quotient(domain, division);
        }
        let left = room.saturating_sub(at.used);
        let whole = Set::new(log, generator, &flavours, left, &mut at);
        Self { whole, division, chunk, powers, columns, bytes: at.used }
    }

    pub(crate) fn launches(&self, plan: &Plan, step: Step<FrPtr>) -> Vec<Launch> {
        let (n, domain) = (plan.domain().size() as u64, plan.domain());
        let columns = Columns { lg: domain.log_size(), log_chunks: plan.chunks().trailing_zeros() };
        let first = |chunk: usize| (chunk * plan.chunk_width()) as u64;
        match step {
            Step::Tables => {
                let sets = [self.chunk.as_ref(), Some(&self.whole)];
                let tables = sets.into_iter().flatten().flat_map(Set::tables);
                let mut launches: Vec<_> = tables.flat_map(|tables| tables.launches().to_vec()).collect();
                let shift = fr(plan.coset().unwrap_or(Scalar::ONE));
                launches.push(launches::powers(self.columns[0], fr(domain.root_inverse()), shift));
                launches.push(launches::powers(self.columns[1], fr(domain.root()), Fr::ONE));
                // So that all of the tables are written.
                launches.push(launches::powers(self.powers, Fr::ONE, Fr::ONE));
                launches
            }
            Step::Transform { values, transform } => self.transform(plan, values, &transform),
            Step::CosetEvaluations { values, shift } => {
                let on_plan = plan.coset() == Some(shift);
                on_plan.then(|| self.whole.to_coset(values)).flatten().unwrap_or_else(|| {
                    let to_coefficients = Transform::inverse().to(Order::Reversed);
                    let to_coset = Transform::forward().on_coset(shift).from(Order::Reversed);
                    let mut launches = self.transform(plan, values, &to_coefficients);
                    launches.extend(self.transform(plan, values, &to_coset));
                    launches
                })
            }
            Step::Quotient { a, b, c, scale } => {
                vec![launches::quotient_pointwise(a, b.cast_const(), c.cast_const(), fr(scale), n)]
            }
            Step::QuotientCoefficients { a, b, c, shift, scale } => {
                self.quotient_coefficients(plan, a, b, c, Division { shift, scale })
            }
            Step::Combine { a, other, how } => vec![match how {
                Combine::Mul => launches::combine_product(a, other.cast_const(), n),
                Combine::SubScale(scale) => launches::combine_sub_scale(a, other.cast_const(), fr(scale), n),
            }],
            Step::FirstColumns { slot, chunk, shift } => {
                let scale = fr(power_of_half(columns.log_chunks));
                let mut launches = Vec::new();
                let powers = if plan.coset() == Some(shift) {
                    self.columns[0]
                } else {
                    launches.push(launches::powers(self.powers, fr(domain.root_inverse()), fr(shift)));
                    self.powers
                };
                launches.push(columns.first(slot, first(chunk), powers.cast_const(), scale));
                launches
            }
            Step::Row { slot, shift } => {
                // Not under a plan without chunks, by the contract.
                let Some(set) = &self.chunk else { return Vec::new() };
                let on_plan = plan.coset() == Some(shift);
                on_plan.then(|| set.to_coset(slot)).flatten().unwrap_or_else(|| {
                    let shift = shift.pow_vartime([plan.chunks() as u64]);
                    let log = plan.chunk_len().trailing_zeros();
                    let (inverse, forward) = (&set.inverse, &set.forward);
                    let values = &[slot];
                    let mut launches =
                        set.passes.transform(CardOrder::NaturalToReversed, inverse, values, values);
                    launches.push(launches::powers(self.powers, Fr::ONE, fr(shift)));
                    launches.push(launches::scale(slot, self.powers.cast_const(), Fr::ONE, log, true));
                    let order = CardOrder::ReversedToNatural;
                    launches.extend(set.passes.transform(order, forward, values, values));
                    launches
                })
            }
            Step::LastColumns { slot, chunk } => {
                vec![columns.last(slot, first(chunk), self.columns[1].cast_const())]
            }
            Step::CombineColumns { a, slot, chunk, how } => {
                let how = match how {
                    Combine::Mul => launches::Combine::Mul,
                    Combine::SubScale(scale) => launches::Combine::SubScale(fr(scale)),
                };
                vec![columns.combine(a, slot.cast_const(), first(chunk), how)]
            }
        }
    }

    /// Any transform in place. Orders and the powers of a shift are passes of their own.
    fn transform(&self, plan: &Plan, values: FrPtr, transform: &Transform) -> Vec<Launch> {
        let Transform { direction, shift, input, output } = *transform;
        let (set, log) = (&self.whole, plan.domain().log_size());
        let inverse = direction == Direction::Inverse;
        let tables = if inverse { &set.inverse } else { &set.forward };
        let (order, now) = match input {
            Order::Natural => (CardOrder::NaturalToReversed, Order::Reversed),
            Order::Reversed => (CardOrder::ReversedToNatural, Order::Natural),
        };
        let mut launches = Vec::new();
        let power = |reversed: bool| {
            shift.into_iter().flat_map(move |shift| {
                let base = if inverse { shift.invert().unwrap_or(Scalar::ONE) } else { shift };
                [
                    launches::powers(self.powers, Fr::ONE, fr(base)),
                    launches::scale(values, self.powers.cast_const(), Fr::ONE, log, reversed),
                ]
            })
        };
        if !inverse {
            launches.extend(power(input == Order::Reversed));
        }
        launches.extend(set.passes.transform(order, tables, &[values], &[values]));
        if inverse {
            launches.extend(power(now == Order::Reversed));
        }
        if now != output {
            launches.push(launches::reverse_in_place(values, log));
        }
        launches
    }

    /// The division, and the transform back. What tables are made for takes as many passes as a transform, and the last one
    /// leaves natural order.
    fn quotient_coefficients(
        &self,
        plan: &Plan,
        a: FrPtr,
        b: Option<FrPtr>,
        c: Option<FrPtr>,
        division: Division,
    ) -> Vec<Launch> {
        let set = &self.whole;
        let tables = set.quotient.as_ref().filter(|_| self.division == Some(division));
        if let (Some(tables), Some(c)) = (tables, c) {
            return set.passes.quotient(tables, a, b, c);
        }
        let (log, n) = (plan.domain().log_size(), plan.domain().size() as u64);
        let Division { shift, scale } = division;
        let scale = if tables.is_some() { Fr::ONE } else { fr(scale) };
        let product = b.map(|b| launches::combine_product(a, b.cast_const(), n));
        let mut launches = Vec::from_iter(product);
        match c {
            Some(c) => launches.push(launches::combine_sub_scale(a, c.cast_const(), scale, n)),
            None if scale != Fr::ONE => {
                launches.push(launches::powers(self.powers, Fr::ONE, Fr::ONE));
                launches.push(launches::scale(a, self.powers.cast_const(), scale, log, false));
            }
            None => {}
        }
        match tables {
            Some(tables) => {
                launches.extend(set.passes.transform(CardOrder::NaturalToReversed, tables, &[a], &[a]));
                launches.push(launches::reverse_in_place(a, log));
            }
            None => launches.extend(self.transform(plan, a, &Transform::inverse().on_coset(shift))),
        }
        launches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;
    use prestage_kernels::host::{Order as Threads, launch};
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// The host build as a device of its own: tables in memory of just their size.
    struct Machine {
        plan: Plan,
        layout: Layout,
        _tables: Vec<[u64; 4]>,
    }

    impl Machine {
        fn new(plan: Plan) -> Self {
            let layout = |base| Layout::new(&plan, generator(plan.domain()).unwrap(), base);
            let bytes = layout(std::ptr::null_mut()).bytes;
            let mut tables = vec![[9; 4]; usize::try_from(bytes).unwrap() / 32];
            let layout = layout(tables.as_mut_ptr().cast());
            let machine = Self { plan, layout, _tables: tables };
            machine.run(Step::Tables);
            machine
        }

        fn run(&self, step: Step<*mut Scalar>) {
            for one in self.layout.launches(&self.plan, step.map(<*mut Scalar>::cast::<Fr>)) {
                // SAFETY: blocks have the sizes that the step states, and the tables that of the layout.
                unsafe { launch(&one, Threads::Shuffled(3)) }.unwrap();
            }
        }
    }

    fn values(n: usize, seed: u64) -> Vec<Scalar> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..n).map(|_| Scalar::random(&mut rng)).collect()
    }

    #[test]
    fn m1_m6_every_transform_equals_the_slices() {
        let (shift, other) = (Scalar::from(7), Scalar::from(11));
        for (log, generator) in (0..=11).flat_map(|log| [(log, 7), (log, 5)]) {
            let d = Domain::new(1 << log, generator).unwrap();
            // Each with its own forms: in levels, in one part, in two.
            let room = [Bytes::ZERO, Bytes::kib(128), Bytes::mib(32)][d.log_size() as usize % 3];
            let machine = Machine::new(Plan::whole(d.clone()).on_coset(shift).with_table_room(room));
            let input = values(d.size(), log);
            for shift in [shift, other] {
                let (mut expected, mut got) = (input.clone(), input.clone());
                host::coset_evaluations(&d, &mut expected, shift).unwrap();
                machine.run(Step::CosetEvaluations { values: got.as_mut_ptr(), shift });
                assert!(got == expected, "2^{log} of {generator}");
                for from in [Order::Natural, Order::Reversed] {
                    for to in [Order::Natural, Order::Reversed] {
                        for t in [Transform::forward(), Transform::inverse()] {
                            for t in [t, t.on_coset(shift)] {
                                let transform = t.from(from).to(to);
                                let (mut expected, mut got) = (input.clone(), input.clone());
                                host::transform(&d, &mut expected, &transform).unwrap();
                                machine.run(Step::Transform { values: got.as_mut_ptr(), transform });
                                assert!(got == expected, "2^{log} of {generator}, {transform:?}");
                            }
                        }
                    }
                }
            }
        }
    }

    /// The quotient with and without b and c, on the plan's coset and another, by the scale that tables have and another.
    #[test]
    fn m1_m6_quotient_coefficients_equal_the_slices() {
        let (shift, other) = (Scalar::from(7), Scalar::from(11));
        for (log, generator) in [(0, 7), (2, 5), (3, 7), (8, 5), (11, 7)] {
            let d = Domain::new(1 << log, generator).unwrap();
            let machine = Machine::new(Plan::whole(d.clone()).on_coset(shift));
            let [a, b, c] = [1, 2, 3].map(|seed| values(d.size(), seed));
            let (zero, one) = (vec![Scalar::ZERO; d.size()], vec![Scalar::ONE; d.size()]);
            let divide = d.vanishing(shift).invert().unwrap();
            for (shift, scale) in [(shift, divide), (shift, Scalar::ONE), (other, divide)] {
                for bits in 0..4 {
                    let (with_b, with_c) = (bits & 1 == 1, bits & 2 == 2);
                    let (mut expected, mut got) = (a.clone(), a.clone());
                    let (b_or_one, c_or_zero) =
                        (if with_b { &b } else { &one }, if with_c { &c } else { &zero });
                    host::mul_sub_scale(&mut expected, b_or_one, c_or_zero, scale).unwrap();
                    host::coset_coefficients(&d, &mut expected, shift).unwrap();
                    let (mut b, mut c) = (b.clone(), c.clone());
                    let (b, c) = (with_b.then_some(b.as_mut_ptr()), with_c.then_some(c.as_mut_ptr()));
                    machine.run(Step::QuotientCoefficients { a: got.as_mut_ptr(), b, c, shift, scale });
                    assert!(got == expected, "2^{log} of {generator}, b {with_b}, c {with_c}");
                }
            }
        }
    }

    /// The three passes out of core, slot by slot, and the combination into a resident polynomial.
    #[test]
    fn m1_m6_chunks_equal_the_slices() {
        let (shift, other, scale) = (Scalar::from(7), Scalar::from(11), Scalar::from(5));
        for (log, log_chunks, generator) in [(2, 1, 7), (4, 2, 5), (6, 3, 7), (9, 1, 5), (12, 6, 7)] {
            let d = Domain::new(1 << log, generator).unwrap();
            let (n, k) = (d.size(), 1 << log_chunks);
            let machine = Machine::new(Plan::chunked(d.clone(), k).unwrap().on_coset(shift));
            let (m, width) = (machine.plan.chunk_len(), machine.plan.chunk_width());
            for shift in [shift, other] {
                let (mut x, mut a) = (values(n, 1), values(n, 2));
                let (mut expected, mut other) = (a.clone(), x.clone());
                host::coset_evaluations(&d, &mut other, shift).unwrap();
                host::combine(&mut expected, &other, Combine::SubScale(scale)).unwrap();
                let columns = |x: &[Scalar], chunk: usize| -> Vec<Scalar> {
                    (0..k).flat_map(|row| x[row * m + chunk * width..][..width].to_vec()).collect()
                };
                for chunk in 0..k {
                    let mut slot = columns(&x, chunk);
                    machine.run(Step::FirstColumns { slot: slot.as_mut_ptr(), chunk, shift });
                    for (row, values) in slot.chunks(width).enumerate() {
                        x[row * m + chunk * width..][..width].copy_from_slice(values);
                    }
                }
                for row in x.chunks_mut(m) {
                    machine.run(Step::Row { slot: row.as_mut_ptr(), shift });
                }
                for chunk in 0..k {
                    let mut slot = columns(&x, chunk);
                    machine.run(Step::LastColumns { slot: slot.as_mut_ptr(), chunk });
                    let (a, slot, how) = (a.as_mut_ptr(), slot.as_mut_ptr(), Combine::SubScale(scale));
                    machine.run(Step::CombineColumns { a, slot, chunk, how });
                }
                assert!(a == expected, "2^{log} in {k} of {generator}");
            }
        }
    }

    /// Tables take the room that a plan gives them and no more: at the full size what a card of 16 GiB can spare, with all of
    /// the passes but the first in a fast form; with more room all of them in the fastest, 64 bytes a factor.
    #[test]
    fn tables_are_as_large_as_the_plan_says() {
        let d = Domain::new(1 << 27, 7).unwrap();
        let bytes = |plan: &Plan| Layout::new(plan, Generator::Seven, std::ptr::null_mut()).bytes;
        let plan = |chunks, coset: bool| {
            let plan =
                if chunks == 1 { Plan::whole(d.clone()) } else { Plan::chunked(d.clone(), chunks).unwrap() };
            if coset { plan.on_coset(Scalar::from(7)) } else { plan }
        };
        let n = 1u64 << 27;
        for (chunks, coset) in [(1, false), (1, true), (4, false), (4, true), (64, true)] {
            let taken = bytes(&plan(chunks, coset));
            assert!(taken <= 32 << 20, "{chunks} chunks, coset {coset}: {taken}");
            assert!(chunks > 1 || taken > 16 << 20, "coset {coset}: {taken}");
            let least = bytes(&plan(chunks, coset).with_table_room(Bytes::ZERO));
            assert!(least < 16 << 20, "{chunks} chunks, coset {coset}: {least}");
        }
        for (coset, flavours) in [(false, 2), (true, 3)] {
            let all = bytes(&plan(1, coset).with_table_room(Bytes::gib(64)));
            assert!((flavours * 64 * n..flavours * 65 * n).contains(&all), "{all}");
        }
    }

    /// Planners ask for one coset, proofs use another.
    #[test]
    fn l10_tables_are_as_large_on_one_coset_as_on_another() {
        let bytes = |plan: Plan| Layout::new(&plan, Generator::Seven, std::ptr::null_mut()).bytes;
        for log in 0..=27 {
            let d = Domain::new(1 << log, 7).unwrap();
            let half_way = Domain::new(2 << log, 7).unwrap().root();
            for chunks in [1, 2, 4, 64] {
                let plan = match chunks {
                    1 => Ok(Plan::whole(d.clone())),
                    _ => Plan::chunked(d.clone(), chunks),
                };
                // Small ones have no chunks.
                let Ok(plan) = plan else { continue };
                for room in [Bytes::ZERO, plan.table_room(), Bytes::gib(64)] {
                    let on = |shift| bytes(plan.clone().on_coset(shift).with_table_room(room));
                    let expected = on(d.generator().into());
                    for shift in [half_way, Scalar::from(11)] {
                        assert_eq!(on(shift), expected, "2^{log} in {chunks}, {room}");
                    }
                }
            }
        }
    }

    /// The steps of chunks on a card, one by one, against the CPU.
    #[cfg(feature = "cuda")]
    #[test]
    fn m1_chunk_steps_on_a_card_equal_those_of_the_cpu() {
        use crate::{Ntt, Twiddles};
        use prestage_transfer::{Lanes, Pinned};
        use prestage_vram::conformance::{OnCuda, Subject, run};
        use prestage_vram::{Host, HostConfig, LedgerConfig, Worker};

        fn one<D: Ntt>(device: &D, plan: &Plan, input: &[Scalar], step: &Step<()>) -> Vec<Scalar> {
            let mut worker = Worker::new(0);
            let turn = device.turn(&mut worker).unwrap();
            let lanes = Lanes::open(&turn).unwrap();
            let mut twiddles = Twiddles::for_turn(&lanes.compute, plan.clone()).unwrap();
            let slot = lanes.upload.alloc("slot", input.len()).unwrap();
            let (mut slot, upload) = lanes.upload.upload(input.to_vec(), slot).unwrap();
            slot.claim(lanes.compute.queue()).unwrap();
            // SAFETY: a slot of the plan's length, claimed.
            unsafe { twiddles.enqueue(&lanes.compute, "step".into(), step.map(|()| slot.block())) }.unwrap();
            let into = Pinned::filled(device, input.len(), Scalar::ZERO).unwrap();
            let out =
                lanes.download.download(&mut slot, 0..input.len(), into).unwrap().wait().unwrap().to_vec();
            upload.wait().unwrap();
            drop((slot, twiddles, lanes));
            turn.release().unwrap();
            out
        }

        run(&OnCuda, "m1_chunk_steps", |on| {
            let card = on.open(Bytes::gib(4), LedgerConfig::default());
            card.prepare().unwrap();
            let host = Host::open(HostConfig::default()).unwrap();
            let mut wrong = Vec::new();
            for (log, log_chunks, generator) in
                [(2, 1, 7), (4, 2, 5), (6, 3, 7), (9, 1, 5), (12, 6, 7), (14, 2, 7)]
            {
                let plan = Plan::chunked(Domain::new(1 << log, generator).unwrap(), 1 << log_chunks).unwrap();
                for plan in [plan.clone(), plan.on_coset(Scalar::from(7))] {
                    let input = values(plan.chunk_len(), log);
                    let shift = Scalar::from(7);
                    for chunk in [0, plan.chunks() - 1] {
                        let steps = [
                            Step::FirstColumns { slot: (), chunk, shift },
                            Step::Row { slot: (), shift },
                            Step::LastColumns { slot: (), chunk },
                        ];
                        for step in steps {
                            if one(&card, &plan, &input, &step) != one(&host, &plan, &input, &step) {
                                wrong
                                    .push(format!("2^{log} in 2^{log_chunks}: {step:?}, {:?}", plan.coset()));
                            }
                        }
                    }
                }
            }
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        });
    }
}
