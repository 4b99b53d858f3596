//! Criterion on machines and samples that its plots could not cope with.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use criterion::Criterion;

fn quick(folder: &std::path::Path) -> Criterion {
    prestage_benches::criterion_defaults()
        .output_directory(folder)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_millis(5))
}

/// Every sample is the same to the nanosecond, so that their range is empty.
#[test]
fn b233_constant_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut criterion = quick(folder.path());
    for _ in 0..2 {
        // The second time it is also compared with the first.
        criterion.bench_function("constant", |b| {
            b.iter_custom(|n| {
                // Warming up counts on real time passing.
                std::thread::sleep(Duration::from_micros(100));
                Duration::from_nanos(1000 * n)
            });
        });
    }
    criterion.final_summary();
    let estimates = std::fs::read_to_string(folder.path().join("constant/new/estimates.json")).unwrap();
    assert!(estimates.contains("\"point_estimate\":1000.0"), "{estimates}");
}

/// Two runs, each the same to the nanosecond in itself, a tenth apart from each other: the change is found, and is exact.
#[test]
fn constant_samples_that_change() {
    let folder = tempfile::tempdir().unwrap();
    for nanos in [1000, 1100] {
        quick(folder.path()).bench_function("constant", |b| {
            b.iter_custom(|n| {
                std::thread::sleep(Duration::from_micros(100));
                Duration::from_nanos(nanos * n)
            });
        });
    }
    let change = std::fs::read_to_string(folder.path().join("constant/change/estimates.json")).unwrap();
    for bound in ["lower_bound", "upper_bound", "point_estimate"] {
        let values: Vec<f64> = change
            .split(&format!("\"{bound}\":"))
            .skip(1)
            .map(|rest| rest.split([',', '}']).next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(values.len(), 2, "of mean and median: {change}");
        assert!(values.iter().all(|value| (value - 0.1).abs() < 1e-9), "{change}");
    }
}

/// A gnuplot whose version no parser knows is on the path. It is asked for its version
/// and for nothing else.
#[test]
fn b232_strange_gnuplot() {
    let folder = tempfile::tempdir().unwrap();
    let (fake, called) = (folder.path().join("gnuplot"), folder.path().join("called"));
    std::fs::write(
        &fake,
        format!(
            "#!/bin/sh\n[ \"$*\" = --version ] || : > '{}'\necho gnuplot 5.4 patchlevel 0rc1-r1\n",
            called.display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.path().display());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["b233_constant_samples", "--nocapture"])
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert!(!called.exists(), "criterion drew plots");
}
