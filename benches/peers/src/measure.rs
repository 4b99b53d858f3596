//! Wall time, processor time and memory of this process.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Seconds on the clock on the wall.
    pub wall_s: f64,
    /// Seconds of all processors together, in user and kernel mode. Other processes disturb it less.
    pub cpu_s: f64,
}

/// Runs `f` and says what it cost.
pub fn cost<T>(f: impl FnOnce() -> T) -> (T, Cost) {
    let (wall, cpu) = (Instant::now(), cpu_time());
    let value = f();
    let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
    (value, Cost { wall_s: wall.as_secs_f64(), cpu_s: cpu.as_secs_f64() })
}

/// Processor time of all threads of this process so far.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// The middle one of some values, the mean of the two in the middle of an even number, zero of none.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let mid = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[mid],
        _ => f64::midpoint(values[mid - 1], values[mid]),
    }
}

/// Memory of this process that is in RAM, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Now.
    pub now_kib: u64,
    /// At most, since the start or since [`forget_peak`].
    pub peak_kib: u64,
}

/// Reads it from `/proc/self/status`; none where there is no such file.
#[must_use]
pub fn resident() -> Option<Resident> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse().ok()
    };
    Some(Resident { now_kib: field("VmRSS:")?, peak_kib: field("VmHWM:")? })
}

/// Makes the peak the present value (`5` to `/proc/self/clear_refs`, see proc(5)). False where that cannot be done.
#[must_use]
pub fn forget_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), 0.0);
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn processor_time_is_that_of_work_and_not_of_waiting() {
        let (_, slept) = cost(|| std::thread::sleep(Duration::from_millis(60)));
        assert!(slept.wall_s >= 0.06 && slept.cpu_s < 0.05, "{slept:?}");
        let start = cpu_time();
        let (_, worked) = cost(|| while cpu_time() - start < Duration::from_millis(20) {});
        assert!(worked.cpu_s >= 0.02 && worked.wall_s >= 0.009, "{worked:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_is_seen_and_forgotten() {
        let block = |mib: usize| std::hint::black_box(vec![1u8; mib << 20]).len();
        block(64);
        let before = resident().unwrap();
        assert!(before.peak_kib >= 64 << 10 && before.now_kib <= before.peak_kib);
        if forget_peak() {
            let after = resident().unwrap();
            assert!(after.peak_kib < before.peak_kib - (30 << 10), "{before:?} {after:?}");
        }
    }
}
