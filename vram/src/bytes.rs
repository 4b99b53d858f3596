//! Amounts of memory and points in time, as types.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

/// A number of bytes.
///
/// Arithmetic saturates: an account never wraps. Parsing takes `512MiB`, `16GiB`, `1.5 GiB` or plain bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No memory.
    pub const ZERO: Self = Self(0);
    /// More than any device holds.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// `n` KiB (2^10 bytes).
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 10))
    }

    /// `n` MiB (2^20 bytes).
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// `n` GiB (2^30 bytes).
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 30))
    }

    /// The size of `n` elements of `T`.
    #[must_use]
    pub const fn of<T>(n: usize) -> Self {
        Self((n as u64).saturating_mul(size_of::<T>() as u64))
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bytes as a length in this process, `None` where it does not fit.
    #[must_use]
    pub fn to_usize(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// `self − other`, or nothing left.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self − other`, or `None` when it would be negative.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Rounded up to a multiple of `unit` (which must not be zero; zero leaves the value as it is).
    #[must_use]
    pub const fn round_up(self, unit: Self) -> Self {
        if unit.0 == 0 {
            return self;
        }
        let rest = self.0 % unit.0;
        if rest == 0 { self } else { Self(self.0.saturating_add(unit.0 - rest)) }
    }

    /// The amount in GiB, for plots and messages.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / (1u64 << 30) as f64
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    /// Two decimals in the largest unit that keeps the value at one or more: `8.00 GiB`, `512.00 MiB`, `96 B`.
    #[allow(clippy::cast_precision_loss)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0 as f64;
        match self.0 {
            n if n >= 1 << 30 => write!(f, "{:.2} GiB", v / f64::from(1u32 << 30)),
            n if n >= 1 << 20 => write!(f, "{:.2} MiB", v / f64::from(1u32 << 20)),
            n if n >= 1 << 10 => write!(f, "{:.2} KiB", v / f64::from(1u32 << 10)),
            n => write!(f, "{n} B"),
        }
    }
}

/// Text that is no amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount of memory (write 512MiB, 16GiB or a number of bytes)")]
pub struct ParseBytesError(pub(crate) String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || ParseBytesError(s.to_owned());
        let text = s.trim();
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let shift = match unit.trim() {
            "" | "B" => 0u32,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "TiB" => 40,
            _ => return Err(bad()),
        };
        // Exact decimal: whole and fraction parts as integers, so that 0.36GiB means what it says.
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let numerator: u64 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| bad())? };
        let denominator = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| bad())?);
        let part = (u128::from(numerator) << shift) / denominator;
        let total = (u128::from(whole) << shift) + part;
        u64::try_from(total).map(Self).map_err(|_| bad())
    }
}

/// A point in time or a duration, in nanoseconds since the device was opened. Virtual on simulated cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// The moment the device was opened.
    pub const ZERO: Self = Self(0);

    /// `n` nanoseconds.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number of nanoseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `self − earlier`, or zero.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// In milliseconds, for plots and messages.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.2} s", self.as_ms() / 1e3),
            n if n >= 1_000_000 => write!(f, "{:.2} ms", self.as_ms()),
            n if n >= 1_000 => write!(f, "{:.2} µs", self.as_ms() * 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_and_refuses_the_rest() {
        assert_eq!("512MiB".parse(), Ok(Bytes::mib(512)));
        assert_eq!("16 GiB".parse(), Ok(Bytes::gib(16)));
        assert_eq!("1.5GiB".parse(), Ok(Bytes::mib(1536)));
        assert_eq!("96".parse(), Ok(Bytes::new(96)));
        assert_eq!("0.36GiB".parse::<Bytes>().unwrap().get(), 386_547_056);
        for bad in ["", "GiB", "-1MiB", "1.GiB", ".5GiB", "5MB", "1e3", "99999999999TiB"] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shows_the_largest_unit() {
        assert_eq!(Bytes::gib(8).to_string(), "8.00 GiB");
        assert_eq!(Bytes::mib(512).to_string(), "512.00 MiB");
        assert_eq!(Bytes::new(96).to_string(), "96 B");
    }

    #[test]
    fn never_wraps() {
        assert_eq!(Bytes::new(1) - Bytes::new(2), Bytes::ZERO);
        assert_eq!(Bytes::MAX + Bytes::new(1), Bytes::MAX);
        assert_eq!(Bytes::new(5).round_up(Bytes::new(4)), Bytes::new(8));
    }
}
