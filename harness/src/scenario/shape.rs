//! Shapes of circuits: counts at full size, and a small satisfiable circuit of the same proportions.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};

use blstrs::Scalar;
use ff::Field;
use prestage_groth16::{Counts, Libsnark, R1cs, R1csBuilder, Shape, ShapeError, Witness};
use prestage_vram::{Bytes, Nanos};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_core::RngCore;
use rayon::prelude::*;
use serde::Deserialize;

use crate::circuits::{Circuit, squares};

/// A name with a short digest of what it stands for, so that others of that name are told apart.
#[must_use]
pub fn marked(name: &str, content: &str) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    format!("{name} ({:08x})", u32::from_be_bytes([a, b, c, d]))
}

/// Wires, or rows at least, per piece of parallel work.
const PIECE: u32 = 1 << 12;

/// Shapes by name.
const SHIPPED: [(&str, &str); 2] = [
    ("porep-32g", include_str!("../../shapes/porep-32g.toml")),
    ("porep-32g-uniform", include_str!("../../shapes/porep-32g-uniform.toml")),
];

/// What a witness is made of, in thousandths; the rest is uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Zeros.
    pub zeros: u16,
    /// Ones.
    pub ones: u16,
}

/// What the host does for one partition at full size. Real devices take what they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTime {
    /// Before the turn.
    pub prepare: Nanos,
    /// After it.
    pub finish: Nanos,
}

/// The shape of a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthetic {
    name: String,
    counts: Counts,
    mix: Mix,
    host: HostTime,
    /// Realised as repeated squaring.
    square: bool,
}

