//! What fails ends in a typed error, never in a sum that lacks a part.

use crate::common::{Known, random};
use blstrs::{G1Affine, G1Projective};
use prestage_msm::{Batches, Compact, Error, Place, Points, Scalars, Slots, batched};
use prestage_transfer::Lanes;
use prestage_vram::{Bytes, Device, Host, HostConfig, LedgerConfig, Margin, Op, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The n-th operation of a kind fails, and the one after it: memory is asked for twice before a turn gives up.
pub(crate) struct Fault(Arc<AtomicUsize>);

impl Fault {
    /// Operations that the fault is away from any that it strikes.
    const FAR: usize = usize::MAX / 2;

    /// A device on which the fault can strike, and the fault, which does not yet.
    pub(crate) fn on_host(kind: Op, nth: usize) -> (Host, Self) {
        let count = Arc::new(AtomicUsize::new(Self::FAR));
        let counter = Arc::clone(&count);
        let faults = move |op| op == kind && (nth..nth + 2).contains(&counter.fetch_add(1, Ordering::SeqCst));
        let ledger = LedgerConfig { faults: Some(Arc::new(faults)), ..LedgerConfig::default() };
        (Host::open(HostConfig { ledger, ..HostConfig::default() }).unwrap(), Self(count))
    }

    /// Does something with operations counted from its beginning. Returns also how many there were.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        self.0.store(0, Ordering::SeqCst);
        let value = work();
        (value, self.0.swap(Self::FAR, Ordering::SeqCst))
    }
}

fn vram(error: &Error) -> &prestage_vram::Error {
    match error {
        Error::Device(prestage_transfer::Error::Device(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn f2_scratch_denied_is_an_error() {
    let n = 5000;
    let known = Known::<G1Affine>::new(n, 2);
    let scalars = random(n, 3);
    let probe = Host::open(HostConfig::default()).unwrap();
    let batches = Batches::new(&probe, n, n);
    let need = batches.footprint::<G1Affine, _>(&probe, Place::Host);
    // One byte short; then in smaller batches on the same device; then with exactly enough.
    for (capacity, fits) in [(need.saturating_sub(Bytes::new(1)), false), (need, true)] {
        let ledger = LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ..LedgerConfig::default() };
        let host = Host::open(HostConfig { capacity, ledger }).unwrap();
        let slots = Slots::open(&host, 2).unwrap();
        let bases = Points::from(known.bases.clone());
        let mut worker = Worker::new(0);
        let turn = host.turn(&mut worker).unwrap();
        let lanes = Lanes::open(&turn).unwrap();
        let sum = |batches: &Batches| {
            let scalars = Scalars::host(Compact::new(&host, &scalars).unwrap());
            batched(&lanes, "l", &bases, scalars, batches, &slots)?.finish()
        };
        match sum(&batches) {
            Ok(sum) => assert!(fits && sum == known.sum(&scalars)),
            Err(error) => {
                let prestage_vram::Error::Refused(refused) = vram(&error) else { panic!("{error:?}") };
                assert!(!fits && refused.label.starts_with("msm "), "{refused}");
                assert_eq!(host.ledger().level().pooled, Bytes::ZERO);
            }
        }
        let halved = Batches::new(&host, n, n / 2);
        assert_eq!(sum(&halved).unwrap(), known.sum(&scalars));
    }
}

/// The n-th operation of a kind fails, for every n: an error, an empty ledger, and the next sum is right.
#[test]
fn f1_every_operation_fails_once() {
    let n = 250;
    let known = Known::<G1Affine>::new(n, 4);
    let scalars = random(n, 5);
    for kind in [Op::Allocate, Op::Copy, Op::Launch, Op::Register, Op::Mark] {
        let mut failures = 0;
        for nth in 0.. {
            let (host, fault) = Fault::on_host(kind, nth);
            let slots = Slots::open(&host, 0).unwrap();
            let (bases, batches) = (Points::from(known.bases.clone()), Batches::new(&host, n, 60));
            let sum = || -> Result<G1Projective, Error> {
                let compact = Compact::new(&host, &scalars)?;
                let mut worker = Worker::new(0);
                let turn = host.turn(&mut worker)?;
                let lanes = Lanes::open(&turn)?;
                let sum = batched(&lanes, "l", &bases, Scalars::host(compact), &batches, &slots)?.finish()?;
                drop(lanes);
                turn.release()?;
                Ok(sum)
            };
            let (outcome, operations) = fault.during(sum);
            match outcome {
                Ok(sum) => assert_eq!(sum, known.sum(&scalars), "{kind} {nth}"),
                Err(error) => {
                    failures += 1;
                    assert!(matches!(error, Error::Device(_)), "{kind} {nth}: {error}");
                }
            }
            assert_eq!(host.ledger().level().used(), Bytes::ZERO, "{kind} {nth}");
            assert_eq!(sum().unwrap(), known.sum(&scalars), "{kind} {nth}");
            if operations <= nth {
                break;
            }
        }
        assert!(failures >= 2, "{kind}: {failures}");
    }
}
