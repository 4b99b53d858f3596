//! Three uploads, three coset transforms, the quotient, and the download.

use blstrs::Scalar;
use ff::Field;
use prestage_harness::timeline::Verified;
use prestage_ntt::{Domain, LIBSNARK_GENERATOR, Ntt, Plan, Twiddles};
use prestage_transfer::{Lanes, Pinned};
use prestage_vram::Worker;

use super::{Outcome, Recorded};
use crate::{Error, scalars};

/// The quotient of three random polynomials of 2^`log` values on the coset of 7, verified in a few places by
/// interpolation.
///
/// # Errors
/// What the device says; [`prestage_harness::Error::Unverified`].
pub fn ntt<D: Ntt>(on: &Recorded<D>, log: u32) -> Result<Outcome, Error> {
    let device = &on.device;
    let n = 1usize << log;
    let domain = Domain::new(n, LIBSNARK_GENERATOR)?;
    let (shift, scale) = (Scalar::from(LIBSNARK_GENERATOR), Scalar::from(3));
    let inputs = [0, 1, 2].map(|stream| scalars(n, stream));
    let slot = Pinned::filled(device, n, Scalar::ZERO)?;
    let [a, b, c] = [
        Pinned::from_slice(device, &inputs[0])?,
        Pinned::from_slice(device, &inputs[1])?,
        Pinned::from_slice(device, &inputs[2])?,
    ];

    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    turn.phase("quotient");
    let lanes = Lanes::open(&turn)?;
    let (mut a, up_a) = lanes.upload.upload(a, lanes.upload.alloc("a", n)?)?;
    let (mut b, up_b) = lanes.upload.upload(b, lanes.upload.alloc("b", n)?)?;
    let (mut c, up_c) = lanes.upload.upload(c, lanes.upload.alloc("c", n)?)?;
    let mut twiddles = Twiddles::for_turn(&lanes.compute, Plan::whole(domain.clone()))?;
    for values in [&mut a, &mut b, &mut c] {
        twiddles.coset_evaluations(&lanes.compute, values, shift)?;
    }
    twiddles.quotient(&lanes.compute, &mut a, &mut b, &mut c, scale)?;
    let result = lanes.download.download(&mut a, 0..n, slot)?.wait()?;
    drop((up_a.wait()?, up_b.wait()?, up_c.wait()?));
    drop((a, b, c, twiddles, lanes));
    turn.release()?;

    let quotient = |i: usize| {
        let x = shift * domain.element(i);
        let [a, b, c] = [0, 1, 2].map(|p: usize| interpolate(&domain, &inputs[p], x));
        (a * b - c) * scale
    };
    let verified = Verified::check([0, 1, n / 2, n - 1], |i| result[i] == quotient(i))?;
    Ok(on.outcome("bench ntt", format!("quotient-2^{log}"), n as u64, verified))
}

/// The value at `x`, which is not on the domain, of the polynomial with these values on it:
/// `(x^n − 1)/n · Σ values[i]·w^i/(x − w^i)`.
fn interpolate(domain: &Domain, values: &[Scalar], x: Scalar) -> Scalar {
    let term = |(i, value): (usize, &Scalar)| {
        let w = domain.element(i);
        *value * w * (x - w).invert().unwrap_or(Scalar::ZERO)
    };
    let sum: Scalar = values.iter().enumerate().map(term).sum();
    sum * domain.vanishing(x) * domain.size_inverse()
}
