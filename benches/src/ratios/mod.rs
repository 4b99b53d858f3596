//! Times beside a peer's: rows of one run on one machine, as a table, as JSON and as a chart.

mod chart;
mod date;

use std::fmt::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use date::date;

use crate::Error;

/// One operation at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was done, where its inputs were: `msm_g1_resident`.
    pub op: String,
    /// Of 2^`log_n` elements.
    pub log_n: u32,
    /// Median of prestage's times, in milliseconds.
    pub ours_ms: f64,
    /// Median of the peer's, in milliseconds.
    pub peer_ms: f64,
    /// The peer's time over prestage's: above one, prestage is faster.
    pub ratio: f64,
}

impl Row {
    /// From two medians in milliseconds.
    #[must_use]
    pub fn new(op: impl Into<String>, log_n: u32, ours_ms: f64, peer_ms: f64) -> Self {
        let rounded = |x: f64, places: f64| (x * places).round() / places;
        let (ours, peer) = (rounded(ours_ms, 1e4), rounded(peer_ms, 1e4));
        Self { op: op.into(), log_n, ours_ms: ours, peer_ms: peer, ratio: rounded(peer_ms / ours_ms, 1e3) }
    }

    /// The operation and where its inputs were: `msm_g1` and `resident`.
    fn parts(&self) -> (&str, &str) {
        self.op.rsplit_once('_').unwrap_or((&self.op, ""))
    }

    /// The ratio that is aimed at.
    #[must_use]
    pub fn target(&self) -> Option<f64> {
        let targets = TARGETS.iter().find(|(op, _)| *op == self.op)?.1;
        targets.iter().find(|(log, _)| *log == self.log_n).map(|(_, ratio)| *ratio)
    }
}

/// Ratios aimed at against sppark on one H200, by exponent of the size.
const TARGETS: [(&str, &[(u32, f64)]); 4] = [
    ("msm_g1_resident", &[(16, 4.5), (18, 6.7), (20, 3.0), (22, 2.6), (24, 2.4), (26, 2.4)]),
    ("msm_g2_resident", &[(16, 2.2), (20, 2.2), (22, 2.2), (24, 2.2)]),
    ("ntt_nr_device", &[(16, 1.0), (20, 1.4), (24, 1.6), (27, 1.75)]),
    ("quotient_resident", &[(27, 1.85)]),
];

/// All that one run measured, and what it was run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// The day, `2026-11-29`, in UTC.
    pub date: String,
    /// The device's name.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// What prestage was built from.
    pub commit: String,
    /// How to run it again.
    pub command: String,
    /// The other one, and its version.
    pub peer: String,
    /// How many times of each side the medians are of.
    pub rounds: usize,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was not, and why.
    pub left_out: Vec<String>,
}

impl Ratios {
    /// A table in Markdown: a line per row, in their order.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table =
            "| op | size | prestage ms | peer ms | ratio | target |\n|---|---|---|---|---|---|\n".to_owned();
        for row in &self.rows {
            let target = row.target().map_or_else(|| "–".into(), |target| format!("{target:.2}"));
            let Row { op, log_n, ours_ms, peer_ms, ratio } = row;
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "| {op} | 2^{log_n} | {} | {} | {ratio:.2} | {target} |",
                ms(*ours_ms),
                ms(*peer_ms)
            );
        }
        table
    }

    /// As JSON, one row a line.
    ///
    /// # Errors
    /// [`Error::Json`], in practice never.
    pub fn json(&self) -> Result<String, Error> {
        let mut json = serde_json::to_string_pretty(&Self { rows: Vec::new(), ..self.clone() })?;
        let rows = self.rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        if !rows.is_empty() {
            json = json.replace("\"rows\": []", &format!("\"rows\": [\n    {}\n  ]", rows.join(",\n    ")));
        }
        Ok(json + "\n")
    }

    /// Reads what [`Ratios::json`] wrote.
    ///
    /// # Errors
    /// [`Error::Json`] for anything else.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        Ok(serde_json::from_str(json)?)
    }

    /// As an SVG document: size on x, ratio on y, a panel per operation, a line per place of the inputs; dashed what is aimed
    /// at, grey where both are equally fast.
    ///
    /// # Errors
    /// [`Error::Chart`] where nothing was measured.
    pub fn chart(&self) -> Result<String, Error> {
        chart::svg(self)
    }

    /// Writes JSON and chart, where a path is given.
    ///
    /// # Errors
    /// As [`Ratios::json`] and [`Ratios::chart`]; [`Error::Harness`] when a file cannot be written.
    pub fn save(&self, json: Option<&Path>, chart: Option<&Path>) -> Result<(), Error> {
        use prestage_harness::timeline::write_atomic;
        if let Some(path) = json {
            write_atomic(path, self.json()?.as_bytes())?;
        }
        if let Some(path) = chart {
            write_atomic(path, self.chart()?.as_bytes())?;
        }
        Ok(())
    }
}

