//! What `side_by_side` has measured, as JSON and as tables.

use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use crate::Kind;
use crate::measure::{Cost, median};

/// Everything that one call measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The commit that was built.
    pub commit: &'static str,
    /// Seconds since 1970 at the start.
    pub unix_time_s: u64,
    /// Model of the processor.
    pub cpu: String,
    /// Processors that every prover could use.
    pub threads: usize,
    /// Of the last minute, at the start.
    pub load_average: String,
    /// One per statement.
    pub runs: Vec<Run>,
}

/// All provers on one statement.
#[derive(Debug, Serialize)]
pub struct Run {
    /// Name of the statement.
    pub circuit: &'static str,
    /// Rows, as an exponent of two.
    pub log_size: u32,
    /// Constraints.
    pub constraints: usize,
    /// How often each prover proved, without the round to warm up.
    pub rounds: usize,
    /// Every proof of every prover was verified, and provers under one key gave equal proofs.
    pub verified: bool,
    /// Of the last minute, at the first round.
    pub load_average: String,
    /// One per prover.
    pub provers: Vec<Row>,
}

/// One prover on one statement.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Name of the prover.
    pub prover: &'static str,
    /// Which prover the ratios of times are against: prestage under the same key.
    pub against: &'static str,
    /// Median of the rounds.
    pub wall_s: f64,
    /// Median of the rounds.
    pub cpu_s: f64,
    /// Median of the ratios of single rounds, this prover's time over the other's.
    pub wall_ratio: f64,
    /// The same of processor time.
    pub cpu_ratio: f64,
    /// In a process of its own.
    pub alone: Option<Alone>,
    /// Peak less mapped key over that of the leanest prover under the same key.
    pub memory_ratio: Option<f64>,
    /// Each round.
    pub samples: Vec<Cost>,
}

/// A process that loads a key from its file, makes the statement, and proves once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// The proof, the first of its process.
    pub proof: Cost,
    /// Resident memory when ready to prove, KiB.
    pub ready_kib: u64,
    /// Resident memory at most, from then to the end of the proof, KiB.
    pub peak_kib: u64,
    /// What of that is the key's file, mapped, KiB: taken after the proof.
    pub key_kib: u64,
}

impl Alone {
    /// Resident memory at most, without the mapped key.
    #[must_use]
    pub const fn peak_less_key_kib(&self) -> u64 {
        self.peak_kib.saturating_sub(self.key_kib)
    }
}

/// The prover that times are divided by: prestage under a key of the same reduction.
#[must_use]
pub const fn against(kind: Kind) -> Kind {
    if kind.is_circom() { Kind::OursCircom } else { Kind::Ours }
}

/// Joins what each prover took, round by round and alone. A prover whose [`against`] is not among them has ratios to the
/// first one's.
#[must_use]
pub fn rows(measured: &[(Kind, Vec<Cost>, Option<Alone>)]) -> Vec<Row> {
    let row = |(kind, own, alone): &(Kind, Vec<Cost>, Option<Alone>)| {
        let base = against(*kind);
        let base = measured.iter().find(|(kind, ..)| *kind == base).or(measured.first());
        let other = base.map_or(own, |(_, samples, _)| samples);
        let of = |f: fn(&Cost) -> f64| median(own.iter().map(f));
        let ratio = |f: fn(&Cost) -> f64| median(own.iter().zip(other).map(|(a, b)| f(a) / f(b)));
        let memory = |alone: &Alone| alone.peak_less_key_kib() as f64;
        let same_key = measured.iter().filter(|(other, ..)| against(*other) == against(*kind));
        let leanest = same_key.filter_map(|(_, _, alone)| alone.as_ref().map(memory)).reduce(f64::min);
        Row {
            prover: kind.name(),
            against: against(*kind).name(),
            wall_s: of(|c| c.wall_s),
            cpu_s: of(|c| c.cpu_s),
            wall_ratio: ratio(|c| c.wall_s),
            cpu_ratio: ratio(|c| c.cpu_s),
            alone: *alone,
            memory_ratio: alone.as_ref().zip(leanest).map(|(alone, leanest)| memory(alone) / leanest),
            samples: own.clone(),
        }
    };
    measured.iter().map(row).collect()
}

