//! The page of the scenarios: complete, and with the figures of the reports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use prestage_benches::{CARDS, Case, Outcome, Partitions, WAYS, WORKERS, cases, save};
use prestage_harness::timeline::{IdleCause, Report};
use prestage_vram::{Bytes, Card, Nanos};
use roxmltree::{Document, Node, ParsingOptions};

const PARTITIONS: u32 = 3;

fn runs() -> Vec<(Case, Outcome)> {
    let partitions = Partitions::porep(5, PARTITIONS).unwrap();
    cases().into_iter().map(|case| (case, partitions.prove(&case).unwrap())).collect()
}

fn named<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.descendants().filter(move |n| n.has_tag_name(name))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|n| if n.is_text() { n.text() } else { None }).collect()
}

/// Per cent as the page writes them, from integers.
fn percent(part: Nanos, wall: Nanos) -> String {
    let share = 100.0 * part.get() as f64 / wall.get() as f64;
    match share {
        0.0 => "0 %".into(),
        s if s < 0.01 => "< 0.01 %".into(),
        s if s < 0.1 => format!("{s:.2} %"),
        s => format!("{s:.1} %"),
    }
}

/// The line of a run, cell by cell, from its report.
fn line(case: &Case, report: &Report, causes: &[IdleCause]) -> Vec<String> {
    let (times, wall) = (&report.times, report.times.wall());
    let plans: Vec<_> = report.plans.iter().map(|p| p.policy.clone()).collect();
    let mut cells = vec![
        case.way.to_owned(),
        case.workers.to_string(),
        plans.join(", "),
        format!("{:.3}", wall.get() as f64 / 1e9 / f64::from(PARTITIONS)),
        String::new(),
        format!("{:.1}", report.proofs_per_minute),
        percent(times.busy(), wall),
        percent(times.held(), wall),
    ];
    cells.extend(causes.iter().map(|cause| percent(times.idle().get(*cause), wall)));
    cells.push(Bytes::new(report.peak_bytes).to_string());
    cells
}

/// Which nanoseconds a line gives exactly, when the pointer rests on a cell.
fn exact(row: Node<'_, '_>) -> Vec<u64> {
    let titles = row.children().filter_map(|cell| cell.attribute("title"));
    titles.filter_map(|t| t.strip_suffix(" ns")?.parse().ok()).collect()
}

fn check_files(folder: &Path, case: &Case, report: &Report) {
    let read = |end: &str| std::fs::read_to_string(folder.join(format!("{case}.{end}"))).unwrap();
    assert_eq!(Report::from_json(&read("json")).unwrap(), *report, "{case}");
    let (svg, workers) = (read("svg"), case.workers);
    let picture = Document::parse(&svg).unwrap();
    let words: Vec<_> = named(picture.root(), "text").map(text).collect();
    let has = |word: &str| words.iter().any(|w| w.contains(word));
    assert!(has(&format!("{}, workers: {workers}", case.way)), "{case}");
    // A lane for each worker and no more.
    for worker in 0..=workers {
        assert_eq!(words.contains(&format!("worker {worker}")), worker < workers, "{case}: {worker}");
    }
}

