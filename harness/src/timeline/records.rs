//! A profiler's records in place of the spans that were timed by events.

use std::collections::HashMap;
use std::fmt;

use prestage_vram::{Event, Nanos, Recorded, Span, Track};

use super::Timeline;
use super::idle::LAUNCH_LIMIT;

/// What two ways of timing say of the same work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Spans that have records.
    pub spans: u64,
    /// Kernels, copies and fills in them.
    pub records: u64,
    /// Time in which something computed, by pairs of events.
    pub by_events: Nanos,
    /// The same by records: from the first kernel of a span to the last.
    pub by_records: Nanos,
    /// How long all of them ran, added up, copies included.
    pub ran: Nanos,
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spans, records, by_events, by_records, .. } = self;
        write!(f, "CUPTI, {records} records of {spans} spans; busy {by_records}, by event pairs {by_events}")
    }
}

impl Timeline {
    /// Gives the spans that have records the times of these, and says how both agree.
    ///
    /// Pairs of events are recorded a little before the first kernel and after the last one. What lies between them and the
    /// records is part of the launch.
    pub fn time_by_records(&mut self, records: &[Recorded]) -> Agreement {
        let key = |span: &Span| (span.track, span.worker, span.start, span.end);
        let known: HashMap<_, _> = records.iter().map(|r| (key(&r.span), r)).collect();
        let mut agreement = Agreement { by_events: self.idle().busy, ..Agreement::default() };
        let mut more = Vec::new();
        let mut events = self.events().to_vec();
        for event in &mut events {
            let Event::Span(span) = event else { continue };
            let Some(r) = known.get(&key(span)) else { continue };
            agreement.spans += 1;
            agreement.records += u64::from(r.records);
            agreement.ran = agreement.ran + r.busy;
            let old = span.clone();
            (span.start, span.end) = (r.start, r.end.max(r.start));
            for (start, end) in [(old.start, span.start), (span.end, old.end)] {
                if span.track == Track::Compute && end > start && end.since(start) < LAUNCH_LIMIT {
                    more.push(Event::Span(Span { track: Track::Launch, start, end, ..old.clone() }));
                }
            }
        }
        events.extend(more);
        self.replace(events);
        agreement.by_records = self.idle().busy;
        agreement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prestage_vram::{Bytes, WorkerId};

    fn span(track: Track, start: u64, end: u64) -> Span {
        let (start, end) = (Nanos::new(start), Nanos::new(end));
        Span { track, worker: WorkerId(1), name: "ntt a".into(), start, end, bytes: Bytes::ZERO }
    }

    fn recorded(span: &Span, start: u64, end: u64) -> Recorded {
        let (start, end) = (Nanos::new(start), Nanos::new(end));
        Recorded { span: span.clone(), start, end, busy: end.since(start), records: 2 }
    }

    #[test]
    fn records_take_the_place_of_their_spans_and_of_no_others() {
        let (kernel, copy) = (span(Track::Compute, 10_000, 50_000), span(Track::Upload, 0, 9_000));
        let other = span(Track::Compute, 60_000, 70_000);
        let held = span(Track::Held, 0, 80_000);
        let all = [&kernel, &copy, &other, &held].map(|s| Event::Span(s.clone()));
        let mut timeline = Timeline::new(all.to_vec());
        let agreement = timeline.time_by_records(&[
            recorded(&kernel, 13_000, 49_000),
            recorded(&copy, 1_000, 8_500),
            recorded(&span(Track::Compute, 1, 2), 1, 2),
        ]);
        assert_eq!((agreement.spans, agreement.records), (2, 4));
        assert_eq!((agreement.by_events.get(), agreement.by_records.get()), (50_000, 46_000));
        assert_eq!(agreement.ran.get(), 36_000 + 7_500);
        let times = |track| timeline.on(track).map(|s| (s.start.get(), s.end.get())).collect::<Vec<_>>();
        assert_eq!(times(Track::Compute), [(13_000, 49_000), (60_000, 70_000)]);
        assert_eq!(times(Track::Upload), [(1_000, 8_500)]);
        // What lies between the events and the records was the launch.
        assert_eq!(times(Track::Launch), [(10_000, 13_000), (49_000, 50_000)]);
        let idle = timeline.idle();
        assert_eq!(idle.by_cause.launch, 4_000);
        assert_eq!(idle.wall(), idle.busy + idle.by_cause.total());
    }

    #[test]
    fn no_records_change_nothing() {
        let kernel = span(Track::Compute, 10, 20);
        let mut timeline = Timeline::new(vec![Event::Span(kernel)]);
        let agreement = timeline.time_by_records(&[]);
        assert_eq!((agreement.spans, agreement.by_events), (0, agreement.by_records));
        assert_eq!(timeline.events().len(), 1);
    }
}
