//! What is said of a run in words and figures.

use prestage_vram::Nanos;

use super::scale::{percent, time};
use crate::timeline::{IdleCause, Report};

/// What a device is called in a sentence.
fn noun(device: &str) -> &'static str {
    if device == "host" || device.starts_with("host@") { "CPU" } else { "card" }
}

/// In one or two sentences: how much of the time the device computed, and what it waited for.
pub(in crate::timeline) fn headline(report: &Report) -> String {
    let times = &report.times;
    let wall = times.wall();
    if wall == Nanos::ZERO {
        return "Nothing was recorded.".to_owned();
    }
    let busy = times.percent(times.busy());
    let mut text = format!("The {} was busy {} of {}.", noun(&report.key.device), percent(busy), time(wall));
    let mut causes: Vec<(IdleCause, f64)> =
        times.idle().iter().map(|(cause, t)| (cause, times.percent(t))).filter(|(_, p)| *p > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    // The causes that make up most of the idle time, two at most, and none worth less than half a per cent.
    let enough = 0.75 * (100.0 - busy);
    let mut named = 0.0;
    let mut parts = Vec::new();
    for (cause, share) in causes {
        if share < 0.5 || named >= enough || parts.len() == 2 {
            break;
        }
        named += share;
        let (name, share) = (cause.name(), percent(share));
        parts.push(match cause {
            IdleCause::Unattributed => format!("for reasons that were not recorded ({name}, {share})"),
            _ => format!("because {} ({name}, {share})", cause.meaning()),
        });
    }
    if !parts.is_empty() {
        text += " Idle mainly ";
        text += &parts.join(" and ");
        text += ".";
    }
    text
}

/// Scenario, device and the rest of what identifies the run.
pub(in crate::timeline) fn subtitle(report: &Report) -> String {
    let key = &report.key;
    let proofs = report.verified.proofs();
    let mut parts = vec![
        key.scenario.clone(),
        format!("device {}", key.device),
        format!("{}, {} constraints", key.load.circuit, grouped(key.load.constraints)),
        format!("{proofs} {} verified", if proofs == 1 { "proof" } else { "proofs" }),
    ];
    let mut policies: Vec<&str> = report.plans.iter().map(|plan| plan.policy.as_str()).collect();
    policies.dedup();
    if !policies.is_empty() {
        parts.push(format!("policy {}", policies.join(", ")));
    }
    parts.push(format!("commit {}", key.commit));
    parts.join("  ·  ")
}

/// Digits in groups of three.
pub(in crate::timeline) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// The figures of the run that are read first: name and value.
pub(in crate::timeline) fn tiles(report: &Report) -> Vec<(&'static str, String)> {
    let times = &report.times;
    let budget = report.memory.iter().map(|s| s.budget).max().unwrap_or(0);
    let peak = prestage_vram::Bytes::new(report.peak_bytes);
    vec![
        ("busy (a kernel runs)", percent(times.percent(times.busy()))),
        ("held (someone has the turn)", percent(times.percent(times.held()))),
        ("proofs per minute", rate(report.proofs_per_minute)),
        ("wall time", time(times.wall())),
        (
            "peak memory / budget",
            if budget == 0 {
                peak.to_string()
            } else {
                format!("{peak} / {}", prestage_vram::Bytes::new(budget))
            },
        ),
        ("refusals", report.refusals.len().to_string()),
    ]
}

/// Proofs per minute, three figures or so.
pub(in crate::timeline) fn rate(per_minute: f64) -> String {
    if per_minute >= 100.0 { format!("{per_minute:.0}") } else { format!("{per_minute:.1}") }
}
