//! Forward transforms in place: on the card, from page-locked host memory and back, from ordinary host memory and back.

use std::sync::Arc;

use blstrs::Scalar;
use ff::Field;
use prestage_benches::sppark::Order as PeerOrder;
use prestage_benches::{Error, scalars};
use prestage_ntt::{Domain, LIBSNARK_GENERATOR, Order, Plan, Transform, Twiddles};
use prestage_transfer::Lanes;
use prestage_vram::cuda::Cuda;
use prestage_vram::{Buf, Device as _, Track, Worker};
use rayon::prelude::*;

use crate::Outcome;
use crate::compare::{Lab, ROOM, ring, wall};

/// How values lie after a transform; before, they are in natural order.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    output: Order,
    peer: PeerOrder,
}

const REVERSED: Way = Way { name: "nr", output: Order::Reversed, peer: PeerOrder::NaturalToReversed };
const NATURAL: Way = Way { name: "nn", output: Order::Natural, peer: PeerOrder::NaturalToNatural };

impl Way {
    fn op(self, place: &str) -> String {
        format!("ntt_{}_{place}", self.name)
    }

    fn transform(self) -> Transform {
        Transform::forward().to(self.output)
    }
}

/// All transforms of 2^`log` values.
pub(crate) fn transforms(lab: &mut Lab<'_>, log: u32) {
    let values = scalars(1 << log, 2);
    for way in [REVERSED, NATURAL] {
        lab.within(&way.op("resident"), log, |lab| resident(lab, way, log, &values));
    }
    if !lab.resident_only {
        for (place, locked) in [("pinned", true), ("pageable", false)] {
            let op = NATURAL.op(place);
            lab.within(&op, log, |lab| from_host(lab, &op, log, &values, locked));
        }
    }
}

fn domain(log: u32) -> Outcome<Domain> {
    Ok(Domain::new(1 << log, LIBSNARK_GENERATOR)?)
}

fn wrong(way: Way, log: u32, what: &str) -> Error {
    Error::Wrong(format!("{what}, a transform of 2^{log} values, {}", way.name))
}

/// Each side transforms values of its own on the card, which are the same before every round: first timed by the host, then by
/// events.
fn resident(lab: &mut Lab<'_>, way: Way, log: u32, values: &[Scalar]) -> Outcome<()> {
    let (card, peer, n) = (lab.card, lab.peer, values.len());
    let domain = domain(log)?;
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker)?;
    {
        let lanes = Lanes::open(&turn)?;
        let mut ring = ring(card, Scalar::ZERO)?;
        let mut upload = || -> Outcome<Buf<'_, Cuda, Scalar>> {
            let mut buf = ring.upload(&lanes.upload, values, lanes.upload.alloc("values", n)?)?;
            buf.claim(lanes.compute.queue())?;
            Ok(buf)
        };
        let (mut ours, mut theirs) = (upload()?, upload()?);
        let mut twiddles =
            Twiddles::for_turn(&lanes.compute, Plan::whole(domain.clone()).with_table_room(ROOM))?;
        lanes.compute.drain()?;

        // Once before anything is timed, to be looked at.
        let at = theirs.block().as_ptr::<Scalar>();
        twiddles.transform(&lanes.compute, &mut ours, &way.transform())?;
        lanes.compute.drain()?;
        // SAFETY: 2^log values of a buffer that nothing else uses.
        unsafe { peer.ntt(at, log, way.peer) }?;
        let mut result = vec![Scalar::ZERO; n];
        let mut equal =
            |ours: &mut Buf<'_, Cuda, Scalar>, theirs: &mut Buf<'_, Cuda, Scalar>, result: &mut [Scalar]| {
                ring.download(&lanes.download, ours, 0..n, result)?;
                ring.consume(&lanes.download, theirs, 0..n, |range, values| match &result[range] == values {
                    true => Ok(()),
                    false => Err(wrong(way, log, "prestage and sppark differ")),
                })
            };
        equal(&mut ours, &mut theirs, &mut result)?;
        defined(&domain, way, log, values, &result)?;

        lab.compare(
            &way.op("resident"),
            log,
            || {
                wall(|| {
                    twiddles.transform(&lanes.compute, &mut ours, &way.transform())?;
                    Ok(lanes.compute.drain()?)
                })
            },
            // SAFETY: as above.
            || wall(|| unsafe { peer.ntt(at, log, way.peer) }),
            |(), ()| Ok(()),
        )?;
        let recorder = Arc::clone(lab.recorder);
        lab.compare(
            &way.op("device"),
            log,
            || {
                drop(recorder.take());
                twiddles.transform(&lanes.compute, &mut ours, &way.transform())?;
                lanes.compute.drain()?;
                let spans = recorder.take();
                let ms = spans.on(Track::Compute).map(|span| span.end.since(span.start).as_ms()).sum();
                Ok(((), ms))
            },
            // SAFETY: as above.
            || Ok(((), unsafe { peer.ntt_timed(at, log, way.peer) }?)),
            |(), ()| Ok(()),
        )?;
        // Both have been transformed as often.
        equal(&mut ours, &mut theirs, &mut result)?;
    }
    turn.release()?;
    peer.trim()
}

