//! What goes to stdout and stderr, and how a verb ends.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// A failure: one line for stderr. Its sources are joined by colons.
#[derive(Debug)]
pub(super) struct Failure(String);

impl Failure {
    /// A failure in these words.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// `what: error`, where `what` mostly names a file.
    pub(crate) fn at(what: impl fmt::Display, error: &(dyn std::error::Error + 'static)) -> Self {
        Self(format!("{what}: {}", chain(error)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever the parts were.
        for (i, part) in self.0.split(['\n', '\r']).map(str::trim).filter(|p| !p.is_empty()).enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(chain(&error))
    }
}

/// The error and what caused it; a cause that the message already quotes is not said twice.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        source = cause.source();
    }
    words
}

/// Writes the answer: lines for people, or one JSON value. Progress goes to stderr, on a terminal only.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// One line for people; nothing with `--json`.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) {
        if !self.json {
            put(&format!("{text}"));
        }
    }

    /// The whole answer as JSON; nothing without `--json`.
    pub(crate) fn json(&mut self, answer: &impl Serialize) -> Result<(), Failure> {
        if self.json {
            put(&serde_json::to_string_pretty(answer)?);
        }
        Ok(())
    }

    /// With `--json`, says on stdout as well why there is no answer.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        let _ = self.json(&serde_json::json!({ "error": failure.to_string() }));
    }

    /// A remark on stderr that does not change the outcome.
    pub(crate) fn note(&self, text: fmt::Arguments<'_>) {
        let _ = writeln!(io::stderr(), "prestage: note: {text}");
    }

    /// Shows that something long goes on until the value is dropped; nothing in a pipe.
    pub(crate) fn progress(&self, what: &'static str) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(Some(bar))
    }
}

/// A running spinner.
#[derive(Debug)]
pub(crate) struct Progress(Option<ProgressBar>);

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Writes a line to stdout. A reader that has gone away is no failure.
fn put(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}
