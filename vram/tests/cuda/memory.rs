//! What the account says and what the driver says.

use std::io::Write;

use prestage_vram::cuda::{Cap, Cuda, CudaConfig, Grid};
use prestage_vram::{Bytes, Class, Device, Error, LedgerConfig, Track, Work, Worker};

use super::{add, again, config, filled, is_child, kernel, on_card, read, start};

/// What the pool and the driver may round up to.
const GRAIN: Bytes = Bytes::mib(64);

fn near(a: Bytes, b: Bytes) -> bool {
    a.saturating_sub(b) <= GRAIN && b.saturating_sub(a) <= GRAIN
}

#[test]
fn l10_the_account_is_what_the_driver_holds() {
    on_card("l10", || {
        let card = Cuda::open(config()).unwrap();
        let before = card.reading().unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let a = turn.alloc::<u64>("a", 1 << 27, Class::Pooled, &queue).unwrap();
        let b = turn.alloc::<u64>("b", 1 << 26, Class::Direct, &queue).unwrap();
        let c = turn.alloc::<u8>("c", 3, Class::Pooled, &queue).unwrap();
        let (reserved, used) = card.pool().unwrap();
        assert!(used >= Bytes::gib(1) && reserved >= used, "{reserved} {used}");
        assert!(near(reserved, card.ledger().level().pooled), "{reserved}");
        assert!(near(card.reading().unwrap().foreign, before.foreign), "what is ours is not foreign");
        // Freed to the pool and synchronised: it keeps nothing past the threshold.
        drop((a, c));
        turn.drain().unwrap();
        assert_eq!(card.ledger().level().retained, Bytes::ZERO);
        assert_eq!(card.pool().unwrap().0, Bytes::ZERO);
        drop(b);
        turn.release().unwrap();
        assert!(near(card.reading().unwrap().foreign, before.foreign));
    });
}

/// With a threshold the pool keeps what was freed, and a trim gives it back.
#[test]
fn a_trim_gives_back_what_the_pool_keeps() {
    on_card("trim", || {
        let ledger = LedgerConfig { threshold: Bytes::MAX, ..config().ledger };
        let card = Cuda::open(CudaConfig { ledger, ..config() }).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        drop(turn.alloc::<u64>("a", 1 << 27, Class::Pooled, &queue).unwrap());
        turn.drain().unwrap();
        assert!(card.pool().unwrap().0 >= Bytes::gib(1));
        assert_eq!(card.ledger().level().retained, Bytes::gib(1));
        assert_eq!(turn.trim().unwrap(), Bytes::gib(1));
        assert_eq!(card.pool().unwrap(), (Bytes::ZERO, Bytes::ZERO));
        turn.release().unwrap();
    });
}

