//! Memory without the rules of turns, as replayed schedules take it.

use prestage_vram::sim::Wanted;
use prestage_vram::{Bytes, Card, Class, Device, Error, Event, Sim, Track, Worker};

use super::open;

fn wanted(label: &'static str, bytes: Bytes) -> Wanted {
    Wanted { label, bytes, class: Class::Direct, resident: false, trim: false }
}

fn cascade() -> Sim {
    open(Card::preset("cascade-16g").unwrap(), 1, |ledger| ledger.threshold = Bytes::MAX).0
}

#[test]
fn memory_outside_of_turns_is_on_the_account() {
    let sim = cascade();
    let mut worker = Worker::new(3);
    let unruled = sim.unruled(worker.id());
    let queue = sim.queue(Track::Compute, worker.id()).unwrap();
    let before = unruled.alloc(None, &wanted("before", Bytes::gib(4)), &queue).unwrap();
    let turn = sim.turn(&mut worker).unwrap();
    let inside = unruled.alloc(Some(&turn), &wanted("inside", Bytes::gib(8)), &queue).unwrap();
    let Err(Error::Refused(refused)) = unruled.alloc(None, &wanted("more", Bytes::gib(4)), &queue) else {
        panic!("more than there is");
    };
    assert_eq!((refused.worker, refused.free, refused.phase), (turn.worker(), Bytes::mib(2560), "no turn"));
    turn.release().unwrap();
    assert_eq!((sim.ledger().level().direct, sim.usage().direct), (Bytes::gib(12), Bytes::gib(12)));
    drop((before, inside));
    assert_eq!((sim.ledger().level().used(), sim.usage().direct), (Bytes::ZERO, Bytes::ZERO));
}

#[test]
fn a_trim_gives_a_second_chance_only_to_those_who_ask_for_it() {
    let sim = cascade();
    let unruled = sim.unruled(Worker::new(0).id());
    let queue = sim.queue(Track::Compute, Worker::new(0).id()).unwrap();
    let scratch = Wanted { class: Class::Pooled, ..wanted("scratch", Bytes::gib(4)) };
    drop(unruled.alloc(None, &scratch, &queue).unwrap());
    assert_eq!(sim.ledger().level().retained, Bytes::gib(4));
    let bc = wanted("bc", Bytes::gib(12));
    assert!(
        matches!(unruled.alloc(None, &bc, &queue), Err(Error::Refused(r)) if r.retained == Bytes::gib(4))
    );
    let bc = unruled.alloc(None, &Wanted { trim: true, ..bc }, &queue).unwrap();
    assert_eq!((sim.ledger().level().retained, bc.charge()), (Bytes::ZERO, Bytes::gib(12)));
}

/// The card is asked for what the account refuses, since programs without an account did, and a sticky one remembers.
#[test]
fn a_sticky_card_is_poisoned_by_what_the_account_refuses() {
    let mut card = Card::preset("cascade-16g").unwrap();
    card.out_of_memory = prestage_vram::sim::OutOfMemory::Sticky;
    let (sim, recorder) = open(card, 1, |_| ());
    let unruled = sim.unruled(Worker::new(0).id());
    let queue = sim.queue(Track::Compute, Worker::new(0).id()).unwrap();
    let Err(Error::Refused(refused)) = unruled.alloc(None, &wanted("a", Bytes::gib(15)), &queue) else {
        panic!("more than there is");
    };
    assert!(refused.driver.as_ref().is_some_and(|words| words.contains("15.00 GiB asked for")), "{refused}");
    assert!(matches!(unruled.alloc(None, &wanted("a", Bytes::gib(1)), &queue), Err(Error::Poisoned { .. })));
    assert!(matches!(unruled.trim(), Err(Error::Poisoned { .. })));
    let refusals = recorder.take().iter().filter(|e| matches!(e, Event::Refusal { .. })).count();
    assert_eq!(refusals, 1);
}
