//! Tells the crate which commit it was built from; outside a repository, which version it is.

use std::path::Path;
use std::process::Command;

fn main() {
    let version = || format!("v{}", std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|o| o.status.success())
        .and_then(|o| String::from_utf8(o.stdout).ok())
        .map_or_else(version, |s| s.trim().to_owned());
    println!("cargo:rustc-env=PRESTAGE_COMMIT={commit}");
    // The log of HEAD grows with every commit and checkout.
    println!("cargo:rerun-if-changed=build.rs");
    for log in ["../.git/logs/HEAD", "../.git/HEAD"] {
        if Path::new(log).exists() {
            println!("cargo:rerun-if-changed={log}");
        }
    }
}
