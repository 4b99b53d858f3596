//! Looking for a card never panics and prints nothing, with or without a driver.
#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::process::Command;

use prestage_vram::Error;
use prestage_vram::cuda::probe;

/// What a probe says where there is a driver and where there is none.
#[test]
fn a_probe_is_typed() {
    match probe() {
        Ok(found) => {
            assert!(found.version.major >= 12);
            for device in &found.devices {
                assert!(!device.name.is_empty() && device.uuid.to_string().starts_with("GPU-"));
                if let Ok(free) = &device.free {
                    assert!(*free <= device.total);
                }
            }
        }
        Err(Error::NoDriver { detail }) => assert!(!detail.is_empty()),
        Err(Error::Driver { call, detail }) => assert!(!call.is_empty() && !detail.is_empty()),
        Err(other) => panic!("{other:?}"),
    }
}

/// Runs itself again as a child, with no library path and no cards, and reads what it printed.
#[test]
fn b210_a_missing_driver_is_no_panic_and_prints_nothing() {
    if std::env::var_os("PRESTAGE_PROBE_CHILD").is_some() {
        let first = probe();
        assert_eq!(first.is_ok(), probe().is_ok());
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "b210_a_missing_driver_is_no_panic_and_prints_nothing", "--nocapture"])
        .env("PRESTAGE_PROBE_CHILD", "1")
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    assert!(child.status.success());
    assert_eq!(String::from_utf8_lossy(&child.stderr), "", "nothing is printed");
}
