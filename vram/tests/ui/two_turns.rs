//! One worker cannot take two turns.
use prestage_vram::{Device, Host, HostConfig, Worker};

fn main() {
    let host = Host::open(HostConfig::default()).unwrap();
    let mut worker = Worker::new(0);
    let first = host.turn(&mut worker).unwrap();
    let second = host.turn(&mut worker).unwrap();
    first.release().unwrap();
    second.release().unwrap();
}
