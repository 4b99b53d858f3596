//! `prestage kernels`: the compiled kernels of NVIDIA cards on disk.

use clap::Subcommand;

use super::output::{Failure, Output};

#[cfg(feature = "cuda")]
use prestage_kernels::Arch;
/// Not looked at.
#[cfg(not(feature = "cuda"))]
type Arch = String;

/// Arguments of `kernels`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to do with them.
    #[command(subcommand)]
    action: Action,
    /// Answer as JSON on stdout
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "read where kernels are compiled"))]
enum Action {
    /// Compile what the cache lacks, so that a card needs no NVRTC; needs NVRTC and no card
    Build {
        /// Architectures, such as sm_80,sm_90, or all
        #[arg(long, default_value = "all", value_name = "A", value_parser = archs)]
        arch: Archs,
    },
    /// Show what is in the cache: current, stale (of another version of prestage) or corrupt
    List,
    /// Remove it; files of other kinds stay
    Clear {
        /// Architectures, such as sm_80,sm_90, or all
        #[arg(long, default_value = "all", value_name = "A", value_parser = archs)]
        arch: Archs,
    },
}

#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "read where kernels are compiled"))]
enum Archs {
    All,
    These(Vec<Arch>),
}

/// `all`, or a list.
fn archs(text: &str) -> Result<Archs, String> {
    if text == "all" {
        return Ok(Archs::All);
    }
    let mut archs = text
        .split(',')
        .map(|one| {
            one.trim().parse::<Arch>().map_err(|e| format!("{e}; write one or more with commas, or all"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    archs.sort_unstable();
    archs.dedup();
    Ok(Archs::These(archs))
}

/// Runs the verb.
#[cfg(feature = "cuda")]
pub(super) fn run(args: &Args, out: &mut Output) -> Result<(), Failure> {
    let cache = prestage_kernels::Cache::from_env()?;
    match &args.action {
        Action::Build { arch } => on_disk::build(&cache, arch, out),
        Action::List => on_disk::list(&cache, out),
        Action::Clear { arch } => on_disk::clear(&cache, arch, out),
    }
}

/// A build without the feature `cuda` has no kernels.
#[cfg(not(feature = "cuda"))]
pub(super) fn run(_: &Args, _: &mut Output) -> Result<(), Failure> {
    Err(Failure::new(
        "built without the feature cuda: there are no kernels to compile; build with --features cuda",
    ))
}

#[cfg(feature = "cuda")]
mod on_disk {
    use prestage_kernels::{Arch, Cache, Family, State};
    use prestage_vram::Bytes;
    use serde::Serialize;

    use super::{Archs, Failure, Output};

    #[derive(Serialize)]
    struct Built {
        folder: String,
        /// How many had to be compiled.
        compiled: usize,
        modules: Vec<Module>,
    }

    #[derive(Serialize)]
    struct Module {
        family: &'static str,
        target: String,
        /// Of the module, without what the cache adds.
        bytes: usize,
        compiled: bool,
    }

    pub(super) fn build(cache: &Cache, archs: &Archs, out: &mut Output) -> Result<(), Failure> {
        let archs = match archs {
            Archs::All => Arch::ALL,
            Archs::These(archs) => archs,
        };
        let built = {
            let progress = out.progress("kernels");
            let (mut done, all) = (0, archs.len() * Family::ALL.len());
            prestage_kernels::build(cache, archs, |_| {
                done += 1;
                progress.say(format!("kernels: {done} of {all}"));
            })?
        };
        let modules = built.iter().map(|m| Module {
            family: m.family.name(),
            target: m.target.to_string(),
            bytes: m.bytes,
            compiled: m.compiled,
        });
        let answer = Built {
            folder: cache.dir().display().to_string(),
            compiled: built.iter().filter(|m| m.compiled).count(),
            modules: modules.collect(),
        };
        for Module { family, target, bytes, compiled } in &answer.modules {
            let how = if *compiled { "compiled" } else { "was there" };
            out.line(format_args!("{family:<10} {target:<12} {:>12}  {how}", size(*bytes as u64)));
        }
        out.line(format_args!(
            "{} modules in {}, {} of them compiled now",
            answer.modules.len(),
            answer.folder,
            answer.compiled
        ));
        out.json(&answer)
    }

    #[derive(Serialize)]
    struct Listed {
        folder: String,
        modules: Vec<Entry>,
    }

    #[derive(Serialize)]
    struct Entry {
        family: String,
        target: String,
        compiler: String,
        /// Of the file.
        bytes: u64,
        state: &'static str,
        path: String,
    }

    pub(super) fn list(cache: &Cache, out: &mut Output) -> Result<(), Failure> {
        let modules = cache.list()?.into_iter().map(|entry| Entry {
            family: entry.family,
            target: entry.target.to_string(),
            compiler: entry.compiler.to_string(),
            bytes: entry.bytes,
            state: match entry.state {
                State::Current => "current",
                State::Stale => "stale",
                State::Corrupt => "corrupt",
            },
            path: entry.path.display().to_string(),
        });
        let answer = Listed { folder: cache.dir().display().to_string(), modules: modules.collect() };
        for Entry { family, target, compiler, bytes, state, .. } in &answer.modules {
            let compiler = format!("CUDA {compiler}");
            out.line(format_args!("{family:<10} {target:<12} {compiler:<10} {:>12}  {state}", size(*bytes)));
        }
        let current = answer.modules.iter().filter(|m| m.state == "current").count();
        out.line(format_args!(
            "{} modules in {}, {current} of them current",
            answer.modules.len(),
            answer.folder
        ));
        out.json(&answer)
    }

    #[derive(Serialize)]
    struct Cleared {
        folder: String,
        /// How many files.
        removed: usize,
    }

    pub(super) fn clear(cache: &Cache, archs: &Archs, out: &mut Output) -> Result<(), Failure> {
        let removed = match archs {
            Archs::All => cache.clear(None)?,
            Archs::These(archs) => {
                archs.iter().map(|&arch| cache.clear(Some(arch))).sum::<Result<usize, _>>()?
            }
        };
        let answer = Cleared { folder: cache.dir().display().to_string(), removed };
        out.line(format_args!("{} files removed from {}", answer.removed, answer.folder));
        out.json(&answer)
    }

    fn size(bytes: u64) -> String {
        Bytes::new(bytes).to_string()
    }
}
