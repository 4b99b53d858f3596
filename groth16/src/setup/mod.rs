//! Setup: a key for a constraint system.
//!
//! Cost for n wires and a domain of m rows: O(m + terms) field operations and, per point of the key, ⌈256/c⌉ mixed
//! additions (c about 12). Points at infinity are left out as they arise.

mod fixed_base;
pub(crate) mod h_query;
mod lagrange;

use std::sync::Arc;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use prestage_ntt::Domain;
use rand_core::{OsRng, RngCore};

use crate::density::Density;
use crate::key::{ProvingKey, ProvingKeyParts, Query, Reduction, VerifyingKey};
use crate::matrix::Matrix;
use crate::r1cs::R1cs;
use crate::{Error, random};
use fixed_base::FixedBase;
use h_query::twice_vanishing;
use lagrange::fractions;

/// Makes a key for `r1cs` with a trapdoor from the operating system, forgotten when this returns.
///
/// Whoever runs this could have kept the trapdoor, so the key convinces nobody else: for that, run a ceremony. It is
/// for development, tests and measurements, and for provers who only want to convince themselves.
///
/// # Errors
/// [`Error::Random`]; [`Error::Shape`] and [`Error::TooLarge`] for circuits of more than 2^32 rows or more than this
/// machine can address.
pub fn setup<R: Reduction>(r1cs: &R1cs) -> Result<ProvingKey<R>, Error> {
    generate(r1cs, &mut OsRng)
}

/// Makes the key that belongs to `seed`. **Everyone who knows the seed can prove false statements under it.**
///
/// # Errors
/// As [`setup`].
pub fn setup_insecure_from_seed<R: Reduction>(r1cs: &R1cs, seed: [u8; 32]) -> Result<ProvingKey<R>, Error> {
    generate(r1cs, &mut random::seeded(seed))
}

/// What must be forgotten.
struct Trapdoor {
    alpha: Scalar,
    beta: Scalar,
    gamma_inverse: Scalar,
    gamma: Scalar,
    delta_inverse: Scalar,
    delta: Scalar,
    tau: Scalar,
}

impl Trapdoor {
    /// Samples until nothing has to be inverted that has no inverse; in practice once.
    fn sample(rng: &mut impl RngCore, domain: &Domain) -> Result<Self, Error> {
        loop {
            let [alpha, beta, gamma, delta, tau] = sample(rng)?;
            let inverses = (Option::from(gamma.invert()), Option::from(delta.invert()));
            let (Some(gamma_inverse), Some(delta_inverse)) = inverses else { continue };
            // On the domain of twice the size neither the domain's Lagrange basis nor the odd coset's is defined.
            let on_domain = bool::from(twice_vanishing(domain, tau).is_zero());
            // δ = 1 and γ = δ are refused by verifiers.
            if on_domain || delta == Scalar::ONE || delta == gamma || [alpha, beta].contains(&Scalar::ZERO) {
                continue;
            }
            return Ok(Self { alpha, beta, gamma_inverse, gamma, delta_inverse, delta, tau });
        }
    }
}

fn sample<const N: usize>(rng: &mut impl RngCore) -> Result<[Scalar; N], Error> {
    let mut out = [Scalar::ZERO; N];
    for scalar in &mut out {
        *scalar = random::scalar(rng)?;
    }
    Ok(out)
}

