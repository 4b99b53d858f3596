//! Simulated cards: time, memory, workers, and the figures of the presets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod calibration;
mod cards;
mod memory;
mod random;
mod time;
mod unruled;
mod workers;

use std::sync::{Arc, Mutex};

use prestage_vram::sim::SimQueue;
use prestage_vram::{
    Bytes, Card, Cost, Cpu, Event, LedgerConfig, Margin, Nanos, Sim, SimConfig, Sink, Span, Track, Work,
};

/// Keeps every event.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// The events as text, one a line.
    pub(crate) fn trace(&self) -> String {
        self.take().iter().map(|event| format!("{event:?}\n")).collect()
    }
}

impl Sink for Recorder {
    fn emit(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

pub(crate) fn spans(events: &[Event], track: Track) -> Vec<Span> {
    let one = |event: &Event| match event {
        Event::Span(span) if span.track == track => Some(span.clone()),
        _ => None,
    };
    events.iter().filter_map(one).collect()
}

/// A card of round figures: 1 GB/s pinned, 0.5 pageable, one unit of work a nanosecond, calls for nothing.
pub(crate) fn plain_card() -> Card {
    Card::from_toml(
        r#"
        name = "plain"
        capacity = "16GiB"
        context = "0"
        context_ns = 7
        margin = "0"
        pool_threshold = "0"
        launch_ns = 0
        [link]
        upload_pinned = 1.0
        upload_pageable = 0.5
        download_pinned = 1.0
        download_pageable = 0.5
        copy_engines = 2
        [memory]
        allocate_direct = { fixed_ns = 0, per_gib_ns = 0 }
        free_direct = { fixed_ns = 0, per_gib_ns = 0 }
        allocate_pooled = { fixed_ns = 0, per_gib_ns = 0 }
        trim = { fixed_ns = 0, per_gib_ns = 0 }
        register = { fixed_ns = 0, per_gib_ns = 0 }
        unregister = { fixed_ns = 0, per_gib_ns = 0 }
        pin = { fixed_ns = 0, per_gib_ns = 0 }
        unpin = { fixed_ns = 0, per_gib_ns = 0 }
        [kernels]
        unit = { fixed_ns = 0, per_unit_ps = 1000 }
        "#,
    )
    .unwrap()
}

/// Opens a card with a recorder.
pub(crate) fn open(card: Card, scale: u64, change: impl FnOnce(&mut LedgerConfig)) -> (Sim, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let mut config = SimConfig { scale, ..SimConfig::new(card) };
    config.ledger.margin = Margin::Fixed(Bytes::ZERO);
    config.ledger.sink = Arc::clone(&recorder) as Arc<dyn Sink>;
    change(&mut config.ledger);
    (Sim::open(config).unwrap(), recorder)
}

/// Enqueues work that touches no memory.
pub(crate) fn enqueue(sim: &Sim, queue: &SimQueue, name: &'static str, cost: Cost) {
    let work = match cost {
        Cost::Upload { bytes, .. } | Cost::Download { bytes, .. } => Work::copy(name, bytes),
        _ => Work::launch(name, Bytes::ZERO),
    };
    // SAFETY: the job touches no memory.
    unsafe { sim.perform(queue, work, move || cost) }.unwrap();
}

pub(crate) fn ms(n: u64) -> Nanos {
    Nanos::new(n * 1_000_000)
}
