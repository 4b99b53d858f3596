//! `prestage run` on several devices.

use prestage_harness::timeline::Report;

use crate::command::{Work, adds_up, keys, run};

const TWO: &str = "sim:rtx-5070-ti-16g,sim:h200-141g@40GiB";

#[test]
fn two_cards_share_the_partitions_and_each_has_a_report() {
    let work = Work::new();
    let line = ["run", "--shape", "porep-32g", "--device", TWO, "--partitions", "6", "--out", "out"]
        .map(AsRef::as_ref);
    let text = work.run(&line);
    let text = text.done();
    for words in ["6 proofs by 2 devices in", "All verified.", "sim:rtx-5070-ti-16g: 3 proofs", "plan: full"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    for file in ["run.html", "run.svg", "run.png", "run.trace.json", "run-1.csv", "run-2.csv"] {
        assert!(work.path("out").join(file).is_file(), "{file}");
    }
    for (number, device) in [(1, "sim:rtx-5070-ti-16g"), (2, "sim:h200-141g@40GiB")] {
        let kept = std::fs::read_to_string(work.path("out").join(format!("run-{number}.json"))).unwrap();
        let (report, _) = Report::with_timeline(&kept).unwrap();
        assert_eq!((report.key.device.as_str(), report.verified.proofs()), (device, 3));
    }
    let answer = work.run(&[&line[..], &["--json".as_ref()]].concat()).json();
    assert_eq!((&answer["proofs"], &answer["workers"]), (&6.into(), &2.into()));
    let devices = answer["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for device in devices {
        adds_up(device);
        for key in ["device", "held_ns", "peak_bytes", "policy", "proofs", "refusals"] {
            assert!(keys(device).contains(&key), "{key}");
        }
        assert!(device["wall_ns"].as_u64() <= answer["wall_ns"].as_u64());
    }
}

#[test]
fn f029_cards_of_one_name_are_two_cards() {
    let work = Work::new();
    let ran = run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        "sim:rtx-5070-ti-16g,sim:rtx-5070-ti-16g",
        "--partitions",
        "8",
        "--json"
    );
    let two = ran.json();
    let names: Vec<_> =
        two["devices"].as_array().unwrap().iter().map(|d| d["device"].as_str().unwrap()).collect();
    assert_eq!(names, ["sim:rtx-5070-ti-16g (1)", "sim:rtx-5070-ti-16g (2)"]);
    let one = run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        "sim:rtx-5070-ti-16g",
        "--partitions",
        "8",
        "--json"
    );
    let wall = |answer: &serde_json::Value| answer["wall_ns"].as_u64().unwrap();
    assert!(wall(&two) * 16 < wall(&one.json()) * 10, "a proof on one card keeps none from the other");
}

#[test]
fn two_cards_make_each_proof_together() {
    let work = Work::new();
    let line = [
        "run",
        "--shape",
        "porep-32g",
        "--device",
        TWO,
        "--partitions",
        "2",
        "--split",
        "sums",
        "--out",
        "out",
    ];
    let line = line.map(AsRef::as_ref);
    let text = work.run(&line);
    let text = text.done();
    for words in
        ["2 proofs, each by 2 devices in", "All verified.", "its part of 2 proofs", "plan: sums alone"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    for number in 1..=2 {
        let kept = std::fs::read_to_string(work.path("out").join(format!("run-{number}.json"))).unwrap();
        let (report, _) = Report::with_timeline(&kept).unwrap();
        assert_eq!(report.verified.proofs(), 2);
        assert!(report.key.scenario.contains("each proof by 2 devices"), "{}", report.key.scenario);
    }
    let answer = work.run(&[&line[..], &["--json".as_ref()]].concat()).json();
    assert_eq!((&answer["proofs"], &answer["workers"]), (&2.into(), &1.into()));
    for device in answer["devices"].as_array().unwrap() {
        adds_up(device);
        assert_eq!(device["part_in"], 2);
    }
    let on = |device: &str, more: &[&str]| {
        let line = [&["run", "--shape", "square-2^12", "--split", "sums", "--device", device], more].concat();
        work.run(&line.iter().map(AsRef::as_ref).collect::<Vec<_>>())
    };
    assert!(on("host", &[]).refused().contains("name several"));
    assert!(on("host,host", &["--workers", "2"]).refused().contains("one proof at a time"));
    // A thread that is kept from running between two events leaves time unexplained: the best of five.
    let mut runs = (0..5).map(|_| on("host,host", &["--partitions", "2"]));
    let ran = runs.find(|ran| ran.status == Some(0)).expect("none of five runs explains its time");
    let text = ran.done();
    assert!(text.contains("2 proofs, each by 2 devices in"), "{text}");
    assert!(text.contains("All verified."), "{text}");
}

#[test]
fn devices_that_cannot_work_together_are_refused_in_one_line() {
    let work = Work::new();
    let on = |device: &str| run!(work, "run", "--shape", "square-2^6", "--device", device);
    assert!(on("host,sim:h200-141g").refused().contains("all cuda, all sim or all host"));
    assert!(on("host,nothing").misused().contains("names no device"));
    assert!(on("host,").misused().contains("names no device"));
    let script = run!(work, "run", "--shape", "square-2^6", "--device", "host,host", "--script", "s.toml");
    assert!(script.refused().contains("--script is the schedule of one device"));
    let plan = run!(work, "plan", "--shape", "porep-32g", "--device", "cuda:*");
    let words = plan.refused();
    assert!(words.contains("only run takes those") || words.contains("without the feature cuda"), "{words}");
}

#[test]
fn a_card_that_is_too_small_is_given_up_and_named() {
    let work = Work::new();
    let ran = run!(
        work,
        "run",
        "--shape",
        "porep-32g",
        "--device",
        "sim:h200-141g,sim:rtx-5070-ti-16g@2GiB",
        "--partitions",
        "4",
        "--policy",
        "full"
    );
    assert!(ran.done().contains("4 proofs by 1 device in"), "{ran:#?}");
    assert!(ran.stderr.contains("sim:rtx-5070-ti-16g@2GiB was given up, the others went on: "), "{ran:#?}");
}
