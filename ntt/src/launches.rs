//! Each step as launches of `prestage_kernels::ntt`, which a card runs, or the host build of the same kernels.
//!
//! Tables lie in one block: for each size a set of four flavours, with the plan's coset folded in, then the squarings that
//! steps on other cosets and the columns of chunks work with.

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

/// Up to this much memory the factors between passes are kept in their faster forms.
const ROOMY: u64 = 32 << 20;
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
struct Set {
    passes: Passes,
    /// Evaluations on the domain to coefficients, times the powers of the coset.
    into_coset: Tables,
    /// Coefficients to evaluations on the domain.
    forward: Tables,
    /// Evaluations on the coset to coefficients.
    out_of_coset: Tables,
    /// Evaluations on the domain to coefficients.
    inverse: Tables,
}

impl Set {
    fn new(log: u32, domain: &Domain, generator: Generator, coset: Scalar, at: &mut Cursor) -> Self {
        let passes = Passes::new(log, generator);
        let skipped = domain.log_size() - log;
        let root = |root: Scalar| (0..skipped).fold(root, |root, _| root.square());
        let forward = Flavour { root: fr(root(domain.root())), inverse: false, shift: None, scale: None };
        let inverse = |shift: Option<Scalar>| Flavour {
            root: fr(root(domain.root_inverse())),
            inverse: true,
            shift: shift.map(fr),
            scale: Some(fr(power_of_half(log))),
        };
        // Not zero where steps run; see `Step`.
        let back = coset.invert().unwrap_or(Scalar::ONE);
        let flavours = [inverse(Some(coset)), forward, inverse(Some(back)), inverse(None)];
        let total = |form| flavours.iter().map(|flavour| Tables::bytes(&passes, flavour, form)).sum::<u64>();
        let forms = [Form::Split, Form::One];
        let form = forms.into_iter().find(|form| total(*form) <= ROOMY).unwrap_or(Form::Levels);
        let [into_coset, forward, out_of_coset, inverse] = flavours.map(|flavour| {
            let place = at.take(Tables::bytes(&passes, &flavour, form));
            Tables::new(&passes, &flavour, form, place)
        });
        Self { passes, into_coset, forward, out_of_coset, inverse }
    }

    fn tables(&self) -> [&Tables; 4] {
        [&self.into_coset, &self.forward, &self.out_of_coset, &self.inverse]
    }

    /// The launches that take values on the domain to those on the coset.
    fn to_coset(&self, values: FrPtr) -> Vec<Launch> {
        self.passes.to_coset(&self.into_coset, &self.forward, &[values])
    }
}

/// Where the tables lie, in the order in which they are made.
pub(crate) struct Layout {
    whole: Set,
    chunk: Option<Set>,
    /// Squarings for steps on other cosets than the plan's: filled by each such step.
    powers: FrPtr,
    /// Squarings of 1/w and of the coset, and of w, for columns.
    columns: [FrPtr; 2],
    pub(crate) bytes: u64,
}

struct Cursor {
    base: FrPtr,
    used: u64,
}

impl Cursor {
    fn take(&mut self, bytes: u64) -> FrPtr {
        let at = self.base.wrapping_byte_add(usize::try_from(self.used).unwrap_or(usize::MAX));
        self.used = self.used.saturating_add(bytes.next_multiple_of(32));
        at
    }
}

impl Layout {
    pub(crate) fn new(plan: &Plan, generator: Generator, base: FrPtr) -> Self {
        let mut at = Cursor { base, used: 0 };
        let (domain, coset) = (plan.domain(), plan.coset().unwrap_or(Scalar::ONE));
        let log = domain.log_size();
        let whole = Set::new(log, domain, generator, coset, &mut at);
        let chunk = (plan.chunks() > 1).then(|| {
            let of_rows = coset.pow_vartime([plan.chunks() as u64]);
            Set::new(plan.chunk_len().trailing_zeros(), domain, generator, of_rows, &mut at)
        });
        let mut powers = || at.take(Bytes::of::<Fr>(POWERS).get());
        let (powers, columns) = (powers(), [powers(), powers()]);
        Self { whole, chunk, powers, columns, bytes: at.used }
    }

