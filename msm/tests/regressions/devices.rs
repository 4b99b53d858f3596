//! Sums that were wrong on several devices only.

use std::sync::Mutex;

use crate::common::{Known, random};
use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use prestage_msm::{Affine, Batches, Compact, Error, Joint, Msm, Points, Resident, Scalars, Slots, batched};
use prestage_transfer::Lanes;
use prestage_vram::{Bytes, Card, Device, Host, HostConfig, LedgerConfig, Sim, SimConfig, Worker, WorkerId};

/// Where scalars and bases of the sum are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// Scalars sorted in host memory, bases in host memory.
    Host,
    /// Scalars and bases on each of the devices.
    Device,
}

/// Takes pieces of at most `most` terms until there are none, with one under way while the next is enqueued. Returns how many
/// terms it has summed.
fn share<A: Affine, D: Msm>(
    device: &D,
    joint: &Joint<A>,
    (points, scalars): (&Points<A>, &[Scalar]),
    from: From,
    most: usize,
) -> Result<usize, Error> {
    let slots = Slots::<A>::open(device, 2)?;
    let compact = Compact::new(device, scalars)?;
    let mut worker = Worker::new(0);
    let turn = device.turn(&mut worker)?;
    let lanes = Lanes::open(&turn)?;
    let (mut terms, mut last) = (0, None);
    let (mut buf, mut upload, mut resident) = (None, None, None);
    if from == From::Device && !scalars.is_empty() {
        let place = lanes.upload.alloc("scalars", scalars.len())?;
        let (there, uploading) = lanes.upload.upload(scalars.to_vec(), place)?;
        (buf, upload) = (Some(there), Some(uploading));
        resident = Some(Resident::upload(points, device, &lanes.upload, "points")?);
    }
    while let Some(piece) = joint.take(most) {
        let batches = Batches::new(device, piece.terms().len(), most);
        let deferred = match (&mut buf, &resident) {
            (Some(buf), Some(resident)) => {
                let bases = prestage_msm::Bases::from(resident).range(piece.terms())?;
                let scalars = Scalars::device_range(buf, piece.terms())?;
                batched(&lanes, "joint", bases, scalars, &batches.resident(), &slots)?
            }
            _ => {
                let bases = prestage_msm::Bases::from(points).range(piece.terms())?;
                let scalars = Scalars::host_range(compact.clone(), piece.terms())?;
                batched(&lanes, "joint", bases, scalars, &batches, &slots)?
            }
        };
        terms += piece.terms().len();
        if let Some((piece, deferred)) = last.replace((piece, deferred)) {
            finish(piece, deferred)?;
        }
    }
    last.map_or(Ok(()), |(piece, deferred)| finish(piece, deferred))?;
    drop((buf, upload, resident, lanes));
    turn.release()?;
    Ok(terms)
}

fn finish<A: Affine, D: Msm>(
    piece: prestage_msm::Piece<'_, A>,
    deferred: prestage_msm::Deferred<'_, D, A>,
) -> Result<(), Error> {
    piece.done(deferred.finish()?);
    Ok(())
}

/// Half zeros, a quarter ones, the rest anything; and once more with nothing but large ones.
fn scalars(n: usize) -> [Vec<Scalar>; 2] {
    let full = random(n, 111);
    let witness = |i: usize| match i % 4 {
        0 | 2 => Scalar::ZERO,
        1 => Scalar::ONE,
        _ => full[i],
    };
    [(0..n).map(witness).collect(), full.clone()]
}