/// Two processes want 60 % of the card each. The account knows what the other one holds and refuses; when that is killed, the
/// memory is there.
#[test]
fn b103_two_processes_want_most_of_the_card() {
    let most = |card: &Cuda| card.reading().unwrap().capacity.get() / 10 * 6;
    if is_child() {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let len = usize::try_from(most(&card)).unwrap();
        let _taken = turn.alloc::<u8>("taken", len, Class::Direct, &queue).unwrap();
        println!("\ntaken");
        std::io::stdout().flush().unwrap();
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    on_card("b103", || {
        let card = Cuda::open(config()).unwrap();
        let len = usize::try_from(most(&card)).unwrap();
        let ask = || {
            let mut worker = Worker::new(0);
            let turn = card.turn(&mut worker)?;
            let queue = turn.queue(Track::Compute)?;
            drop(turn.alloc::<u8>("most", len, Class::Direct, &queue)?);
            turn.release()
        };
        for _ in 0..3 {
            let (mut child, _out) = start(again("memory::b103_two_processes_want_most_of_the_card"), "taken");
            let refused = ask().unwrap_err();
            child.kill().unwrap();
            child.wait().unwrap();
            let Error::Refused(refused) = refused else { panic!("{refused:?}") };
            assert!(refused.driver.is_none() && refused.free < refused.need, "{refused}");
            // The driver takes back what a process held within a moment of its end.
            let begun = std::time::Instant::now();
            while let Err(error) = ask() {
                assert!(begun.elapsed().as_secs() < 10, "{error}");
            }
        }
    });
}

/// Row L12's other process: it takes 3 GiB, and gives them back when its input ends.
#[test]
fn l12_what_another_process_takes_is_foreign() {
    if is_child() {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let taken = turn.alloc::<u8>("taken", 3 << 30, Class::Direct, &queue).unwrap();
        println!("\ntaken");
        std::io::stdout().flush().unwrap();
        let mut rest = String::new();
        std::io::stdin().read_line(&mut rest).unwrap();
        drop(taken);
        turn.release().unwrap();
        return;
    }
    on_card("l12", || {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let mut seen = || {
            card.turn(&mut worker).unwrap().release().unwrap();
            card.ledger().reading()
        };
        let before = seen();
        let (mut child, _out) = start(again("memory::l12_what_another_process_takes_is_foreign"), "taken");
        let during = seen();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let after = seen();
        let more = during.foreign - before.foreign;
        println!("another process took 3 GiB and a context: {more} more are foreign");
        assert!(more >= Bytes::gib(3) && more < Bytes::mib(3 * 1024 + 1536), "{more}");
        assert_eq!(during.usable(), before.usable() - more);
        assert!(near(after.foreign, before.foreign));
    });
}

/// Two devices on one card: what one holds is foreign to the other, and none is granted twice.
#[test]
fn another_device_on_the_card_is_foreign() {
    on_card("another device", || {
        let (first, second) = (Cuda::open(config()).unwrap(), Cuda::open(config()).unwrap());
        let before = second.reading().unwrap();
        let mut worker = Worker::new(0);
        let turn = first.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let a = turn.alloc::<u64>("a", 1 << 28, Class::Pooled, &queue).unwrap();
        let during = second.reading().unwrap();
        assert!(near(during.foreign, before.foreign + Bytes::gib(2)), "{during:?} {before:?}");
        drop(a);
        turn.release().unwrap();
        assert!(near(second.reading().unwrap().foreign, before.foreign));
    });
}

/// With ballast the driver itself has no more to give: what is taken after the account has read the card is refused in the
/// driver's words, after a synchronisation, a trim and one retry; the account is as it was, and later work runs.
#[test]
fn b093_a_refusal_by_the_driver_spoils_nothing() {
    on_card("b093", || {
        let ballast = Some(Bytes::gib(3));
        let card = Cuda::open(CudaConfig { ballast, ..config() }).unwrap();
        let usable = card.ledger().level().usable;
        assert!(near(usable, Bytes::gib(3)), "the ballast leaves {usable}");
        let other = Cuda::open(config()).unwrap();
        let (mut w0, mut w1) = (Worker::new(0), Worker::new(1));
        for class in [Class::Direct, Class::Pooled] {
            let turn = card.turn(&mut w0).unwrap();
            let queue = turn.queue(Track::Compute).unwrap();
            let theirs = other.turn(&mut w1).unwrap();
            let far = theirs.queue(Track::Compute).unwrap();
            let taken = theirs.alloc::<u8>("taken", 2 << 30, Class::Direct, &far).unwrap();
            let level = card.ledger().level();
            assert!(level.free() > Bytes::gib(2), "the account does not know yet");
            let Err(Error::Refused(refused)) = turn.alloc::<u8>("a", 2 << 30, class, &queue) else {
                panic!("granted what is not there")
            };
            assert!(
                refused.driver.as_ref().is_some_and(|words| words.contains("out of memory")),
                "{refused}"
            );
            assert_eq!(card.ledger().level().used(), level.used());
            card.ledger().healthy().unwrap();
            drop(taken);
            theirs.release().unwrap();
            let a = turn.alloc::<u64>("a", 1 << 20, class, &queue).unwrap();
            let mut a = filled(&card, &queue, a, 0);
            add(&card, &queue, &mut a, 7).unwrap();
            assert!(read(&card, &queue, &mut a).iter().all(|&x| x == 7), "a refusal spoils nothing");
            drop(a);
            turn.release().unwrap();
        }
    });
}

/// Memory that one queue frees while it is busy is not in the hands of another before.
#[test]
fn b036_memory_freed_on_a_busy_queue_is_not_given_to_another() {
    on_card("b036", || {
        let cap = Some(Cap { total: Bytes::mib(64), context: Some(Bytes::ZERO) });
        let card = Cuda::open(CudaConfig { cap, ..config() }).unwrap();
        let (mut worker, n) = (Worker::new(0), 1 << 22);
        let turn = card.turn(&mut worker).unwrap();
        let (busy, other) = (turn.queue(Track::Compute).unwrap(), turn.queue(Track::Upload).unwrap());
        for class in [Class::Pooled, Class::Direct] {
            for round in 0..20 {
                let mut a = filled(&card, &busy, turn.alloc("a", n, class, &busy).unwrap(), 0);
                // Slow work on the memory, which is freed at once and asked for again by a queue that knows nothing of it.
                for _ in 0..50 {
                    add(&card, &busy, &mut a, 1).unwrap();
                }
                drop(a);
                let mut b = filled(&card, &other, turn.alloc("b", n, class, &other).unwrap(), 0);
                add(&card, &other, &mut b, round).unwrap();
                assert!(read(&card, &other, &mut b).iter().all(|&x| x == round), "someone else wrote to it");
            }
        }
        turn.release().unwrap();
    });
}

/// Modules are what the context takes, not what others hold, and a first launch takes nothing.
#[test]
fn b044_the_first_launch_takes_no_memory() {
    on_card("b044", || {
        let card = Cuda::open(config()).unwrap();
        let before = card.reading().unwrap();
        let deep = kernel(&card, "deep");
        assert!(deep.local() >= Bytes::kib(1), "{deep:?}");
        let after = card.reading().unwrap();
        assert!(after.foreign <= before.foreign + Bytes::mib(2), "{before:?} {after:?}");
        println!("a kernel with {} of local memory takes {}", deep.local(), after.context - before.context);

        let mut worker = Worker::new(0);
        let turn = card.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let a = turn.alloc::<u64>("a", 1, Class::Direct, &queue).unwrap();
        let mut a = filled(&card, &queue, a, 0);
        let held = card.reading().unwrap();
        let (mut at, mut there, mut here) = (a.block().as_ptr::<u32>(), 200u64, 200u64);
        let mut args = [(&raw mut at).cast(), (&raw mut there).cast(), (&raw mut here).cast()];
        let work = Work::launch("deep", Bytes::ZERO);
        // SAFETY: the kernel takes a pointer, to memory that is claimed, and two places below 256.
        unsafe { card.enqueue(&queue, work, |stream| stream.launch(&deep, Grid::line(1, 1), &mut args)) }
            .unwrap();
        assert_eq!(read(&card, &queue, &mut a), [7]);
        let launched = card.reading().unwrap();
        assert!(launched.foreign <= held.foreign + Bytes::mib(2), "{held:?} {launched:?}");
        drop(a);
        turn.release().unwrap();
    });
}

fn resident() -> Bytes {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0u64);
    Bytes::kib(4) * pages
}

#[test]
fn p10_twenty_turns_leave_nothing() {
    on_card("p10", || {
        let card = Cuda::open(config()).unwrap();
        let mut worker = Worker::new(0);
        let mut seen = Vec::new();
        for _ in 0..20 {
            let turn = card.turn(&mut worker).unwrap();
            let queues = [Track::Compute, Track::Upload].map(|track| turn.queue(track).unwrap());
            let mut a =
                filled(&card, &queues[0], turn.alloc("a", 1 << 22, Class::Pooled, &queues[0]).unwrap(), 0);
            for i in 0..200 {
                add(&card, &queues[i % 2], &mut a, 1).unwrap();
            }
            assert!(read(&card, &queues[0], &mut a).iter().all(|&x| x == 200));
            drop(a);
            turn.release().unwrap();
            seen.push((card.ledger().level().used(), card.reading().unwrap(), resident()));
        }
        let ((level, reading, rss), (last_level, last_reading, last_rss)) = (seen[1], seen[19]);
        assert_eq!((level, reading), (last_level, last_reading));
        assert!(last_rss.saturating_sub(rss) <= Bytes::mib(16), "{rss} became {last_rss}");
    });
}
