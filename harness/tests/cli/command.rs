//! Runs the binary in a folder of its own and looks at how it ended.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A file among the fixtures, which the crate `groth16` keeps.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../groth16/tests/fixtures").join(name)
}

/// A folder for a test's files, with a cache of its own.
pub(crate) struct Work(TempDir);

impl Work {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command, to be run in the folder. Nothing of the tester's environment changes what it does.
    pub(crate) fn command(&self, args: &[&OsStr]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prestage"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("PRESTAGE_CACHE_DIR", self.path("cache"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&OsStr]) -> Ran {
        let line = args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Ran::new(line, self.command(args).output().unwrap())
    }
}

/// `run!(work, "prove", "--key", path, …)`: arguments of any kind that names something.
macro_rules! run {
    ($work:expr, $($arg:expr),+ $(,)?) => {
        $work.run(&[$(AsRef::<std::ffi::OsStr>::as_ref(&$arg)),+])
    };
}
pub(crate) use run;

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    #[allow(dead_code, reason = "read by Debug")]
    pub(crate) line: String,
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn new(line: String, output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { line, status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Status 0, and nothing on stderr but notes. Returns stdout.
    #[track_caller]
    pub(crate) fn done(&self) -> &str {
        assert_eq!(self.status, Some(0), "{self:#?}");
        assert!(self.stderr.lines().all(|l| l.starts_with("prestage: note: ")), "{self:#?}");
        &self.stdout
    }

    /// Done with `--json`: the one value on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.done()).unwrap_or_else(|e| panic!("{e}: {self:#?}"))
    }

    /// Status 1 and one line on stderr, which is returned without the program's name. Nothing on stdout.
    #[track_caller]
    pub(crate) fn refused(&self) -> &str {
        assert_eq!(self.stdout, "", "{self:#?}");
        self.line_and_status(1)
    }

    /// Status 2, one line.
    #[track_caller]
    pub(crate) fn misused(&self) -> &str {
        assert_eq!(self.stdout, "", "{self:#?}");
        self.line_and_status(2)
    }

    #[track_caller]
    pub(crate) fn line_and_status(&self, status: i32) -> &str {
        assert_eq!(self.status, Some(status), "{self:#?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let [line] = lines.as_slice() else { panic!("not one line on stderr: {self:#?}") };
        assert!(!line.contains("panicked"), "{self:#?}");
        line.strip_prefix("prestage: ").unwrap_or_else(|| panic!("{self:#?}"))
    }
}

/// The keys of a JSON object, sorted.
#[track_caller]
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Checks `busy_ns` + every cause of `idle_ns` = `wall_ns`.
#[track_caller]
pub(crate) fn adds_up(answer: &Value) {
    let causes = answer["idle_ns"].as_object().unwrap();
    let idle: u64 = causes.values().map(|v| v.as_u64().unwrap()).sum();
    let (busy, wall) = (answer["busy_ns"].as_u64().unwrap(), answer["wall_ns"].as_u64().unwrap());
    assert_eq!(busy + idle, wall, "{answer:#}");
    assert!(busy > 0 && causes.len() == 7, "{answer:#}");
}
