//! What the operating system says of the host's memory.

use std::fs;

use prestage_vram::Bytes;

/// Memory that this process may still take: what is available to new programs, or what is left of its control group's
/// limit where that is less. `None` where the operating system does not say.
#[must_use]
pub fn available() -> Option<Bytes> {
    let free = kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(group().map_or(free, |left| free.min(left)))
}

/// The most memory that this process has had resident, page-locked memory included. `None` where the operating system
/// does not say.
#[must_use]
pub fn peak_resident() -> Option<Bytes> {
    kib(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// `key   123 kB` of a file with one such line for each key.
pub(crate) fn kib(text: &str, key: &str) -> Option<Bytes> {
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().trim_end_matches("kB").trim().parse().ok().map(Bytes::kib)
}

/// What is left of the limit of the control group, version 2 or 1, as a container sees its own. Pages of files can go when
/// memory is short, and count as free.
fn group() -> Option<Bytes> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok().map(Bytes::new);
    let files = |folder: &str| {
        let stat = fs::read_to_string(format!("{folder}/memory.stat")).unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
        Bytes::new(line.and_then(|n| n.trim().parse().ok()).unwrap_or(0))
    };
    let left = |folder: &str, limit: &str, used: &str| {
        let limit = number(&format!("{folder}/{limit}"))?;
        Some(limit - (number(&format!("{folder}/{used}"))? - files(folder)))
    };
    left("/sys/fs/cgroup", "memory.max", "memory.current")
        .or_else(|| left("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_key() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   123 kB\nVmHWM:\t  77 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(Bytes::kib(123)));
        assert_eq!(kib(text, "VmHWM:"), Some(Bytes::kib(77)));
        assert_eq!(kib(text, "MemFree:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_some_and_may_have_more() {
        assert!(peak_resident().is_some_and(|peak| peak > Bytes::kib(100)));
        assert!(available().is_some_and(|free| free > Bytes::mib(1)));
    }
}
