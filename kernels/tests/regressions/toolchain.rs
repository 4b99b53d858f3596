//! Drivers, architectures and the boundary to C.

use prestage_kernels::{Arch, Capability, Error, Family, Form, Image, Target, Version, check_driver};

fn image(target: Target, compiler: Version) -> Image {
    Image { family: Family::Ntt, target, compiler, bytes: vec![] }
}

/// A driver older than the code names both versions before anything is launched.
#[test]
fn b213_old_drivers_are_refused_with_both_versions() {
    let compiler = Version { major: 13, minor: 0 };
    let driver = Version { major: 12, minor: 4 };
    let error = check_driver(driver, &image(Target::cubin(Arch::Sm90), compiler)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("12.4") && text.contains("13.0") && text.contains("update the driver"), "{text}");
}

/// Machine code of the device itself is asked for, so a driver never meets PTX newer than it reads.
#[test]
fn b214_machine_code_is_compiled_for_the_device() {
    for &arch in Arch::ALL {
        let capability = Capability { major: arch.number() / 10, minor: arch.number() % 10 };
        assert_eq!(Target::for_device(capability, &[]).unwrap(), Target::cubin(arch));
    }
}

/// A card newer than the compiler gets PTX of the newest architecture that there is.
#[test]
fn b217_newer_cards_get_ptx() {
    let blackwell = Capability { major: 12, minor: 0 };
    let target = Target::for_device(blackwell, &[75, 80, 86, 89, 90]).unwrap();
    assert_eq!(target, Target { arch: Arch::Sm90, form: Form::Ptx });
    assert_eq!(target.to_string(), "compute_90");
}

/// T4, 3090, A100 and others all get code of their own.
#[test]
fn b218_every_supported_card_has_code() {
    for (major, minor) in [(7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)]
    {
        let target = Target::for_device(Capability { major, minor }, &[]).unwrap();
        assert_eq!((target.form, target.arch.number() / 10), (Form::Cubin, major));
    }
}

/// Cards too old are told so, with what would do, as a value and not as an abort.
#[test]
fn b219_b220_unsupported_cards_are_typed_errors() {
    for (major, minor) in [(5, 2), (6, 1), (7, 0), (7, 2)] {
        let capability = Capability { major, minor };
        let error = Target::for_device(capability, &[]).unwrap_err();
        assert!(
            matches!(&error, Error::UnsupportedArchitecture { capability: c, supported } if *c == capability && supported.len() == 7)
        );
        assert!(error.to_string().contains("sm_75"), "{error}");
    }
}

/// An exception on the C++ side ends in an error here, with its message; the next call works.
#[cfg(feature = "host")]
#[test]
fn b221_exceptions_do_not_cross_the_boundary() {
    use prestage_kernels::{Args, Launch, host};

    let run = |kernel, n, args| {
        // SAFETY: wrong names and counts are refused before any argument is read.
        unsafe { host::launch(&Launch::elementwise(kernel, n, 32, args), host::Order::Forwards) }
    };
    let error = run("no_such_kernel", 1, Args::new()).unwrap_err();
    assert!(error.to_string().contains("no such kernel"), "{error}");
    let error = run("msm_clear", 1, Args::new()).unwrap_err();
    assert!(error.to_string().contains("2 arguments"), "{error}");
    let mut word = [7u32];
    run("msm_clear", 1, Args::new().with(word.as_mut_ptr()).with(1u64)).unwrap();
    assert_eq!(word, [0]);
}

/// Turing is there, and what CUDA 13 dropped is not.
#[test]
fn b222_b223_the_list_starts_at_turing() {
    assert_eq!(Arch::ALL.first(), Some(&Arch::Sm75));
    assert!(Arch::ALL.windows(2).all(|w| w[0] < w[1]));
    for old in ["sm_61", "sm_70", "sm_72"] {
        assert!(matches!(old.parse::<Arch>(), Err(Error::UnknownArchitecture { name }) if name == old));
    }
    // A compiler that knows less, or no longer knows the oldest, is believed.
    let turing = Capability { major: 7, minor: 5 };
    assert!(Target::for_device(turing, &[80, 90]).is_err());
}
