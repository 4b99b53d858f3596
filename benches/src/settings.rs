//! How a bench target was started, which sizes it runs, and where its files go.

use std::path::PathBuf;
use std::time::Duration;

use criterion::Criterion;

/// The variable that names sizes as exponents of two, separated by commas: `PRESTAGE_LOG_SIZES=16,18`.
pub const LOG_SIZES: &str = "PRESTAGE_LOG_SIZES";

/// What a bench target was started to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To measure.
    Measure,
    /// To run everything once: `--test`, or under `cargo test`.
    Test,
    /// To say what there is, or to show help, and run nothing.
    List,
}

impl Mode {
    /// Of this process.
    #[must_use]
    pub fn current() -> Self {
        Self::of(std::env::args())
    }

    fn of(args: impl IntoIterator<Item = String>) -> Self {
        let args: Vec<String> = args.into_iter().collect();
        let has = |names: &[&str]| args.iter().any(|a| names.contains(&a.as_str()));
        if has(&["--list", "--help", "-h", "--version"]) {
            Self::List
        } else if has(&["--test"]) || !has(&["--bench"]) {
            Self::Test
        } else {
            Self::Measure
        }
    }
}

/// The sizes to run: `quick` alone in a test run, else those that [`LOG_SIZES`] names, else `usual`.
#[must_use]
pub fn log_sizes(quick: u32, usual: &[u32]) -> Vec<u32> {
    choose(Mode::current(), std::env::var(LOG_SIZES).ok().as_deref(), quick, usual)
}

/// The largest size that can be asked for, as an exponent of two.
const MAX_LOG: u32 = 28;

fn choose(mode: Mode, asked: Option<&str>, quick: u32, usual: &[u32]) -> Vec<u32> {
    if mode == Mode::Test {
        return vec![quick];
    }
    let Some(asked) = asked else { return usual.to_vec() };
    let (good, bad): (Vec<_>, Vec<_>) = asked
        .split(',')
        .map(|s| s.trim().parse().map_err(|_| s).and_then(|n: u32| if n <= MAX_LOG { Ok(n) } else { Err(s) }))
        .partition(Result::is_ok);
    for s in bad.into_iter().filter_map(Result::err) {
        eprintln!("{LOG_SIZES}: {s:?} is no number from 0 to {MAX_LOG}, left out");
    }
    good.into_iter().filter_map(Result::ok).collect()
}

/// Where criterion writes, and the timelines with it: `$CRITERION_HOME`, else `criterion` in cargo's target folder.
#[must_use]
pub fn output_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("CRITERION_HOME") {
        return folder.into();
    }
    // Cargo tags its target folder, wherever that was put.
    let executable = std::env::current_exe().unwrap_or_default();
    let target = executable.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(|| "target".into(), PathBuf::from).join("criterion")
}

/// Criterion with the settings of all targets, which arguments override.
#[must_use]
pub fn criterion() -> Criterion {
    criterion_defaults().configure_from_args()
}

/// The settings of all targets. No plots: criterion draws them with whatever is called gnuplot on the machine, also
/// when its own features for plots are off, and panics at what that says.
#[must_use]
pub fn criterion_defaults() -> Criterion {
    Criterion::default()
        .without_plots()
        .output_directory(&output_folder())
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_told_from_arguments() {
        let of = |args: &str| Mode::of(args.split(' ').map(str::to_owned));
        assert_eq!(of("ntt --bench"), Mode::Measure);
        assert_eq!(of("ntt squares --bench"), Mode::Measure);
        assert_eq!(of("ntt --test --bench"), Mode::Test);
        assert_eq!(of("ntt"), Mode::Test);
        assert_eq!(of("ntt --list --bench"), Mode::List);
    }

    #[test]
    fn sizes_are_chosen() {
        let usual = [10, 14];
        assert_eq!(choose(Mode::Test, Some("20"), 8, &usual), [8]);
        assert_eq!(choose(Mode::Measure, None, 8, &usual), usual);
        assert_eq!(choose(Mode::Measure, Some("16, 18"), 8, &usual), [16, 18]);
        assert_eq!(choose(Mode::Measure, Some("16,x,99,-1,"), 8, &usual), [16]);
    }
}
