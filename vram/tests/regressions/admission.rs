//! Who gets how much, and what is left after a refusal.

use std::sync::atomic::{AtomicUsize, Ordering};

use prestage_vram::{Bytes, Class, Device, Error, Host, LedgerConfig, Reading, Track, Worker};

use crate::{failing, host};

/// A proof of four allocations.
fn prove(host: &Host, id: u32) -> Result<(), Error> {
    let mut worker = Worker::new(id);
    let turn = host.turn(&mut worker)?;
    let queue = turn.queue(Track::Compute)?;
    let mut kept = Vec::new();
    for label in ["a", "b", "c", "scratch"] {
        kept.push(turn.alloc::<u8>(label, 4 << 20, Class::default(), &queue)?);
    }
    drop(kept);
    turn.release()
}

#[test]
fn b002_a_failed_allocation_leaks_neither_memory_nor_the_turn() {
    for k in 0..4 {
        // The k-th allocation fails, and so does the retry.
        let (config, count) = failing(move |n| n == k || n == k + 1);
        let host = host(64, config);
        let Err(Error::Refused(refused)) = prove(&host, 0) else { panic!("allocation {k} fails") };
        assert_eq!(refused.held.len(), k);
        assert_eq!(host.ledger().level().used(), Bytes::ZERO);
        assert_eq!(count.load(Ordering::SeqCst), k + 2);
        prove(&host, 1).unwrap();
        assert_eq!(host.ledger().level().used(), Bytes::ZERO);
    }
}

#[test]
fn b015_one_refusal_fails_one_proof_only() {
    let (config, _) = failing(|n| n == 2 || n == 3);
    let host = host(64, config);
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for id in 0..4 {
            let (host, failed) = (&host, &failed);
            scope.spawn(move || {
                if prove(host, id).is_err() {
                    failed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(failed.load(Ordering::SeqCst), 1);
    assert_eq!(host.ledger().level().used(), Bytes::ZERO);
}

#[test]
fn b018_opening_a_device_takes_no_memory() {
    let host = host(64, LedgerConfig::default());
    assert_eq!((host.ledger().level().used(), host.ledger().peak()), (Bytes::ZERO, Bytes::ZERO));
}

/// Another process may hold this much or that: as long as the request fits it is granted as it was asked for, and when it
/// does not it is refused by name. Nothing is sized from what happens to be free.
#[test]
fn b019_the_answer_does_not_move_with_the_free_figure() {
    for (foreign, fits) in [(0, true), (16, true), (31, true), (32, true), (33, false), (60, false)] {
        let host = host(64, LedgerConfig::default());
        let mut worker = Worker::new(0);
        let turn = host.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let held = turn.alloc::<u8>("held", 1, Class::Direct, &queue).unwrap();
        let honest = host.ledger().reading();
        host.ledger().refresh(Reading { foreign: Bytes::mib(foreign), ..honest });
        assert_eq!(Bytes::mib(32) <= host.ledger().level().free() + held.bytes(), fits);
        if fits {
            let len = (32 << 20) - 1;
            let a = turn.alloc::<u8>("a", len, Class::Pooled, &queue).unwrap();
            assert_eq!(
                host.ledger().level().pooled,
                Bytes::of::<u8>(len),
                "the same amount, whatever else is free"
            );
            drop(a);
        }
    }
}

#[test]
fn b033_every_way_to_memory_is_on_the_account() {
    let host = host(64, LedgerConfig::default());
    let ledger = host.ledger();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    for class in [Class::Direct, Class::Pooled] {
        let ways = [
            turn.alloc::<u8>("alloc", 1 << 20, class, &queue).unwrap(),
            turn.alloc_waiting::<u8>("alloc_waiting", 1 << 20, class, &queue).unwrap(),
            turn.alloc_resident::<u8>(&host, "alloc_resident", 1 << 20, class, &queue).unwrap(),
        ];
        let level = ledger.level();
        assert_eq!((level.resident, level.direct + level.pooled), (Bytes::mib(1), Bytes::mib(2)));
        assert_eq!(
            ledger.held().iter().map(|h| h.label).collect::<Vec<_>>(),
            ["alloc", "alloc_waiting", "alloc_resident"]
        );
        drop(ways);
        turn.trim().unwrap();
        assert_eq!((ledger.level().used(), ledger.held().len()), (Bytes::ZERO, 0));
    }
}

/// What the driver keeps for itself is taken off before the margin.
#[test]
fn b043_the_context_is_not_in_the_budget() {
    let host = host(64, LedgerConfig::default());
    let reading = Reading { context: Bytes::mib(24), ..host.ledger().reading() };
    host.ledger().refresh(reading);
    assert_eq!(host.ledger().level().budget, Bytes::mib(40));
}
