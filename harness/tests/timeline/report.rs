//! What a report says, and what it refuses to say.

use prestage_harness::Error;
use prestage_harness::timeline::{IdleCause, Report, Timeline, Verified};
use prestage_vram::{Bytes, Level, Track};

use crate::synthetic::{MS, key, level, porep_report, refusal, report, span, verified};

#[test]
fn a_proof_that_fails_leaves_no_report() {
    match Verified::check([true, false, true, false], |ok| ok) {
        Err(Error::Unverified { index: 2, proofs: 4 }) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(Verified::check(std::iter::empty::<bool>(), |ok| ok), Err(Error::NoProofs)));
    assert_eq!(Verified::check([true; 3], |ok| ok).unwrap().proofs(), 3);
}

#[test]
fn json_round_trip() {
    for staged in [true, false] {
        let (report, _) = porep_report(staged);
        let text = report.to_json().unwrap();
        assert_eq!(Report::from_json(&text).unwrap(), report);
    }
}

#[test]
fn json_has_the_names_that_others_read() {
    let (report, _) = porep_report(true);
    let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    assert_eq!(json["verified"], true);
    assert_eq!(json["proofs"], 10);
    assert_eq!(json["key"]["load"]["partitions"], 10);
    let wall = json["wall_ns"].as_u64().unwrap();
    let idle = json["idle_ns"].as_object().unwrap();
    let names: Vec<&str> = IdleCause::ALL.iter().map(|c| c.name()).collect();
    assert!(idle.len() == names.len() && names.iter().all(|name| idle.contains_key(*name)));
    let sum: u64 = idle.values().map(|t| t.as_u64().unwrap()).sum();
    assert_eq!(json["busy_ns"].as_u64().unwrap() + sum, wall);
    assert_eq!(json["peak_bytes"].as_u64().unwrap(), (12u64 << 30) + (256 << 20));
    assert_eq!(json["plans"][0]["proofs"], 10);
    assert_eq!(json["refusals"][0]["need_bytes"], 8u64 << 30);
}

#[test]
fn t4_unverified_or_wrong_sums_are_not_read() {
    let (report, _) = porep_report(true);
    let good: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    let changed = |field: &str, value: serde_json::Value| {
        let mut json = good.clone();
        json[field] = value;
        Report::from_json(&json.to_string()).map_err(|e| e.to_string())
    };
    assert!(changed("verified", true.into()).is_ok());
    assert!(changed("verified", false.into()).unwrap_err().contains("not verified"));
    assert!(changed("proofs", 0.into()).unwrap_err().contains("no proofs"));
    assert!(changed("wall_ns", 1.into()).unwrap_err().contains("add up"));
    assert!(changed("busy_ns", u64::MAX.into()).unwrap_err().contains("add up"));
    assert!(Report::from_json("{}").is_err());
    assert!(Report::from_json("").is_err());
}

#[test]
fn t4_other_loads_are_not_compared() {
    let (staged, timeline) = porep_report(true);
    let (unstaged, _) = porep_report(false);
    staged.comparable(&unstaged).unwrap();
    let fewer = Report::new(key("x"), verified(9), &timeline);
    let told = staged.comparable(&fewer).unwrap_err().to_string();
    assert!(told.contains("number of proofs is 10 in one and 9 in the other"), "{told}");
    let mut other = key("x");
    other.load.constraints += 1;
    let other = Report::new(other, verified(10), &timeline);
    assert!(matches!(staged.comparable(&other), Err(Error::Incomparable { .. })));
}

#[test]
fn t2_more_than_two_per_cent_unexplained_is_a_failure_of_the_harness() {
    let run = |lost: u64| {
        report(vec![span(Track::Compute, 0, "k", 0, 490), span(Track::Compute, 0, "k", 490 + lost, 500)]).0
    };
    assert_eq!(run(10).times.idle().unattributed, 10);
    assert_eq!(run(10).complaint(), None);
    let over = report(vec![span(Track::Compute, 0, "k", 0, 489), span(Track::Compute, 0, "k", 500, 500)]).0;
    assert_eq!(over.times.idle().unattributed, 11);
    assert!(over.complaint().unwrap().contains("11 ns of idle time, 2.2 % of the wall"));
}

