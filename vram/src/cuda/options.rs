//! How a card is opened.

use std::fmt;
use std::str::FromStr;

use super::probe::{ParseUuidError, Uuid};
use crate::{Bytes, LedgerConfig, bytes::ParseBytesError};

/// Which card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// By its number in this process, which depends on `CUDA_VISIBLE_DEVICES` and on the driver's order.
    Ordinal(u32),
    /// By what never changes.
    Uuid(Uuid),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ordinal(n) => write!(f, "{n}"),
            Self::Uuid(uuid) => write!(f, "{uuid}"),
        }
    }
}

impl FromStr for Which {
    type Err = ParseUuidError;

    /// `0`, or `GPU-…` as `nvidia-smi -L` shows it.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s.parse() {
            Ok(ordinal) => Ok(Self::Ordinal(ordinal)),
            Err(_) => s.parse().map(Self::Uuid),
        }
    }
}

/// Makes a card behave as a smaller one: the account grants no more than `total − context`, nor what the card has in fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// All memory of the smaller card.
    pub total: Bytes,
    /// What a context takes there; `None` for what it takes here.
    pub context: Option<Bytes>,
}

impl fmt::Display for Cap {
    /// `16.00 GiB`, `16.00 GiB,context=1.50 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total)?;
        self.context.map_or(Ok(()), |context| write!(f, ",context={context}"))
    }
}

impl FromStr for Cap {
    type Err = ParseBytesError;

    /// `16GiB`, `16GiB,context=1536MiB`.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let Some((total, rest)) = s.split_once(',') else {
            return Ok(Self { total: s.parse()?, context: None });
        };
        let bad = || ParseBytesError(s.to_owned());
        let context = rest.trim().strip_prefix("context=").ok_or_else(bad)?;
        Ok(Self { total: total.parse()?, context: Some(context.parse()?) })
    }
}

/// How a card is opened.
#[derive(Clone, Debug)]
pub struct CudaConfig {
    /// Which one.
    pub which: Which,
    /// As a smaller card.
    pub cap: Option<Cap>,
    /// Fills the card until the driver reports no more than this free, so that the driver itself refuses the rest. The account
    /// sees that as memory of others.
    pub ballast: Option<Bytes>,
    /// Has CUPTI record what runs ([`super::Cuda::records`]): each launch costs a few microseconds more.
    pub records: bool,
    /// Margin, pool threshold, sink, faults.
    pub ledger: LedgerConfig,
}

impl Default for CudaConfig {
    /// Card 0 as it is, the default ledger.
    fn default() -> Self {
        let ledger = LedgerConfig::default();
        Self { which: Which::Ordinal(0), cap: None, ballast: None, records: false, ledger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_and_caps_are_read() {
        assert_eq!("3".parse(), Ok(Which::Ordinal(3)));
        let uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(uuid.parse::<Which>().unwrap().to_string(), uuid);
        assert!("GPU-3".parse::<Which>().is_err() && "-1".parse::<Which>().is_err());

        let cap = Cap { total: Bytes::gib(16), context: None };
        assert_eq!("16GiB".parse(), Ok(cap));
        let cap = Cap { context: Some(Bytes::mib(1536)), ..cap };
        assert_eq!("16GiB,context=1536MiB".parse(), Ok(cap));
        assert_eq!(cap.to_string().parse(), Ok(cap));
        for bad in ["", "16GiB,", "16GiB,1GiB", "16GiB,context", "16GiB,contexts=1GiB", "lots"] {
            assert!(bad.parse::<Cap>().is_err(), "{bad}");
        }
    }
}
