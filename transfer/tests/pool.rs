//! Pinned memory that is kept for its next use.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub
)]

mod common;

use common::probe::Probe;
use common::{host, host_with_pinned};
use prestage_transfer::{Pinned, PinnedPool, page_size};
use prestage_vram::{Bytes, Device, LedgerConfig};
use proptest::prelude::*;

fn pages(n: usize) -> Bytes {
    Bytes::of::<u8>(n * page_size())
}

fn pins(probe: &Probe) -> usize {
    probe.state.lock().unwrap().pins
}

#[test]
fn the_second_use_pins_nothing() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let pool = PinnedPool::new(&probe);
    // 100 pages and 101 share a size; the third differs.
    for (turn, n) in [(1, 100), (2, 101), (3, 100), (4, 99)] {
        let sizes = [n * page_size(), 40 * page_size(), 3].map(|len| len / 8 + 1);
        let held = sizes.map(|len| pool.uninit::<u64>(&probe, len).unwrap().par_fill(|i| i as u64));
        for (memory, len) in held.iter().zip(sizes) {
            assert_eq!(memory.len(), len);
            assert!(memory.iter().enumerate().all(|(i, x)| *x == i as u64), "turn {turn}");
            assert!(memory.locked() >= Bytes::of::<u64>(len));
        }
        assert_eq!(pins(&probe), 3, "turn {turn}");
    }
    assert_eq!(pool.idle(), probe.ledger().locked().bytes());
    assert!(pool.idle_uninit::<u64>(1 << 20).is_none(), "nothing is pinned for it");
    assert_eq!(pins(&probe), 3);
}

#[test]
fn a_pool_gives_all_back_and_overwrites_it() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let pool = PinnedPool::new(&probe);
    let secret = |len| pool.uninit::<u8>(&probe, len).unwrap().par_fill(|_| 0xff);
    let [first, second, late] = [10, 3 << 20, 500].map(secret);
    drop((first, second));
    let clone = pool.clone();
    drop(pool);
    assert_eq!(probe.state.lock().unwrap().wiped, [], "a clone keeps it");
    drop(clone);
    assert_eq!(probe.state.lock().unwrap().wiped, [true, true]);
    assert_eq!(probe.ledger().locked().bytes(), late.locked());
    assert_eq!(late[..], [0xff; 500]);
    drop(late);
    assert_eq!(probe.state.lock().unwrap().wiped, [true; 3]);
    assert_eq!(probe.ledger().locked().bytes(), Bytes::ZERO);
}

#[test]
fn what_is_idle_makes_room_for_what_is_asked_for() {
    let host = host_with_pinned(pages(99));
    let pool = PinnedPool::new(&host);
    let uninit = |n: usize| pool.uninit::<u8>(&host, n * page_size());
    let held = [uninit(40).unwrap(), uninit(20).unwrap()];
    drop(held);
    assert_eq!(pool.idle(), pages(60));
    // More than the budget has beside what is idle; and 99 pages, where their size class has 104.
    let large = uninit(99).unwrap();
    assert_eq!((pool.idle(), large.locked()), (Bytes::ZERO, pages(99)));
    let refused = uninit(2).unwrap_err();
    assert!(refused.is_unpinnable(), "{refused}");
    drop(large);
    assert!(uninit(100).unwrap_err().is_unpinnable());
    assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO, "given back before giving up");
    assert!(uninit(1).is_ok());
}

#[test]
fn another_device_gets_memory_of_its_own() {
    let (one, other) = (host(LedgerConfig::default()), host(LedgerConfig::default()));
    let pool = PinnedPool::new(&one);
    drop(pool.uninit::<u64>(&other, 100).unwrap());
    assert_eq!((pool.idle(), other.ledger().locked().bytes()), (Bytes::ZERO, Bytes::ZERO));
    assert!(pool.uninit::<u64>(&one, 0).unwrap().is_empty());
    assert!(pool.uninit::<u64>(&one, usize::MAX).is_err());
}

#[test]
fn workers_share_a_pool() {
    let probe = Probe::new(host(LedgerConfig::default()));
    let pool = PinnedPool::new(&probe);
    std::thread::scope(|scope| {
        for worker in 0..4u64 {
            let (pool, probe) = (&pool, &probe);
            scope.spawn(move || {
                for round in 0..50 {
                    let memory =
                        pool.uninit::<u64>(probe, 700).unwrap().par_fill(|i| worker << 32 | i as u64);
                    std::thread::yield_now();
                    assert!(memory.iter().enumerate().all(|(i, x)| *x == worker << 32 | i as u64), "{round}");
                }
            });
        }
    });
    assert!(pins(&probe) <= 4, "{}", pins(&probe));
}

proptest! {
    #[test]
    fn no_more_is_locked_than_was_in_use_at_once(steps in prop::collection::vec((0usize..6, 1usize..200), 1..60)) {
        let host = host(LedgerConfig::default());
        let pool = PinnedPool::new(&host);
        let mut held: Vec<Option<Pinned<_>>> = (0..6).map(|_| None).collect();
        let mut most = Bytes::ZERO;
        for (place, n) in steps {
            held[place] = match held[place].take() {
                Some(_) => None,
                None => Some(pool.uninit::<u8>(&host, n * page_size()).unwrap()),
            };
            let used: Bytes = held.iter().flatten().map(Pinned::locked).sum();
            most = most.max(used);
            prop_assert_eq!(used + pool.idle(), host.ledger().locked().bytes());
            prop_assert!(host.ledger().locked().bytes() <= most);
        }
        drop((held, pool));
        prop_assert_eq!(host.ledger().locked().bytes(), Bytes::ZERO);
    }
}
