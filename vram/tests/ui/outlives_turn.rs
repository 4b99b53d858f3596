//! A proof's memory cannot be kept past its turn.
use prestage_vram::{Class, Device, Host, HostConfig, Track, Worker};

fn main() {
    let host = Host::open(HostConfig::default()).unwrap();
    let mut worker = Worker::new(0);
    let turn = host.turn(&mut worker).unwrap();
    let queue = turn.queue(Track::Compute).unwrap();
    let a = turn.alloc::<u64>("a", 8, Class::Pooled, &queue).unwrap();
    turn.release().unwrap();
    drop(a);
}
