//! `prestage plan`: what a proof would hold on a device, phase by phase, touching no device.

use std::path::PathBuf;

use prestage_groth16::format::{self, LoadOptions};
use prestage_groth16::{AnyKey, Libsnark, Reduction, Residency, Shape};
use prestage_msm::Msm;
use prestage_ntt::{Domain, Ntt};
use prestage_vram::{LedgerConfig, Margin};

use super::output::{Failure, Output};
use crate::scenario::{Outlook, Synthetic, Target, Wanted};
use crate::spec::DeviceSpec;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct Args {
    /// Shape of the circuit: porep-32g, porep-32g-uniform, square-2^K, or a TOML file with counts
    #[arg(long, value_name = "S", group = "what")]
    shape: Option<String>,
    /// A dense circuit that fills a domain of 2^K rows
    #[arg(long, value_name = "K", group = "what", value_parser = clap::value_parser!(u32).range(2..=32))]
    log_domain: Option<u32>,
    /// A proving key with its circuit inside (.zkey)
    #[arg(long, value_name = "F", group = "what")]
    key: Option<PathBuf>,
    /// Device: host or sim:PRESET (also sim:PATH.toml), with an optional cap such as sim:h200-141g@16GiB
    #[arg(long, default_value = "auto", value_name = "D")]
    device: DeviceSpec,
    /// Device memory kept free: an amount such as 512MiB, or a share such as 50permille [default: 512MiB, or the
    /// card's own]
    #[arg(long, value_name = "M", value_parser = super::device::margin)]
    margin: Option<Margin>,
    /// How the polynomials are staged: auto, full, a-then-bc, chunked, chunked:K or none
    #[arg(long, default_value = "auto", value_name = "P")]
    policy: Wanted,
    /// Points of the key that stay on the device: auto (where there is room), none or all
    #[arg(long, default_value = "auto", value_name = "R")]
    resident: Residency,
    /// Workers; with more than one, what the next proof may stage ahead is shown
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Answer as JSON on stdout
    #[arg(long)]
    pub(super) json: bool,
}

/// What is planned for.
struct Subject {
    name: String,
    shape: Shape,
    generator: u64,
}

/// Runs the verb.
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let subject = subject(args)?;
    let size = usize::try_from(subject.shape.domain)?;
    let domain = Domain::new(size, subject.generator)?;
    let target = Target::resolve(&args.device)?;
    let ledger = LedgerConfig {
        margin: args.margin.unwrap_or(target.margin()),
        ahead: args.workers > 1,
        ..LedgerConfig::default()
    };
    let outlook = match target {
        Target::Host(config) => outlook(args, &subject, &domain, &Target::open_host(&config, ledger)?),
        Target::Sim(card) => outlook(args, &subject, &domain, &Target::open_sim(card, 1, ledger)?),
        // A plan touches no device, and only a real card knows how much memory it has.
        #[cfg(feature = "cuda")]
        Target::Cuda(_) => Err(Failure::new(format!(
            "{}: a plan touches no card; describe it as host or sim:PRESET, or see the plan that prestage prove prints",
            args.device
        ))),
    }?;
    out.line(format_args!("{outlook}"));
    out.json(&outlook)
}

fn outlook<D: Ntt + Msm>(
    args: &Args,
    subject: &Subject,
    domain: &Domain,
    device: &D,
) -> Result<Outlook, Failure> {
    let name = args.device.to_string();
    let name = if name == "auto" { "host" } else { &name };
    let shape = (subject.name.as_str(), &subject.shape);
    Ok(Outlook::new(shape, domain, (name, device), (args.policy, args.resident), args.workers)?)
}

fn subject(args: &Args) -> Result<Subject, Failure> {
    if let Some(path) = &args.key {
        let key = format::load_proving_key(path, None, &LoadOptions::default())?.value;
        let (shape, generator) = match &key {
            AnyKey::Circom(key) => (Shape::of_key(key), prestage_groth16::Circom::GENERATOR),
            AnyKey::Libsnark(key) => (Shape::of_key(key), Libsnark::GENERATOR),
        };
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        return Ok(Subject { name, shape, generator });
    }
    let synthetic = match (&args.shape, args.log_domain.and_then(Synthetic::square)) {
        (Some(name), _) => Synthetic::named(name)?,
        (None, Some(square)) => square,
        (None, None) => return Err(Failure::new("one of --shape, --log-domain and --key is needed")),
    };
    let (name, shape) = (synthetic.name().to_owned(), synthetic.shape()?);
    Ok(Subject { name, shape, generator: Libsnark::GENERATOR })
}
