//! The quotient of Groth16 on the card: from a, b and c on the domain to the coefficients of h, seven transforms in all.

use blstrs::Scalar;
use ff::Field;
use prestage_benches::{Error, scalars};
use prestage_ntt::{Domain, LIBSNARK_GENERATOR, Plan, Twiddles, host};
use prestage_transfer::Lanes;
use prestage_vram::cuda::Cuda;
use prestage_vram::{Buf, Device as _, Worker};

use crate::Outcome;
use crate::compare::{Lab, ROOM, ring, wall};

/// Up to this size the CPU computes it too.
const HOST: u32 = 16;

/// Each side works on three polynomials of its own, on what the round before left: that is not the same for c, of which prestage
/// leaves nothing of use, so results are compared in the first round alone.
pub(crate) fn resident(lab: &mut Lab<'_>, log: u32) -> Outcome<()> {
    let (card, peer, n) = (lab.card, lab.peer, 1usize << log);
    let domain = Domain::new(n, LIBSNARK_GENERATOR)?;
    // As a proof has them; the generator lies on no domain.
    let shift = Scalar::from(LIBSNARK_GENERATOR);
    let scale = Option::from(domain.vanishing(shift).invert()).unwrap_or(Scalar::ZERO);
    let wrong = |what: &str| Error::Wrong(format!("{what}, a quotient of 2^{log} values"));
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker)?;
    {
        let lanes = Lanes::open(&turn)?;
        let mut ring = ring(card, Scalar::ZERO)?;
        let mut upload = |values: &[Scalar]| -> Outcome<Buf<'_, Cuda, Scalar>> {
            let mut buf = ring.upload(&lanes.upload, values, lanes.upload.alloc("values", n)?)?;
            buf.claim(lanes.compute.queue())?;
            Ok(buf)
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let mut inputs = Vec::new();
        for stream in 3..6 {
            let values = scalars(n, stream);
            ours.push(upload(&values)?);
            theirs.push(upload(&values)?);
            if log <= HOST {
                inputs.push(values);
            }
        }
        let ([a, b, c], [x, y, z]) = (&mut ours[..], &mut theirs[..]) else {
            return Err(wrong("three polynomials"));
        };
        let at = [x.block().as_ptr(), y.block().as_ptr(), z.block().as_ptr()];
        let plan = Plan::whole(domain.clone()).on_coset(shift).with_table_room(ROOM);
        let mut twiddles = Twiddles::for_turn(&lanes.compute, plan)?;
        let mut prestage = |a: &mut _, b: &mut _, c: &mut _| -> Outcome<()> {
            for values in [&mut *a, &mut *b, &mut *c] {
                twiddles.coset_evaluations(&lanes.compute, values, shift)?;
            }
            twiddles.quotient_coefficients(&lanes.compute, a, Some(b), Some(c), shift, scale)?;
            Ok(lanes.compute.drain()?)
        };
        let mut result = vec![Scalar::ZERO; n];
        let mut equal =
            |a: &mut Buf<'_, Cuda, Scalar>, x: &mut Buf<'_, Cuda, Scalar>, result: &mut [Scalar]| {
                ring.download(&lanes.download, a, 0..n, result)?;
                ring.consume(&lanes.download, x, 0..n, |range, values| match &result[range] == values {
                    true => Ok(()),
                    false => Err(wrong("prestage and sppark differ")),
                })
            };

        prestage(a, b, c)?;
        // SAFETY: three buffers of 2^log values that nothing else uses.
        unsafe { peer.quotient(at, log, &scale) }?;
        equal(a, x, &mut result)?;
        if let [a, b, c] = &mut inputs[..] {
            for values in [&mut *a, &mut *b, &mut *c] {
                host::coset_evaluations(&domain, values, shift)?;
            }
            host::mul_sub_scale(a, b, c, scale)?;
            host::coset_coefficients(&domain, a, shift)?;
            if *a != result {
                return Err(wrong("the card and the CPU differ"));
            }
        }

        lab.compare(
            "quotient_resident",
            log,
            || wall(|| prestage(a, b, c)),
            // SAFETY: as above.
            || wall(|| unsafe { peer.quotient(at, log, &scale) }),
            |(), ()| Ok(()),
        )?;
    }
    turn.release()?;
    peer.trim()
}
