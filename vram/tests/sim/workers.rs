//! Workers in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use prestage_vram::{
    Bytes, Class, Cost, Device, Error, Event, Nanos, Sim, Track, Turn, Worker, WorkerId, host_work,
};

use super::{enqueue, ms, open, plain_card, spans};

/// Row P8: preparation 1.3 s, the card 3.3 s, epilogue 0.7 s, ten partitions.
#[test]
fn p8_two_workers_keep_the_card_busy() {
    for (workers, wall) in [(1, 53_000), (2, 35_000)] {
        let (sim, recorder) = open(plain_card(), 1, |_| ());
        let next = AtomicU32::new(0);
        let results = sim.workers(workers, |id| {
            let mut worker = Worker::new(id.0);
            while next.fetch_add(1, Ordering::SeqCst) < 10 {
                host_work(&sim, id, "prepare", || sim.elapse(ms(1300)));
                let turn = sim.turn(&mut worker)?;
                let queue = turn.queue(Track::Compute)?;
                enqueue(&sim, &queue, "proof", Cost::Time(ms(3300)));
                turn.release()?;
                host_work(&sim, id, "finish", || sim.elapse(ms(700)));
            }
            Ok::<(), Error>(())
        });
        results.into_iter().for_each(|result| result.unwrap().unwrap());
        assert_eq!(sim.now(), ms(wall));
        let kernels = spans(&recorder.take(), Track::Compute);
        assert_eq!(kernels.len(), 10);
        if workers == 2 {
            assert!(kernels.windows(2).all(|pair| pair[0].end == pair[1].start), "no gap after the start");
        }
    }
}

/// Proofs that stage ahead, with copies, streams, kernels, direct and pooled memory, waits of every kind.
fn pipeline(workers: u32) -> (Nanos, String) {
    let card = prestage_vram::Card::preset("rtx-5070-ti-16g").unwrap();
    let (sim, recorder) = open(card, 1 << 20, |ledger| ledger.ahead = true);
    let results = sim.workers(workers, |id| {
        let mut worker = Worker::new(id.0);
        for proof in 0..4 {
            host_work(&sim, id, "prepare", || sim.elapse(ms(10 + u64::from(7 * id.0 + proof))));
            let turn = sim.turn(&mut worker)?;
            one_proof(&sim, &turn)?;
            turn.release()?;
        }
        Ok::<(), Error>(())
    });
    results.into_iter().for_each(|result| result.unwrap().unwrap());
    assert_eq!(sim.ledger().level().used(), Bytes::ZERO);
    (sim.now(), recorder.trace())
}

fn one_proof(sim: &Sim, turn: &Turn<'_, Sim>) -> Result<(), Error> {
    let (up, compute) = (turn.queue(Track::Upload)?, turn.queue(Track::Compute)?);
    let down = turn.queue(Track::Download)?;
    turn.promise(Bytes::gib(9));
    let mut a = turn.alloc_waiting::<u64>("a", 512, Class::Pooled, &up)?;
    enqueue(sim, &up, "upload a", Cost::Upload { bytes: a.charge(), pinned: true });
    let mut b = turn.alloc_waiting::<u64>("b", 512, Class::Direct, &up)?;
    enqueue(sim, &up, "upload b", Cost::Upload { bytes: b.charge(), pinned: turn.worker() != WorkerId(2) });
    turn.compute()?;
    for buf in [&mut a, &mut b] {
        buf.claim(&compute)?;
        enqueue(sim, &compute, "ntt", Cost::kernel("ntt", 27 << 26));
    }
    drop(b);
    turn.promise(Bytes::gib(6));
    let scratch = turn.alloc_charged::<u8>("scratch", 8, Bytes::mib(900), Class::Pooled, &compute)?;
    for _ in 0..4 {
        enqueue(sim, &compute, "msm", Cost::kernels([], Bytes::gib(3)));
        let mark = sim.record(&compute)?;
        sim.wait(&down, &mark)?;
        enqueue(sim, &down, "result", Cost::Download { bytes: Bytes::new(144), pinned: true });
    }
    drop((scratch, a));
    turn.promise(Bytes::ZERO);
    turn.drain()
}

/// Row T3.
#[test]
fn t3_the_same_run_gives_the_same_trace_to_the_byte() {
    for workers in [1, 2, 3] {
        let first = pipeline(workers);
        assert!(first.1.lines().count() > 100);
        for _ in 0..10 {
            let again = pipeline(workers);
            assert!(again == first, "two runs of {workers} workers differ");
        }
    }
}

#[test]
fn staging_ahead_takes_the_uploads_off_the_critical_path() {
    let alone = pipeline(1).0.get();
    let together = pipeline(2).0.get();
    assert!(together < 2 * alone * 9 / 10, "twice the work in {together} ns, the half in {alone}");
}

