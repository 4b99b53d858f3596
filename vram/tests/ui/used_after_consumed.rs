//! b and c are gone once the quotient has consumed them.
use prestage_vram::{Buf, Class, Device, Host, HostConfig, Track, Worker};
use std::mem::MaybeUninit;

struct Staged<'t> {
    a: Buf<'t, Host, MaybeUninit<u64>>,
    bc: Buf<'t, Host, MaybeUninit<u64>>,
}

/// Keeps `a`, frees `bc`.
fn quotient(staged: Staged<'_>) -> Buf<'_, Host, MaybeUninit<u64>> {
    staged.a
}

fn main() {
    let host = Host::open(HostConfig::default()).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u64>("a", 8, Class::Pooled, &queue).unwrap();
    let bc = turn.alloc::<u64>("bc", 8, Class::Pooled, &queue).unwrap();
    let staged = Staged { a, bc };
    let h = quotient(staged);
    let late = staged.bc;
    drop((h, late));
}
