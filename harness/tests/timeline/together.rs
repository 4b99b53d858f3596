//! Several timelines on one axis: two runs compared, and a schedule that was refused beside a run.

use prestage_harness::Error;
use prestage_harness::timeline::{Chapter, Difference, Part, Report, Timeline, png_of, story, svg, svg_of};
use prestage_vram::{Bytes, Cause, Level, Track};
use roxmltree::{Document, Node};

use crate::pictures::keep;
use crate::synthetic::{MS, level, porep, porep_report, refusal, report, span, wait};

fn texts(document: &Document) -> Vec<String> {
    let own = |n: &Node| n.children().filter_map(|c| c.is_text().then(|| c.text()).flatten()).collect();
    document.descendants().filter(|n| n.tag_name().name() == "text").map(|n| own(&n)).collect()
}

fn tips(document: &Document) -> Vec<String> {
    let titles = document.descendants().filter(|n| n.tag_name().name() == "title");
    titles.filter_map(|n| n.text().map(str::to_owned)).collect()
}

fn chapter<'a>(parts: &'a [Part<'a>]) -> Chapter<'a> {
    Chapter { heading: Some("Two of them"), words: "They differ in staging.", parts, devices: false }
}

/// A schedule of two seconds that ends with a refusal.
fn refused() -> Timeline {
    let memory = Level {
        direct: Bytes::gib(4),
        retained: Bytes::mib(4659),
        usable: Bytes::mib(14_848),
        budget: Bytes::mib(14_848),
        ..Level::default()
    };
    Timeline::new(vec![
        span(Track::Compute, 0, "msm h", 0, 1_950 * MS),
        wait(1, Cause::Turn, 0, 1_950 * MS),
        level(0, memory),
        refusal(1_950 * MS),
        span(Track::Upload, 1, "upload a", 1_950 * MS, 2_000 * MS),
    ])
}

#[test]
fn two_runs_have_one_axis_and_their_differences() {
    let ((staged, a), (unstaged, b)) = (porep_report(true), porep_report(false));
    let parts = [
        Part::Run { name: "A: staged", report: &staged, timeline: &a },
        Part::Run { name: "B: unstaged", report: &unstaged, timeline: &b },
    ];
    let text = svg_of(&chapter(&parts)).unwrap();
    keep("together.svg", text.as_bytes());
    keep("together.png", &png_of(&chapter(&parts)).unwrap());
    let document = Document::parse(&text).unwrap();
    let shown = texts(&document);
    for words in
        ["Two of them", "They differ in staging.", "A: staged", "B: unstaged", "Compared", "difference"]
    {
        assert_eq!(shown.iter().filter(|t| *t == words).count(), 1, "{words}");
    }
    // Every cause with time in either has a row, and no other has one.
    for cause in prestage_harness::timeline::IdleCause::ALL {
        let some = [&staged, &unstaged].iter().any(|r| r.times.idle().get(cause).get() > 0);
        let row = format!("idle: {}", cause.name());
        assert_eq!(shown.iter().filter(|t| **t == row).count(), usize::from(some), "{row}");
    }
    // A bar of the same length is as wide in one as in the other.
    let widths: Vec<f64> = document
        .descendants()
        .filter(|n| n.tag_name().name() == "rect")
        .filter(|n| {
            n.first_element_child()
                .and_then(|t| t.text())
                .is_some_and(|t| t.starts_with("synthesise · worker 0 · 1.30 s"))
        })
        .map(|n| n.attribute("width").unwrap().parse().unwrap())
        .collect();
    assert_eq!(widths.len(), 10);
    assert!(widths.iter().all(|w| (w - widths[0]).abs() < 0.01), "{widths:?}");
}

#[test]
fn the_differences_are_second_minus_first() {
    let ((staged, _), (unstaged, _)) = (porep_report(true), porep_report(false));
    let difference = Difference::new(&staged, &unstaged).unwrap();
    assert!(difference.wall_ns > 0, "unstaged takes longer");
    assert_eq!(difference.busy_ns + difference.idle_ns.values().sum::<i128>(), difference.wall_ns);
    assert_eq!(difference.idle_ns.len(), 7);
    let transfer = i128::from(unstaged.times.idle().transfer) - i128::from(staged.times.idle().transfer);
    assert_eq!(difference.idle_ns["transfer"], transfer);
    let table = difference.table(("A", &staged), ("B", &unstaged)).to_string();
    let line = |name: &str| table.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    assert!(line("peak memory").ends_with("equal"), "{table}");
    assert!(line("idle: transfer").contains("+ "), "{table}");
    assert!(line("proofs per minute").contains("− "), "{table}");
    let back = Difference::new(&unstaged, &staged).unwrap();
    assert_eq!((back.wall_ns, back.busy_ns), (-difference.wall_ns, -difference.busy_ns));
}

#[test]
fn a_refused_schedule_has_lanes_memory_and_refusal_and_no_figures() {
    let (staged, a) = porep_report(true);
    let before = refused();
    let sentence = "bc of 8.00 GiB was refused to worker 1";
    let parts = [
        Part::Schedule { name: "Before", headline: sentence, about: "a replay", timeline: &before },
        Part::Run { name: "After", report: &staged, timeline: &a },
    ];
    let text = svg_of(&chapter(&parts)).unwrap();
    keep("before-after.svg", text.as_bytes());
    keep("before-after.png", &png_of(&chapter(&parts)).unwrap());
    let document = Document::parse(&text).unwrap();
    let shown = texts(&document);
    // One in the schedule, one that the run survived.
    let label = shown.iter().filter(|t| *t == "refused: 8.00 GiB for bc, 5.95 GiB free");
    assert_eq!(label.count(), 2);
    for words in [sentence, "a replay", "stopped here"] {
        assert_eq!(shown.iter().filter(|t| *t == words).count(), 1, "{words}");
    }
    let refusals = tips(&document).iter().filter(|t| t.starts_with("refused 8.00 GiB for bc")).count();
    assert_eq!(refusals, 2);
    // Figures are the run's alone.
    assert_eq!(shown.iter().filter(|t| t.contains("proofs per minute")).count(), 1);
    assert_eq!(shown.iter().filter(|t| t.contains("was busy")).count(), 1);
    assert!(!shown.iter().any(|t| t == "Compared"));
    let alone = svg_of(&chapter(&parts[..1])).unwrap();
    let alone = texts(&Document::parse(&alone).unwrap());
    assert!(
        !alone.iter().any(|t| t.contains("per minute") || t.contains("busy") || t.contains('%')),
        "{alone:?}"
    );

    let html = story("Story", &[chapter(&parts)]).unwrap();
    keep("before-after.html", html.as_bytes());
    assert_eq!(html.matches("<dl class=\"tiles\">").count(), 1);
    assert_eq!(html.matches("<div class=\"wall\"").count(), 1);
    let schedule = html.split("<section class=\"run\">").nth(1).unwrap();
    assert!(schedule.contains("<h2>Before</h2>") && schedule.contains("Refused requests for memory"));
    assert!(!schedule.contains('%') && !schedule.contains("per minute"), "{schedule}");
    // Both lie on the axis of the longer one: two of its seconds are as wide as two seconds there.
    let first = html.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap();
    let document = Document::parse(first.trim()).unwrap();
    let width = |start: &str| -> f64 {
        let bar = document.descendants().find(|n| {
            n.tag_name().name() == "rect"
                && n.first_element_child().and_then(|t| t.text()).is_some_and(|t| t.starts_with(start))
        });
        bar.unwrap().attribute("width").unwrap().parse().unwrap()
    };
    let (schedule, run) = (width("msm h · worker 0 · 1.95 s"), width("synthesise · worker 0 · 1.30 s"));
    assert!((schedule / run - 1.95 / 1.3).abs() < 0.01, "{schedule} and {run}");
}

#[test]
fn t4_no_picture_of_several_compares_other_loads() {
    let (staged, a) = porep_report(true);
    let (mut other, b) = porep_report(false);
    other.key.load.constraints += 1;
    let parts = [
        Part::Run { name: "A", report: &staged, timeline: &a },
        Part::Run { name: "B", report: &other, timeline: &b },
    ];
    assert!(matches!(svg_of(&chapter(&parts)), Err(Error::Incomparable { .. })));
    assert!(matches!(png_of(&chapter(&parts)), Err(Error::Incomparable { .. })));
    assert!(matches!(story("t", &[chapter(&parts)]), Err(Error::Incomparable { .. })));
    assert!(matches!(Difference::new(&staged, &other), Err(Error::Incomparable { .. })));
}

#[test]
fn a_report_is_read_back_with_what_its_picture_needs() {
    for staged in [true, false] {
        let (report, timeline) = porep_report(staged);
        let text = report.to_json_with(&timeline).unwrap();
        let (again, read) = Report::with_timeline(&text).unwrap();
        assert_eq!(again, report);
        assert_eq!(svg(&again, &read).unwrap(), svg(&report, &timeline).unwrap());
        // Whoever wants the report alone reads the same file.
        assert_eq!(Report::from_json(&text).unwrap(), report);
    }
    // Runs that began late are told from their first moment.
    let (report, timeline) = report(
        porep(true).into_iter().chain([span(Track::Host, 3, "x", 40_000 * MS, 41_000 * MS)]).collect(),
    );
    assert!(Report::with_timeline(&report.to_json_with(&timeline).unwrap()).is_ok());
}

#[test]
fn t4_a_report_that_contradicts_itself_is_not_read() {
    let (report, timeline) = porep_report(true);
    let good = report.to_json_with(&timeline).unwrap();
    let value: serde_json::Value = serde_json::from_str(&good).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = value.clone();
        change(&mut json);
        Report::with_timeline(&json.to_string()).map(drop).map_err(|e| e.to_string())
    };
    changed(&|_| {}).unwrap();
    let more =
        |json: &mut serde_json::Value, field: &str| json[field] = (json[field].as_u64().unwrap() + 1).into();
    for (says, change) in [
        (
            "its times",
            &(|json: &mut serde_json::Value| {
                more(json, "busy_ns");
                more(json, "wall_ns");
            }) as &dyn Fn(&mut serde_json::Value),
        ),
        ("its times", &|json| more(json, "held_ns")),
        ("its times", &|json| json["timeline"].as_array_mut().unwrap().retain(|l| l["name"] != "quotient")),
        ("its gaps", &|json| json["longest"][0]["before"] = "something else".into()),
        ("its gaps", &|json| json["histogram"][6]["gaps"] = 99.into()),
        ("its proofs per minute", &|json| json["proofs_per_minute"] = 1000.0.into()),
        ("its peak", &|json| more(json, "peak_bytes")),
        ("a line of its timeline", &|json| json["timeline"][0]["start_ns"] = u64::MAX.into()),
        ("a line of its timeline", &|json| json["timeline"][0]["track"] = "railway".into()),
        ("its proofs were not verified", &|json| json["verified"] = false.into()),
        ("add up", &|json| more(json, "wall_ns")),
        ("missing field `timeline`", &|json| drop(json.as_object_mut().unwrap().remove("timeline"))),
    ] {
        let told = changed(change).unwrap_err();
        assert!(told.contains(says), "{says}: {told}");
    }
    for end in (0..good.len() - 3).step_by(good.len() / 40) {
        assert!(Report::with_timeline(&good[..end]).is_err(), "cut at {end}");
    }
    assert!(Report::with_timeline(&report.to_json().unwrap()).is_err());
}