/// Three digits or more.
fn ms(time: f64) -> String {
    match time {
        ..1.0 => format!("{time:.4}"),
        ..100.0 => format!("{time:.2}"),
        _ => format!("{time:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Ratios {
        let mut ratios = Ratios {
            date: date(1_795_910_400),
            device: "NVIDIA H200".into(),
            peer: "sppark 0.1.16".into(),
            rounds: 7,
            ..Ratios::default()
        };
        ratios.left_out.push("msm_g1 2^26: no time".into());
        for (op, log_n, ours, peer) in [
            ("msm_g1_resident", 16, 1.6, 6.4),
            ("msm_g1_resident", 18, 3.15, 18.9),
            ("msm_g1_pinned", 16, 2.0, 6.7),
            ("msm_g2_resident", 16, 10.0, 9.2),
            ("ntt_nr_device", 16, 0.039_12, 0.025),
            ("ntt_nr_device", 24, 2.8, 4.43),
            ("ntt_nn_pageable", 24, 150.0, 300.4),
        ] {
            ratios.rows.push(Row::new(op, log_n, ours, peer));
        }
        ratios
    }

    #[test]
    fn a_row_is_the_peers_time_over_ours() {
        let row = Row::new("msm_g1_resident", 16, 1.6, 6.4);
        assert_eq!((row.ratio, row.target()), (4.0, Some(4.5)));
        assert_eq!(Row::new("msm_g1_resident", 17, 1.6, 6.4).target(), None);
        assert_eq!(Row::new("ntt_nn_pinned", 16, 1.0, 3.0).target(), None);
    }

    #[test]
    fn a_table_has_a_line_a_row() {
        let table = measured().table();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 2 + measured().rows.len());
        assert_eq!(lines[2], "| msm_g1_resident | 2^16 | 1.60 | 6.40 | 4.00 | 4.50 |");
        assert_eq!(lines[6], "| ntt_nr_device | 2^16 | 0.0391 | 0.0250 | 0.64 | 1.00 |");
        assert_eq!(lines[8], "| ntt_nn_pageable | 2^24 | 150 | 300 | 2.00 | – |");
    }

    #[test]
    fn json_has_a_line_a_row_and_is_read_back() {
        let json = measured().json().unwrap();
        let row = r#"    {"op":"msm_g1_resident","log_n":16,"ours_ms":1.6,"peer_ms":6.4,"ratio":4.0},"#;
        assert!(json.lines().any(|line| line == row), "{json}");
        assert_eq!(Ratios::from_json(&json).unwrap(), measured());
        assert_eq!(Ratios::from_json(&Ratios::default().json().unwrap()).unwrap(), Ratios::default());
        assert!(Ratios::from_json("{}").is_err());
    }

    #[test]
    fn a_chart_has_a_panel_an_operation_and_a_line_a_place() {
        let svg = measured().chart().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| node.text().unwrap_or_default().trim())
            .collect();
        for expected in
            ["msm_g1", "msm_g2", "ntt_nr", "ntt_nn", "resident", "pinned", "target", "2^16", "2^18"]
        {
            assert!(texts.contains(&expected), "{expected} is not among {texts:?}");
        }
        assert!(texts.iter().any(|text| text.contains("NVIDIA H200") && text.contains("2026-11-29")));
        assert!(document.descendants().any(|node| node.has_tag_name("polyline")));
    }

    #[test]
    fn nothing_measured_is_no_chart() {
        assert!(matches!(Ratios::default().chart(), Err(Error::Chart(_))));
    }
}
