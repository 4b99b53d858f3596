//! A device for model checkers: no threads, no memory, only what a driver would count. Its work ends as soon as it is
//! enqueued.
#![allow(dead_code, unreachable_pub)]

use std::sync::{Arc, Mutex, PoisonError};

use prestage_vram::{
    Bytes, Class, Device, Error, Ledger, LedgerConfig, Margin, Nanos, Op, Reading, Sink, Track, WorkerId,
};

/// What the driver has given.
#[derive(Clone, Copy, Debug, Default)]
struct Driver {
    live: Bytes,
    retained: Bytes,
}

/// A card of a few bytes. What it gives may at no time be more than it has.
pub struct Model {
    ledger: Ledger,
    /// Never held across anything that a model checker knows of.
    driver: Mutex<Driver>,
}

impl Model {
    pub fn open(capacity: u64, ahead: bool) -> Arc<Self> {
        Self::recorded(capacity, ahead, Arc::new(prestage_vram::NoSink))
    }

    pub fn recorded(capacity: u64, ahead: bool, sink: Arc<dyn Sink>) -> Arc<Self> {
        let reading = Reading { capacity: Bytes::new(capacity), ..Reading::default() };
        let config =
            LedgerConfig { margin: Margin::Fixed(Bytes::ZERO), ahead, sink, ..LedgerConfig::default() };
        let ledger = Ledger::open("model", reading, config, || Nanos::ZERO).unwrap();
        Arc::new(Self { ledger, driver: Mutex::default() })
    }

    /// The account and the driver agree that nothing is held, and nobody is in line.
    pub fn assert_empty(&self) {
        assert_eq!(self.ledger.level().used(), Bytes::ZERO);
        assert_eq!(self.ledger.in_line(), 0);
        assert!(self.ledger.held().is_empty());
        let driver = self.change(|driver| *driver);
        assert_eq!((driver.live, driver.retained), (Bytes::ZERO, Bytes::ZERO));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Driver) -> T) -> T {
        change(&mut self.driver.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Device for Model {
    type Block = Bytes;
    type Queue = Track;
    type Mark = ();

    fn name(&self) -> &str {
        "model"
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn reading(&self) -> Result<Reading, Error> {
        Ok(self.ledger.reading())
    }

    fn queue(&self, track: Track, _: WorkerId) -> Result<Track, Error> {
        Ok(track)
    }

    fn retire(&self, _: Track) {}

    unsafe fn allocate(&self, len: Bytes, _: Bytes, class: Class, _: &Track) -> Result<Bytes, Error> {
        let capacity = self.ledger.reading().capacity;
        self.change(|driver| {
            if class == Class::Pooled {
                driver.retained = driver.retained.saturating_sub(len);
            }
            driver.live += len;
            let given = driver.live + driver.retained;
            assert!(given <= capacity, "the driver has given {given} of {capacity}");
        });
        Ok(len)
    }

    unsafe fn free(&self, block: Bytes, class: Class, _: &Track) {
        self.change(|driver| {
            driver.live = driver.live - block;
            if class == Class::Pooled {
                driver.retained += block;
            }
        });
    }

    fn record(&self, _: &Track) -> Result<(), Error> {
        self.ledger.attempt(Op::Mark)
    }

    fn wait(&self, _: &Track, (): &()) -> Result<(), Error> {
        self.ledger.attempt(Op::Mark)
    }

    fn passed(&self, (): &()) -> Result<bool, Error> {
        Ok(true)
    }

    fn synchronise(&self, (): &()) -> Result<(), Error> {
        Ok(())
    }

    /// The pool's threshold is zero.
    fn drain(&self, _: &Track) -> Result<(), Error> {
        self.change(|driver| driver.retained = Bytes::ZERO);
        Ok(())
    }

    fn trim(&self) -> Result<(), Error> {
        self.change(|driver| driver.retained = Bytes::ZERO);
        Ok(())
    }
}