impl fmt::Display for Run {
    /// A line about the run, the table of times and, where they were measured, that of single processes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { circuit, log_size, constraints, rounds, load_average, provers, .. } = self;
        writeln!(
            f,
            "{circuit}, 2^{log_size} rows, {constraints} constraints, {rounds} rounds, load {load_average}\n"
        )?;
        f.write_str("| prover | wall s | CPU s | wall ratio | CPU ratio |\n|---|---|---|---|---|\n")?;
        for row in provers {
            let Row { prover, wall_s, cpu_s, wall_ratio, cpu_ratio, .. } = row;
            writeln!(f, "| {prover} | {wall_s:.3} | {cpu_s:.3} | {wall_ratio:.2} | {cpu_ratio:.2} |")?;
        }
        let mut alone = String::new();
        for row in provers {
            if let (Some(process), Some(ratio)) = (row.alone, row.memory_ratio) {
                writeln!(alone, "| {} | {} | {ratio:.2} |", row.prover, cells(&process))?;
            }
        }
        if alone.is_empty() {
            return Ok(());
        }
        f.write_str(
            "\n| alone | wall s | CPU s | ready MiB | peak MiB | mapped key MiB | peak less key MiB |",
        )?;
        f.write_str(" × leanest |\n|---|---|---|---|---|---|---|---|\n")?;
        f.write_str(&alone)
    }
}

fn cells(alone: &Alone) -> String {
    let mib = |kib: u64| format!("{:.1}", kib as f64 / 1024.0);
    let memory = [alone.ready_kib, alone.peak_kib, alone.key_kib, alone.peak_less_key_kib()].map(mib);
    format!("{:.3} | {:.3} | {}", alone.proof.wall_s, alone.proof.cpu_s, memory.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(kind: Kind, seconds: [f64; 3], memory: [u64; 3]) -> (Kind, Vec<Cost>, Option<Alone>) {
        let cost = |wall_s| Cost { wall_s, cpu_s: 2.0 * wall_s };
        let [ready_kib, peak_kib, key_kib] = memory;
        let alone = Alone { proof: cost(seconds[0]), ready_kib, peak_kib, key_kib };
        (kind, seconds.map(cost).to_vec(), Some(alone))
    }

    fn run(provers: Vec<Row>) -> Run {
        let load_average = "0.5".to_owned();
        Run {
            circuit: "bits",
            log_size: 5,
            constraints: 30,
            rounds: 3,
            verified: true,
            load_average,
            provers,
        }
    }

    #[test]
    fn memory_is_without_the_mapped_key_and_against_the_leanest_under_the_same_key() {
        let rows = rows(&[
            measured(Kind::Ours, [1.0, 2.0, 4.0], [2048, 3072, 0]),
            measured(Kind::BellpersonMapped, [2.0, 2.0, 12.0], [2048, 4096, 2048]),
            measured(Kind::OursCircom, [1.0, 1.0, 1.0], [1024, 1024, 0]),
        ]);
        assert_eq!(
            rows.iter().map(|r| r.memory_ratio).collect::<Vec<_>>(),
            [Some(1.5), Some(1.0), Some(1.0)]
        );
        assert_eq!((rows[1].against, rows[2].against), ("prestage", "prestage-circom"));
        // Ratios of rounds are 2, 1 and 3.
        assert_eq!((rows[1].wall_s, rows[1].wall_ratio, rows[1].cpu_ratio), (2.0, 2.0, 2.0));

        let text = run(rows).to_string();
        assert!(
            text.starts_with("bits, 2^5 rows, 30 constraints, 3 rounds, load 0.5\n\n| prover |"),
            "{text}"
        );
        assert!(text.contains("| bellperson-mapped | 2.000 | 4.000 | 2.00 | 2.00 |\n"), "{text}");
        assert!(
            text.contains("| bellperson-mapped | 2.000 | 4.000 | 2.0 | 4.0 | 2.0 | 2.0 | 1.00 |\n"),
            "{text}"
        );
        assert!(text.contains("| prestage | 1.000 | 2.000 | 2.0 | 3.0 | 0.0 | 3.0 | 1.50 |\n"), "{text}");
    }

    #[test]
    fn without_processes_of_their_own_there_is_no_table_of_them() {
        let (kind, samples, _) = measured(Kind::Ours, [1.0; 3], [0; 3]);
        let rows = rows(&[(kind, samples, None)]);
        assert_eq!((rows[0].memory_ratio, rows[0].wall_ratio), (None, 1.0));
        assert!(!run(rows).to_string().contains("alone"));
    }
}
