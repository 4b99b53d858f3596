//! What goes to stdout and stderr, and how a verb ends.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// A failure: one line for stderr. Its sources are joined by colons.
#[derive(Debug)]
pub(super) struct Failure {
    words: String,
    /// What `--json` says beside `error`.
    fields: Vec<(&'static str, bool)>,
}

impl Failure {
    /// A failure in these words.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), fields: Vec::new() }
    }

    /// `what: error`, where `what` mostly names a file.
    pub(crate) fn at(what: impl fmt::Display, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(format!("{what}: {}", chain(error)))
    }

    /// A field of the JSON answer, beside `error`.
    pub(crate) fn field(mut self, name: &'static str, value: bool) -> Self {
        self.fields.push((name, value));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever the parts were.
        for (i, part) in self.words.split(['\n', '\r']).map(str::trim).filter(|p| !p.is_empty()).enumerate() {
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
        Self::new(chain(&error))
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
    /// Whether the answer has been given.
    answered: bool,
    /// Why stdout takes no more.
    broken: Option<io::Error>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, answered: false, broken: None }
    }

    /// One line for people; nothing with `--json`.
    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) {
        if !self.json {
            self.put(&format!("{text}"));
        }
    }

    /// The whole answer as JSON; nothing without `--json`.
    pub(crate) fn json(&mut self, answer: &impl Serialize) -> Result<(), Failure> {
        if self.json {
            self.put(&serde_json::to_string_pretty(answer)?);
            self.answered = true;
        }
        Ok(())
    }

    /// With `--json`, says on stdout as well why there is no answer. An answer that was given stands alone.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        if self.answered {
            return;
        }
        let mut answer: serde_json::Map<_, _> =
            failure.fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        answer.insert("error".into(), failure.to_string().into());
        let _ = self.json(&answer);
    }

    /// The end of the answer: whether all of it was taken. A reader that has gone away is no failure.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        match &self.broken {
            Some(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::at("stdout", e)),
            _ => Ok(()),
        }
    }

    fn put(&mut self, text: &str) {
        if self.broken.is_none() {
            let mut stdout = io::stdout().lock();
            self.broken = writeln!(stdout, "{text}").and_then(|()| stdout.flush()).err();
        }
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

impl Progress {
    /// Says how far it has come.
    #[cfg(feature = "cuda")]
    pub(crate) fn say(&self, what: String) {
        if let Some(bar) = &self.0 {
            bar.set_message(what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
