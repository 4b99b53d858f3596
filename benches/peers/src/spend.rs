//! The Spend statement of Zcash's Sapling and the key of its ceremony: 98 777 constraints, 2^17 rows.
//!
//! The circuit is that of `sapling-crypto`, synthesised once into rows and values.

use bellman::{Circuit as _, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::PrimeField;
use prestage_benches::rng;
use prestage_groth16::{R1cs, ShapeError, Witness};
use prestage_harness::circuits::Circuit;
use rand_core::RngCore;
use sapling_crypto::circuit::{Spend, ValueCommitmentOpening};
use sapling_crypto::value::NoteValue;
use sapling_crypto::zip32::ExtendedSpendingKey;

use crate::Error;

/// Depth of the tree of note commitments.
const DEPTH: usize = 32;

/// The parameter file of the ceremony.
#[must_use]
pub fn parameters() -> Vec<u8> {
    wagyu_zcash_parameters::load_sapling_parameters().0
}

/// The statement with a witness: a note of no value, for which any anchor will do, as wallets make them to pad bundles.
///
/// # Errors
/// [`Error::Spend`] when it cannot be synthesised.
pub fn statement() -> Result<Circuit, Error> {
    let mut rng = rng(0);
    let mut wide = || {
        let mut bytes = [0; 64];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    let key = ExtendedSpendingKey::master(&wide()[..32]).ok_or_else(|| Error::Spend("no such key".into()))?;
    let opening = ValueCommitmentOpening {
        value: NoteValue::from_raw(0),
        randomness: jubjub::Scalar::from_bytes_wide(&wide()),
    };
    let spend = Spend {
        value_commitment_opening: Some(opening),
        proof_generation_key: Some(key.expsk().proof_generation_key()),
        payment_address: Some(key.default_address().1),
        commitment_randomness: Some(jubjub::Scalar::from_bytes_wide(&wide())),
        ar: Some(jubjub::Scalar::from_bytes_wide(&wide())),
        auth_path: (0..DEPTH)
            .map(|i| Some((bls12_381::Scalar::from_bytes_wide(&wide()), i % 3 == 0)))
            .collect(),
        anchor: Some(bls12_381::Scalar::from_bytes_wide(&wide())),
    };
    let mut rows = Rows::default();
    rows.inputs.push(Scalar::from(1));
    spend.synthesize(&mut rows).map_err(|e| Error::Spend(e.to_string()))?;
    Ok(rows.finish()?)
}

type Sides = [Vec<(Index, Scalar)>; 3];

/// A constraint system that keeps everything.
#[derive(Default)]
struct Rows {
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
    rows: Vec<Sides>,
}

impl Rows {
    fn finish(self) -> Result<Circuit, ShapeError> {
        let too_many = |got: usize| ShapeError::Count {
            what: "wires, at most",
            expected: u32::MAX.into(),
            got: got as u64,
        };
        let count = |n: usize| u32::try_from(n).map_err(|_| too_many(n));
        let n_inputs = count(self.inputs.len())?;
        let n_wires = count(self.inputs.len() + self.aux.len())?;
        let mut builder = R1cs::builder(n_wires, n_inputs - 1)?;
        for sides in &self.rows {
            let mut wires: [Vec<(u32, Scalar)>; 3] = Default::default();
            for (wires, side) in wires.iter_mut().zip(sides) {
                for &(index, coefficient) in side {
                    let wire = match index {
                        Index::Input(i) => count(i)?,
                        Index::Aux(i) => count(self.inputs.len() + i)?,
                    };
                    wires.push((wire, coefficient));
                }
            }
            builder.constraint(&wires[0], &wires[1], &wires[2])?;
        }
        let values = [self.inputs, self.aux].concat();
        Ok(Circuit { r1cs: builder.finish(), witness: Witness::new(values)? })
    }
}

/// By bytes: the two libraries' field traits are of different versions.
fn convert(s: &bls12_381::Scalar) -> Scalar {
    Option::from(Scalar::from_repr(s.to_bytes())).unwrap_or_default()
}

type Combination = LinearCombination<bls12_381::Scalar>;

impl ConstraintSystem<bls12_381::Scalar> for Rows {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<bls12_381::Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(convert(&f()?));
        Ok(Variable::new_unchecked(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, f: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<bls12_381::Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(convert(&f()?));
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(Combination) -> Combination,
        LB: FnOnce(Combination) -> Combination,
        LC: FnOnce(Combination) -> Combination,
    {
        let sides = [a(Combination::zero()), b(Combination::zero()), c(Combination::zero())];
        let terms = |side: Combination| {
            side.as_ref().iter().map(|(variable, c)| (variable.get_unchecked(), convert(c))).collect()
        };
        self.rows.push(sides.map(terms));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
