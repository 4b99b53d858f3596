//! What `run` proves: a shape made real, or files.

use prestage_groth16::format::{self, FormatError, LoadOptions};
use prestage_groth16::{AnyKey, Opened, Policy, R1cs, Witness};
use prestage_msm::Threads;
use prestage_ntt::MAX_CHUNKS;
#[cfg(feature = "cuda")]
use prestage_vram::LedgerConfig;
use prestage_vram::{Bytes, Card, Margin};

use super::{Args, Split};
use crate::cli::output::{Failure, Output};
use crate::host_memory;
use crate::scenario::{HostTime, Made, Synthetic, Target, Took, Wanted, marked};

/// Rows of the circuit that stands for a larger one on a simulated card, as a power of two.
const SMALL: u32 = 10;
/// What is proved.
pub(super) struct Work {
    pub(super) key: AnyKey,
    pub(super) r1cs: Option<R1cs>,
    pub(super) witness: Witness,
    pub(super) load: Load,
}

/// What it is called, and how it is charged.
pub(super) struct Load {
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) scale: u64,
    pub(super) host: HostTime,
    /// What proofs must come to: of a shape.
    pub(super) opened: Option<Opened>,
    /// How long it took to make: of a shape on a real device.
    pub(super) took: Option<Took>,
}

/// Makes or loads the circuit and its key.
pub(super) fn work(args: &Args, target: &Target, out: &Output) -> Result<Work, Failure> {
    let _progress = out.progress("circuit and key");
    let Some(name) = &args.shape else { return from_files(args) };
    let synthetic = Synthetic::named(name)?;
    let name = &synthetic.load();
    let full = synthetic.log_domain()?;
    let log = match (args.log_domain, target) {
        (Some(log), _) => log.min(full),
        (None, Target::Sim(card)) => small(args, card, &synthetic)?.min(full),
        (None, _) => full,
    };
    let simulated = matches!(target, Target::Sim(_));
    if !simulated {
        fits(args, &synthetic, log)?;
    }
    let Made { circuit, key, opened, took } = make(args, &synthetic, log, target)?;
    let scale = 1 << (full - log);
    // What is charged is the load: the full size, unless another scale or no scale is asked for.
    let (name, rows) = match (simulated, args.scale) {
        (true, Some(other)) if other != scale => {
            (format!("{name} at 2^{log}, {other} times"), circuit.r1cs.n_rows().saturating_mul(other))
        }
        (true, _) => (name.clone(), synthetic.counts().rows),
        (false, _) if log == full => (name.clone(), circuit.r1cs.n_rows()),
        (false, _) => (format!("{name} at 2^{log}"), circuit.r1cs.n_rows()),
    };
    let load = Load {
        name,
        rows,
        scale,
        host: synthetic.host(),
        opened: Some(opened),
        took: (!simulated).then_some(took),
    };
    Ok(Work { key: AnyKey::Libsnark(key), r1cs: Some(circuit.r1cs), witness: circuit.witness, load })
}

/// Whether the host's memory holds a load of 2^`log` rows, before anything of it is made.
fn fits(args: &Args, synthetic: &Synthetic, log: u32) -> Result<(), Failure> {
    let devices = u32::try_from(args.device.specs().len()).unwrap_or(u32::MAX);
    let at_once = match args.split {
        Split::Partitions => args.workers.saturating_mul(devices).min(args.partitions),
        Split::Sums => 1,
    };
    let need = synthetic.host_bytes(log, at_once)?;
    match host_memory::available() {
        Some(free) if need.total() > free => Err(Failure::new(format!(
            "{} on 2^{log} rows needs {need} in host memory, and {free} are available: shrink it with --log-domain, or take fewer workers",
            synthetic.name()
        ))),
        _ => Ok(()),
    }
}

/// Makes the load, the points of its key on the card where there is one: with all of it, since a cap is for proofs.
fn make(args: &Args, synthetic: &Synthetic, log: u32, target: &Target) -> Result<Made, Failure> {
    #[cfg(feature = "cuda")]
    if let Target::Cuda(config) = target {
        let failed = |e: prestage_vram::Error| Failure::at(&args.device, &e);
        let config = prestage_vram::cuda::CudaConfig { cap: None, ..config.clone() };
        let card = Target::open_cuda(&config, LedgerConfig::default()).map_err(failed)?;
        let mut worker = prestage_vram::Worker::new(0);
        let turn = prestage_vram::Device::turn(&card, &mut worker).map_err(failed)?;
        let made = synthetic.make(log, &turn)?;
        turn.release().map_err(failed)?;
        return Ok(made);
    }
    let _ = (args, target);
    Ok(synthetic.make(log, &Threads)?)
}

/// The rows that stand for the full size: more where a polynomial may have to go through the card in many pieces, of which a
/// domain takes no more than the root of its size.
fn small(args: &Args, card: &Card, synthetic: &Synthetic) -> Result<u32, Failure> {
    let margin = args.margin.unwrap_or(Margin::Fixed(card.margin)).bytes(card.capacity);
    let budget = card.capacity.saturating_sub(card.context).saturating_sub(margin);
    let chunked = match args.policy {
        Wanted::Policy(Policy::Auto) => budget < synthetic.shape()?.polynomial() * 2 + Bytes::mib(32),
        Wanted::Policy(policy) => matches!(policy, Policy::Chunked(_)),
        Wanted::Chunked => true,
    };
    Ok(if chunked { 2 * MAX_CHUNKS.ilog2() } else { SMALL })
}

fn from_files(args: &Args) -> Result<Work, Failure> {
    let (Some(key), Some(witness)) = (&args.key, &args.witness) else {
        return Err(Failure::new("one of --shape and --key with --witness is needed"));
    };
    let r1cs = args.r1cs.as_deref().map(format::load_r1cs).transpose()?;
    let witness = format::load_witness(witness)?;
    let name = key.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let path = key.display();
    let key = format::load_proving_key(key, r1cs.as_ref(), &LoadOptions::default())
        .map_err(|e| match e {
            FormatError::NeedsR1cs { .. } => Failure::new(format!("{e}; give it with --r1cs")),
            e => e.into(),
        })?
        .value;
    let constraints = match (&key, &r1cs) {
        (_, Some(r1cs)) => r1cs.n_constraints(),
        (AnyKey::Circom(key), None) => key.n_constraints(),
        (AnyKey::Libsnark(_), None) => {
            return Err(Failure::new(format!(
                "{path}: this kind of key has no constraints in it: give the circuit with --r1cs"
            )));
        }
    };
    let rows = (constraints as u64).saturating_mul(args.scale.unwrap_or(1));
    // Keys are called circuit.zkey all over: reports tell circuits apart all the same.
    let name = marked(&name, &format!("{:?}", key.vk()));
    let name = match args.scale {
        Some(scale) if scale > 1 => format!("{name}, {scale} times"),
        _ => name,
    };
    let load = Load { name, rows, scale: 1, host: HostTime::default(), opened: None, took: None };
    Ok(Work { key, r1cs, witness, load })
}
