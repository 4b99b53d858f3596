//! Both sides by turns, and what time there is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use prestage_benches::sppark::Sppark;
use prestage_benches::{Ratios, Row};
use prestage_harness::timeline::Recorder;
use prestage_transfer::Ring;
use prestage_vram::Bytes;
use prestage_vram::cuda::Cuda;

use crate::Outcome;

/// What our tables may take: as on a card that has the room, and keeps them.
pub(crate) const ROOM: Bytes = Bytes::gib(32);

/// The card, both sides, and what has been measured.
pub(crate) struct Lab<'l> {
    pub(crate) card: &'l Cuda,
    pub(crate) peer: &'l Sppark,
    pub(crate) recorder: &'l Arc<Recorder>,
    pub(crate) ratios: Ratios,
    pub(crate) resident_only: bool,
    /// Whether something went wrong.
    pub(crate) failed: bool,
    began: Instant,
    limit_s: f64,
    /// By operation: the size that was run last, and the seconds that it took in all.
    took: BTreeMap<String, (u32, f64)>,
}

impl<'l> Lab<'l> {
    pub(crate) fn new(
        card: &'l Cuda,
        peer: &'l Sppark,
        recorder: &'l Arc<Recorder>,
        ratios: Ratios,
        limit_s: f64,
        resident_only: bool,
    ) -> Self {
        let (began, took) = (Instant::now(), BTreeMap::new());
        Self { card, peer, recorder, ratios, resident_only, failed: false, began, limit_s, took }
    }

    /// Does `work` if the time suffices by what it took at the size before, and takes note of how long it took. A failure is
    /// written down, and the run goes on without.
    pub(crate) fn within<T>(
        &mut self,
        what: &str,
        log: u32,
        work: impl FnOnce(&mut Self) -> Outcome<T>,
    ) -> Option<T> {
        let start = self.began.elapsed().as_secs_f64();
        let expected = self
            .took
            .get(what)
            .map_or(0.0, |(before, s)| s * f64::from(1u32 << log.saturating_sub(*before).min(31)));
        let left = self.limit_s - start;
        if expected > left {
            self.ratios.left_out.push(format!(
                "{what} 2^{log}: about {expected:.0} s, {:.0} s of {} left",
                left.max(0.0),
                self.limit_s
            ));
            return None;
        }
        let outcome = work(self);
        self.took.insert(what.to_owned(), (log, self.began.elapsed().as_secs_f64() - start));
        outcome
            .map_err(|error| {
                let failure = format!("{what} 2^{log}: {error}");
                println!("{failure}");
                self.ratios.left_out.push(failure);
                self.failed = true;
            })
            .ok()
    }

    /// Runs both sides by turns, once to warm up and then as often as the run says, and keeps the medians. Each side returns a
    /// result and its time in milliseconds; `same` compares the results of each round.
    pub(crate) fn compare<T>(
        &mut self,
        op: &str,
        log: u32,
        mut ours: impl FnMut() -> Outcome<(T, f64)>,
        mut peer: impl FnMut() -> Outcome<(T, f64)>,
        mut same: impl FnMut(&T, &T) -> Outcome<()>,
    ) -> Outcome<()> {
        let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
        for round in 0..=self.ratios.rounds {
            let (a, b) = if round % 2 == 0 {
                let a = ours()?;
                (a, peer()?)
            } else {
                let b = peer()?;
                (ours()?, b)
            };
            same(&a.0, &b.0)?;
            if round > 0 {
                our_times.push(a.1);
                peer_times.push(b.1);
            }
        }
        let row = Row::new(op, log, median(our_times), median(peer_times));
        println!(
            "{:7.1} s  {op:18} 2^{log:<3} {:10.4} ms, peer {:10.4} ms, ratio {:.2}",
            self.began.elapsed().as_secs_f64(),
            row.ours_ms,
            row.peer_ms,
            row.ratio
        );
        self.ratios.rows.push(row);
        Ok(())
    }
}

/// Slots that ordinary memory goes through: four of 16 MiB.
pub(crate) fn ring<T: Copy + Send + Sync + 'static>(card: &Cuda, fill: T) -> Outcome<Ring<'_, Cuda, T>> {
    Ok(Ring::open(card, 4, (16 << 20) / size_of::<T>(), fill)?)
}

/// What `f` gives, and the milliseconds that it took.
pub(crate) fn wall<T>(f: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let start = Instant::now();
    let value = f()?;
    Ok((value, start.elapsed().as_secs_f64() * 1e3))
}

/// The middle one, the upper one of two.
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
