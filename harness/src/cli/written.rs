//! Writes down the script of a run where `--script` asks for it.

use std::path::Path;
use std::sync::Arc;

use prestage_vram::{Ledger, Sink};

use super::output::Failure;
use crate::script::Scribe;
use crate::timeline::{Recorder, write_atomic};

/// Where a device sends its events: to the recorder, past a scribe if one is wanted.
pub(super) fn sink(recorder: &Arc<Recorder>, wanted: bool) -> (Arc<dyn Sink>, Option<Arc<Scribe>>) {
    if !wanted {
        return (recorder.clone(), None);
    }
    let scribe = Arc::new(Scribe::new(recorder.clone()));
    (scribe.clone(), Some(scribe))
}

/// Writes what the scribe has seen, if there is one and a place for it.
pub(super) fn write(
    path: Option<&Path>,
    scribe: Option<&Scribe>,
    name: &str,
    ledger: &Ledger,
) -> Result<(), Failure> {
    let (Some(path), Some(scribe)) = (path, scribe) else { return Ok(()) };
    let script = scribe.script(name, ledger);
    Ok(write_atomic(path, script.to_toml()?.as_bytes())?)
}