fn on_all<A: Affine, D: Msm>(
    devices: &[D],
    crew: impl Fn(&(dyn Fn(WorkerId) -> Result<usize, Error> + Sync)) -> Vec<usize>,
) {
    for n in [0, 1, 2, 3, 130, 1000] {
        let known = Known::<A>::new(n, 111);
        let points = Points::from(known.bases.clone());
        for scalars in scalars(n) {
            let expected = known.sum(&scalars);
            for (from, most) in [(From::Host, 1 + n / 9), (From::Device, 70), (From::Host, usize::MAX)] {
                let joint = Joint::<A>::new(n);
                let terms =
                    crew(&|WorkerId(i)| share(&devices[i as usize], &joint, (&points, &scalars), from, most));
                let what = format!("{} {n} on {} from {from:?}", A::NAME, devices.len());
                assert_eq!(joint.sum(), Some(expected), "{what}");
                assert_eq!((terms.len(), terms.iter().sum::<usize>()), (devices.len(), n), "{what}");
            }
        }
    }
}

fn hosts(count: usize) -> Vec<Host> {
    let first = Host::open(HostConfig::default()).unwrap();
    let beside = || LedgerConfig { beside: Some(first.ledger().clone()), ..LedgerConfig::default() };
    let more: Vec<_> = (1..count)
        .map(|_| Host::open(HostConfig { ledger: beside(), ..HostConfig::default() }).unwrap())
        .collect();
    std::iter::once(first).chain(more).collect()
}

fn threads(n: usize, work: &(dyn Fn(WorkerId) -> Result<usize, Error> + Sync)) -> Vec<usize> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..n).map(|i| scope.spawn(move || work(WorkerId(u32::try_from(i).unwrap())))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    })
}

/// Cards of unequal speed and size on one clock.
fn cards(count: usize, scale: u64) -> Vec<Sim> {
    let names = ["h200-141g", "rtx-4090-24g", "rtx-5070-ti-16g", "rtx-5070-ti-16g"];
    let config = |name: &str| SimConfig { scale, ..SimConfig::new(Card::preset(name).unwrap()) };
    let first = Sim::open(config(names[0])).unwrap();
    let more: Vec<_> = names[1..count].iter().map(|name| first.open_beside(config(name)).unwrap()).collect();
    std::iter::once(first).chain(more).collect()
}

#[test]
fn b111_one_sum_on_one_two_and_four_cpu_devices() {
    for count in [1, 2, 4] {
        let devices = hosts(count);
        on_all::<G1Affine, _>(&devices, |work| threads(count, work));
        on_all::<G2Affine, _>(&devices, |work| threads(count, work));
        assert!(devices.iter().all(|device| device.ledger().level().used() == Bytes::ZERO));
    }
}

#[test]
fn b111_one_sum_on_one_two_and_four_unequal_cards() {
    for count in [1, 2, 4] {
        let devices = cards(count, 1 << 10);
        let seats = u32::try_from(count).unwrap();
        let crew = |work: &(dyn Fn(WorkerId) -> Result<usize, Error> + Sync)| {
            devices[0].workers(seats, work).into_iter().map(|end| end.unwrap().unwrap()).collect()
        };
        on_all::<G1Affine, _>(&devices, crew);
        on_all::<G2Affine, _>(&devices, crew);
        assert!(devices.iter().all(|device| device.ledger().level().used() == Bytes::ZERO));
    }
}

/// The faster card does more of it, and what a device has dropped is done by another.
#[test]
fn b111_terms_go_to_who_is_free_and_come_back_from_who_fails() {
    let devices = cards(2, 1 << 17);
    let known = Known::<G1Affine>::new(1000, 111);
    let points = Points::from(known.bases.clone());
    let scalars = random(1000, 111);
    let joint = Joint::<G1Affine>::new(1000);
    let failed = Mutex::new(joint.take(300));
    let terms: Vec<_> = devices[0]
        .workers(2, |WorkerId(i)| {
            let terms = share(&devices[i as usize], &joint, (&points, &scalars), From::Host, 20).unwrap();
            // The others have had no work for a while when it turns out.
            drop(failed.lock().unwrap().take());
            terms + share(&devices[i as usize], &joint, (&points, &scalars), From::Host, 20).unwrap()
        })
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(joint.sum(), Some(known.sum(&scalars)));
    assert_eq!(terms.iter().sum::<usize>(), 1000);
    assert!(terms[0] > terms[1] && terms[1] >= 20, "the first card is the faster: {terms:?}");
}
