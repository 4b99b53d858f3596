//! Memory that is kept at hand. Alone in its process: it looks at what is resident.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use prestage_transfer::{Lane, Ring};
use prestage_vram::{Device, Host, HostConfig, Track, Worker};

/// MiB of this process that are in RAM.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 10
}

#[test]
fn slots_take_no_memory_of_the_cpu_before_they_are_used() {
    const SLOT: usize = (64 << 20) / size_of::<u64>();
    let host = Host::open(HostConfig::default()).unwrap();
    let before = resident();
    let slots = Ring::open(&host, 2, SLOT, 7u64).unwrap().into_slots().unwrap();
    assert!(resident() < before + 32, "{} MiB", resident() - before);
    assert_eq!(host.ledger().locked().bytes().get(), 128 << 20, "they are accounted for all the same");

    let mut ring = Ring::from_slots(&host, slots);
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let lane = Lane::open(&turn, Track::Upload).unwrap();
    // A producer sees what the ring was opened with, then what it wrote itself.
    for seen in [7, 9] {
        let buf = lane.alloc("a", 10).unwrap();
        let produced = ring.produce::<prestage_transfer::Error>(&lane, buf, |_, slot| {
            assert_eq!(slot, [seen; 10]);
            slot.fill(9);
            Ok(())
        });
        drop(produced.unwrap());
        if seen == 7 {
            // The other slot.
            let buf = lane.alloc("b", 1).unwrap();
            drop(ring.upload(&lane, &[1], buf).unwrap());
        }
    }
    assert!(resident() >= before + 128);
}
