//! The proving key, in one form for the prover whatever file it came from.

use std::sync::Arc;

use blstrs::{G1Affine, G2Affine};

use super::{Circom, Libsnark, Query, Reduction, VerifyingKey};
use crate::r1cs::R1cs;
use crate::shape::{ShapeError, expect_count};

/// The largest domain: the scalar field has 2^32-th roots of unity and no higher.
const MAX_DOMAIN: u64 = 1 << 32;

/// Checks the length of the H query, which is what tells the two reductions' keys apart by counting.
fn expect_quotient_points<R: Reduction>(domain_size: u64, got: u64) -> Result<(), ShapeError> {
    let expected = R::h_len(domain_size);
    if got == expected {
        return Ok(());
    }
    Err(ShapeError::QuotientQuery { reduction: R::NAME, basis: R::H_BASIS, domain_size, expected, got })
}

/// The domain of a libsnark key whose file gives only the H query.
///
/// # Errors
///
/// [`ShapeError::QuotientQuery`] when no domain has that many points.
pub(crate) fn libsnark_domain(h: &[G1Affine]) -> Result<u64, ShapeError> {
    let domain_size = (h.len() as u64).saturating_add(1).next_power_of_two();
    expect_quotient_points::<Libsnark>(domain_size, h.len() as u64)?;
    Ok(domain_size)
}

/// The parts that [`ProvingKey::new`] checks against each other.
#[derive(Clone, Debug)]
pub struct ProvingKeyParts<R: Reduction> {
    /// The verifying key.
    pub vk: VerifyingKey,
    /// β in G1.
    pub beta_g1: G1Affine,
    /// δ in G1.
    pub delta_g1: G1Affine,
    /// Rows of the evaluation domain, a power of two.
    pub domain_size: u64,
    /// `A_i(τ)` for every wire.
    pub a: Query<G1Affine>,
    /// `B_i(τ)` for every wire, in G1.
    pub b_g1: Query<G1Affine>,
    /// `B_i(τ)` for every wire, in G2.
    pub b_g2: Query<G2Affine>,
    /// `(β·A_i(τ) + α·B_i(τ) + C_i(τ)) / δ` for every private wire.
    pub l: Query<G1Affine>,
    /// The quotient's points, [`Reduction::h_len`] of them. Kept whole: honest keys have no infinity here.
    pub h: Arc<[G1Affine]>,
    /// The matrices, for reductions whose keys carry them.
    pub rows: R::Rows,
}

/// A proving key of the reduction `R`. Its parts fit together; clones share them.
#[derive(Clone, Debug)]
pub struct ProvingKey<R: Reduction> {
    parts: Arc<ProvingKeyParts<R>>,
}

impl<R: Reduction> ProvingKey<R> {
    /// Joins the parts. Points are not looked at, only counts.
    ///
    /// # Errors
    ///
    /// [`ShapeError`] when the domain is not a power of two of at most 2^32, or a query's length does not
    /// follow from the number of wires, public inputs and rows.
    pub fn new(mut parts: ProvingKeyParts<R>) -> Result<Self, ShapeError> {
        let m = parts.domain_size;
        if !m.is_power_of_two() || m > MAX_DOMAIN {
            return Err(ShapeError::Domain { size: m });
        }
        if parts.vk.ic.is_empty() {
            return Err(ShapeError::Count { what: "points in IC, at least", expected: 1, got: 0 });
        }
        let n_vars = parts.a.density().len() as u64;
        let n_fixed = parts.vk.ic.len() as u64;
        let Some(n_private) = n_vars.checked_sub(n_fixed) else {
            return Err(ShapeError::Count {
                what: "wires of the key, at least",
                expected: n_fixed,
                got: n_vars,
            });
        };
        expect_count("wires of the B1 query", n_vars, parts.b_g1.density().len() as u64)?;
        expect_count("wires of the B2 query", n_vars, parts.b_g2.density().len() as u64)?;
        expect_count("wires of the L query", n_private, parts.l.density().len() as u64)?;
        expect_quotient_points::<R>(m, parts.h.len() as u64)?;
        R::check_rows(&parts.rows, m, n_vars)?;
        parts.b_g2.share_density(&parts.b_g1);
        Ok(Self { parts: Arc::new(parts) })
    }