/// A shape that does not exist or cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeSourceError {
    /// Neither a known name nor a file's.
    #[error(
        "no shape `{0}`: it is porep-32g, porep-32g-uniform, square-2^K (K from 2 to 32) or a file ending in .toml"
    )]
    Unknown(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Text that is no shape.
    #[error("{name} is no shape of a circuit: {detail}")]
    Parse {
        /// The file or name.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// Counts that are no circuit's.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    counts: FileCounts,
    witness: Mix,
    #[serde(default)]
    host: FileHost,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCounts {
    rows: u64,
    inputs: u64,
    aux: u64,
    a_aux: u64,
    b_input: u64,
    b_aux: u64,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileHost {
    #[serde(default)]
    prepare_ms: u64,
    #[serde(default)]
    finish_ms: u64,
}

impl Synthetic {
    /// `porep-32g`, `porep-32g-uniform` (the same counts, nothing in the witness zero or one), `square-2^K`, or a TOML file.
    ///
    /// # Errors
    /// [`ShapeSourceError`].
    pub fn named(name: &str) -> Result<Self, ShapeSourceError> {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::from_toml(name, text);
        }
        if let Some(log) = name.strip_prefix("square-2^").and_then(|k| k.parse().ok()) {
            return Self::square(log).ok_or_else(|| ShapeSourceError::Unknown(name.to_owned()));
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|end| !end.eq_ignore_ascii_case("toml")) {
            return Err(ShapeSourceError::Unknown(name.to_owned()));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| ShapeSourceError::Read { path: path.to_owned(), source })?;
        Self::from_toml(name, &text)
    }

    /// Repeated squaring that fills a domain of 2^`log` rows: every matrix is dense, every wire uniform. `None` below 2
    /// and above 32.
    #[must_use]
    pub fn square(log: u32) -> Option<Self> {
        if !(2..=32).contains(&log) {
            return None;
        }
        let n = (1u64 << log) - 2;
        let counts = Counts { rows: 1 << log, inputs: 2, aux: n, a_aux: n, b_input: 0, b_aux: n };
        let mix = Mix { zeros: 0, ones: 0 };
        Some(Self { name: format!("square-2^{log}"), counts, mix, host: HostTime::default(), square: true })
    }

    /// Reads a shape. `from` names the text in errors.
    ///
    /// # Errors
    /// [`ShapeSourceError::Parse`] with what is wrong.
    pub fn from_toml(from: &str, text: &str) -> Result<Self, ShapeSourceError> {
        let bad = |detail: String| ShapeSourceError::Parse { name: from.to_owned(), detail };
        let File { name, counts, witness, host } =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim().replace('\n', " ")))?;
        let FileCounts { rows, inputs, aux, a_aux, b_input, b_aux } = counts;
        for (what, part, whole) in [
            ("inputs", inputs, rows),
            ("a_aux", a_aux, aux),
            ("b_aux", b_aux, a_aux),
            ("b_input", b_input, inputs),
            ("witness.zeros + witness.ones", u64::from(witness.zeros) + u64::from(witness.ones), 1000),
        ] {
            if part > whole {
                return Err(bad(format!("{what} is {part}, more than the {whole} that it is a part of")));
            }
        }
        if inputs == 0 || a_aux == 0 {
            return Err(bad("it needs an input, which is the one, and a wire that A names".into()));
        }
        let counts = Counts { rows, inputs, aux, a_aux, b_input, b_aux };
        Shape::new::<Libsnark>(&counts)?;
        let ms = |n: u64| Nanos::new(n.saturating_mul(1_000_000));
        let host = HostTime { prepare: ms(host.prepare_ms), finish: ms(host.finish_ms) };
        Ok(Self { name, counts, mix: witness, host, square: false })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What loads of it are called: its name, and for a shape of one's own a digest of all that it says. Loads of one name are of
    /// one shape.
    #[must_use]
    pub fn load(&self) -> String {
        if self.square
            || SHIPPED.iter().any(|(name, text)| Self::from_toml(name, text).is_ok_and(|s| s == *self))
        {
            return self.name.clone();
        }
        marked(&self.name, &format!("{:?} {:?} {:?}", self.counts, self.mix, self.host))
    }

    /// Its counts at full size.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What a witness is made of.
    #[must_use]
    pub const fn mix(&self) -> Mix {
        self.mix
    }

    /// What the host does for one partition.
    #[must_use]
    pub const fn host(&self) -> HostTime {
        self.host
    }

    /// What a proof of it costs at full size.
    ///
    /// # Errors
    /// [`ShapeError::Domain`] above 2^32 rows.
    pub fn shape(&self) -> Result<Shape, ShapeError> {
        Shape::new::<Libsnark>(&self.counts)
    }

    /// log2 of its domain.
    ///
    /// # Errors
    /// As [`Synthetic::shape`].
    pub fn log_domain(&self) -> Result<u32, ShapeError> {
        Ok(self.shape()?.domain.trailing_zeros())
    }

    /// A circuit of the same proportions on a domain of 2^`log` rows, and a witness of the same mix, drawn from `seed`.
    /// One element of it stands for 2^(log of the full domain − `log`) of the full size.
    ///
    /// Private wires that B names come first, then the others that A names, then the rest. A bit in B gets a boolean
    /// constraint `x·(x − 1) = 0`, a uniform wire in B the square of itself as a wire outside of B, any other wire in A a
    /// row of its own, `x·1 = x`. A last row makes a sum of wires public.
    ///
    /// # Errors
    /// [`ShapeError`] when `log` is below 4 or above what 32-bit wire numbers hold.
    pub fn realise(&self, log: u32, seed: u64) -> Result<Circuit, ShapeError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        if self.square {
            return squares(log, rng);
        }
        if !(4..=30).contains(&log) {
            return Err(ShapeError::Domain { size: 1u64.checked_shl(log).unwrap_or(u64::MAX) });
        }
        let full = u128::from(self.shape()?.domain);
        // Half up; every part fits 32 bits since the domain does.
        let part = |count: u64| {
            let scaled = ((u128::from(count) << log) + full / 2) / full;
            u32::try_from(scaled).unwrap_or(u32::MAX)
        };
        let Counts { rows, aux, a_aux, b_aux, .. } = self.counts;
        // The one and one public wire, whose rows are counted.
        let fixed = 2;
        let constraints = part(rows).max(4).saturating_sub(fixed).max(2);
        let in_a = part(a_aux).clamp(1, constraints - 1);
        let in_b = part(b_aux).min(in_a);
        let aux = part(aux).max(in_a);

        let plan = Rows { fixed, in_a, in_b, aux, mix: self.mix, offset: rng.next_u32() >> 8 };
        let (witness, doubles, squares) = plan.witness(seed);
        let piece = constraints.div_ceil(256).max(PIECE);
        let pieces = (0..constraints - 1).into_par_iter().step_by(piece as usize);
        let mut pieces: Vec<R1csBuilder> = pieces
            .map(|first| {
                let mut builder = R1cs::builder(fixed + aux, 1)?;
                let last = (constraints - 1).min(first.saturating_add(piece));
                plan.constraints(first..last, &witness, &doubles, &squares, &mut builder)?;
                Ok(builder)
            })
            .collect::<Result<_, ShapeError>>()?;
        let mut last = R1cs::builder(fixed + aux, 1)?;
        let one = Scalar::ONE;
        let sum: Vec<_> = (0..plan.summed()).map(|i| (plan.wire(i), one)).collect();
        // Wires that A does not name are zero and appear here alone.
        let mut c = vec![(1, one)];
        c.extend((in_a..aux).map(|i| (plan.wire(i), one)));
        last.constraint(&sum, &[(0, one)], &c)?;
        pieces.push(last);
        Ok(Circuit { r1cs: R1cs::joined(pieces)?, witness: Witness::new(witness)? })
    }

    /// Host memory that proofs of it take, realised on 2^`log` rows, with so many workers: the points of the key, the circuit,
    /// its witness, and for each worker a, b, c and the scalars of the sums. Making the key takes less beside it than two
    /// workers do.
    ///
    /// # Errors
    /// As [`Synthetic::shape`].
    pub fn host_bytes(&self, log: u32, workers: u32) -> Result<HostBytes, ShapeError> {
        let shape = self.shape()?;
        let Counts { rows, inputs, aux, b_aux, .. } = self.counts;
        let less = self.log_domain()?.saturating_sub(log);
        let at = |bytes: u64| Bytes::new(bytes >> less);
        // One term a row, and a second one where B holds a bit; eight bytes each, and eight where a row begins.
        let terms = 3 * rows + b_aux;
        let uniform = 1000 - u64::from(self.mix.zeros + self.mix.ones);
        let scalars = (shape.l + shape.a + shape.b_g1).saturating_mul(32) / 1000 * uniform;
        let gathered = shape.a.saturating_mul(32);
        Ok(HostBytes {
            key: at(shape.key_bytes().into_iter().map(Bytes::get).sum()),
            circuit: at((terms + 3 * rows).saturating_mul(8)),
            witness: at((inputs + aux).saturating_mul(32)),
            workers,
            worker: at((3 * shape.polynomial().get()).saturating_add(scalars).saturating_add(gathered)),
        })
    }
}

