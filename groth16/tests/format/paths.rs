//! Files by their paths: which reader they take, what is remembered, what a failed write leaves.

use std::fs;
use std::io;

use prestage_groth16::format::{
    CheckCache, ContentDigest, FileKind, FormatError, LoadOptions, Note, PointChecks, load_proof,
    load_proving_key, load_public, load_r1cs, load_verifying_key, load_witness, save_params, save_proof,
    save_public, save_r1cs, save_verifying_key, save_witness, write_atomically,
};
use prestage_groth16::{AnyKey, ShapeError};

use super::{fixture, path};

fn no_cache() -> LoadOptions {
    LoadOptions { checks: PointChecks::Full, cache: None }
}

#[test]
fn every_kind_of_key_is_told_by_suffix_or_content() {
    let folder = tempfile::tempdir().unwrap();
    let circuit = load_r1cs(&path("bellman_sq10/sq10.r1cs")).unwrap();
    for (name, suffix, reduction) in [
        ("sq10/circuit.zkey", "zkey", "circom"),
        ("bellman_sq10/sq10.params", "params", "libsnark"),
        ("ark_sq10/pk_uncompressed.bin", "ark", "libsnark"),
    ] {
        for suffix in [suffix, "key"] {
            let copy = folder.path().join(format!("k.{suffix}"));
            fs::copy(path(name), &copy).unwrap();
            let key = load_proving_key(&copy, Some(&circuit), &no_cache()).unwrap();
            assert_eq!(key.value.reduction(), reduction, "{name} as .{suffix}");
            assert_eq!(key.notes, []);
        }
        // The verifying key in it; arkworks' stands alone.
        if suffix != "ark" {
            load_verifying_key(&path(name)).unwrap();
        }
    }
    load_verifying_key(&path("ark_sq10/vk_compressed.bin")).unwrap();
    load_verifying_key(&path("sq10/vkey.json")).unwrap();
    let a = load_proof(&path("sq10/proof.json")).unwrap();
    assert_eq!(load_proof(&path("sq10/proof192.bin")).unwrap(), a);
    let public = load_public(&path("sq10/public.json"), 1).unwrap();
    assert_eq!(load_public(&path("sq10/witness.wtns"), 1).unwrap(), public);
}

#[test]
fn parameters_need_the_circuit_and_the_right_one() {
    let params = path("bellman_sq10/sq10.params");
    let error = load_proving_key(&params, None, &no_cache()).unwrap_err();
    assert!(matches!(error, FormatError::NeedsR1cs { .. }) && error.to_string().contains(".r1cs"), "{error}");
    let other = load_r1cs(&path("rangecheck/circuit.r1cs")).unwrap();
    for key in [params, path("sq10/circuit.zkey"), path("ark_sq10/pk_uncompressed.bin")] {
        let error = load_proving_key(&key, Some(&other), &no_cache()).unwrap_err().to_string();
        assert!(error.contains("expected") && error.contains("got"), "{error}");
    }
}

#[test]
fn both_counts_are_said() {
    let circuit = load_r1cs(&path("boundary_full/circuit.r1cs")).unwrap();
    let witness = load_witness(&path("bad/wtns_other_circuit.wtns")).unwrap();
    let error = circuit.first_unsatisfied(&witness).unwrap_err();
    assert_eq!(error, ShapeError::Count { what: "values in the witness", expected: 256, got: 257 });
    assert_eq!(error.to_string(), "values in the witness: expected 256, got 257");
}

#[test]
fn f7_tests_of_points_are_remembered_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CheckCache::new(folder.path().join("checked"));
    let options = LoadOptions { checks: PointChecks::Full, cache: Some(cache.clone()) };
    let key = folder.path().join("k.zkey");
    fs::copy(path("boundary_full/circuit.zkey"), &key).unwrap();
    let load = || load_proving_key(&key, None, &options);
    let remembered = |notes: &[Note]| matches!(notes, [Note::Remembered { .. }]);

    assert_eq!(load().unwrap().notes, []);
    let again = load().unwrap();
    assert!(remembered(&again.notes), "{:?}", again.notes);
    let AnyKey::Circom(again) = again.value else { panic!("a zkey") };
    let AnyKey::Circom(fresh) = load_proving_key(&key, None, &no_cache()).unwrap().value else {
        panic!("a zkey")
    };
    assert_eq!((again.a(), again.b_g2(), again.h()), (fresh.a(), fresh.b_g2(), fresh.h()));

    // A changed file is another content: tested again, refused, not remembered.
    fs::copy(path("bad/zkey_b2_wrong_subgroup.zkey"), &key).unwrap();
    for _ in 0..2 {
        assert!(load().unwrap_err().to_string().contains("section 7 (B2)[10]"));
    }
    assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1);

    // Entries that say anything else count as none: cut, longer, of another content, a folder.
    fs::copy(path("boundary_full/circuit.zkey"), &key).unwrap();
    let digest = ContentDigest::of(FileKind::Zkey, &fixture("boundary_full/circuit.zkey"));
    let entry = cache.folder().join(digest.to_string());
    let good = fs::read(&entry).unwrap();
    for bad in [&b""[..], &good[..good.len() - 1], &[&good[..], b"x"].concat(), &[b'\xff'; 100]] {
        fs::write(&entry, bad).unwrap();
        assert!(!cache.contains(&digest));
        assert_eq!(load().unwrap().notes, []);
        assert_eq!(fs::read(&entry).unwrap(), good);
    }
    // The kind of file is part of the digest.
    assert_ne!(ContentDigest::of(FileKind::Params, &fixture("boundary_full/circuit.zkey")), digest);

    // No place to remember in: loaded all the same, and said.
    let blocked = folder.path().join("file");
    fs::write(&blocked, b"").unwrap();
    let options = LoadOptions { checks: PointChecks::Full, cache: Some(CheckCache::new(blocked.join("x"))) };
    let notes = load_proving_key(&key, None, &options).unwrap().notes;
    assert!(matches!(&notes[..], [Note::NotRemembered { .. }]), "{notes:?}");
}

