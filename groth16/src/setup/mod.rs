//! Setup: a key for a constraint system.
//!
//! Cost for n wires and a domain of m rows: O(m + terms) field operations, and the multiples of two generators by the
//! logarithm of each point of the key ([`Multiples`]). Points at infinity are left out as they arise.

pub(crate) mod h_query;
mod lagrange;
mod opened;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use prestage_msm::{Affine, Multiples, Threads};
use prestage_ntt::Domain;
use rand_core::{OsRng, RngCore};
use rayon::prelude::*;

use crate::density::Density;
use crate::key::{ProvingKey, ProvingKeyParts, Query, Reduction, VerifyingKey};
use crate::r1cs::R1cs;
use crate::shape::expect_count;
use crate::{Error, random};
use h_query::twice_vanishing;
use lagrange::fractions;

pub use opened::Opened;

/// Makes a key for `r1cs` with a trapdoor from the operating system, forgotten when this returns.
///
/// Whoever runs this could have kept the trapdoor, so the key convinces nobody else: for that, run a ceremony. It is
/// for development, tests and measurements, and for provers who only want to convince themselves.
///
/// # Errors
/// [`Error::Random`]; [`Error::Shape`] and [`Error::TooLarge`] for circuits of more than 2^32 rows or more than this
/// machine can address.
pub fn setup<R: Reduction>(r1cs: &R1cs) -> Result<ProvingKey<R>, Error> {
    Trapdoor::sample(r1cs, &mut OsRng)?.key(r1cs, &Threads)
}

/// Makes the key that belongs to `seed`. **Everyone who knows the seed can prove false statements under it.**
///
/// # Errors
/// As [`setup`].
pub fn setup_insecure_from_seed<R: Reduction>(r1cs: &R1cs, seed: [u8; 32]) -> Result<ProvingKey<R>, Error> {
    Trapdoor::insecure_from_seed(r1cs, seed)?.key(r1cs, &Threads)
}

/// What must be forgotten when a key is to convince anyone: the logarithms of its points. **Whoever has it can prove false
/// statements under the key.** It is for measurements: it makes the key on any device, and says what a proof must come to
/// ([`Trapdoor::open`]), which is a check that no pairing and no other prover is needed for.
///
/// ```
/// use blstrs::Scalar;
/// use prestage_groth16::{Libsnark, R1cs, Trapdoor};
/// use prestage_msm::Threads;
///
/// let mut builder = R1cs::builder(3, 1)?;
/// let one = Scalar::from(1);
/// builder.constraint(&[(2, one)], &[(2, one)], &[(1, one)])?;
/// let r1cs = builder.finish();
/// let trapdoor = Trapdoor::<Libsnark>::insecure_from_seed(&r1cs, [7; 32])?;
/// let key = trapdoor.key(&r1cs, &Threads)?;
/// assert_eq!(key.n_public(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trapdoor<R> {
    alpha: Scalar,
    beta: Scalar,
    gamma_inverse: Scalar,
    gamma: Scalar,
    delta_inverse: Scalar,
    delta: Scalar,
    tau: Scalar,
    domain: Domain,
    reduction: PhantomData<R>,
}

impl<R: Reduction> Trapdoor<R> {
    /// The one that belongs to `seed`, for keys of `r1cs` and of circuits with the same domain.
    ///
    /// # Errors
    /// As [`setup`].
    pub fn insecure_from_seed(r1cs: &R1cs, seed: [u8; 32]) -> Result<Self, Error> {
        Self::sample(r1cs, &mut random::seeded(seed))
    }

    /// Samples until nothing has to be inverted that has no inverse; in practice once.
    fn sample(r1cs: &R1cs, rng: &mut impl RngCore) -> Result<Self, Error> {
        let size = r1cs.domain_size();
        let domain = Domain::new(usize::try_from(size).map_err(|_| Error::TooLarge { size })?, R::GENERATOR)?;
        loop {
            let [alpha, beta, gamma, delta, tau] = sample(rng)?;
            let inverses = (Option::from(gamma.invert()), Option::from(delta.invert()));
            let (Some(gamma_inverse), Some(delta_inverse)) = inverses else { continue };
            // On the domain of twice the size neither the domain's Lagrange basis nor the odd coset's is defined.
            let on_domain = bool::from(twice_vanishing(&domain, tau).is_zero());
            // δ = 1 and γ = δ are refused by verifiers.
            if on_domain || delta == Scalar::ONE || delta == gamma || [alpha, beta].contains(&Scalar::ZERO) {
                continue;
            }
            let reduction = PhantomData;
            return Ok(Self {
                alpha,
                beta,
                gamma_inverse,
                gamma,
                delta_inverse,
                delta,
                tau,
                domain,
                reduction,
            });
        }
    }