#[test]
fn the_page_is_complete_and_says_what_the_reports_say() {
    let (runs, folder) = (runs(), tempfile::tempdir().unwrap());
    let page = save(folder.path(), &runs).unwrap();
    assert_eq!(page, folder.path().join("index.html"));
    let html = std::fs::read_to_string(&page).unwrap();
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let page = Document::parse_with_options(&html, options).unwrap();

    // Nothing is loaded from anywhere.
    for node in page.descendants().filter(Node::is_element) {
        assert!(!["script", "link", "img", "iframe", "use"].contains(&node.tag_name().name()));
        assert_eq!(node.attribute("src"), None);
    }
    assert!(!html.contains("url(") && !html.contains("@import"));

    let causes: Vec<_> = IdleCause::ALL
        .into_iter()
        .filter(|cause| runs.iter().any(|(_, run)| run.report.times.idle().get(*cause) > Nanos::ZERO))
        .collect();
    assert!(causes.contains(&IdleCause::Transfer) && causes.contains(&IdleCause::Host));
    let sections: Vec<_> = named(page.root(), "section").collect();
    assert_eq!(sections.len(), CARDS.len());
    let mut axes = Vec::new();
    for (card, section) in CARDS.into_iter().zip(sections) {
        assert_eq!(named(section, "h2").next().map(text).unwrap(), format!("sim:{card}"));
        let budget = Card::preset(card).unwrap();
        let budget = budget.capacity.saturating_sub(budget.context).saturating_sub(budget.margin);
        let headline = section.children().find(|n| n.attribute("class") == Some("headline")).map(text);
        assert!(headline.unwrap().ends_with(&format!("Budget of memory: {budget}.")), "{card}");
        let members: Vec<_> = runs.iter().filter(|(case, _)| case.card == card).collect();
        assert_eq!(members.len(), WAYS.len() * WORKERS.len());
        let body = named(section, "tbody").next().unwrap();
        let rows: Vec<_> = named(body, "tr").collect();
        assert_eq!(rows.len(), members.len());
        for (row, (case, Outcome { report, .. })) in rows.into_iter().zip(members) {
            assert_eq!(report.verified.proofs(), u64::from(PARTITIONS), "{case}");
            let cells: Vec<_> = row.children().filter(Node::is_element).map(text).collect();
            assert_eq!(cells, line(case, report, &causes), "{case}");
            let times = &report.times;
            let mut ns = vec![times.wall(), times.busy(), times.held()];
            ns.extend(causes.iter().map(|cause| times.idle().get(*cause)));
            assert_eq!(exact(row), ns.into_iter().map(Nanos::get).collect::<Vec<_>>(), "{case}");
            let link = named(row, "a").next().unwrap().attribute("href");
            assert_eq!(link, Some(format!("{case}.svg").as_str()));
            check_files(folder.path(), case, report);
        }
        // A strip for each line, on the same axis for both cards.
        let svg = section.descendants().find(|n| n.tag_name().name() == "svg").unwrap();
        let words: Vec<_> =
            svg.descendants().filter(|n| n.tag_name().name() == "text").map(|n| (text(n), n)).collect();
        assert_eq!(words.iter().filter(|(word, _)| word.contains(" · busy ")).count(), 12);
        let ticks = words.iter().filter(|(word, _)| word.parse::<f64>().is_ok());
        axes.push(
            ticks.map(|(word, n)| (word.clone(), n.attribute("x").unwrap().to_owned())).collect::<Vec<_>>(),
        );
    }
    assert!(axes[0].len() > 3 && axes.windows(2).all(|pair| pair[0] == pair[1]), "{axes:?}");
}

/// What the grid is for: figures that differ where they should.
#[test]
fn scenarios_repeat_and_tell_policies_apart() {
    let (first, second) = (runs(), runs());
    for ((case, a), (_, b)) in first.iter().zip(&second) {
        assert_eq!(a.report.times, b.report.times, "{case}");
        assert_eq!(a.report.refusals, [], "{case}");
    }
    let policy = |card: &str, way: &str| {
        let mut cases = first.iter().filter(|(case, _)| case.card == card && case.way == way);
        cases.next().unwrap().1.report.plans[0].policy.clone()
    };
    for card in CARDS {
        assert_eq!(WAYS.map(|(way, _)| policy(card, way)), ["full", "a-then-bc", "chunked:2", "none"]);
    }
}

#[test]
fn runs_of_different_loads_share_no_page() {
    let case = cases()[0];
    let runs = [2, 3].map(|n| (case, Partitions::porep(5, n).unwrap().prove(&case).unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let words = save(folder.path(), &runs).unwrap_err().to_string();
    assert!(words.contains("partitions is 2 in one and 3 in the other"), "{words}");
    assert!(!folder.path().join("index.html").exists());
    assert!(save(folder.path(), &[]).is_err());
    assert!(Partitions::porep(3, 1).is_err() && Partitions::porep(28, 1).is_err());
}