#[test]
fn f8_a_failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("proof.json");
    fs::write(&target, "old").unwrap();
    let error = write_atomically(&target, |w| {
        w.write_all(&[b'x'; 100_000])?;
        Err(io::Error::other("out of paper"))
    });
    assert_eq!(error.unwrap_err().to_string(), "out of paper");
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    write_atomically(&target, |w| w.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
    assert!(write_atomically(&folder.path().join("none/x"), |_| Ok(())).is_err());
}

/// Writes for ever when it is run as the victim of the next test; otherwise does nothing.
#[test]
fn f8_victim() {
    let Some(target) = std::env::var_os("PRESTAGE_TEST_VICTIM") else { return };
    let _ = write_atomically(target.as_ref(), |w| {
        loop {
            w.write_all(&[b'x'; 4096])?;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
}

#[test]
fn f8_a_killed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("report.json");
    fs::write(&target, "old").unwrap();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "paths::f8_victim", "--nocapture"])
        .env("PRESTAGE_TEST_VICTIM", &target)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let half_written = || {
        fs::read_dir(folder.path()).unwrap().any(|e| e.unwrap().metadata().is_ok_and(|m| m.len() > 100_000))
    };
    while !half_written() {
        assert!(began.elapsed().as_secs() < 60, "the victim does not write");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"old");
}

#[cfg(unix)]
#[test]
fn f8_links_are_followed_and_modes_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&target, &link).unwrap();
    write_atomically(&link, |w| w.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    write_atomically("/dev/null".as_ref(), |w| w.write_all(b"gone")).unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn everything_saved_is_loaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let proof = load_proof(&path("sq10/proof.json")).unwrap();
    for name in ["p.json", "p.bin"] {
        save_proof(&at(name), &proof).unwrap();
        assert_eq!(load_proof(&at(name)).unwrap(), proof);
    }
    let public = load_public(&path("manypublic/public.json"), 201).unwrap();
    save_public(&at("public.json"), &public).unwrap();
    assert_eq!(load_public(&at("public.json"), 201).unwrap(), public);
    let vk = load_verifying_key(&path("manypublic/vkey.json")).unwrap();
    save_verifying_key(&at("v.json"), &vk).unwrap();
    assert_eq!(load_verifying_key(&at("v.json")).unwrap(), vk);
    let circuit = load_r1cs(&path("bellman_sq10/sq10.r1cs")).unwrap();
    save_r1cs(&at("c.r1cs"), &circuit).unwrap();
    assert_eq!(load_r1cs(&at("c.r1cs")).unwrap(), circuit);
    let witness = load_witness(&path("bellman_sq10/sq10.wtns")).unwrap();
    save_witness(&at("w.wtns"), &witness).unwrap();
    assert_eq!(load_witness(&at("w.wtns")).unwrap(), witness);
    let ark = load_proving_key(&path("ark_sq10/pk_uncompressed.bin"), None, &no_cache()).unwrap().value;
    let AnyKey::Libsnark(ark) = ark else { panic!("an arkworks key") };
    save_params(&at("k.params"), &ark).unwrap();
    let again = load_proving_key(&at("k.params"), Some(&circuit), &no_cache()).unwrap().value;
    let AnyKey::Libsnark(again) = again else { panic!("parameters") };
    assert_eq!((again.a(), again.b_g2(), again.vk()), (ark.a(), ark.b_g2(), ark.vk()));
}

#[test]
fn what_is_not_a_regular_file_is_refused() {
    for name in ["/dev/zero", "/"] {
        assert!(matches!(load_r1cs(name.as_ref()), Err(FormatError::Io { .. })), "{name}");
    }
    let missing = load_proof(&path("none.bin")).unwrap_err().to_string();
    assert!(missing.contains("none.bin"), "{missing}");
}