    /// `L_i(τ) = (τ^m − 1)/m · w^i/(τ − w^i)` for every row i.
    fn lagrange(&self) -> Vec<Scalar> {
        let factor = self.domain.vanishing(self.tau) * self.domain.size_inverse();
        fractions(&self.domain, Scalar::ONE, self.tau, factor)
    }

    fn fits(&self, r1cs: &R1cs) -> Result<(), Error> {
        Ok(expect_count("rows of the circuit's domain", self.domain.size() as u64, r1cs.domain_size())?)
    }

    /// Makes the key for `r1cs`, its points as `with` computes them: the same key whoever that is.
    ///
    /// Takes four to five scalars for each wire and row beside the key.
    ///
    /// # Errors
    /// [`Error::Shape`] for a circuit with another domain; [`Error::Msm`] when the device fails.
    pub fn key(&self, r1cs: &R1cs, with: &impl Multiples) -> Result<ProvingKey<R>, Error> {
        self.fits(r1cs)?;
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        let n_fixed = r1cs.n_public() as usize + 1;
        // A column of each matrix against the Lagrange basis.
        let lagrange = self.lagrange();
        let columns = |matrix: &crate::Matrix| matrix.columns(&lagrange, 0..r1cs.n_wires());
        let (mut a, (b, mut c)) =
            rayon::join(|| columns(r1cs.a()), || rayon::join(|| columns(r1cs.b()), || columns(r1cs.c())));
        for (a, lagrange) in a.iter_mut().zip(&lagrange[r1cs.n_constraints()..]).take(n_fixed) {
            *a += lagrange;
        }
        drop(lagrange);

        // Each vector goes when its points are made: at full size they are 4 GiB.
        let inverse = |i: usize| if i < n_fixed { self.gamma_inverse } else { self.delta_inverse };
        c.par_iter_mut().zip(&a).zip(&b).enumerate().with_min_len(1 << 10).for_each(|(i, ((c, a), b))| {
            *c = (self.beta * a + self.alpha * b + *c) * inverse(i);
        });
        let in_g1 = |s: Scalar| (g1 * s).to_affine();
        let in_g2 = |s: Scalar| (g2 * s).to_affine();
        // A wire that no row names has no point; the constant one may be such a wire, and keeps its place.
        let ic = c[..n_fixed].iter().copied().map(in_g1).collect();
        let l = query(with, &g1, &c[n_fixed..])?;
        drop(c);
        let a = query(with, &g1, &a)?;
        let density = Arc::new(present(&b));
        let scalars = density.gather(&b)?;
        drop(b);
        let b_g1 = with.multiples(&g1, &scalars)?;
        let b_g2 = with.multiples(&g2, &scalars)?;
        drop(scalars);
        let h = with.multiples(&g1, &R::h_scalars(&self.domain, self.tau, self.delta_inverse)?)?;

        let (beta_g1, delta_g1) = (in_g1(self.beta), in_g1(self.delta));
        let vk = VerifyingKey {
            alpha_g1: in_g1(self.alpha),
            beta_g1: Some(beta_g1),
            beta_g2: in_g2(self.beta),
            gamma_g2: in_g2(self.gamma),
            delta_g1: Some(delta_g1),
            delta_g2: in_g2(self.delta),
            ic,
        };
        Ok(ProvingKey::new(ProvingKeyParts {
            vk,
            beta_g1,
            delta_g1,
            domain_size: r1cs.domain_size(),
            a,
            b_g1: Query::new(b_g1, Arc::clone(&density))?,
            b_g2: Query::new(b_g2, density)?,
            l,
            h,
            rows: R::rows(r1cs)?,
        })?)
    }
}

impl<R> fmt::Debug for Trapdoor<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trapdoor").finish_non_exhaustive()
    }
}

fn sample<const N: usize>(rng: &mut impl RngCore) -> Result<[Scalar; N], Error> {
    let mut out = [Scalar::ZERO; N];
    for scalar in &mut out {
        *scalar = random::scalar(rng)?;
    }
    Ok(out)
}

fn present(scalars: &[Scalar]) -> Density {
    Density::from_fn(scalars.len(), |i| !bool::from(scalars[i].is_zero()))
}

fn query<A: Affine>(with: &impl Multiples, base: &A, scalars: &[Scalar]) -> Result<Query<A>, Error> {
    let density = present(scalars);
    let points = if density.is_full() {
        with.multiples(base, scalars)?
    } else {
        with.multiples(base, &density.gather(scalars)?)?
    };
    Ok(Query::new(points, Arc::new(density))?)
}
