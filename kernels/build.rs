//! Compiles the kernel sources with the host's C++17 compiler (feature `host`).
//!
//! `PRESTAGE_KERNELS_SANITIZE=1` adds AddressSanitizer and UndefinedBehaviorSanitizer; see
//! `scripts/sanitize.sh`.

#[cfg(not(feature = "host"))]
fn main() {}

#[cfg(feature = "host")]
fn main() {
    println!("cargo:rerun-if-changed=cuda");
    println!("cargo:rerun-if-env-changed=PRESTAGE_KERNELS_SANITIZE");
    let sanitize = std::env::var_os("PRESTAGE_KERNELS_SANITIZE").is_some_and(|v| v == "1");

    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(true).extra_warnings(true).opt_level(2).include("cuda");
    // The family sources end in `.cu`, which only a CUDA compiler takes for C++.
    if build.get_compiler().is_like_msvc() {
        build.flag("/TP").flag("/EHsc");
    } else {
        build.flag("-x").flag("c++");
    }
    if sanitize {
        for flag in
            ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g"]
        {
            build.flag(flag);
        }
        // The compiler driver is told `-nodefaultlibs` by rustc and would leave the runtimes out.
        for library in ["asan", "ubsan"] {
            println!("cargo:rustc-link-arg=-l{library}");
        }
    }
    for file in [
        "host.cpp",
        "field.cu",
        "curve.cu",
        "ntt.cu",
        "msm_sort.cu",
        "msm_lists.cu",
        "msm_g1.cu",
        "msm_g2.cu",
        "fixed_base.cu",
    ] {
        build.file(format!("cuda/{file}"));
    }
    if let Err(error) = build.try_compile("prestage_kernels_host") {
        eprintln!("{error}");
        eprintln!();
        eprintln!("prestage-kernels builds its CUDA sources for the host too and needs a C++17 compiler.");
        eprintln!(
            "hint: install one (Debian, Ubuntu: `apt-get install g++`; Fedora: `dnf install gcc-c++`), or"
        );
        eprintln!("      name it in CXX; a build without `host` (`default-features = false`) needs none.");
        std::process::exit(1);
    }
}
