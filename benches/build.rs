//! Compiles the wrapper over sppark with nvcc: for the feature `peers-cuda` alone.
//!
//! `NVCC` names the compiler, `nvcc` in `PATH` otherwise; `NVCC=off` leaves it out, for who checks the Rust part and links
//! nothing. `PRESTAGE_PEERS_ARCH` lists compute capabilities, as in `90` or `80,120`.

#[cfg(not(feature = "peers-cuda"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}

#[cfg(feature = "peers-cuda")]
fn main() {
    peers::main();
}

#[cfg(feature = "peers-cuda")]
mod peers {
    use std::env::var;
    use std::path::Path;
    use std::process::Command;

    const ARCHITECTURES: &str = "80,90,100,120";

    pub(super) fn main() {
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-changed=cuda");
        println!("cargo:rerun-if-env-changed=NVCC");
        println!("cargo:rerun-if-env-changed=PRESTAGE_PEERS_ARCH");
        let nvcc = var("NVCC").unwrap_or_else(|_| "nvcc".into());
        if nvcc == "off" {
            return;
        }
        if !Command::new(&nvcc).arg("--version").output().is_ok_and(|said| said.status.success()) {
            eprintln!(
                "peers-cuda needs nvcc of CUDA 12 or newer, and {nvcc:?} does not run: put it in PATH or name it in NVCC"
            );
            eprintln!("hint: NVCC=off is enough for `cargo check` and `cargo clippy`");
            std::process::exit(1);
        }
        compile();
        // The runtime lies beside the compiler in a CUDA installation that came as Python packages.
        let beside = Path::new(&nvcc).parent().map(|bin| bin.join("../lib"));
        if let Some(folder) = beside.filter(|folder| folder.join("libcudart_static.a").is_file()) {
            println!("cargo:rustc-link-search=native={}", folder.display());
        }
    }

    fn compile() {
        let mut build = cc::Build::new();
        build.cuda(true).opt_level(3).debug(false).warnings(false);
        for name in ["DEP_SPPARK_ROOT", "DEP_BLST_C_SRC"] {
            build.include(var(name).unwrap_or_default());
        }
        build.define("FEATURE_BLS12_381", None).define("TAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE", None);
        if blst_uses_adx() {
            build.define("__ADX__", None);
        }
        for arch in var("PRESTAGE_PEERS_ARCH").as_deref().unwrap_or(ARCHITECTURES).split(',') {
            build.flag("-gencode").flag(format!("arch=compute_{arch},code=sm_{arch}"));
        }
        build.flag("-Xcompiler").flag("-Wno-unused-function");
        for file in ["card", "g1", "g2", "ntt"] {
            build.file(format!("cuda/sppark_{file}.cu"));
        }
        build.compile("prestage_sppark");
    }

    /// By the rule of blst's own build, whose routines sppark's host side calls by names that depend on it.
    fn blst_uses_adx() -> bool {
        if var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
            return false;
        }
        if var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().contains("target-cpu=") {
            return var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default().split(',').any(|f| f == "adx");
        }
        #[cfg(target_arch = "x86_64")]
        return std::is_x86_feature_detected!("adx");
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }
}