    pub(crate) fn launches(&self, plan: &Plan, step: Step<FrPtr>) -> Vec<Launch> {
        let (n, domain) = (plan.domain().size() as u64, plan.domain());
        let columns = Columns { lg: domain.log_size(), log_chunks: plan.chunks().trailing_zeros() };
        let first = |chunk: usize| (chunk * plan.chunk_width()) as u64;
        match step {
            Step::Tables => {
                let sets = [Some(&self.whole), self.chunk.as_ref()];
                let mut launches: Vec<_> = sets
                    .into_iter()
                    .flatten()
                    .flat_map(Set::tables)
                    .flat_map(|tables| tables.launches().to_vec())
                    .collect();
                let shift = fr(plan.coset().unwrap_or(Scalar::ONE));
                launches.push(launches::powers(self.columns[0], fr(domain.root_inverse()), shift));
                launches.push(launches::powers(self.columns[1], fr(domain.root()), Fr::ONE));
                // So that all of the tables are written.
                launches.push(launches::powers(self.powers, Fr::ONE, Fr::ONE));
                launches
            }
            Step::Transform { values, transform } => self.transform(plan, values, &transform),
            Step::CosetEvaluations { values, shift } if plan.coset() == Some(shift) => {
                self.whole.to_coset(values)
            }
            Step::CosetEvaluations { values, shift } => {
                let to_coefficients = Transform::inverse().to(Order::Reversed);
                let to_coset = Transform::forward().on_coset(shift).from(Order::Reversed);
                let mut launches = self.transform(plan, values, &to_coefficients);
                launches.extend(self.transform(plan, values, &to_coset));
                launches
            }
            Step::Quotient { a, b, c, scale } => {
                vec![launches::quotient_pointwise(a, b.cast_const(), c.cast_const(), fr(scale), n)]
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
            Step::Row { slot, shift } => match &self.chunk {
                Some(set) if plan.coset() == Some(shift) => set.to_coset(slot),
                Some(set) => {
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
                }
                // Not under a plan without chunks, by the contract.
                None => Vec::new(),
            },
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

    /// Any transform in place. Orders and the powers of a shift that no table holds are passes of their own.
    fn transform(&self, plan: &Plan, values: FrPtr, transform: &Transform) -> Vec<Launch> {
        let Transform { direction, shift, input, output } = *transform;
        let (set, log) = (&self.whole, plan.domain().log_size());
        let inverse = direction == Direction::Inverse;
        let of_plan = inverse && shift.is_some() && shift == plan.coset();
        let tables = match (inverse, of_plan) {
            (true, true) => &set.out_of_coset,
            (true, false) => &set.inverse,
            (false, _) => &set.forward,
        };
        let mut launches = Vec::new();
        let power = |reversed: bool| match shift {
            Some(shift) if !of_plan => {
                let base = if inverse { shift.invert().unwrap_or(Scalar::ONE) } else { shift };
                vec![
                    launches::powers(self.powers, Fr::ONE, fr(base)),
                    launches::scale(values, self.powers.cast_const(), Fr::ONE, log, reversed),
                ]
            }
            _ => Vec::new(),
        };
        let between = match input {
            Order::Natural => (CardOrder::NaturalToReversed, Order::Reversed),
            Order::Reversed => (CardOrder::ReversedToNatural, Order::Natural),
        };
        // With a table of the plan's coset the factors go with the coefficients, which are the output.
        let (mut order, mut now) = between;
        if of_plan && order == CardOrder::ReversedToNatural {
            launches.push(launches::reverse_in_place(values, log));
            (order, now) = (CardOrder::NaturalToReversed, Order::Reversed);
        }
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
        tables: Vec<[u64; 4]>,
    }

    impl Machine {
        fn new(plan: Plan) -> Self {
            let bytes = Layout::new(&plan, generator(plan.domain()).unwrap(), std::ptr::null_mut()).bytes;
            let machine = Self { plan, tables: vec![[9; 4]; usize::try_from(bytes).unwrap() / 32] };
            machine.run(Step::Tables);
            machine
        }

        fn run(&self, step: Step<*mut Scalar>) {
            let base = self.tables.as_ptr().cast::<Fr>().cast_mut();
            let layout = Layout::new(&self.plan, generator(self.plan.domain()).unwrap(), base);
            for one in layout.launches(&self.plan, step.map(<*mut Scalar>::cast::<Fr>)) {
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
            let machine = Machine::new(Plan::whole(d.clone()).on_coset(shift));
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

    /// At the full size tables leave the plan its room.
    #[test]
    fn tables_are_small() {
        for plan in [
            Plan::whole(Domain::new(1 << 27, 7).unwrap()),
            Plan::chunked(Domain::new(1 << 27, 7).unwrap(), 4).unwrap(),
        ] {
            let bytes = Layout::new(&plan, Generator::Seven, std::ptr::null_mut()).bytes;
            assert!(bytes <= ROOMY, "{bytes}");
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
