//! Which card is opened, and what is said where there is none.

use std::process::Command;

use prestage_vram::cuda::{Cap, Cuda, CudaConfig, Which, probe};
use prestage_vram::{Bytes, Device, Error, LedgerConfig, Margin};

use super::{again, config, is_child, on_card};

/// Where there is no driver or no card, opening one is a typed error.
#[test]
fn opening_is_typed() {
    match Cuda::open(config()) {
        Ok(card) => assert_eq!(card.name(), "cuda:0"),
        Err(Error::NoDriver { detail }) => assert!(!detail.is_empty()),
        Err(Error::NoDevice { found: 0, .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn b176_no_card_is_a_typed_error() {
    if is_child() {
        let opened = Cuda::open(config());
        assert!(
            matches!(&opened, Err(Error::NoDriver { .. } | Error::NoDevice { found: 0, .. })),
            "{opened:?}"
        );
        return;
    }
    let name = "open::b176_no_card_is_a_typed_error";
    assert!(again(name).env("CUDA_VISIBLE_DEVICES", "").status().unwrap().success());
}

/// A library of the driver's name that lacks functions: an old driver, or a stub that toolkits ship. Found by either of its
/// names: images that only run programs have the versioned one alone.
#[test]
fn b206_b208_a_driver_that_lacks_functions_is_a_typed_error() {
    if is_child() {
        for _ in 0..2 {
            let opened = Cuda::open(config());
            assert!(
                matches!(&opened, Err(Error::NoDriver { detail }) if detail.contains("has no cu")),
                "{opened:?}"
            );
            assert!(matches!(probe(), Err(Error::NoDriver { .. })));
        }
        println!("\ntyped");
        return;
    }
    let folder = std::env::temp_dir().join(format!("prestage-stub-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("stub.c");
    let text = "int cuInit(unsigned flags) { return 0; }\nint cuDriverGetVersion(int* v) { *v = 13000; return 0; }\n";
    std::fs::write(&source, text).unwrap();
    // Where there is a driver, its other name is found elsewhere first.
    let names = ["libcuda.so", "libcuda.so.1"];
    let names = if probe().is_ok() { &names[..1] } else { &names[..] };
    for library in names.iter().map(|name| folder.join(name)) {
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
        if built.is_ok_and(|status| status.success()) {
            let name = "open::b206_b208_a_driver_that_lacks_functions_is_a_typed_error";
            let out = again(name).env("LD_LIBRARY_PATH", &folder).output().unwrap();
            let words =
                format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
            assert!(out.status.success() && words.contains("typed"), "{words}");
            std::fs::remove_file(&library).unwrap();
        } else {
            println!("b206 skipped: no C compiler");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn b109_a_card_is_the_same_by_number_and_by_uuid() {
    on_card("b109", || {
        let found = probe().unwrap();
        for device in &found.devices {
            let by_number = CudaConfig { which: Which::Ordinal(device.ordinal), ..config() };
            let by_uuid = CudaConfig { which: device.uuid.to_string().parse().unwrap(), ..config() };
            let (a, b) = (Cuda::open(by_number).unwrap(), Cuda::open(by_uuid).unwrap());
            assert_eq!((a.info().uuid, a.info().ordinal), (b.info().uuid, b.info().ordinal));
            assert_eq!((a.info().uuid, &a.info().name), (device.uuid, &device.name));
            assert!(a.info().multiprocessors > 0 && a.info().compute == device.compute);
        }
        let count = u32::try_from(found.devices.len()).unwrap();
        let uuid = "GPU-00000000-0000-0000-0000-000000000000".parse().unwrap();
        for which in [Which::Ordinal(count), Which::Ordinal(u32::MAX), Which::Uuid(uuid)] {
            let opened = Cuda::open(CudaConfig { which, ..config() });
            assert!(matches!(&opened, Err(Error::NoDevice { found, .. }) if *found == count), "{opened:?}");
        }
    });
}

#[test]
fn l7_a_margin_larger_than_the_card_is_refused_when_it_is_opened() {
    on_card("l7", || {
        let open = |margin| {
            let ledger = LedgerConfig { margin, ..LedgerConfig::default() };
            Cuda::open(CudaConfig { ledger, ..config() })
        };
        assert!(matches!(open(Margin::Fixed(Bytes::gib(1 << 20))), Err(Error::MarginTooLarge { .. })));
        assert_eq!(open(Margin::Fixed(Bytes::mib(512))).unwrap().ledger().margin(), Bytes::mib(512));
        let card = open(Margin::Permille(50)).unwrap();
        assert_eq!(card.ledger().margin().get(), card.reading().unwrap().capacity.get() * 50 / 1000);
    });
}

/// A cap makes a smaller card of it, with the context that it has or one that is stated.
#[test]
fn l2_a_cap_makes_a_smaller_card() {
    on_card("l2", || {
        let open = |cap: &str| {
            let cap: Cap = cap.parse().unwrap();
            Cuda::open(CudaConfig { cap: Some(cap), ..config() }).unwrap()
        };
        let stated = open("2GiB,context=512MiB");
        assert_eq!(stated.ledger().level().usable, Bytes::mib(1536));
        let measured = open("2GiB");
        let context = measured.reading().unwrap().context;
        println!("context: {context}");
        assert!(context > Bytes::mib(64) && context < Bytes::gib(2), "{context}");
        assert_eq!(measured.ledger().level().usable, Bytes::gib(2) - context);

        // A cap above what there is grants no more than there is.
        let whole = Cuda::open(config()).unwrap().reading().unwrap();
        let wide = open("1024GiB,context=0");
        assert!(wide.ledger().level().usable <= whole.usable());
    });
}