/// One value by the definition.
fn defined(domain: &Domain, way: Way, log: u32, before: &[Scalar], after: &[Scalar]) -> Outcome<()> {
    const BLOCK: usize = 1 << 12;
    let index = 12_345 % domain.size();
    let x = domain.element(index);
    let value: Scalar = before
        .par_chunks(BLOCK)
        .enumerate()
        .map(|(block, part)| {
            let sum = part.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c);
            sum * x.pow_vartime([(block * BLOCK) as u64])
        })
        .sum();
    let place = match way.output {
        Order::Natural => index,
        Order::Reversed => index.reverse_bits() >> (usize::BITS - log),
    };
    if after.get(place) == Some(&value) { Ok(()) } else { Err(wrong(way, log, "not by the definition")) }
}

/// From host memory and back to it, in natural order; each side in memory of its own.
fn from_host(lab: &mut Lab<'_>, op: &str, log: u32, values: &[Scalar], locked: bool) -> Outcome<()> {
    let peer = lab.peer;
    let (mut ours, mut theirs) = (values.to_vec(), values.to_vec());
    if locked {
        let (mut ours, mut theirs) = (peer.lock(&mut ours[..])?, peer.lock(&mut theirs[..])?);
        back_and_forth(lab, op, log, &mut ours, &mut theirs, locked)?;
    } else {
        back_and_forth(lab, op, log, &mut ours, &mut theirs, locked)?;
    }
    if ours != theirs {
        return Err(wrong(NATURAL, log, "prestage and sppark differ after all rounds"));
    }
    peer.trim()
}

fn back_and_forth(
    lab: &mut Lab<'_>,
    op: &str,
    log: u32,
    ours: &mut [Scalar],
    theirs: &mut [Scalar],
    locked: bool,
) -> Outcome<()> {
    let (card, peer, n) = (lab.card, lab.peer, ours.len());
    let mut ring = ring(card, Scalar::ZERO)?;
    let mut worker = Worker::new(0);
    let turn = card.turn(&mut worker)?;
    {
        let lanes = Lanes::open(&turn)?;
        let mut twiddles =
            Twiddles::for_turn(&lanes.compute, Plan::whole(domain(log)?).with_table_room(ROOM))?;
        lanes.compute.drain()?;
        let mut prestage = || -> Outcome<()> {
            let place = lanes.upload.alloc("values", n)?;
            let mut buf = if locked {
                lanes.upload.scope(|scope| scope.upload(ours, place))?
            } else {
                ring.upload(&lanes.upload, ours, place)?
            };
            twiddles.transform(&lanes.compute, &mut buf, &NATURAL.transform())?;
            if locked {
                Ok(lanes.download.scope(|scope| scope.download(&mut buf, 0..n, ours))?)
            } else {
                Ok(ring.download(&lanes.download, &mut buf, 0..n, ours)?)
            }
        };
        lab.compare(
            op,
            log,
            || wall(&mut prestage),
            || wall(|| peer.ntt_host(theirs, NATURAL.peer)),
            |(), ()| Ok(()),
        )?;
    }
    turn.release()?;
    Ok(())
}