#[test]
fn the_earliest_goes_first_and_wakes_come_at_the_time_of_the_change() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    let ends = sim.workers(3, |id| {
        let mut worker = Worker::new(id.0);
        // Later numbers come earlier.
        sim.elapse(ms(30 - 10 * u64::from(id.0)));
        let turn = sim.turn(&mut worker).unwrap();
        sim.elapse(ms(100));
        turn.release().unwrap();
        // Work after the turn is not the next worker's business.
        sim.elapse(ms(1000));
        sim.now()
    });
    let ends: Vec<_> = ends.into_iter().map(|end| end.unwrap().get() / 1_000_000).collect();
    assert_eq!(ends, [10 + 300 + 1000, 10 + 200 + 1000, 10 + 100 + 1000]);
    let held = spans(&recorder.take(), Track::Held);
    assert_eq!(held.iter().map(|span| span.worker.0).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn a_panic_stops_one_worker_only() {
    let (sim, _) = open(plain_card(), 1, |_| ());
    let results = sim.workers(3, |id| {
        let mut worker = Worker::new(id.0);
        let turn = sim.turn(&mut worker).unwrap();
        let queue = turn.queue(Track::Compute).unwrap();
        let _a = turn.alloc::<u8>("a", 1 << 20, Class::Direct, &queue).unwrap();
        enqueue(&sim, &queue, "work", Cost::Time(ms(5)));
        if id.0 == 0 {
            std::panic::resume_unwind(Box::new("out of the middle of a proof"));
        }
        turn.drain().unwrap();
        id.0
    });
    let payload = results[0].as_ref().unwrap_err().downcast_ref::<&str>();
    assert_eq!(payload, Some(&"out of the middle of a proof"));
    assert_eq!((results[1].as_ref().ok(), results[2].as_ref().ok()), (Some(&1), Some(&2)));
    assert_eq!((sim.now(), sim.ledger().level().used()), (ms(15), Bytes::ZERO));
}

#[test]
fn a_deadlock_is_an_error_and_no_hang() {
    for finishing in [false, true] {
        let (sim, _) = open(plain_card(), 1, |_| ());
        let results = sim.workers(3, |id| {
            let mut worker = Worker::new(id.0);
            if finishing && id.0 == 2 {
                // Ends after the others have come to wait.
                sim.elapse(ms(50));
                return Ok(());
            }
            let turn = sim.turn(&mut worker)?;
            if id.0 == 0 {
                // Waits for something that nobody left will do.
                sim.block(&mut || false);
            }
            turn.release()
        });
        let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        let dead = |result: &Result<(), Error>| {
            matches!(result, Err(Error::Poisoned { detail, .. })
            if detail == "every worker waits for another")
        };
        // The holder's own turn ends well: ending always works.
        assert!(results[0].is_ok() && dead(&results[1]), "{results:?}");
        assert_eq!(dead(&results[2]), !finishing);
        assert!(sim.ledger().healthy().is_err());
    }
}

/// A signal beside the account, as scripts use: `Ledger::wake` lets those who wait for it ask again.
#[test]
fn signals_beside_the_account_wake() {
    let (sim, _) = open(plain_card(), 1, |_| ());
    let flag = Arc::new(AtomicU32::new(0));
    let ends = sim.workers(2, |id| {
        if id.0 == 0 {
            sim.block(&mut || flag.load(Ordering::SeqCst) == 1);
            assert_eq!(flag.load(Ordering::SeqCst), 1);
        } else {
            sim.elapse(ms(20));
            flag.store(1, Ordering::SeqCst);
            sim.ledger().wake();
            sim.elapse(ms(20));
        }
        sim.now()
    });
    let ends: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!(ends, [ms(20), ms(40)]);
}

#[test]
fn workers_may_have_workers() {
    let (sim, _) = open(plain_card(), 1, |_| ());
    sim.elapse(ms(1));
    let ends = sim.workers(2, |id| {
        sim.elapse(ms(10));
        let inner = sim.workers(2, |inner| {
            sim.elapse(ms(u64::from(1 + 4 * id.0 + inner.0)));
            sim.now()
        });
        assert!(inner.into_iter().all(|end| end.unwrap() <= sim.now()));
        sim.now()
    });
    let ends: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!((ends, sim.now()), (vec![ms(13), ms(17)], ms(17)));
}

#[test]
fn waits_for_the_turn_are_recorded() {
    let (sim, recorder) = open(plain_card(), 1, |_| ());
    sim.workers(2, |id| {
        let mut worker = Worker::new(id.0);
        let turn = sim.turn(&mut worker).unwrap();
        sim.elapse(ms(8));
        turn.release().unwrap();
    });
    let waits: Vec<_> = recorder.take().into_iter().filter(|e| matches!(e, Event::Wait { .. })).collect();
    assert!(
        matches!(waits[..], [Event::Wait { worker: WorkerId(1), start: Nanos::ZERO, end, .. }] if end == ms(8))
    );
}
