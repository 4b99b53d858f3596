//! A device that failed for good.

use std::sync::Arc;

use prestage_transfer::{Error, Lane, Pinned, Ring, registered};
use prestage_vram::{Bytes, Device, LedgerConfig, Track, Worker};

use crate::common::probe::Probe;
use crate::common::{Gate, data, host};

#[test]
fn b101_everything_can_be_dropped_on_a_poisoned_device() {
    let host = host(LedgerConfig::default());
    let mut ring = Ring::open(&host, 2, 100, 0u64).unwrap();
    let adopted = Pinned::from_vec(&host, data(1000), Bytes::kib(4)).unwrap();
    let source = Arc::new(Pinned::from_slice(&host, &data(1000)).unwrap());
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    let mut gate = Gate::on(&lane);
    let (mut buf, up) = lane.upload(Arc::clone(&source), lane.alloc("a", 1000).unwrap()).unwrap();
    let down = lane.download(&mut buf, 0..1000, Pinned::filled(&host, 1000, 0u64).unwrap()).unwrap();
    ring.upload_at(&lane, &data(200), &mut buf, 0).unwrap();
    host.ledger().poison("the card fell off the bus");
    gate.open();
    assert!(matches!(
        lane.upload_at::<u64, _, _>(source, &mut buf, 0),
        Err(Error::Device(prestage_vram::Error::Poisoned { .. }))
    ));
    drop((up, down, ring, adopted, buf, lane));
    drop(turn);
    assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO);
    assert!(host.ledger().held().is_empty());
}

#[test]
fn b101_registered_memory_ends_on_a_poisoned_device() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let mut memory = data(5000);
    registered(&probe, &mut memory, Bytes::kib(4), |_| probe.ledger().poison("the card fell off the bus"))
        .unwrap();
    assert_eq!(probe.ledger().locked().bytes(), Bytes::ZERO);
    assert!(registered(&probe, &mut memory, Bytes::kib(4), |m| m.refusal().is_some()).unwrap());
}