    /// The verifying key.
    #[must_use]
    pub fn vk(&self) -> &VerifyingKey {
        &self.parts.vk
    }

    /// β in G1.
    #[must_use]
    pub fn beta_g1(&self) -> &G1Affine {
        &self.parts.beta_g1
    }

    /// δ in G1.
    #[must_use]
    pub fn delta_g1(&self) -> &G1Affine {
        &self.parts.delta_g1
    }

    /// Rows of the evaluation domain.
    #[must_use]
    pub fn domain_size(&self) -> u64 {
        self.parts.domain_size
    }

    /// Number of wires, the constant one included.
    #[must_use]
    pub fn n_vars(&self) -> usize {
        self.parts.a.density().len()
    }

    /// Number of public wires, without the constant one.
    #[must_use]
    pub fn n_public(&self) -> usize {
        self.parts.vk.n_public()
    }

    /// Number of private wires.
    #[must_use]
    pub fn n_private(&self) -> usize {
        self.parts.l.density().len()
    }

    /// The A query, over all wires.
    #[must_use]
    pub fn a(&self) -> &Query<G1Affine> {
        &self.parts.a
    }

    /// The B query in G1, over all wires. Its density map is the one of [`b_g2`](Self::b_g2) in every honest
    /// key, and then shared with it.
    #[must_use]
    pub fn b_g1(&self) -> &Query<G1Affine> {
        &self.parts.b_g1
    }

    /// The B query in G2, over all wires.
    #[must_use]
    pub fn b_g2(&self) -> &Query<G2Affine> {
        &self.parts.b_g2
    }

    /// The L query, over the private wires.
    #[must_use]
    pub fn l(&self) -> &Query<G1Affine> {
        &self.parts.l
    }

    /// The H query.
    #[must_use]
    pub fn h(&self) -> &Arc<[G1Affine]> {
        &self.parts.h
    }

    /// What the key holds of the matrices.
    #[must_use]
    pub fn rows(&self) -> &R::Rows {
        &self.parts.rows
    }

    /// All parts.
    #[must_use]
    pub fn parts(&self) -> &ProvingKeyParts<R> {
        &self.parts
    }

    /// Checks that a circuit can be the one that this key was made for: wires, public wires, domain.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Count`] with the first count that differs.
    pub fn fits(&self, r1cs: &R1cs) -> Result<(), ShapeError> {
        expect_count("wires of the circuit", self.n_vars() as u64, r1cs.n_wires().into())?;
        expect_count("public wires of the circuit", self.n_public() as u64, r1cs.n_public().into())?;
        expect_count("rows of the circuit's domain", self.domain_size(), r1cs.domain_size())
    }
}

impl ProvingKey<Circom> {
    /// The constraints of its circuit: the rows before those of the one and of the public wires, which are the last that name
    /// a wire.
    #[must_use]
    pub fn n_constraints(&self) -> usize {
        let rows = &self.rows().a;
        let used =
            (0..rows.n_rows()).rev().find(|i| rows.row(*i).next().is_some()).map_or(0, |last| last + 1);
        used.saturating_sub(self.n_public() + 1)
    }
}

/// A proving key of either reduction, as read from a file whose kind is not known beforehand.
#[derive(Clone, Debug)]
pub enum AnyKey {
    /// From a `.zkey`.
    Circom(ProvingKey<Circom>),
    /// From bellman's or arkworks' files.
    Libsnark(ProvingKey<Libsnark>),
}

impl AnyKey {
    /// The verifying key.
    #[must_use]
    pub fn vk(&self) -> &VerifyingKey {
        match self {
            Self::Circom(key) => key.vk(),
            Self::Libsnark(key) => key.vk(),
        }
    }

    /// Name of the reduction.
    #[must_use]
    pub fn reduction(&self) -> &'static str {
        match self {
            Self::Circom(_) => Circom::NAME,
            Self::Libsnark(_) => Libsnark::NAME,
        }
    }
}