fn generate<R: Reduction>(r1cs: &R1cs, rng: &mut impl RngCore) -> Result<ProvingKey<R>, Error> {
    let size = r1cs.domain_size();
    let domain = Domain::new(usize::try_from(size).map_err(|_| Error::TooLarge { size })?, R::GENERATOR)?;
    let secret = Trapdoor::sample(rng, &domain)?;

    // L_i(τ) = (τ^m − 1)/m · w^i/(τ − w^i) for every row i, then a column of each matrix against it.
    let vanishing = domain.vanishing(secret.tau);
    let lagrange = fractions(&domain, Scalar::ONE, secret.tau, vanishing * domain.size_inverse());
    let n_wires = r1cs.n_wires() as usize;
    let n_fixed = r1cs.n_public() as usize + 1;
    let (mut a, (b, c)) = rayon::join(
        || columns(r1cs.a(), &lagrange, n_wires),
        || rayon::join(|| columns(r1cs.b(), &lagrange, n_wires), || columns(r1cs.c(), &lagrange, n_wires)),
    );
    for (a, lagrange) in a.iter_mut().zip(&lagrange[r1cs.n_constraints()..]).take(n_fixed) {
        *a += lagrange;
    }
    drop(lagrange);

    let combined = |i: usize| secret.beta * a[i] + secret.alpha * b[i] + c[i];
    let ic: Vec<Scalar> = (0..n_fixed).map(|i| combined(i) * secret.gamma_inverse).collect();
    let l: Vec<Scalar> = (n_fixed..n_wires).map(|i| combined(i) * secret.delta_inverse).collect();
    let h = R::h_scalars(&domain, secret.tau, secret.delta_inverse)?;

    let points = a.len() + b.len() + l.len() + h.len();
    let (g1, g2) = rayon::join(
        || FixedBase::new(G1Affine::generator(), points),
        || FixedBase::new(G2Affine::generator(), b.len()),
    );
    let b_density = Arc::new(present(&b));
    let b_scalars = b_density.gather(&b)?;
    // The longer work first: rayon's other thread takes what is left of it.
    let (b_g2, (b_g1, (a, (l, h)))) = rayon::join(
        || g2.multiples(&b_scalars),
        || {
            rayon::join(
                || g1.multiples(&b_scalars),
                || rayon::join(|| query(&g1, &a), || rayon::join(|| query(&g1, &l), || g1.multiples(&h))),
            )
        },
    );

    let in_g1 = |s: Scalar| (G1Affine::generator() * s).to_affine();
    let in_g2 = |s: Scalar| (G2Affine::generator() * s).to_affine();
    let (beta_g1, delta_g1) = (in_g1(secret.beta), in_g1(secret.delta));
    let vk = VerifyingKey {
        alpha_g1: in_g1(secret.alpha),
        beta_g1: Some(beta_g1),
        beta_g2: in_g2(secret.beta),
        gamma_g2: in_g2(secret.gamma),
        delta_g1: Some(delta_g1),
        delta_g2: in_g2(secret.delta),
        // A wire that no row names has no point; the constant one may be such a wire, and keeps its place.
        ic: ic.into_iter().map(in_g1).collect(),
    };
    Ok(ProvingKey::new(ProvingKeyParts {
        vk,
        beta_g1,
        delta_g1,
        domain_size: size,
        a: a?,
        b_g1: Query::new(b_g1.into(), Arc::clone(&b_density))?,
        b_g2: Query::new(b_g2.into(), b_density)?,
        l: l?,
        h: h.into(),
        rows: R::rows(r1cs)?,
    })?)
}

/// `Σ_rows M[row][wire] · lagrange[row]` for every wire.
fn columns(matrix: &Matrix, lagrange: &[Scalar], n_wires: usize) -> Vec<Scalar> {
    let mut sums = vec![Scalar::ZERO; n_wires];
    for (row, basis) in (0..matrix.n_rows()).zip(lagrange) {
        for (wire, coefficient) in matrix.row(row) {
            // A matrix names only wires that exist.
            if let Some(sum) = sums.get_mut(wire as usize) {
                *sum += if coefficient == Scalar::ONE { *basis } else { coefficient * basis };
            }
        }
    }
    sums
}

fn present(scalars: &[Scalar]) -> Density {
    Density::from_fn(scalars.len(), |i| !bool::from(scalars[i].is_zero()))
}

fn query(base: &FixedBase<G1Affine>, scalars: &[Scalar]) -> Result<Query<G1Affine>, Error> {
    let density = present(scalars);
    let points = base.multiples(&density.gather(scalars)?);
    Ok(Query::new(points.into(), Arc::new(density))?)
}