#[test]
fn the_longest_gaps_name_their_neighbours() {
    let (report, _) = report(vec![
        span(Track::Host, 0, "prepare", 0, 5 * MS),
        span(Track::Compute, 0, "ntt a", 5 * MS, 6 * MS),
        span(Track::Upload, 0, "upload b", 6 * MS, 9 * MS),
        span(Track::Compute, 1, "ntt b", 9 * MS, 10 * MS),
    ]);
    let said: Vec<_> = report
        .longest
        .iter()
        .map(|g| (g.len().get() / MS, g.cause, g.before.as_deref(), g.after.as_deref()))
        .collect();
    assert_eq!(
        said,
        [
            (5, IdleCause::Host, None, Some("ntt a (worker 0)")),
            (3, IdleCause::Transfer, Some("ntt a (worker 0)"), Some("ntt b (worker 1)")),
        ]
    );
    let counts: Vec<u64> = report.histogram.iter().map(|bin| bin.gaps).collect();
    assert_eq!(counts, [0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn at_most_ten_gaps_are_named_the_histogram_has_all() {
    let events = (0..25).map(|i| span(Track::Compute, 0, "k", 100 * i, 100 * i + 10 + i)).collect();
    let (report, _) = report(events);
    assert_eq!(report.longest.len(), 10);
    assert_eq!(report.longest[0].len().get(), 90);
    assert_eq!(report.histogram.iter().map(|bin| bin.gaps).sum::<u64>(), 24);
    let total: u64 = report.histogram.iter().map(|bin| bin.idle_ns.total().get()).sum();
    assert_eq!(total, report.times.idle().total().get());
}

#[test]
fn memory_peak_and_refusals() {
    let at = |bytes| Level { pooled: Bytes::gib(bytes), retained: Bytes::gib(1), ..Level::default() };
    let (report, _) = report(vec![
        span(Track::Compute, 0, "k", 50, 200),
        level(60, at(2)),
        level(70, at(5)),
        level(70, at(3)),
        refusal(80),
    ]);
    assert_eq!(report.peak_bytes, 6 << 30);
    // Changes of the same moment keep their order: the last one holds.
    let pooled: Vec<(u64, u64)> = report.memory.iter().map(|s| (s.at_ns, s.pooled >> 30)).collect();
    assert_eq!(pooled, [(10, 2), (20, 5), (20, 3)]);
    assert_eq!((report.refusals[0].at_ns, report.refusals[0].worker), (30, 1));
    assert!(report.refusals[0].message.starts_with("refused 8.00 GiB for bc"));
}

#[test]
fn plans_are_counted_and_phases_keep_their_highest() {
    let (mut report, _) = report(vec![]);
    report.plan("Full", "fits").plan("AThenBc", "3 GiB are taken by others").plan("Full", "fits");
    let plans: Vec<(&str, u64)> = report.plans.iter().map(|p| (p.policy.as_str(), p.proofs)).collect();
    assert_eq!(plans, [("Full", 2), ("AThenBc", 1)]);
    report.phase("stage", Bytes::mib(3), Bytes::mib(2)).phase("stage", Bytes::mib(1), Bytes::mib(4));
    assert_eq!((report.phases[0].predicted_bytes, report.phases[0].measured_bytes), (3 << 20, 4 << 20));
}

#[test]
fn proofs_per_minute_of_the_wall() {
    let timeline = Timeline::new(vec![span(Track::Compute, 0, "k", 0, 20_000 * MS)]);
    let report = Report::new(key("x"), verified(10), &timeline);
    assert!((report.proofs_per_minute - 30.0).abs() < 1e-9);
}
