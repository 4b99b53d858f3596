//! arkworks keys, compressed or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prestage_groth16::format::{PointChecks, ark};

fuzz_target!(|data: &[u8]| {
    let _ = ark::read_verifying_key(data);
    if let Ok(key) = ark::read(data, PointChecks::Unchecked) {
        if let Ok(checked) = ark::read(data, PointChecks::Full) {
            assert_eq!((checked.a(), checked.h()), (key.a(), key.h()));
        }
    }
});
