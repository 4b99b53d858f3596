//! Compilation at run time, with NVRTC where it is installed and without it where it is not. No GPU in either.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use prestage_kernels::{
    Arch, Cache, Capability, Compiler, Error, Family, Form, Image, Target, Version, build, driver_version,
    module, ready,
};

const HOPPER: Capability = Capability { major: 9, minor: 0 };

#[test]
fn missing_libraries_are_typed_errors() {
    match driver_version() {
        Ok(version) => assert!(version.major >= 11, "{version}"),
        Err(e) => assert!(matches!(e, Error::NoDriver), "{e}"),
    }
    match Compiler::find() {
        Ok(compiler) => assert!(compiler.architectures().contains(&90), "{compiler:?}"),
        Err(e) => assert!(matches!(e, Error::NoNvrtc), "{e}"),
    }
}

#[test]
fn a_module_comes_from_the_compiler_or_from_a_warm_cache() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let target = Target::cubin(Arch::Sm90);
    match Compiler::find() {
        Ok(compiler) => {
            let image = module(&cache, Family::Field, HOPPER).unwrap();
            assert!(image.bytes.starts_with(b"\x7fELF"), "a cubin is an ELF file");
            assert_eq!((image.target, image.compiler), (target, compiler.version()));
            // A second time from the cache: what is there now is not what NVRTC would make.
            let marked = Image { bytes: vec![1, 2, 3], ..image };
            cache.store(&marked).unwrap();
            assert_eq!(module(&cache, Family::Field, HOPPER).unwrap(), marked);
            let ptx = compiler.compile(Family::Field, Target { arch: Arch::Sm75, form: Form::Ptx }).unwrap();
            let text = String::from_utf8_lossy(&ptx.bytes);
            for kernel in Family::Field.kernels() {
                assert!(text.contains(&format!(".entry {kernel}(")), "{kernel}");
            }
        }
        Err(_) => {
            let error = module(&cache, Family::Field, HOPPER).unwrap_err();
            assert!(matches!(error, Error::NoCompiler { .. }), "{error}");
            assert!(error.to_string().contains("prestage kernels build --arch sm_90"), "{error}");
            assert!(matches!(build(&cache, &[Arch::Sm90], |_| ()), Err(Error::NoNvrtc)));
            let image = Image {
                family: Family::Field,
                target,
                compiler: Version { major: 13, minor: 0 },
                bytes: vec![1, 2, 3],
            };
            cache.store(&image).unwrap();
            assert_eq!(module(&cache, Family::Field, HOPPER).unwrap(), image);
        }
    }
}

#[test]
fn an_old_device_is_told_what_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let pascal = Capability { major: 6, minor: 1 };
    let error = module(&Cache::at(dir.path()), Family::Curve, pascal).unwrap_err();
    assert!(matches!(error, Error::UnsupportedArchitecture { .. }), "{error}");
    assert!(error.to_string().contains("6.1"), "{error}");
}

#[test]
fn kernels_are_ready_with_a_compiler_or_with_all_of_them_in_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let compiler = Compiler::find().ok().map(|compiler| compiler.version());
    let version = compiler.unwrap_or(Version { major: 13, minor: 0 });
    let older = Version { major: version.major - 1, minor: 9 };
    let says = |driver| ready(&cache, Family::PROVING, HOPPER, driver);
    for &family in Family::PROVING {
        match says(version) {
            Ok(()) => assert!(compiler.is_some(), "{family} is neither compiled nor to be compiled"),
            Err(Error::NoCompiler { family: missing, .. }) => assert_eq!((missing, compiler), (family, None)),
            Err(e) => panic!("{e}"),
        }
        let target = Target::cubin(Arch::Sm90);
        cache.store(&Image { family, target, compiler: version, bytes: vec![1, 2, 3] }).unwrap();
    }
    says(version).unwrap();
    assert!(matches!(says(older), Err(Error::DriverTooOld { .. })));
    let old = Capability { major: 6, minor: 1 };
    let error = ready(&cache, Family::PROVING, old, version).unwrap_err();
    assert!(matches!(error, Error::UnsupportedArchitecture { .. }), "{error}");
}
