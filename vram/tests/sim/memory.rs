//! The memory of a simulated card: charges, classes, behaviours when there is no more.

use prestage_vram::sim::OutOfMemory;
use prestage_vram::{Bytes, Card, Class, Device, Error, Event, LedgerConfig, Sim, Track, Turn, Worker};

use super::{open, plain_card};

const LITTLE: Bytes = Bytes::new(386_547_056); // 0.36 GiB
const MUCH: Bytes = Bytes::mib(4659);

#[test]
fn memory_is_charged_at_full_size() {
    let (sim, _) = open(plain_card(), 1 << 20, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u64>("a", 512, Class::Pooled, &queue).unwrap();
    assert_eq!((a.len(), a.bytes(), a.charge()), (512, Bytes::kib(4), Bytes::gib(4)));
    assert_eq!((a.block().charge(), a.block().full_size(1024)), (Bytes::gib(4), Bytes::gib(1)));
    // Scratch and tables say themselves what they take at full size.
    let scratch = turn.alloc_charged::<u8>("scratch", 100, Bytes::mib(368), Class::Direct, &queue).unwrap();
    let tables = turn.alloc_resident_charged::<u64>(&sim, "tables", 9, Bytes::mib(3), Class::Pooled, &queue);
    let tables = tables.unwrap();
    let level = sim.ledger().level();
    assert_eq!((level.pooled, level.direct, level.resident), (Bytes::gib(4), Bytes::mib(368), Bytes::mib(3)));
    let usage = sim.usage();
    assert_eq!((usage.pooled, usage.direct), (Bytes::gib(4) + Bytes::mib(3), Bytes::mib(368)));
    let refused = turn.alloc::<u64>("b", 1536, Class::Pooled, &queue).unwrap_err();
    assert!(matches!(refused, Error::Refused(r) if r.need == Bytes::gib(12) && !r.never));
    drop((a, scratch, tables));
    turn.release().unwrap();
    assert_eq!((sim.ledger().level().used(), sim.usage().free()), (Bytes::ZERO, Bytes::gib(16)));
}

/// A proof of the cascade: a, b and c, freed after the quotient; MSM scratch from the pool; a batch addition.
fn proof(sim: &Sim, turn: &Turn<'_, Sim>, scratch: Bytes) -> Result<(), Error> {
    let queue = turn.queue(Track::Compute)?;
    let take = |label, gib, class| turn.alloc_charged::<u8>(label, 1, gib, class, &queue);
    let a = take("a", Bytes::gib(4), Class::Direct)?;
    let bc = take("bc", Bytes::gib(8), Class::Direct)?;
    drop(bc);
    drop(take("scratch", scratch, Class::Pooled)?);
    drop(a);
    for _ in 0..4 {
        drop(take("batch add", Bytes::mib(614), Class::Direct)?);
    }
    sim.ledger().healthy()
}

/// Row L11 as a turn lives it: b and c kept through an H sum with the original's scratch would make it 17,200 MiB, which is
/// refused; freed after the quotient, the sum peaks at 9,008 and the proof at 12,288.
#[test]
fn l11_b_and_c_kept_through_the_h_sum_are_refused() {
    let mut card = Card::preset("rtx-5070-ti-16g").unwrap();
    card.capacity = Bytes::mib(14_767) + card.context;
    let (sim, _) = open(card, 1, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let take = |label, mib| turn.alloc_charged::<u8>(label, 1, Bytes::mib(mib), Class::Pooled, &queue);
    turn.phase("quotient");
    let (a, b, c) = (take("a", 4096).unwrap(), take("b", 4096).unwrap(), take("c", 4096).unwrap());
    turn.phase("h");
    let Error::Refused(refused) = take("scratch", 4544 + 368).unwrap_err() else { panic!("not refused") };
    assert_eq!((refused.need, refused.free), (Bytes::mib(4912), Bytes::mib(14_767 - 12_288)));
    assert_eq!(sim.ledger().level().used() + refused.need, Bytes::mib(17_200));
    drop((b, c));
    turn.phase("h, freed");
    let scratch = take("scratch", 4544 + 368).unwrap();
    let mib = Bytes::mib;
    assert_eq!(turn.peaks(), [("quotient", mib(12_288)), ("h", mib(12_288)), ("h, freed", mib(9_008))]);
    drop((a, scratch));
    turn.release().unwrap();
    assert_eq!(sim.ledger().peak(), Bytes::mib(12_288));
}

fn cascade(behaviour: OutOfMemory, change: impl FnOnce(&mut LedgerConfig)) -> Sim {
    let mut card = Card::preset("cascade-16g").unwrap();
    card.out_of_memory = behaviour;
    open(card, 1, |ledger| {
        ledger.threshold = Bytes::MAX;
        change(ledger);
    })
    .0
}

/// The driver's side of row C4: with scratch of 4,659 MiB in a pool that keeps it, the second proof's b and c are not there;
/// with what the original's author assumed they are.
#[test]
fn c4_what_the_pool_keeps_is_not_there_for_a_direct_allocation() {
    let sim = cascade(OutOfMemory::Clean, |_| ());
    for (scratch, refused) in [(LITTLE, false), (MUCH, true)] {
        let queue = sim.queue(Track::Compute, Worker::new(0).id()).unwrap();
        let take = |bytes, class| {
            // SAFETY: no account is kept here; what the driver does is the question.
            unsafe { sim.allocate(Bytes::new(1), bytes, class, &queue) }
        };
        // SAFETY: the blocks come from `take` with this class, and no work uses them.
        let free = |block, class| unsafe { sim.free(block, class, &queue) };
        let a = take(Bytes::gib(4), Class::Direct).unwrap();
        let bc = take(Bytes::gib(8), Class::Direct).unwrap();
        free(bc, Class::Direct);
        free(take(scratch, Class::Pooled).unwrap(), Class::Pooled);
        free(a, Class::Direct);
        sim.drain(&queue).unwrap();
        let a = take(Bytes::gib(4), Class::Direct).unwrap();
        let left = Bytes::mib(14_848 - 4096) - scratch;
        assert_eq!((sim.usage().retained, sim.usage().free()), (scratch, left));
        let bc = take(Bytes::gib(8), Class::Direct);
        match bc {
            Ok(bc) => {
                assert!(!refused);
                free(bc, Class::Direct);
            }
            Err(Error::Device { detail, .. }) => {
                assert!(refused);
                assert_eq!(detail, "out of memory: 8.00 GiB asked for, 5.95 GiB free, 4.55 GiB in the pool");
            }
            Err(other) => panic!("{other:?}"),
        }
        free(take(scratch, Class::Pooled).unwrap(), Class::Pooled);
        sim.trim().unwrap();
        free(take(Bytes::gib(8), Class::Direct).unwrap(), Class::Direct);
        free(a, Class::Direct);
    }
}

/// Row C5 as turns live it: synchronise and trim on refusal, or a threshold of zero, and nothing is ever refused.
#[test]
fn c5_a_trim_on_refusal_gives_it_back() {
    for threshold in [Bytes::MAX, Bytes::ZERO] {
        let sim = cascade(OutOfMemory::Sticky, |ledger| ledger.threshold = threshold);
        let results = sim.workers(2, |id| {
            let mut worker = Worker::new(id.0);
            for _ in 0..3 {
                let turn = sim.turn(&mut worker)?;
                proof(&sim, &turn, MUCH)?;
                turn.release()?;
            }
            Ok::<(), Error>(())
        });
        for result in results {
            result.unwrap().unwrap();
        }
        assert_eq!(sim.ledger().peak(), Bytes::gib(12));
    }
}

/// Row C6 at the level of the device: after the driver has refused once, everything fails until it is opened again.
#[test]
fn c6_a_sticky_card_is_poisoned_and_can_be_reopened() {
    let sim = cascade(OutOfMemory::Sticky, |_| ());
    sim.set_foreign(Bytes::gib(1));
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    // Another process takes the memory after the account was told otherwise.
    sim.set_foreign(Bytes::gib(12));
    let outcome = proof(&sim, &turn, MUCH);
    assert!(matches!(outcome, Err(Error::Poisoned { .. })), "{outcome:?}");
    assert!(matches!(proof(&sim, &turn, MUCH), Err(Error::Poisoned { .. })));
    drop(turn);
    assert!(matches!(sim.turn(&mut worker), Err(Error::Poisoned { .. })));

    sim.set_foreign(Bytes::gib(1));
    let before = sim.now();
    let again = sim.reopen().unwrap();
    assert_eq!(again.now().since(before).get(), sim.card().context_ns, "opening takes time");
    assert_eq!((again.usage().foreign, again.ledger().level().used()), (Bytes::gib(1), Bytes::ZERO));
    let turn = again.turn(&mut worker).unwrap();
    proof(&again, &turn, LITTLE).unwrap();
    turn.release().unwrap();
}

#[test]
fn a_leaky_card_loses_what_was_free() {
    let sim = cascade(OutOfMemory::Leak, |_| ());
    let mut worker = Worker::new(0);
    let turn = sim.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc_charged::<u8>("a", 1, Bytes::gib(4), Class::Direct, &queue).unwrap();
    sim.set_foreign(Bytes::gib(4));
    let refused = turn.alloc_charged::<u8>("bc", 1, Bytes::gib(8), Class::Direct, &queue).unwrap_err();
    let Error::Refused(refused) = refused else { panic!("{refused:?}") };
    assert!(refused.driver.as_ref().unwrap().contains("8.00 GiB asked for"), "{refused}");
    drop(a);
    turn.release().unwrap();
    sim.set_foreign(Bytes::ZERO);
    // 14.5 GiB but for the 6.5 that were free when it ran out: what others give back is there, what was lost is not.
    assert_eq!(sim.usage().free(), Bytes::gib(8));
    let turn = sim.turn(&mut worker).unwrap();
    assert_eq!(sim.ledger().level().usable, Bytes::gib(8), "the account learns of it");
    turn.release().unwrap();
    assert_eq!(sim.reopen().unwrap().usage().free(), Bytes::mib(14_848));
}

/// What another process takes is seen at the next turn, and what it gives back as well.
#[test]
fn l12_foreign_memory_is_read_at_every_turn() {
    let (sim, recorder) = open(Card::preset("rtx-5070-ti-16g").unwrap(), 1, |_| ());
    let mut worker = Worker::new(0);
    for (foreign, usable) in [(0, 14_767), (3072, 11_695), (0, 14_767)] {
        sim.set_foreign(Bytes::mib(foreign));
        let turn = sim.turn(&mut worker).unwrap();
        assert_eq!(sim.ledger().level().usable, Bytes::mib(usable));
        turn.release().unwrap();
    }
    let told = recorder.take();
    assert_eq!(
        told.iter().filter(|e| matches!(e, Event::Level { label, .. } if label == "reading")).count(),
        2
    );
}
