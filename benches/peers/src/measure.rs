//! Wall time, processor time and memory of this process, and the processors that it may use.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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

impl Resident {
    /// From the text of `/proc/PID/status`.
    #[must_use]
    pub fn parse(status: &str) -> Option<Self> {
        let field = |name| status.lines().find_map(|line| kib(line, name));
        Some(Self { now_kib: field("VmRSS:")?, peak_kib: field("VmHWM:")? })
    }
}

/// Reads it from `/proc/self/status`; none where there is no such file.
#[must_use]
pub fn resident() -> Option<Resident> {
    Resident::parse(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// `NAME:   123 kB`
fn kib(line: &str, name: &str) -> Option<u64> {
    line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// KiB in RAM of this process' mappings of a file, from `/proc/self/smaps`; none where there is no such file.
#[must_use]
pub fn mapped(file: &Path) -> Option<u64> {
    let file = file.canonicalize().ok()?;
    Some(mapped_kib(&std::fs::read_to_string("/proc/self/smaps").ok()?, &file))
}

/// KiB in RAM of the mappings of `file` in the text of `/proc/PID/smaps` (proc(5)): per mapping one line of address, mode,
/// offset, device, inode and path, then its fields.
#[must_use]
pub fn mapped_kib(smaps: &str, file: &Path) -> u64 {
    let (mut ours, mut sum) = (false, 0);
    for line in smaps.lines() {
        if let Some(path) = mapping(line) {
            ours = Path::new(path) == file;
        } else if ours {
            sum += kib(line, "Rss:").unwrap_or(0);
        }
    }
    sum
}

/// The path in the first line of a mapping, empty where it has none; `None` for a line of a field.
fn mapping(line: &str) -> Option<&str> {
    let is_address = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    if !is_address(from) || !is_address(to) {
        return None;
    }
    // Address, mode, offset, device, inode.
    let mut rest = line;
    for _ in 0..5 {
        rest = rest.trim_start().split_once(' ').map_or("", |(_, rest)| rest);
    }
    Some(rest.trim_start())
}

/// Keeps this process, and those that it starts, to the first `n` of the processors that it may use. To be called before
/// the first thread is started: every prover here starts as many as there are processors for it.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] when it may use fewer or `n` is zero; what the system says.
pub fn limit_processors(n: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    if n == 0 || n > all.len() {
        let detail = format!("{n} threads: this process may use 1 to {} processors", all.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, detail));
    }
    let mut first = CpuSet::new();
    all[..n].iter().for_each(|&cpu| first.set(cpu));
    Ok(sched_setaffinity(None, &first)?)
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

    const SMAPS: &str = "\
7f0000000000-7f0000200000 r--s 00000000 fe:00 1234                       /tmp/a folder/circom.zkey
Size:               2048 kB
Rss:                 512 kB
Pss:                 512 kB
VmFlags: rd mr me ms sd
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
Rss:                1024 kB
7f0000300000-7f0000400000 r--p 00100000 fe:00 1234                       /tmp/a folder/circom.zkey
Rss:                 100 kB
7f0000400000-7f0000500000 r--s 00000000 fe:00 99                         /tmp/a folder/circom.zkey.old
Rss:                  64 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  28 kB
";

    #[test]
    fn resident_bytes_are_those_of_the_mappings_of_one_file() {
        assert_eq!(mapped_kib(SMAPS, Path::new("/tmp/a folder/circom.zkey")), 612);
        assert_eq!(mapped_kib(SMAPS, Path::new("/tmp/a folder/circom.zkey.old")), 64);
        assert_eq!(mapped_kib(SMAPS, Path::new("/tmp/circom.zkey")), 0);
        assert_eq!(mapped_kib("Rss: 3 kB\nnonsense\n\n-", Path::new("")), 0);
    }

    #[test]
    fn the_status_of_a_process() {
        let status = "Name:\tcat\nVmPeak:\t   99999 kB\nVmHWM:\t    1500 kB\nVmRSS:\t    1480 kB\n";
        assert_eq!(Resident::parse(status), Some(Resident { now_kib: 1480, peak_kib: 1500 }));
        assert_eq!(Resident::parse("VmRSS:\t 5 kB\n"), None);
        assert_eq!(Resident::parse("VmHWM:\t 5 MB\nVmRSS:\t 5 kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_of_a_mapped_file_count_once_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, vec![1; 4 << 20]).unwrap();
        assert_eq!(mapped(&path), Some(0));
        let file = prestage_groth16::format::MappedFile::open(&path).unwrap();
        assert_eq!(file.iter().map(|&b| u64::from(b)).sum::<u64>(), 4 << 20);
        assert_eq!(mapped(&path), Some(4 << 10));
        drop(file);
        assert_eq!(mapped(&path), Some(0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn threads_started_after_the_limit_see_so_many_processors() {
        // The limit is that of the calling thread and those it starts.
        let seen = std::thread::spawn(|| {
            limit_processors(1).unwrap();
            std::thread::spawn(|| std::thread::available_parallelism().unwrap().get()).join().unwrap()
        });
        assert_eq!(seen.join().unwrap(), 1);
        let refused = |n| limit_processors(n).unwrap_err().to_string();
        assert!(refused(0).starts_with("0 threads") && refused(1 << 20).contains("may use"));
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
