//! Round numbers on axes, and amounts in words.

use prestage_vram::{Bytes, Nanos};

/// A unit of time with its length in nanoseconds.
pub(super) const UNITS: [(&str, u64); 4] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1)];

/// The largest unit of which `span` holds at least two.
pub(super) fn unit_for(span: u64) -> (&'static str, u64) {
    UNITS.into_iter().find(|(_, len)| span >= 2 * len).unwrap_or(("ns", 1))
}

/// The round step (1, 2 or 5 times a power of ten) that cuts `span` into at most `most` parts; at least 1.
pub(super) fn decimal_step(span: u64, most: u64) -> u64 {
    let least = span.div_ceil(most.max(1)).max(1);
    let mut power = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The power of two that cuts `span` into at most `most` parts; at least 1.
pub(super) fn binary_step(span: u64, most: u64) -> u64 {
    span.div_ceil(most.max(1)).max(1).checked_next_power_of_two().unwrap_or(1 << 63)
}

/// A time in a unit, with no more decimals than the step of its axis needs.
pub(super) fn in_unit(at: u64, unit: u64, step: u64) -> String {
    let mut decimals = 0;
    let mut step = step;
    while step < unit && decimals < 9 {
        step = step.saturating_mul(10);
        decimals += 1;
    }
    #[allow(clippy::cast_precision_loss)]
    let value = at as f64 / unit as f64;
    format!("{value:.decimals$}")
}

/// An amount of memory for an axis: whole numbers without decimals.
pub(super) fn short_bytes(bytes: u64) -> String {
    let text = Bytes::new(bytes).to_string();
    text.replace(".00 ", " ")
}

/// A time in words, three figures or so: `31.4 ms`.
pub(in crate::timeline) fn time(at: Nanos) -> String {
    let (unit, len) = UNITS.into_iter().find(|(_, len)| at.get() >= *len).unwrap_or(("ns", 1));
    #[allow(clippy::cast_precision_loss)]
    let value = at.get() as f64 / len as f64;
    let decimals = match value {
        _ if len == 1 => 0,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A share in words: `31.0 %`, `0.04 %`, `< 0.01 %`.
pub(in crate::timeline) fn percent(share: f64) -> String {
    match share {
        0.0 => "0 %".to_owned(),
        s if s < 0.01 => "< 0.01 %".to_owned(),
        s if s < 0.1 => format!("{s:.2} %"),
        s => format!("{s:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(decimal_step(3_750, 10), 500);
        assert_eq!(decimal_step(0, 10), 1);
        assert_eq!(decimal_step(10, 10), 1);
        assert_eq!(binary_step(14 << 30, 6), 4 << 30);
        assert_eq!(binary_step(0, 6), 1);
        assert_eq!(in_unit(1_500_000, 1_000_000, 500_000), "1.5");
    }

    #[test]
    fn no_extreme_loops_or_wraps() {
        assert!(decimal_step(u64::MAX, 1) > 0);
        assert_eq!(binary_step(u64::MAX, 1), 1 << 63);
        assert_eq!(unit_for(u64::MAX).0, "s");
        assert_eq!(unit_for(0), ("ns", 1));
        assert_eq!(time(Nanos::new(31_400_000)), "31.4 ms");
        assert_eq!(time(Nanos::ZERO), "0 ns");
    }
}
