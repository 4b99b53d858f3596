//! Processor time is the whole process': this test is alone in its own, so that no other is counted.

use std::time::Duration;

use prestage_peers::measure::{cost, cpu_time};

#[test]
fn processor_time_is_that_of_work_and_not_of_waiting() {
    let (_, slept) = cost(|| std::thread::sleep(Duration::from_millis(60)));
    assert!(slept.wall_s >= 0.06 && slept.cpu_s < 0.05, "{slept:?}");
    let start = cpu_time();
    let (_, worked) = cost(|| while cpu_time() - start < Duration::from_millis(20) {});
    assert!(worked.cpu_s >= 0.02 && worked.wall_s >= 0.009, "{worked:?}");
}
