//! Tells the crate which commit it was built from; outside a repository, which version it is.

use std::path::Path;
use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn main() {
    let version = || format!("v{}", std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(version);
    println!("cargo:rustc-env=PRESTAGE_COMMIT={commit}");
    // The log of HEAD grows with every commit and checkout; git knows where it is, also in a second worktree.
    println!("cargo:rerun-if-changed=build.rs");
    for log in ["logs/HEAD", "HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", log]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}