/// What a load takes of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostBytes {
    /// The points of the key.
    pub key: Bytes,
    /// The matrices.
    pub circuit: Bytes,
    /// A value for each wire.
    pub witness: Bytes,
    /// How many workers there are.
    pub workers: u32,
    /// What each of them holds of the proof that it prepares or makes.
    pub worker: Bytes,
}

impl HostBytes {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.key + self.circuit + self.witness + self.worker * u64::from(self.workers)
    }
}

impl fmt::Display for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, circuit, witness, workers, worker } = self;
        let total = self.total();
        write!(
            f,
            "{total}: key {key}, circuit {circuit}, witness {witness}, {workers} times {worker} of a proof"
        )
    }
}

/// Which rows and wires a realised circuit has.
struct Rows {
    /// The one and the public wire, before all others.
    fixed: u32,
    /// Private wires that A names.
    in_a: u32,
    /// The first of them, which B names as well.
    in_b: u32,
    /// Private wires.
    aux: u32,
    mix: Mix,
    /// Where the mix begins.
    offset: u32,
}

impl Rows {
    fn wire(&self, i: u32) -> u32 {
        self.fixed + i
    }

    /// How many wires the last row adds up.
    fn summed(&self) -> u32 {
        self.in_a.min(8)
    }

    /// Thousandths: multiples of the golden ratio, so that any run of wires has the mix of the whole.
    fn class(&self, i: u32) -> u64 {
        ((u64::from(i + self.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * 1000) >> 32
    }

    fn zero(&self, i: u32) -> bool {
        self.class(i) < u64::from(self.mix.zeros)
    }

    fn uniform(&self, i: u32) -> bool {
        self.class(i) >= u64::from(self.mix.zeros + self.mix.ones)
    }

    /// The values of all wires; the uniform wires that B names; and as far as there are as many, uniform wires that only A names,
    /// which are their squares.
    fn witness(&self, seed: u64) -> (Vec<Scalar>, Vec<u32>, Vec<u32>) {
        let fixed = self.fixed as usize;
        let mut witness: Vec<Scalar> = (0..fixed + self.aux as usize)
            .into_par_iter()
            .with_min_len(1 << 10)
            .map(|_| Scalar::ZERO)
            .collect();
        let (heads, values) = witness.split_at_mut(fixed);
        let named = &mut values[..self.in_a as usize];
        named
            .par_chunks_mut(PIECE as usize)
            .zip((0..self.in_a).into_par_iter().step_by(PIECE as usize))
            .for_each(|(values, first)| {
                // Streams of one generator, so that values do not depend on who computes them.
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(1 + u64::from(first));
                for (value, i) in values.iter_mut().zip(first..) {
                    if self.uniform(i) {
                        *value = Scalar::random(&mut rng);
                    } else if !self.zero(i) {
                        *value = Scalar::ONE;
                    }
                }
            });
        let uniform =
            |range: Range<u32>| range.into_par_iter().filter(|i| self.uniform(*i)).collect::<Vec<_>>();
        let (doubles, squares) = (uniform(0..self.in_b), uniform(self.in_b..self.in_a));
        let products: Vec<Scalar> =
            doubles.par_iter().zip(&squares).map(|(i, _)| values[*i as usize].square()).collect();
        for (square, product) in squares.iter().zip(products) {
            values[*square as usize] = product;
        }
        heads[0] = Scalar::ONE;
        heads[1] = values.iter().take(self.summed() as usize).sum();
        (witness, doubles, squares)
    }

    /// Appends constraints of `range`, all but the last one of the circuit.
    fn constraints(
        &self,
        range: Range<u32>,
        witness: &[Scalar],
        doubles: &[u32],
        squares: &[u32],
        builder: &mut R1csBuilder,
    ) -> Result<(), ShapeError> {
        let one = Scalar::ONE;
        let mut squares = squares.iter().skip(doubles.partition_point(|i| *i < range.start));
        for i in range {
            // The rows that are left repeat the first wires.
            let (i, again) = (i % self.in_a, i >= self.in_a);
            let x = self.wire(i);
            if again || i >= self.in_b {
                builder.constraint(&[(x, one)], &[(0, one)], &[(x, one)])?;
            } else if !self.uniform(i) {
                builder.constraint(&[(x, one)], &[(x, one), (0, -one)], &[])?;
            } else if let Some(square) = squares.next() {
                builder.constraint(&[(x, one)], &[(x, one)], &[(self.wire(*square), one)])?;
            } else {
                // No wire is left for the product: it is a constant of the circuit.
                let product = witness.get(x as usize).map(Scalar::square).unwrap_or_default();
                builder.constraint(&[(x, one)], &[(x, one)], &[(0, product)])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realised_shapes_are_satisfied_and_keep_their_proportions() {
        for log in [4, 6, 10, 13] {
            let porep = Synthetic::named("porep-32g").unwrap();
            let circuit = porep.realise(log, 7).unwrap();
            assert_eq!(circuit.r1cs.first_unsatisfied(&circuit.witness), Ok(None), "2^{log}");
            assert_eq!(circuit.r1cs.domain_size(), 1 << log);
            if log < 10 {
                continue;
            }
            let near = |what: &str, got: u64, full: u64| {
                let scaled = full >> (27 - log);
                assert!(got.abs_diff(scaled) <= 3 + scaled / 500, "{what} at 2^{log}: {got}, {scaled}");
            };
            near("rows", circuit.r1cs.n_rows(), 130_278_869);
            let ones = |d: prestage_groth16::Density| (0..d.len()).filter(|i| d.get(*i)).count() as u64;
            near("A", ones(circuit.r1cs.density_a()), 129_753_292);
            near("B", ones(circuit.r1cs.density_b()), 33_112_281);
            let values = circuit.witness.values();
            let share = |f: fn(&Scalar) -> bool| 1000 * values.iter().filter(|v| f(v)).count() / values.len();
            assert!(share(|v| *v == Scalar::ZERO).abs_diff(500) < 10);
            assert!(share(|v| *v == Scalar::ONE).abs_diff(410) < 10);
        }
    }

    #[test]
    fn realised_shapes_do_not_depend_on_the_threads() {
        let porep = Synthetic::named("porep-32g").unwrap();
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| porep.realise(14, 3).unwrap())
        };
        let (one, three) = (on(1), on(3));
        assert!(one.r1cs == three.r1cs && one.witness == three.witness);
        assert_eq!(three.r1cs.first_unsatisfied(&three.witness), Ok(None));
        assert!(porep.realise(14, 4).unwrap().witness != one.witness);
        // Where no wire is left for a square it is a constant.
        let text = SHIPPED[1].1.replace("b_aux = 33_112_281", "b_aux = 129_753_292");
        let dense = Synthetic::from_toml("dense.toml", &text).unwrap().realise(14, 3).unwrap();
        assert_eq!(dense.r1cs.first_unsatisfied(&dense.witness), Ok(None));
    }

    #[test]
    fn host_memory_at_full_size() {
        let porep = Synthetic::named("porep-32g").unwrap();
        let need = porep.host_bytes(27, 2).unwrap();
        assert_eq!(format!("{:.2}", need.key.as_gib()), "44.12");
        assert!(need.total() > Bytes::gib(80) && need.total() < Bytes::gib(110), "{need}");
        // It is what the circuit and its key come to at a size that fits here.
        let need = porep.host_bytes(12, 1).unwrap();
        let circuit = porep.realise(12, 0).unwrap();
        let terms = [circuit.r1cs.a(), circuit.r1cs.b(), circuit.r1cs.c()].map(|m| m.n_terms() as u64);
        let bytes = 8 * (terms.iter().sum::<u64>() + 3 * circuit.r1cs.n_constraints() as u64);
        assert!(need.circuit.get().abs_diff(bytes) < bytes / 10, "{need}, {bytes}");
        assert!(need.witness.get().abs_diff(32 * circuit.witness.values().len() as u64) < 1000, "{need}");
    }

    #[test]
    fn l1_counts_of_the_file_are_those_of_the_planner() {
        let porep = Synthetic::named("porep-32g").unwrap();
        assert_eq!(*porep.counts(), Counts::POREP_32G);
        assert_eq!(porep.log_domain(), Ok(27));
        let uniform = Synthetic::named("porep-32g-uniform").unwrap();
        assert_eq!(uniform.counts(), porep.counts());
        assert_eq!((uniform.mix.zeros, uniform.mix.ones), (0, 0));
    }

    #[test]
    fn t4_loads_of_one_name_are_of_one_shape() {
        let text = SHIPPED[0].1;
        let load = |text: &str| Synthetic::from_toml("c.toml", text).unwrap().load();
        assert_eq!(load(text), "porep-32g", "a copy of a shipped shape is that shape");
        let own = [
            ("zeros = 500", "zeros = 400"),
            ("prepare_ms = 1300", "prepare_ms = 1"),
            ("b_input = 1", "b_input = 2"),
        ];
        let own = own.map(|(old, new)| load(&text.replace(old, new)));
        assert!(own.iter().all(|load| load.starts_with("porep-32g (")), "{own:?}");
        assert!(own[0] != own[1] && own[1] != own[2] && own[0] != own[2], "{own:?}");
        assert_eq!(Synthetic::named("square-2^9").unwrap().load(), "square-2^9");
    }

    #[test]
    fn shapes_that_are_none_say_why() {
        let words = |name: &str| Synthetic::named(name).unwrap_err().to_string();
        assert!(words("porep").contains("porep-32g-uniform, square-2^K"));
        assert!(words("square-2^33").contains("K from 2 to 32"));
        assert!(words("/no/such/shape.toml").starts_with("cannot read /no/such/shape.toml"));
        let wrong = SHIPPED[0].1.replace("b_aux = 33_112_281", "b_aux = 133_112_281");
        let words = Synthetic::from_toml("mine", &wrong).unwrap_err().to_string();
        assert!(words.contains("b_aux is 133112281, more than the 129753292"), "{words}");
        assert!(Synthetic::from_toml("mine", "name = 3").unwrap_err().to_string().starts_with("mine is no"));
    }
}