#[test]
fn who_waits_for_results_waits_for_compute() {
    // Results come back by a copy of 1 ms after a kernel of 9 ms: for 9 of 10 ms it is the kernel that is waited for.
    let (report, timeline) = report(vec![
        span(Track::Compute, 0, "msm h", 0, 9 * MS),
        span(Track::Download, 0, "sums", 9 * MS, 10 * MS),
        wait(0, Cause::Transfer, 0, 10 * MS),
        // Another's kernel is no reason to wait.
        wait(1, Cause::Transfer, 2 * MS, 5 * MS),
        // Neither is one's own while one's copy is still under way.
        span(Track::Upload, 0, "upload b", 20 * MS, 30 * MS),
        span(Track::Compute, 0, "ntt a", 20 * MS, 32 * MS),
        wait(0, Cause::Transfer, 20 * MS, 30 * MS),
        wait(0, Cause::Sync, 30 * MS, 32 * MS),
        wait(0, Cause::Sync, 33 * MS, 34 * MS),
    ]);
    let text = svg(&report, &timeline).unwrap();
    let waits: Vec<String> =
        tips(&Document::parse(&text).unwrap()).into_iter().filter(|t| t.contains("waits")).collect();
    assert_eq!(
        waits,
        [
            "worker 0 waits: compute · 9.00 ms",
            "worker 0 waits: transfer · 1.00 ms",
            "worker 0 waits: transfer · 10.0 ms",
            "worker 0 waits: compute · 2.00 ms",
            "worker 0 waits: sync · 1.00 ms",
            "worker 1 waits: transfer · 3.00 ms",
        ]
    );
}

#[test]
fn the_cpu_is_not_called_a_card() {
    let (mut report, timeline) = porep_report(true);
    let headline = |report: &Report| {
        let text = svg(report, &timeline).unwrap();
        let shown = texts(&Document::parse(&text).unwrap());
        shown.into_iter().find(|t| t.contains(" was busy ")).unwrap()
    };
    assert!(headline(&report).starts_with("The card was busy"));
    for name in ["host", "host@8GiB"] {
        report.key.device = name.into();
        assert!(headline(&report).starts_with("The CPU was busy"));
        assert!(!svg(&report, &timeline).unwrap().contains("card"));
    }
}
