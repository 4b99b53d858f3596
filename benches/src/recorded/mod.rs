//! One run of each target on a recorded device, verified, and its timeline as a picture beside criterion's output.

mod msm;
mod ntt;
mod prove;
mod transfer;

use std::path::PathBuf;
use std::sync::Arc;

use prestage_harness::session::{COMMIT, recorded};
use prestage_harness::timeline::{Key, Load, Recorder, Report, Timeline, Verified, svg, write_atomic};
use prestage_vram::{Host, HostConfig, Margin};

use crate::{Error, Mode, output_folder};

pub use msm::msm;
pub use ntt::ntt;
pub use prove::prove;
pub use transfer::transfer;

/// A device whose events are recorded.
#[derive(Debug)]
pub struct Recorded<D> {
    /// The device.
    pub device: D,
    /// Its name in reports.
    pub name: String,
    /// Where its events go.
    pub recorder: Arc<Recorder>,
}

impl Recorded<Host> {
    /// The CPU.
    ///
    /// # Errors
    /// None in practice: the default margin fits the default capacity.
    pub fn host() -> Result<Self, Error> {
        let (ledger, recorder) = recorded(Margin::default());
        let device = Host::open(HostConfig { ledger, ..HostConfig::default() })?;
        Ok(Self { device, name: "host".into(), recorder })
    }
}

impl<D> Recorded<D> {
    /// What was recorded since the last call, under the knowledge that its results are right.
    fn outcome(&self, scenario: &str, load: String, size: u64, verified: Verified) -> Outcome {
        let timeline = self.recorder.take();
        let load = Load { circuit: load, constraints: size, partitions: 1 };
        let key =
            Key { scenario: scenario.into(), device: self.name.clone(), load, commit: COMMIT.to_owned() };
        Outcome { report: Report::new(key, verified, &timeline), timeline }
    }
}

/// A run whose results were verified.
#[derive(Debug)]
pub struct Outcome {
    /// What it came to.
    pub report: Report,
    /// What happened.
    pub timeline: Timeline,
}

impl Outcome {
    /// Writes `GROUP/timeline.svg` into criterion's folder.
    ///
    /// # Errors
    /// [`Error::Harness`] when it cannot be drawn or written.
    pub fn save(&self, group: &str) -> Result<PathBuf, Error> {
        let folder = output_folder().join(group);
        std::fs::create_dir_all(&folder)
            .map_err(|source| prestage_harness::Error::Write { path: folder.clone(), source })?;
        let path = folder.join("timeline.svg");
        write_atomic(&path, svg(&self.report, &self.timeline)?.as_bytes())?;
        Ok(path)
    }
}

/// The end of a bench target: runs `run` on the recorded CPU, writes its timeline and says where. Does nothing when
/// the target was only asked what it has.
///
/// # Errors
/// What the run says.
pub fn record(
    group: &str,
    run: impl FnOnce(&Recorded<Host>) -> Result<Outcome, Error>,
) -> Result<Option<PathBuf>, Error> {
    if Mode::current() == Mode::List {
        return Ok(None);
    }
    let outcome = run(&Recorded::host()?)?;
    let path = outcome.save(group)?;
    let times = &outcome.report.times;
    println!(
        "{group}: one recorded run, busy {:.1} ms of {:.1} ms, {}",
        times.busy().as_ms(),
        times.wall().as_ms(),
        path.display()
    );
    Ok(Some(path))
}
