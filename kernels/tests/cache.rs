//! The module cache, architectures and versions: what needs no compiler and no GPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;

use prestage_kernels::{
    Arch, Cache, Capability, Error, Family, Form, Image, State, Target, Version, check_driver,
};

const V13: Version = Version { major: 13, minor: 0 };

fn image(family: Family, target: Target, compiler: Version, fill: u8) -> Image {
    Image { family, target, compiler, bytes: vec![fill; 1000] }
}

#[test]
fn entries_come_back_and_are_keyed_by_all_that_matters() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path().join("kernels"));
    let target = Target::cubin(Arch::Sm90);
    assert_eq!(cache.load(Family::Field, target, Some(V13)).unwrap(), None);
    assert_eq!(cache.list().unwrap(), []);
    let a = image(Family::Field, target, V13, 1);
    cache.store(&a).unwrap();
    assert_eq!(cache.load(Family::Field, target, Some(V13)).unwrap(), Some(a.clone()));
    // Another family, target, form or compiler is another entry.
    assert_eq!(cache.load(Family::Curve, target, Some(V13)).unwrap(), None);
    assert_eq!(cache.load(Family::Field, Target::cubin(Arch::Sm80), Some(V13)).unwrap(), None);
    assert_eq!(cache.load(Family::Field, Target { form: Form::Ptx, ..target }, Some(V13)).unwrap(), None);
    assert_eq!(cache.load(Family::Field, target, Some(Version { major: 13, minor: 1 })).unwrap(), None);
    // With no compiler to ask, the newest one's.
    let newer = image(Family::Field, target, Version { major: 13, minor: 2 }, 2);
    cache.store(&newer).unwrap();
    assert_eq!(cache.load(Family::Field, target, None).unwrap(), Some(newer));
    // A second store replaces.
    let b = image(Family::Field, target, V13, 3);
    cache.store(&b).unwrap();
    assert_eq!(cache.load(Family::Field, target, Some(V13)).unwrap(), Some(b));
    assert_eq!(cache.list().unwrap().len(), 2);
    assert!(cache.list().unwrap().iter().all(|e| e.state == State::Current && e.family == "field"));
}

#[test]
fn f8_corrupt_foreign_and_half_written_entries_are_misses() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let target = Target::cubin(Arch::Sm86);
    let a = image(Family::Curve, target, V13, 7);
    let path = cache.store(&a).unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in [0, 1, 39, 40, 500, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(cache.load(Family::Curve, target, Some(V13)).unwrap(), None, "cut at {cut}");
        assert_eq!(cache.load(Family::Curve, target, None).unwrap(), None);
        assert_eq!(cache.list().unwrap()[0].state, State::Corrupt);
    }
    for flip in [0, 8, 39, 40, whole.len() - 1] {
        let mut bad = whole.clone();
        bad[flip] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert_eq!(cache.load(Family::Curve, target, Some(V13)).unwrap(), None, "flip at {flip}");
    }
    cache.store(&a).unwrap();
    assert_eq!(cache.load(Family::Curve, target, Some(V13)).unwrap(), Some(a));

    // What a killed writer, another version and another program leave.
    fs::write(path.with_extension("1-0.tmp"), &whole[..10]).unwrap();
    let stale = dir.path().join("curve-sm_86-000000000000000000000000-cuda13.0.bin");
    fs::write(&stale, &whole).unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let states: Vec<State> = cache.list().unwrap().iter().map(|e| e.state).collect();
    assert_eq!(states.len(), 2);
    assert!(states.contains(&State::Stale) && states.contains(&State::Current));
    assert_eq!(cache.clear(Some(Arch::Sm90)).unwrap(), 0);
    assert_eq!(cache.clear(None).unwrap(), 3);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the foreign file stays");
}

#[test]
fn an_unreadable_cache_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = Cache::at(&file);
    let error = cache.list().unwrap_err();
    assert!(matches!(&error, Error::Cache { path, .. } if *path == file), "{error}");
    let error = cache.store(&image(Family::Field, Target::cubin(Arch::Sm75), V13, 0)).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn architectures_read_and_write() {
    for &arch in Arch::ALL {
        assert_eq!(arch.to_string().parse::<Arch>().unwrap(), arch);
        assert_eq!(arch.number().to_string().parse::<Arch>().unwrap(), arch);
        for form in [Form::Cubin, Form::Ptx] {
            let target = Target { arch, form };
            assert_eq!(target.to_string().parse::<Target>().unwrap(), target);
        }
    }
    assert_eq!("8.6".parse::<Arch>().unwrap(), Arch::Sm86);
    let error = "sm_70".parse::<Arch>().unwrap_err();
    assert!(error.to_string().contains("sm_75"), "{error}");
}

#[test]
fn drivers_are_compared_with_what_compiled() {
    let cubin = image(Family::Field, Target::cubin(Arch::Sm90), V13, 0);
    let ptx = image(
        Family::Field,
        Target { arch: Arch::Sm120, form: Form::Ptx },
        Version { major: 13, minor: 1 },
        0,
    );
    assert!(check_driver(Version::from_packed(13000), &cubin).is_ok());
    assert!(check_driver(Version::from_packed(13020), &ptx).is_ok());
    // PTX needs a driver of at least its own version, machine code one of the same major version.
    let error = check_driver(Version::from_packed(13000), &ptx).unwrap_err();
    assert!(error.to_string().contains("13.0") && error.to_string().contains("13.1"), "{error}");
    let error = check_driver(Version::from_packed(12080), &cubin).unwrap_err();
    assert!(
        matches!(error, Error::DriverTooOld { driver, compiler } if driver == Version { major: 12, minor: 8 } && compiler == V13)
    );
}

#[test]
fn devices_get_machine_code_or_ptx() {
    let device = |major, minor| Capability { major, minor };
    let exact = |a| Target::cubin(a);
    assert_eq!(Target::for_device(device(9, 0), &[]).unwrap(), exact(Arch::Sm90));
    assert_eq!(Target::for_device(device(8, 7), &[]).unwrap(), exact(Arch::Sm86));
    assert_eq!(Target::for_device(device(10, 3), &[]).unwrap(), exact(Arch::Sm100));
    assert_eq!(Target::for_device(device(12, 1), &[]).unwrap(), exact(Arch::Sm120));
    // Newer than the compiler, or than this crate.
    let old = [75, 80, 86, 89, 90];
    assert_eq!(
        Target::for_device(device(12, 0), &old).unwrap(),
        Target { arch: Arch::Sm90, form: Form::Ptx }
    );
    assert_eq!(
        Target::for_device(device(13, 5), &[]).unwrap(),
        Target { arch: Arch::Sm120, form: Form::Ptx }
    );
    let error = Target::for_device(device(7, 0), &[]).unwrap_err();
    assert!(error.to_string().contains("7.0") && error.to_string().contains("sm_75"), "{error}");
}
