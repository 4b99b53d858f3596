//! The card that the original ran on, against what was published for it.

use prestage_vram::{
    Bytes, Card, Class, Cost, Device, Error, Nanos, Sim, Track, Turn, Units, Worker, host_work,
};

use super::{enqueue, ms, open};

/// The PoRep shape.
const LOG_N: u64 = 27;
const N: u64 = 1 << LOG_N;
const ROWS: u64 = 130_278_869;
/// Points of L, A, B in G1, B in G2.
const L: u64 = 130_169_893 - 328;
const A: u64 = 129_753_292;
const B: u64 = 33_112_282;

fn transforms(count: u64) -> Cost {
    Cost::kernel("ntt", count * LOG_N * N / 2)
}

fn units(kind: &'static str, count: u64) -> Units {
    Units { kind, count }
}

/// A sum over a witness of which 9 % are uniform and 41 % are one.
fn witness(group: [&'static str; 2], points: u64, size: u64) -> Cost {
    let others = units(group[0], points * 9 / 100);
    let ones = units(group[1], points * 41 / 100);
    Cost::kernels([units("msm-scan", points), others, ones], Bytes::new(points * size))
}

const G1: [&str; 2] = ["msm-g1", "msm-g1-one"];
const G2: [&str; 2] = ["msm-g2", "msm-g2-one"];

fn partition(sim: &Sim, turn: &Turn<'_, Sim>, original: bool) -> Result<(), Error> {
    let (up, compute) = (turn.queue(Track::Upload)?, turn.queue(Track::Compute)?);
    let run = |name, cost| enqueue(sim, &compute, name, cost);
    let take = |label| turn.alloc_charged::<u8>(label, 1, Bytes::gib(4), Class::Pooled, &up);
    let upload = |pinned| Cost::Upload { bytes: Bytes::new(32 * ROWS), pinned };
    let (a, b, c) = (take("a")?, take("b")?, take("c")?);
    if original {
        // Each upload at the moment of its use, from ordinary memory.
        for _ in 0..3 {
            run("upload", upload(false));
            run("ntt", transforms(2));
        }
    } else {
        let uploaded = [(); 3].map(|()| {
            enqueue(sim, &up, "upload", upload(true));
            sim.record(&up)
        });
        for mark in uploaded {
            sim.wait(&compute, &mark?)?;
            run("ntt", transforms(2));
        }
    }
    run("quotient", Cost::kernel("pointwise", N));
    run("ntt", transforms(1));
    drop((b, c));
    for _ in 0..8 {
        let batch = Cost::kernels([units("msm-g1", N / 8)], Bytes::new(12 * N));
        run("msm h", batch);
        if original {
            synchronise(sim, turn)?;
        }
    }
    drop(a);
    if original {
        // The barrier: the GPU waits for the preparation of the tails.
        host_work(sim, turn.worker(), "prepare tails", || sim.elapse(ms(450)));
        for (points, size) in [(L, 96), (A, 96), (B, 96), (B, 192)] {
            let ones = [units("msm-g1-one", points * 41 / 100)];
            run("ones", Cost::kernels(ones, Bytes::new(points * size)));
        }
        for points in [L, A, B] {
            // Published: 83 ms for the three.
            run("tail", Cost::Time(Nanos::new(83_000_000 * points / (L + A + B))));
            for _ in 0..3 {
                synchronise(sim, turn)?;
            }
        }
    } else {
        run("msm l", witness(G1, L, 96));
        run("msm a", witness(G1, A, 96));
        run("msm b1", witness(G1, B, 96));
        run("msm b2", witness(G2, B, 192));
    }
    turn.drain()
}

/// A hard synchronisation, and the host work that the card waits for: 1 to 5 ms, 50 to 200 ms in all, as published.
fn synchronise(sim: &Sim, turn: &Turn<'_, Sim>) -> Result<(), Error> {
    turn.drain()?;
    host_work(sim, turn.worker(), "collect", || sim.elapse(ms(5)));
    Ok(())
}

/// The figures of row P11 as sums of the preset's phases.
#[test]
fn p11_the_published_phases_add_up() {
    for (original, published) in [(true, 3750), (false, 1590)] {
        let (sim, _) = open(Card::preset("rtx-5070-ti-16g").unwrap(), 1, |_| ());
        let mut worker = Worker::new(0);
        let turn = sim.turn(&mut worker).unwrap();
        partition(&sim, &turn, original).unwrap();
        turn.release().unwrap();
        let wall = sim.now();
        assert!(
            wall > ms(published * 95 / 100) && wall < ms(published * 105 / 100),
            "original: {original}, {wall}, published {published} ms"
        );
    }
}
